"""What else a changed setting changes, in the transaction that changes it.

Most settings are read when they are needed and have no line here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headway.core.order import relevel
from headway.store.base import WriteTx
from headway.units import parse_duration


def take_effect(tx: WriteTx, key: str, value: Any) -> None:
    effect = EFFECTS.get(key)
    if effect is not None:
        effect(tx, value)


def _other_levels(tx: WriteTx, ageing: str) -> None:
    """Everyone stands where the new ageing puts it; who comes first for a lock may be another."""
    tx.place_jobs(relevel(tx.in_dispatch_order(), parse_duration(ageing)))
    tx.wake_first(tx.locks_waited_for())


EFFECTS: Mapping[str, Callable[[WriteTx, Any], None]] = {"scheduler.ageing": _other_levels}
