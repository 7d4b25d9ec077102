"""The seam for plain calls: many are claimed, and many that returned are settled, at once."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

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
