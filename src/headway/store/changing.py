"""What each part of a write transaction stands on: all that can be read, and changes to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.store.adding import AddingTx
from headway.store.graphreading import GraphReadTx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.store.base import Filing
    from headway.store.state import Whereabouts


class Changing(AddingTx, GraphReadTx):
    def _follow_filed(self, before: Whereabouts | None, filings: Sequence[Filing]) -> None:
        """Jobs were filed; `before` is what was known until then."""
        self._whereabouts = before.with_filed(filings) if before is not None else None
        if self._state is not None:
            self._state.filed(filings)
