"""A slot for work that is no job: ask for one, wait for it in line, keep it renewed, give it back.

Every caller decides for itself, in a write transaction of its own and with the code that the
planner asks, so no worker has to be there. Until it is released, or nobody has renewed it for as
long as `scheduler.reservation_expiry` says, it counts. A caller that finds one of somebody else
past its time removes it, but only after it has itself been awake for a period: after a suspend of
the machine the holder needs that long to renew it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from headway.base.clock import SECOND
from headway.base.current import inside
from headway.base.errors import (
    HeadwayError,
    InvalidInputError,
    NotFoundError,
    ReservationLostError,
    TimedOutError,
)
from headway.base.units import parse_duration, show_instant
from headway.core.capacity import direct_lender, direct_objection, free_slots
from headway.core.model import JobId, WaitKind, shown
from headway.core.policies import ENTRY
from headway.core.reservations import Reservation, is_expired, renewal_period
from headway.jobs.expiry import end_overdue, remove_expired
from headway.jobs.quotas import check_word
from headway.jobs.settings import store_setting
from headway.jobs.views.present import present_capacity
from headway.jobs.wait import HOLDING, refuse_endless_wait, surrounding
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx

if TYPE_CHECKING:
    from headway.jobs.context import Context

FASTEST_POLL = 0.01
SLOWEST_POLL = 0.1
LOOK_EVERY = 0.5  # seconds; what only time changes
LONGEST_NOTE = 200
MOST_NAMED = 3


class HeldSlot:
    """A slot that this process holds, as the body of `reserve` gets it."""

    def __init__(self, reservation: Reservation) -> None:
        self.id = reservation.name
        self.token = reservation.token
        self.lost = False  # it was not renewed in time, and others may have the slot by now


def keys_taken(kind: str | None, resources: Sequence[str], target: str | None) -> tuple[str, ...]:
    """The keys that it takes of limits, in the form of claims."""
    words = [f"resource:{check_word('resource', each)}" for each in dict.fromkeys(resources)]
    if kind is not None:
        words.insert(0, f"type:{check_word('type', kind)}")
    if target is not None:
        words.append(f"target:{check_word('target', target)}")
    return tuple(words)


@contextmanager
def reserve(
    context: Context,
    *,
    note: str = "",
    type: str | None = None,  # noqa: A002  as in the options
    resources: Sequence[str] = (),
    target: str | None = None,
    timeout: float | None = None,
    while_waiting: Callable[[str, str], None] = lambda name, why: None,
    renewed: Callable[[HeldSlot], None] = lambda held: None,
) -> Iterator[HeldSlot]:
    """Hold a slot within the block: the next one that is free, before every queued job.

    Raises TimedOutError if there is none within `timeout` seconds, and ReservationLostError at the
    end of the block if it was not renewed in time. `while_waiting` is called several times a second
    with the reason for the wait, and may raise to give up; `renewed` is called, in another thread,
    after each
    renewal and when it is lost.
    """
    _check_note(note)
    asking = _Asking(context, note, keys_taken(type, resources, target))
    asking.ask()
    renewal = _Renewal(context, asking, renewed)
    try:
        renewal.start()
        asking.wait(timeout, while_waiting)
        renewal.held = held = HeldSlot(asking.reservation)
        before = HOLDING.get()
        HOLDING.set(held.token)
        try:
            yield held
        finally:
            HOLDING.set(before)
    except BaseException:
        renewal.stop()
        with suppress(HeadwayError):  # what went wrong in the block is the news; this expires
            asking.release()
        raise
    renewal.stop()
    with suppress(HeadwayError):
        held.lost = not asking.release() or held.lost
    if held.lost:
        raise _lost(held.id)


def _check_note(note: str) -> None:
    if "\0" in note or len(note) > LONGEST_NOTE:
        raise InvalidInputError(f"a note has at most {LONGEST_NOTE} characters, and no NUL")


class _Asking:
    """One wish for a slot, from the first question to the release."""

    def __init__(self, context: Context, note: str, occupies: tuple[str, ...]) -> None:
        self._context = context
        self._note = note
        self._occupies = occupies
        self._inside = surrounding(context, inside())
        self._awake_since = context.clock.monotonic()
        self._looked_at = self._awake_since
        self.reservation: Reservation

    @classmethod
    def of(cls, context: Context, name: str) -> _Asking:
        """One that stands already."""
        with context.store.read() as tx:
            reservation = _named(tx, name)
        asking = cls(context, reservation.note, reservation.occupies)
        asking.reservation = reservation
        return asking

    def ask(self) -> None:
        """Stand in line, or have the slot at once if nobody is before us."""

        def ask(tx: WriteTx) -> Reservation:
            made = stand_in_line(self._context, tx, self._note, self._occupies, self._inside)
            return granted(self._context, tx, made)

        self.reservation = self._context.store.transact(ask)
        self._wake_if_granted()

    def wait(self, timeout: float | None, say_why: Callable[[str, str], None]) -> None:
        """Until it has its slot."""
        clock = self._context.clock
        give_up_at = None if timeout is None else clock.monotonic() + timeout
        poll, seen, look_at, why = FASTEST_POLL, -1, 0.0, ""
        while self.reservation.waits:
            changes, now = self._context.changes(), clock.monotonic()
            if changes != seen or now >= look_at:
                seen, look_at = changes, now + LOOK_EVERY
                objection = self._look()
                if objection is None:
                    continue
                why = objection
            say_why(self.reservation.name, why)
            if give_up_at is not None and now >= give_up_at:
                raise TimedOutError(f"{self.reservation.name} got no slot in time: {why}")
            if give_up_at is None and not self._others_hold_slots():
                refuse_endless_wait(self._context)
            clock.sleep(poll)
            poll = min(SLOWEST_POLL, poll * 1.2)

    def _others_hold_slots(self) -> bool:
        """Whether another direct call may give one back."""
        with self._context.store.read() as tx:
            return any(not each.waits for each in tx.reservations.all())

    def _look(self) -> str | None:
        """Take the slot if it is ours now; else say what is in the way."""
        self._remove_expired()
        with self._context.store.read() as tx:
            mine = tx.reservations.by_token(self.reservation.token)
            why = None if mine is None else why_not(self._context, tx, mine)
        if mine is None:  # it expired while the machine slept, or somebody stopped us
            self.ask()
            return None
        if why is None:
            self.take_if_free()
        return why

    def take_if_free(self) -> None:
        """Have the slot if it may have one at this instant."""
        context, mine = self._context, self.reservation
        self.reservation = context.store.transact(lambda tx: granted(context, tx, mine))
        self._wake_if_granted()

    def _remove_expired(self) -> None:
        """Workers remove expired reservations of others; without a worker, those in line do."""
        now = self._context.clock.monotonic()
        late, self._looked_at = now - self._looked_at, now
        context = self._context
        with context.store.read() as tx:
            period = renewal_period(expiry_in(tx)) / SECOND
            standing, at = tx.reservations.all(), tx.now()
        if late > period + LOOK_EVERY:
            self._awake_since = now
        if now < self._awake_since + period:
            return
        ended = end_overdue(standing, context.host.id, at)
        if ended:
            context.store.transact(lambda tx: remove_expired(tx, ended, actor=context.actor))

    def renew(self) -> tuple[bool, int]:
        """Whether it still stood, and how long it now does."""
        token = self.reservation.token

        def renew(tx: WriteTx) -> tuple[bool, int]:
            expiry = expiry_in(tx)
            return tx.reservations.renew(token, tx.now() + expiry), expiry

        return self._context.store.transact(renew)

    def release(self) -> bool:
        """Give it back; False if it was gone."""

        def release(tx: WriteTx) -> tuple[bool, bool]:
            released = tx.reservations.release(self.reservation)
            if released:
                data = {"id": self.reservation.name}
                tx.events.add([Event("released", None, data)], actor=self.reservation.holder)
            return released, tx.jobs.anything_active()

        released, work = self._context.store.transact(release)
        if work:
            self._context.wake()
        return released

    def _wake_if_granted(self) -> None:
        """While it waited nothing else started; if there are more slots, something may now."""
        if not self.reservation.waits:
            with self._context.store.read() as tx:
                work = tx.jobs.anything_active()
            if work:
                self._context.wake()


class _Renewal(threading.Thread):
    """Renews until it is stopped, and says when it came too late."""

    def __init__(
        self, context: Context, asking: _Asking, renewed: Callable[[HeldSlot], None]
    ) -> None:
        super().__init__(name="renewal", daemon=True)
        self._context = context
        self._asking = asking
        self._renewed = renewed
        self._ends = threading.Event()
        self.held: HeldSlot | None = None
        with context.store.read() as tx:
            self._expiry = expiry_in(tx)

    def run(self) -> None:
        clock = self._context.clock
        good_until = clock.monotonic() + self._expiry / SECOND
        while not self._ends.wait(renewal_period(self._expiry) / SECOND):
            begin = clock.monotonic()
            stands = True
            try:
                stands, self._expiry = self._asking.renew()
                good_until = begin + self._expiry / SECOND
            except HeadwayError:
                stands = clock.monotonic() < good_until  # it is tried again while it still counts
            held = self.held
            if held is None:
                continue  # in line: a waiting call asks anew
            held.lost = held.lost or not stands
            self._renewed(held)
            if held.lost:
                return

    def stop(self) -> None:
        self._ends.set()
        if self.is_alive():
            self.join()


def stand_in_line(
    context: Context, tx: WriteTx, note: str, occupies: tuple[str, ...], inside: JobId | None
) -> Reservation:
    """A new reservation, behind all others. `inside` is the occupant that makes it."""
    made = Reservation(
        id=tx.reservations.take_id(),
        token=os.urandom(16).hex(),
        holder=context.actor,
        note=note,
        host_id=context.host.id,
        pid=os.getpid(),
        requested_at=tx.now(),
        expires_at=tx.now() + expiry_in(tx),
        inside=inside,
        occupies=occupies,
    )
    tx.reservations.add(made)
    data = {"id": made.name, "note": made.note}
    tx.events.add([Event("reserved", None, data)], actor=made.holder)
    return made


def granted(context: Context, tx: WriteTx, asking: Reservation) -> Reservation:
    """With the slot, if it may have one at this instant; else as it was."""
    capacity = present_capacity(context, tx)
    if direct_objection(asking, capacity, tx.now()) is not None:
        return asking
    inside = direct_lender(asking, capacity)
    if not tx.reservations.grant(asking.token, inside):
        return asking  # gone since we read it; the next check asks anew
    tx.events.add([Event("granted", None, {"id": asking.name})], actor=asking.holder)
    return asking._replace(granted_at=tx.now(), inside=inside)


def expiry_in(tx: ReadTx) -> int:
    return parse_duration(store_setting(tx.settings.all(), "scheduler.reservation_expiry"))


def why_not(context: Context, tx: ReadTx, asking: Reservation) -> str | None:
    """The reason why it has no slot now, with the names of running jobs."""
    capacity = present_capacity(context, tx)
    objection = direct_objection(asking, capacity, tx.now())
    if objection is None:
        return None
    behind = capacity.reserved is not None and capacity.reserved.id < asking.id
    if behind or objection.kind is not WaitKind.CAPACITY or free_slots(capacity) != 0:
        return objection.detail
    names = [f"{each.name} of {each.holder}" for each in capacity.granted]
    names += [shown(claim.job_id) for claim in tx.claims.live() if ENTRY not in claim.occupies]
    named = ", ".join(names[:MOST_NAMED]) + (" ..." if len(names) > MOST_NAMED else "")
    return f"{objection.detail}: {named}"


def reservation_document(context: Context, tx: ReadTx, held: Reservation) -> dict[str, Any]:
    """A direct call: who has a slot outside of the queue, or waits for one."""
    names = tx.hosts.all()
    return {
        "id": held.name,
        "holder": held.holder,
        "note": held.note,
        "state": "waiting" if held.waits else "running",
        "wait": why_not(context, tx, held) if held.waits else None,
        "requested_at": show_instant(held.requested_at),
        "granted_at": show_instant(held.granted_at),
        "expires_at": show_instant(held.expires_at),
        "expired": is_expired(held, tx.now()),
        "host_id": held.host_id,
        "host": names[held.host_id].name if held.host_id in names else None,
        "pid": held.pid,
        "inside": None if held.inside is None else shown(held.inside),
        "occupies": list(held.occupies),
    }


# -- for one who renews it itself --------------------------------------------------------------


def ask_for_slot(
    context: Context,
    *,
    note: str,
    type: str | None,  # noqa: A002  as in the options
    resources: Sequence[str],
    target: str | None,
) -> dict[str, Any]:
    """Stand in line, or have a slot at once; the document of the reservation."""
    _check_note(note)
    asking = _Asking(context, note, keys_taken(type, resources, target))
    asking.ask()
    return show_slot(context, asking.reservation.name)


def show_slot(context: Context, name: str) -> dict[str, Any]:
    with context.store.read() as tx:
        return reservation_document(context, tx, _named(tx, name))


def look_for_slot(context: Context, name: str) -> dict[str, Any]:
    """Have the slot if it is its turn now; its document."""
    asking = _Asking.of(context, name)
    if asking.reservation.waits:
        asking.take_if_free()
    return show_slot(context, name)


def renew_slot(context: Context, name: str) -> dict[str, Any]:
    asking = _Asking.of(context, name)
    stood, _ = asking.renew()
    if not stood:
        raise _lost(name)
    return look_for_slot(context, name)


def release_slot(context: Context, name: str) -> None:
    if not _Asking.of(context, name).release():
        raise _lost(name)


def _named(tx: ReadTx, name: str) -> Reservation:
    for each in tx.reservations.all():
        if each.name == name:
            return each
    raise NotFoundError(f"there is no reservation {name[:80]!r}; it was released, or has expired")


def _lost(name: str) -> ReservationLostError:
    return ReservationLostError(
        f"{name} was not renewed for longer than scheduler.reservation_expiry; "
        "others may have used its slot meanwhile"
    )
