"""The lane of plain calls: claim what is at the head of their queue, many at a time.

A whole step uses it once it has seen that nobody stands before them. Between two whole steps there
are quick ones, which do nothing else: they ask for nothing that the last whole step has seen and
that nobody can have changed since, because no one else has committed and no time has come. `Quiet`
is what they go by.
"""

from collections.abc import Collection, Sequence
from itertools import count, islice
from typing import NamedTuple

from headway.core.facts import Door
from headway.core.model import JobId
from headway.core.plaincalls import PlainCall, PlainEnd, room_for_calls, wide_open
from headway.crashpoints import reach
from headway.engine.crew import Crew
from headway.engine.onebyone import OneByOne
from headway.engine.storetime import StoreTime
from headway.engine.tokens import tokens
from headway.errors import OthersWroteError
from headway.host import Host
from headway.store.base import ReadTx, Store, WriteTx
from headway.store.seam_calls import Claimant, TakenCall

MOST_AT_ONCE = 200
AHEAD = 5  # times as many are read as hosts may hold
MOST_AHEAD = 1000
IN_A_ROW = 4  # transactions of one step, if more is known by the end of each
BUSY_STEPS = 8  # without reading ahead, where others add calls all the time
LONGEST_QUIET = 5.0  # seconds until all is looked at again, however quiet it seems


class Quiet(NamedTuple):
    """What a whole step has seen, for the quick ones after it."""

    door: Door
    slots: frozenset[int]  # in use
    awaited: bool  # someone waits for the end of another
    writes: int  # of this process
    until: float = 0.0  # nothing is due before

    def after(self, ends: Sequence[PlainEnd], taken: Sequence[TakenCall], writes: int) -> "Quiet":
        running = self.door.running - len(ends) + len(taken)
        slots = (self.slots - {each.slot for each in ends}) | {each.slot for each in taken}
        return self._replace(door=self.door._replace(running=running), slots=slots, writes=writes)


class Lane:
    def __init__(self, host: Host, worker_id: str, crew: Crew, lease: int | None) -> None:
        self._host = host
        self._worker_id = worker_id
        self._crew = crew
        self._lease = lease
        self._batches: dict[str, list[TakenCall]] = {}  # by host; without a commit, none
        self._unsent: list[dict[str, list[TakenCall]]] = []
        self.is_clear = True  # whether there is nothing else that might start

    @property
    def taken(self) -> list[TakenCall]:
        """By this step."""
        return [each for batch in self._batches.values() for each in batch]

    def begin(self) -> None:
        """A step begins."""
        self._batches = {}
        self.is_clear = True

    def undo(self) -> None:
        """Its transaction was rolled back."""
        self._crew.give_up(self._batches)

    def committed(self) -> None:
        """Its transaction was: now they may be sent."""
        self._unsent.append(self._batches)

    def send(self) -> None:
        """Hand out what was committed."""
        while self._unsent:
            self._crew.send_calls(self._unsent.pop(0))

    def head(self, tx: ReadTx, door: Door, limit: int | None = None) -> list[PlainCall]:
        """The calls that may start now."""
        room = min(room_for_calls(door), MOST_AT_ONCE, MOST_AT_ONCE if limit is None else limit)
        if room <= 0:
            return []
        calls, all_plain = tx.plain_calls(room)
        known = self.known(calls)
        self.is_clear = all_plain and len(known) == len(calls)
        return known

    def known(self, calls: list[PlainCall]) -> list[PlainCall]:
        """Up to the first whose function nobody here knows."""
        tasks = self._crew.tasks
        for place, call in enumerate(calls):
            if call.task not in tasks:
                return calls[:place]
        return calls

    def claim(self, tx: WriteTx, calls: Sequence[PlainCall], slots: Collection[int]) -> None:
        free = (number for number in count(1) if number not in slots)
        now, done = tx.now(), 0
        for host, share in self._crew.shares(len(calls)):
            mine = calls[done : done + share]
            done += share
            each = zip(mine, tokens(now, share), islice(free, share), strict=True)
            taken = [TakenCall(call, token, slot, now) for call, token, slot in each]
            host.claimant = self._claimant(host.folder, host.token, now)
            tx.claim_calls(host.claimant, taken)
            host.plain.update((each.token, each) for each in taken)
            self._batches[host.token] = taken

    def _claimant(self, folder: str, function_host: str, now: int) -> Claimant:
        return Claimant(
            worker_id=self._worker_id,
            host_id=self._host.id,
            home=self._host.home,
            boot_id=self._host.boot_id,
            folder=folder,
            function_host=function_host,
            lease_until=None if self._lease is None else now + self._lease,
        )


