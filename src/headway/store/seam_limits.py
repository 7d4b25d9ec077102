"""The seam for limits and rates: who waits for them, and the starts that rates count."""

from collections.abc import Collection, Sequence
from typing import Protocol

from headway.core.model import Claim, Job


class LimitReads(Protocol):
    def limits_waited_for(self) -> Collection[str]:
        """The topics of limits that jobs may be filed under; under others there is none."""

    def filed_under(self, topic: str, limit: int) -> list[Job]:
        """The first in dispatch order of those that are filed under this."""

    def count_filed(self) -> dict[str, int]:
        """How many are filed under each limit."""

    def count_limited(self) -> int:
        """How many are filed under any limit."""

    def newest_starts(self, key: str, since: int, most: int) -> list[int]:
        """The instants of the last starts under a rate's key, the newest first."""


class LimitWrites(Protocol):
    def note_starts(self, started: Sequence[tuple[Job, Claim]]) -> None:
        """These jobs start: it counts for their rates."""

    def forget_starts(self, job: Job, claim: Claim) -> None:
        """This claim came to nothing: it does not count."""

    def forget_old_starts(self, before: int, most: int) -> int:
        """Forget the starts that no rate can count any more: those before an instant, and of each
        key all but the newest."""
