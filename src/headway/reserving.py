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
from typing import TYPE_CHECKING

from headway.clock import SECOND
from headway.config import store_setting
from headway.core.admission import direct_lender, direct_objection, free_slots
from headway.core.model import JobId, WaitKind, shown
from headway.core.policies import ENTRY
from headway.core.reservations import Reservation, renewal_period
from headway.errors import HeadwayError, InvalidInputError, ReservationLostError, TimedOutError
from headway.expiring import end_overdue, remove_expired
from headway.functions.current import present
from headway.quotas import check_word
from headway.store.base import Event, ReadTx, WriteTx
from headway.units import parse_duration
from headway.waiting import HOLDING, refuse_endless_wait, surrounding

if TYPE_CHECKING:
    from headway.client import Client

FASTEST_POLL = 0.01
SLOWEST_POLL = 0.1
LOOK_EVERY = 0.5  # seconds; what only time changes
LONGEST_NOTE = 200
MOST_NAMED = 3


class Held:
    """A slot that this process holds, as the body of `reserve` gets it."""

    def __init__(self, reservation: Reservation) -> None:
        self.id = reservation.name
        self.token = reservation.token
        self.lost = False  # it was not renewed in time, and others may have the slot by now


def keys_taken(kind: str | None, resources: Sequence[str], target: str | None) -> tuple[str, ...]:
    """What it takes of the limits, as claims say it."""
    words = [f"resource:{check_word('resource', each)}" for each in dict.fromkeys(resources)]
    if kind is not None:
        words.insert(0, f"type:{check_word('type', kind)}")
    if target is not None:
        words.append(f"target:{check_word('target', target)}")
    return tuple(words)


@contextmanager
def reserve(
    client: Client,
    *,
    note: str = "",
    type: str | None = None,  # noqa: A002  as in the options
    resources: Sequence[str] = (),
    target: str | None = None,
    timeout: float | None = None,
    while_waiting: Callable[[str, str], None] = lambda name, why: None,
    renewed: Callable[[Held], None] = lambda held: None,
) -> Iterator[Held]:
    """Hold a slot within the block: the next one that is free, before every queued job.

    Raises TimedOutError if there is none within `timeout` seconds, and ReservationLostError at the
    end of the block if it was not renewed in time. `while_waiting` hears, several times a second,
    why it waits, and may raise to give up; `renewed` is called, in another thread, after each
    renewal and when it is lost.
    """
    if "\0" in note or len(note) > LONGEST_NOTE:
        raise InvalidInputError(f"a note has at most {LONGEST_NOTE} characters, and no NUL")
    asking = _Asking(client, note, keys_taken(type, resources, target))
    asking.ask()
    renewal = _Renewal(client, asking, renewed)
    try:
        renewal.start()
        asking.wait(timeout, while_waiting)
        renewal.held = held = Held(asking.reservation)
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
        raise ReservationLostError(
            f"{held.id} was not renewed for longer than scheduler.reservation_expiry; "
            "others may have used its slot meanwhile"
        )