class QuickSteps:
    """The steps between whole ones."""

    def __init__(
        self,
        store: Store,
        crew: Crew,
        lane: Lane,
        one_by_one: OneByOne,
        worker_id: str,
        times: StoreTime,
    ) -> None:
        self._store = store
        self._times = times
        self._crew = crew
        self._lane = lane
        self._one_by_one = one_by_one
        self._worker_id = worker_id
        self._quiet: Quiet | None = None
        self._ahead = _Ahead()
        self.last: tuple[int, int] | None = None  # when calls were claimed, and how many
        self.started: list[JobId] = []  # by the last step
        self._trouble: Exception | None = None  # while a commit was waited for

    def stop(self) -> None:
        """Something else is to be done: the next step is a whole one."""
        self._quiet = None

    def seen(self, tx: WriteTx, door: Door) -> Quiet | None:
        """What a whole step has seen by its end, inside its transaction."""
        if not wide_open(door):
            return None
        tx.others_wrote()  # from now on
        return Quiet(door, frozenset(tx.slots().used), tx.anyone_awaits(), self._store.writes)

    def go_on(self, quiet: Quiet | None, *, now: float, delay: float) -> None:
        """The whole step is over, and nothing will be due before this delay."""
        self._quiet = quiet and quiet._replace(until=now + min(delay, LONGEST_QUIET))
        self._ahead = _Ahead()

    def step(self, now: float) -> float | None:
        """Settle calls that returned and claim others; the seconds until something is due. None:
        there may be more to do than that."""
        self.started = []
        try:
            for _ in range(IN_A_ROW):
                delay = self._step(now)
                if delay is None or not self._crew.knows_more:
                    break
        finally:
            self._lane.send()
            trouble, self._trouble = self._trouble, None
            if trouble is not None:
                raise trouble
        return 0.0 if delay is not None and self._go_one_by_one() else delay

    def _go_one_by_one(self) -> bool:
        """Stay with calls that are made one by one; whether there may be more to do by now."""
        quiet, host = self._quiet, self._crew.runner()
        if quiet is None or quiet.awaited or host is None or self._ahead.is_empty:
            return False
        self._quiet = None
        one_by_one = self._one_by_one
        try:
            one_by_one.run(host, self._lane.known(self._ahead.calls), quiet.until)
        finally:
            made = one_by_one.made
            self._ahead.drop(len(made))
            self.started += [each.call.job_id for each in made]
            if made:
                self.last = made[-1].claimed_at, 1
        if one_by_one.as_before:
            self._quiet = quiet._replace(writes=self._store.writes)
        return bool(made) or not one_by_one.as_before

    def _step(self, now: float) -> float | None:
        quiet, self._quiet = self._quiet, None
        if quiet is None or now >= quiet.until or self._store.writes != quiet.writes:
            return None
        news = self._crew.take_in()
        self._lane.begin()
        try:
            if news.told or self._crew.news or self._crew.progress:
                raise _NotSoQuietError
            self._settle_and_claim(quiet, news.ends)
        except BaseException as error:
            self._crew.put_back(news)
            self._lane.undo()
            if isinstance(error, _NotSoQuietError):
                return None
            raise
        reach("engine.claimed")
        self._lane.committed()
        self.started += [each.call.job_id for each in self._lane.taken]
        if not self._lane.is_clear:
            return 0.0
        self._quiet = quiet.after(news.ends, self._lane.taken, self._store.writes)
        return 0.0 if self._crew.knows_more else max(0.0, quiet.until - now)

    def _meanwhile(self) -> None:
        """What can be done while a commit is waited for: hand out what the last one claimed, and
        read what has returned."""
        if self._trouble is not None:
            return
        try:
            self._lane.send()
            self._crew.read_ahead()
        except Exception as error:  # the answer is to be heard, whatever happens here
            self._trouble = error

    def _settle_and_claim(self, quiet: Quiet, ends: Sequence[PlainEnd]) -> None:
        running = quiet.door.running - len(ends)
        door = quiet.door._replace(running=running, places=self._crew.places())
        room = min(room_for_calls(door), MOST_AT_ONCE)
        if not ends and not room:
            return
        if not ends and self._ahead.is_empty:
            self._ahead = _Ahead()  # that we were woken may mean that calls were added
        if not self._ahead.suffices(room) or not self._write_blindly(quiet, ends, room):
            self._write(quiet, ends, room)

    def _write_blindly(self, quiet: Quiet, ends: Sequence[PlainEnd], room: int) -> bool:
        try:
            self._write(quiet, ends, room, blindly=True)
        except OthersWroteError:  # whether that was more than calls is seen by who asks
            self._lane.undo()
            self._lane.begin()
            self._ahead = _Ahead(busy=BUSY_STEPS)
            return False
        return True

    def _write(
        self, quiet: Quiet, ends: Sequence[PlainEnd], room: int, *, blindly: bool = False
    ) -> None:
        with self._store.write_soon(blindly=blindly, meanwhile=self._meanwhile) as tx:
            next_ones = self._ahead.first(tx, room, self._crew.window)
            if tx.others_wrote() or not (next_ones or ends):
                raise _NotSoQuietError
            told = bool(ends) and tx.finish_calls(
                self._times.of_ends(tx, ends), actor=self._worker_id, awaited=quiet.awaited
            )
            calls = [] if told else self._lane.known(next_ones)  # whom it told may go first
            if calls:
                self._lane.claim(tx, calls, quiet.slots - {each.slot for each in ends})
                self.last = tx.now(), len(calls)
            self._lane.is_clear = not told and (len(calls) == room or self._ahead.is_end(calls))
            reach("engine.planned")
        self._ahead.drop(len(calls))


