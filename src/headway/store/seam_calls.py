"""The seam for plain calls: many are claimed, and many that returned are settled, at once."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from headway.core.model import Json
from headway.core.plaincalls import PlainCall, PlainEnd


class Claimant(NamedTuple):
    """Who claims calls, and for which process: the same for all of them."""

    worker_id: str
    host_id: str
    home: str
    boot_id: str
    folder: str
    function_host: str
    lease_until: int | None = None


class TakenCall(NamedTuple):
    """A call with its token and its slot."""

    call: PlainCall
    token: str
    slot: int
    claimed_at: int


class ReadsCalls(Protocol):
    def plain_calls(self, limit: int) -> tuple[list[PlainCall], bool]:
        """Those at the head of the queue of functions, up to the first that is not plain, and
        whether there was none such."""

    def look_at_calls(self, limit: int) -> None:
        """Ask for the state and for so many plain calls together, at the beginning: both will be
        needed, and where questions travel they travel once."""

    def only_calls_wait(self, queues: Collection[str]) -> bool:
        """Whether no job of these queues, nor any other, is to be looked at, settled or cancelled
        but functions at the door; and nobody waits for anything but a slot."""

    def anyone_awaits(self) -> bool:
        """Whether some job waits for the end of another at all."""


class WritesCalls(Protocol):
    def others_wrote(self) -> bool:
        """Whether anyone but this process may have committed since the last write transaction in
        which this was asked."""

    def claim_calls(self, claimant: Claimant, taken: Sequence[TakenCall]) -> None:
        """Claim these, with their runs and events."""

    def finish_calls(self, ends: Sequence[PlainEnd], *, actor: str, awaited: bool) -> bool:
        """Write the ends of those whose claims are live. If anyone may wait for the end of a chain
        at all, tell those who do; whether there were some."""


class Relay(Protocol):
    """Calls that one process makes one after another, in one slot: the end of the one and the claim
    of the next in a transaction with nothing around it."""

    def prepare(self, last: TakenCall, call: PlainCall, token: str) -> bool:
        """While the last one still runs: what comes after it, and under which token. False if
        others wrote since `others_wrote` was last asked. `pass_on` or `drop` must follow."""

    def pass_on(self, finished_at: int, result: Json) -> int | None:
        """The last one has returned. The instant at which what comes after it was claimed; None if
        it was not, because others wrote, or something is not as it was thought to be."""

    def drop(self) -> None:
        """Nothing of what was prepared is to stay; nothing at all, if it was passed on."""