class _Asking:
    """One wish for a slot, from the first question to the release."""

    def __init__(self, client: Client, note: str, occupies: tuple[str, ...]) -> None:
        self._client = client
        self._note = note
        self._occupies = occupies
        self._inside = surrounding(client, present())
        self._awake_since = client.clock.monotonic()
        self._looked_at = self._awake_since
        self.reservation: Reservation

    def ask(self) -> None:
        """Stand in line, or have the slot at once if nobody is before us."""

        def ask(tx: WriteTx) -> Reservation:
            made = stand_in_line(self._client, tx, self._note, self._occupies, self._inside)
            return granted(self._client, tx, made)

        self.reservation = self._client.store.story(ask)
        self._wake_if_granted()

    def wait(self, timeout: float | None, tell: Callable[[str, str], None]) -> None:
        """Until it has its slot."""
        clock = self._client.clock
        give_up_at = None if timeout is None else clock.monotonic() + timeout
        poll, seen, look_at, why = FASTEST_POLL, -1, 0.0, ""
        while self.reservation.waits:
            changes, now = self._client.changes(), clock.monotonic()
            if changes != seen or now >= look_at:
                seen, look_at = changes, now + LOOK_EVERY
                objection = self._look()
                if objection is None:
                    continue
                why = objection
            tell(self.reservation.name, why)
            if give_up_at is not None and now >= give_up_at:
                raise TimedOutError(f"{self.reservation.name} got no slot in time: {why}")
            if give_up_at is None and not self._others_hold_slots():
                refuse_endless_wait(self._client)
            clock.sleep(poll)
            poll = min(SLOWEST_POLL, poll * 1.2)

    def _others_hold_slots(self) -> bool:
        """Whether another direct call may give one back."""
        with self._client.store.read() as tx:
            return any(not each.waits for each in tx.reservations())

    def _look(self) -> str | None:
        """Take the slot if it is ours now; else say what is in the way."""
        self._remove_expired()
        with self._client.store.read() as tx:
            mine = tx.reservation(self.reservation.token)
            why = None if mine is None else why_not(self._client, tx, mine)
        if mine is None:  # it expired while the machine slept, or somebody stopped us
            self.ask()
            return None
        if why is None:
            client = self._client
            self.reservation = client.store.story(lambda tx: granted(client, tx, mine))
            self._wake_if_granted()
        return why

    def _remove_expired(self) -> None:
        """What others left behind is removed by workers; where there is none, by those in line."""
        now = self._client.clock.monotonic()
        late, self._looked_at = now - self._looked_at, now
        client = self._client
        with client.store.read() as tx:
            period = renewal_period(expiry_in(tx)) / SECOND
            standing, at = tx.reservations(), tx.now()
        if late > period + LOOK_EVERY:
            self._awake_since = now
        if now < self._awake_since + period:
            return
        ended = end_overdue(standing, client.host.id, at)
        if ended:
            client.store.story(lambda tx: remove_expired(tx, ended, actor=client.actor))

    def renew(self) -> tuple[bool, int]:
        """Whether it still stood, and how long it now does."""
        token = self.reservation.token

        def renew(tx: WriteTx) -> tuple[bool, int]:
            expiry = expiry_in(tx)
            return tx.renew_reservation(token, tx.now() + expiry), expiry

        return self._client.store.story(renew)

    def release(self) -> bool:
        """Give it back; False if it was gone."""

        def release(tx: WriteTx) -> tuple[bool, bool]:
            released = tx.release(self.reservation)
            if released:
                data = {"id": self.reservation.name}
                tx.add_events([Event("released", None, data)], actor=self.reservation.holder)
            return released, tx.anything_active()

        released, work = self._client.store.story(release)
        if work:
            self._client.wake()
        return released

    def _wake_if_granted(self) -> None:
        """While it waited nothing else started; if there are more slots, something may now."""
        if not self.reservation.waits:
            with self._client.store.read() as tx:
                work = tx.anything_active()
            if work:
                self._client.wake()


class _Renewal(threading.Thread):
    """Renews until it is stopped, and says when it came too late."""

    def __init__(self, client: Client, asking: _Asking, renewed: Callable[[Held], None]) -> None:
        super().__init__(name="renewal", daemon=True)
        self._client = client
        self._asking = asking
        self._renewed = renewed
        self._ends = threading.Event()
        self.held: Held | None = None
        with client.store.read() as tx:
            self._expiry = expiry_in(tx)

    def run(self) -> None:
        clock = self._client.clock
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
                continue  # in line: whoever waits asks anew
            held.lost = held.lost or not stands
            self._renewed(held)
            if held.lost:
                return

    def stop(self) -> None:
        self._ends.set()
        if self.is_alive():
            self.join()


def stand_in_line(
    client: Client, tx: WriteTx, note: str, occupies: tuple[str, ...], inside: JobId | None
) -> Reservation:
    """A new reservation, behind all others. `inside` is the occupant that makes it."""
    made = Reservation(
        id=tx.take_reservation_id(),
        token=os.urandom(16).hex(),
        holder=client.actor,
        note=note,
        host_id=client.host.id,
        pid=os.getpid(),
        requested_at=tx.now(),
        expires_at=tx.now() + expiry_in(tx),
        inside=inside,
        occupies=occupies,
    )
    tx.reserve(made)
    data = {"id": made.name, "note": made.note}
    tx.add_events([Event("reserved", None, data)], actor=made.holder)
    return made


def granted(client: Client, tx: WriteTx, asking: Reservation) -> Reservation:
    """With the slot, if it may have one at this instant; else as it was."""
    door = client.door(tx)
    if direct_objection(asking, door, tx.now()) is not None:
        return asking
    inside = direct_lender(asking, door)
    if not tx.grant(asking.token, inside):
        return asking  # gone since we looked; the next look asks anew
    tx.add_events([Event("granted", None, {"id": asking.name})], actor=asking.holder)
    return asking._replace(granted_at=tx.now(), inside=inside)


def expiry_in(tx: ReadTx) -> int:
    return parse_duration(store_setting(tx.settings(), "scheduler.reservation_expiry"))


def why_not(client: Client, tx: ReadTx, asking: Reservation) -> str | None:
    """What keeps it from its slot now, with the names of those that run."""
    door = client.door(tx)
    objection = direct_objection(asking, door, tx.now())
    if objection is None:
        return None
    behind = door.reserved is not None and door.reserved.id < asking.id
    if behind or objection.kind is not WaitKind.CAPACITY or free_slots(door) != 0:
        return objection.detail
    names = [f"{each.name} of {each.holder}" for each in door.granted]
    names += [shown(claim.job_id) for claim in tx.live_claims() if ENTRY not in claim.occupies]
    named = ", ".join(names[:MOST_NAMED]) + (" ..." if len(names) > MOST_NAMED else "")
    return f"{objection.detail}: {named}"
