"""The scheduler as people steer it: they pause it, let it go on, and change the store's settings.

What else a changed setting changes is done in the transaction that changes it. Most settings are
read when they are needed and have no effect of that kind.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headway.base.errors import HeadwayError
from headway.base.units import parse_duration
from headway.core.model import Pause
from headway.core.order import relevel
from headway.jobs.context import Context
from headway.jobs.settings import find_setting
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx


def pause(context: Context, reason: str | None) -> Pause:
    """Hold everything; a pause in force stays as it is."""

    def transaction(tx: WriteTx) -> Pause | None:
        if tx.settings.pause(
            Pause(context.actor, reason, tx.now())
        ):  # beside those of single hosts
            tx.events.add([Event("paused", None, {"reason": reason})], actor=context.actor)
        return tx.settings.pause_in_force()

    in_force = context.store.transact(transaction)
    assert in_force is not None  # noqa: S101
    return in_force


def resume(context: Context) -> bool:
    """Let all hosts go on; False if nothing was paused."""

    def transaction(tx: WriteTx) -> tuple[bool, bool]:
        resumed = tx.settings.resume()
        if resumed:
            tx.settings.set_mark("crashes_forgiven_at", tx.now())
            tx.events.add([Event("resumed")], actor=context.actor)
        return resumed, _needs_worker(tx)

    resumed, needed = context.store.transact(transaction)
    if needed:
        context.wake()
    return resumed


def settings(context: Context) -> dict[str, Any]:
    """The settings that are kept in the store, and have been changed."""
    with context.store.read() as tx:
        return tx.settings.all()


def set_setting(context: Context, key: str, value: Any) -> None:
    """Change a setting that is kept in the store; the value may be as a person writes it."""
    checked = find_setting(key, in_store=True).read(value)

    def transaction(tx: WriteTx) -> bool:
        tx.settings.set(key, checked, by=context.actor)
        tx.events.add([Event("set", None, {"key": key, "value": checked})], actor=context.actor)
        take_effect(tx, key, checked)
        return _needs_worker(tx)

    if context.store.transact(transaction):
        context.wake()


def unset_setting(context: Context, key: str) -> None:
    """Let a setting have its default again. A row of no setting is removed, too."""

    def transaction(tx: WriteTx) -> bool:
        try:
            default = find_setting(key, in_store=True).default
        except HeadwayError:
            if key not in tx.settings.all():
                raise
            default = None
        tx.settings.unset(key)
        tx.events.add([Event("set", None, {"key": key, "value": default})], actor=context.actor)
        take_effect(tx, key, default)
        return _needs_worker(tx)

    if context.store.transact(transaction):
        context.wake()


def _needs_worker(tx: ReadTx) -> bool:
    """Whether there is something that a worker would do. Else none is started; one that is there
    sees the change when it polls."""
    return tx.jobs.anything_active() or bool(tx.settings.marks()["next_fire_at"])


def take_effect(tx: WriteTx, key: str, value: Any) -> None:
    effect = EFFECTS.get(key)
    if effect is not None:
        effect(tx, value)


def _other_levels(tx: WriteTx, ageing: str) -> None:
    """Everyone stands where the new ageing puts it; another may come first for a lock."""
    tx.queue_order.place(relevel(tx.queue_order.in_dispatch_order(), parse_duration(ageing)))
    tx.waits.wake_first(tx.queue_order.locks_waited_for())


EFFECTS: Mapping[str, Callable[[WriteTx, Any], None]] = {"scheduler.ageing": _other_levels}
