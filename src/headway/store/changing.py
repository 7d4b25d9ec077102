"""What each part of a write transaction stands on: all that can be read, and changes to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.store.graphreading import GraphReadTx
from headway.store.waking import WakingWriteTx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.store.base import Filing
    from headway.store.state import Whereabouts
    from headway.store.waking import Woken


class Changing(WakingWriteTx, GraphReadTx):
    def _follow_filed(
        self, before: Whereabouts | None, filings: Sequence[Filing], looked: Woken | None
    ) -> None:
        """Jobs were filed; `before` and `looked` are what was known until then."""
        self._whereabouts = before.with_filed(filings) if before is not None else None
        self._seen_to(looked, [each.job.id for each in filings])
        if self._state is not None:
            self._state.filed(filings)
