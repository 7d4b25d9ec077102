"""The epoch of a store's events.

Events are numbered. A restored store goes on with the numbers of its backup and gives some of them
a second time, so a number says something only together with the epoch that it was given in. The
epoch is random and a new one after each restore. The events that came with the backup keep the
epoch that they were numbered in.
"""

import os
from collections.abc import Mapping

EPOCH = "event_epoch"  # its mark
EARLIER = "earlier_epoch"  # the mark of the one before the last restore
LAST_OF_EARLIER = "earlier_epoch_until"  # the last event that was numbered in that one
_BYTES = 6


def new_epoch() -> int:
    return int.from_bytes(os.urandom(_BYTES), "big") or 1


def shown_epoch(marks: Mapping[str, int]) -> str | None:
    """As people and programs see it; None: the store has lost it."""
    return _shown(marks.get(EPOCH, 0))


def epoch_of(marks: Mapping[str, int], seq: int) -> str | None:
    """The epoch that this event was numbered in."""
    if seq <= marks.get(LAST_OF_EARLIER, 0):
        return _shown(marks.get(EARLIER, 0))
    return shown_epoch(marks)


def _shown(value: int) -> str | None:
    return f"{value:0{2 * _BYTES}x}" if value else None
