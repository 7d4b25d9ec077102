"""The step cache: what a transaction has read of the store and need not read again.

A query says what it changes (`-- changes:`), and what is not known to stay as it is must be read
again. Nobody else writes meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.store.queries import Effect

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headway.core.model import JobId
    from headway.store.queries import Query
    from headway.store.records import Parking
    from headway.store.scheduler_state import Presence, State, Woken


class StepCache:
    """The state that one transaction has read. `ahead` are plain calls that were read along with
    it, and how many were asked for; `woken` are the woken jobs, with what they still wait for."""

    __slots__ = ("ahead", "crowded", "presence", "state", "woken")

    def __init__(self) -> None:
        self.state: State | None = None
        self.presence: Presence | None = None
        self.ahead: tuple[int, list[Any]] = 0, []
        self.woken: Woken | None = None
        self.crowded = False  # more are woken than are checked together

    @property
    def contended(self) -> bool:
        """Whether anybody may wait for a lock."""
        return self.presence is None or self.presence.contended

    def forget(self, query: Query) -> None:
        """Forget what this query may have changed; it is read again when it is needed."""
        if not query.changes or query.effect is Effect.FOLLOWED:
            return
        if "jobs" in query.changes:
            self.woken = None
            if query.effect is not Effect.ENDS:
                self.ahead = 0, []
        if "edges" in query.changes:
            self.woken = None
        if self.state is not None and self.state.is_changed_by(query):
            self.state = None
        if self.presence is not None:
            self.presence = self.presence.after(query)

    def seen_to(self, before: Woken | None, ids: Iterable[JobId]) -> None:
        """These jobs were started, or parked. The other ones are as they were, but not all that
        they wait for; if there are none, nobody need be asked who is woken."""
        if before is None or len(before.rows) >= before.limit:
            return
        seen_to = set(ids)
        rows = [row for row in before.rows if row[0] not in seen_to]
        self.woken = before._replace(rows=rows, unmet={})
        if not rows and self.presence is not None:
            self.presence = self.presence._replace(woken=False)

    def parked(
        self, before: Presence | None, parkings: Sequence[Parking], woken: Woken | None
    ) -> None:
        """Jobs were parked; `before` and `woken` are what was known until then."""
        self.presence = before.with_parked(parkings) if before is not None else None
        self.seen_to(woken, [each.job.id for each in parkings])
        if self.state is not None:
            self.state.parked(parkings)