class _Ahead:
    """The head of the queue, read in advance: nobody else has changed it as long as it is quiet.
    Calls may be added, though, and of a store that is shared this is only known at the commit; so
    in the next steps after that has happened no more is read than is needed at once. The longer it
    stays quiet, the further is read."""

    def __init__(self, busy: int = 0) -> None:
        self._busy = busy
        self._reach = MOST_AT_ONCE
        self.calls: list[PlainCall] = []
        self._is_all = False  # nothing is behind them
        self._all_plain = True

    @property
    def is_empty(self) -> bool:
        return not self.calls

    def suffices(self, number: int) -> bool:
        return not self._busy and (len(self.calls) >= number or self._is_all)

    def first(self, tx: ReadTx, number: int, window: int) -> list[PlainCall]:
        """Of calls that are slow or large, of which hosts hold few, not so many are read."""
        if not self.suffices(number):
            most = number
            if not self._busy:
                most = max(number, min(self._reach, AHEAD * window))
                self._reach = min(2 * self._reach, MOST_AHEAD)
            self.calls, self._all_plain = tx.plain_calls(most) if most else ([], True)
            self._is_all = len(self.calls) < most
            self._busy = max(0, self._busy - 1)
        return self.calls[:number]

    def is_end(self, calls: list[PlainCall]) -> bool:
        """Whether nothing at all is behind these, which are the first."""
        return self._all_plain and len(calls) == len(self.calls)

    def drop(self, number: int) -> None:
        del self.calls[:number]


class _NotSoQuietError(Exception):
    """The transaction is of no use: a whole step has to look."""
