"""The part of the seam about schedules and what became of their slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:  # most transactions have nothing to do with schedules
    from headway.core.fire import Active, Firing, Schedule


class Missed(NamedTuple):
    """How many slots did not fire, as far as that is kept, and the newest of them."""

    slots: int
    last_at: int
    reason: str


class ReadsSchedules(Protocol):
    def schedules(self, ids: Sequence[int]) -> dict[int, Schedule]: ...
    def schedule_named(self, name: str) -> Schedule | None: ...
    def all_schedules(self) -> list[Schedule]:
        """By their ids."""

    def due_schedules(self, now: int, limit: int) -> list[Schedule]:
        """Those that are to fire by then, the longest due first."""

    def schedules_to_review(
        self, zones: str, now: int, *, after: int, limit: int
    ) -> list[Schedule]:
        """Of those with greater ids the enabled ones whose next slot was found with other time
        zones, or at a time that has yet to come."""

    def active_of_schedules(self, names: Sequence[str]) -> dict[str, list[Active]]:
        """By what made them (`schedule-3`), the jobs that have not ended, the oldest first."""

    def fired_ahead(self, ids: Sequence[int]) -> dict[int, int]:
        """Of each schedule the first slot that fired of those that are yet to come, if any did: a
        clock went back."""

    def last_firings(self, ids: Sequence[int]) -> dict[int, Firing]:
        """Of each schedule the newest record before its next slot."""

    def firings(self, schedule_id: int, limit: int) -> list[Firing]:
        """The newest first."""

    def missed(self, ids: Sequence[int]) -> dict[int, Missed]: ...


class WritesSchedules(ReadsSchedules, Protocol):
    def take_schedule_id(self) -> int: ...
    def put_schedule(self, schedule: Schedule) -> None:
        """In the place of the one with the same id, if there is one. How far it has fired stays."""

    def move_schedules(self, moved: Iterable[Schedule]) -> None:
        """How far they have come; of one that was changed since it was read, nothing."""

    def note_next_fire(self) -> None:
        """After any change: when the first of all is to fire is known to every step."""

    def remove_schedule(self, schedule_id: int) -> bool:
        """With its records; its jobs stay. False if there is none."""

    def add_firings(self, firings: Iterable[Firing]) -> None:
        """A slot that is there already is refused: none fires twice."""

    def grow_firings(self, firings: Iterable[Firing]) -> None:
        """Ranges of skipped slots have become longer."""

    def take_back_skipped(self, schedule_id: int, after: int) -> list[Firing]:
        """Remove the skipped ranges that reach beyond an instant, and say which those were."""

    def forget_firings(self, before: int, keep: int, *, after: int, limit: int) -> int | None:
        """Of so many schedules with greater ids forget records that were made before an instant,
        and all but the newest so many; the last of their ids, None if there are no more."""
