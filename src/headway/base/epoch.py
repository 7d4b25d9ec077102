"""The epoch of a store's events.

Events are numbered. A restored store goes on with the numbers of its backup and gives some of them
a second time, so a number says something only together with the epoch that it was given in. The
epoch is random and a new one after each restore.
"""

import os
from collections.abc import Mapping

EPOCH = "event_epoch"  # its mark
_BYTES = 6


def new_epoch() -> int:
    return int.from_bytes(os.urandom(_BYTES), "big") or 1


def shown_epoch(marks: Mapping[str, int]) -> str | None:
    """As people and programs see it; None: the store has lost it."""
    value = marks.get(EPOCH, 0)
    return f"{value:0{2 * _BYTES}x}" if value else None
