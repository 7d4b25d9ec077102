"""Fast steps: settle the plain calls that returned and claim others, and nothing else.

They are made between full steps. They read nothing that the last full step has read and that
nobody can have changed since: no other process has committed, and no timer is due. `Quiet` is what
they rely on.
"""

from collections.abc import Sequence
from typing import NamedTuple

from headway.base.crashpoints import reach
from headway.base.errors import OthersWroteError
from headway.core.facts import Capacity
from headway.core.model import JobId
from headway.core.plaincalls import PlainCall, PlainEnd, everything_may_start, room_for_calls
from headway.functions.pool.calls import HostPool
from headway.store.records import TakenCall
from headway.store.store import Store
from headway.store.transaction import ReadTx, WriteTx
from headway.worker.fastlane.claims import MOST_AT_ONCE, BulkClaims, ends_among
from headway.worker.store_time import StoreTime

AHEAD = 5  # times as many are read as hosts may hold
MOST_AHEAD = 400  # and never more: all are read again once others have written
IN_A_ROW = 4  # transactions of one step, if more is known by the end of each
BUSY_STEPS = 8  # without reading ahead, where others add calls all the time
LONGEST_QUIET = 5.0  # seconds until a full step is made, however quiet it seems


class Quiet(NamedTuple):
    """What a full step has seen, for the fast ones after it."""

    capacity: Capacity
    slots: frozenset[int]  # in use
    awaited: bool  # someone waits for the end of another
    writes: int  # of this process
    until: float = 0.0  # nothing is due before

    def after(self, ends: Sequence[PlainEnd], taken: Sequence[TakenCall], writes: int) -> "Quiet":
        running = self.capacity.running - len(ends) + len(taken)
        slots = (self.slots - {each.slot for each in ends}) | {each.slot for each in taken}
        return self._replace(
            capacity=self.capacity._replace(running=running), slots=slots, writes=writes
        )


class FastSteps:
    """The steps between full ones."""

    def __init__(
        self,
        store: Store,
        pool: HostPool,
        claims: BulkClaims,
        worker_id: str,
        times: StoreTime,
    ) -> None:
        self._store = store
        self._times = times
        self._pool = pool
        self._claims = claims
        self._worker_id = worker_id
        self._quiet: Quiet | None = None
        self._ahead = _Ahead()
        self.last: tuple[int, int] | None = None  # when calls were claimed, and how many
        self.started: list[JobId] = []  # by the last step
        self._trouble: Exception | None = None  # while a commit was waited for

    def stop(self) -> None:
        """Something else is to be done: the next step is a full one."""
        self._quiet = None

    def seen(self, tx: WriteTx, capacity: Capacity) -> Quiet | None:
        """What a full step has seen by its end, inside its transaction."""
        if not everything_may_start(capacity):
            return None
        tx.others_wrote()  # from now on
        return Quiet(
            capacity,
            frozenset(tx.claims.slots().used),
            tx.calls.anyone_awaits(),
            self._store.writes,
        )

    def go_on(self, quiet: Quiet | None, *, now: float, delay: float) -> None:
        """The full step is over, and nothing will be due before this delay."""
        self._quiet = quiet and quiet._replace(until=now + min(delay, LONGEST_QUIET))
        self._ahead = _Ahead()

    def step(self, now: float) -> float | None:
        """Settle calls that returned and claim others; the seconds until something is due. None:
        there may be more to do than that."""
        self.started = []
        try:
            for _ in range(IN_A_ROW):
                delay = self._step(now)
                if delay is None or not self._pool.knows_more:
                    break
        finally:
            self._claims.send()
            trouble, self._trouble = self._trouble, None
            if trouble is not None:
                raise trouble
        return delay

    def _step(self, now: float) -> float | None:
        quiet, self._quiet = self._quiet, None
        if quiet is None or now >= quiet.until or self._store.writes != quiet.writes:
            return None
        news = self._pool.take_in()
        self._claims.begin()
        try:
            ends, others = ends_among(news.returned)
            pool = self._pool
            if others or news.ended or pool.processes.news or pool.progress or pool.steps:
                raise _NotSoQuietError
            self._settle_and_claim(quiet, ends)
        except BaseException as error:
            self._pool.put_back(news)
            self._claims.undo()
            if isinstance(error, _NotSoQuietError):
                return None
            raise
        reach("engine.claimed")
        self._claims.committed()
        self.started += [each.call.job_id for each in self._claims.taken]
        if not self._claims.is_clear:
            return 0.0
        self._quiet = quiet.after(ends, self._claims.taken, self._store.writes)
        return 0.0 if self._pool.knows_more else max(0.0, quiet.until - now)

    def _meanwhile(self) -> None:
        """Work for the time of a commit: hand out what the last one claimed, and read what has
        returned."""
        if self._trouble is not None:
            return
        try:
            self._claims.send()
            self._pool.read_ahead()
        except Exception as error:  # the answer must be read, whatever happens here
            self._trouble = error

    def _settle_and_claim(self, quiet: Quiet, ends: Sequence[PlainEnd]) -> None:
        running = quiet.capacity.running - len(ends)
        capacity = quiet.capacity._replace(running=running, places=self._pool.places())
        room = min(room_for_calls(capacity), MOST_AT_ONCE)
        if not ends and not room:
            return
        if not ends and self._ahead.is_empty:
            self._ahead = _Ahead()  # that we were woken may mean that calls were added
        if not self._ahead.suffices(room) or not self._write_optimistically(quiet, ends, room):
            self._write(quiet, ends, room)

    def _write_optimistically(self, quiet: Quiet, ends: Sequence[PlainEnd], room: int) -> bool:
        try:
            self._write(quiet, ends, room, optimistic=True)
        except OthersWroteError:  # the next try asks whether that was more than calls
            self._claims.undo()
            self._claims.begin()
            self._ahead = _Ahead(busy=BUSY_STEPS)
            return False
        return True

    def _write(
        self, quiet: Quiet, ends: Sequence[PlainEnd], room: int, *, optimistic: bool = False
    ) -> None:
        with self._store.write_soon(optimistic=optimistic, meanwhile=self._meanwhile) as tx:
            next_ones = self._ahead.first(tx, room, self._pool.window)
            if tx.others_wrote() or not (next_ones or ends):
                raise _NotSoQuietError
            woke = bool(ends) and tx.calls.finish(
                by_store(tx, self._times, ends), actor=self._worker_id, awaited=quiet.awaited
            )
            calls = [] if woke else self._claims.known(next_ones)  # those it woke may go first
            if calls:
                self._claims.claim(tx, calls, quiet.slots - {each.slot for each in ends})
                self.last = tx.now(), len(calls)
            self._claims.is_clear = not woke and (len(calls) == room or self._ahead.is_end(calls))
            reach("engine.planned")
        self._ahead.drop(len(calls))


class _Ahead:
    """The head of the queue, read ahead. Nobody changes it as long as it is quiet, but calls may be
    added. With a shared store this is known only at the commit. After it has happened, the next
    steps read no more than they need at once."""

    def __init__(self, busy: int = 0) -> None:
        self._busy = busy
        self.calls: list[PlainCall] = []
        self._is_all = False  # nothing is behind them
        self._all_plain = True

    @property
    def is_empty(self) -> bool:
        return not self.calls

    def suffices(self, number: int) -> bool:
        return not self._busy and (len(self.calls) >= number or self._is_all)

    def first(self, tx: ReadTx, number: int, window: int) -> list[PlainCall]:
        """The first so many. Fewer are read ahead if calls are slow or large."""
        if not self.suffices(number):
            most = number
            if not self._busy:
                most = max(number, min(MOST_AHEAD, AHEAD * window))
            self.calls, self._all_plain = tx.calls.head(most) if most else ([], True)
            self._is_all = len(self.calls) < most
            self._busy = max(0, self._busy - 1)
        return self.calls[:number]

    def is_end(self, calls: list[PlainCall]) -> bool:
        """Whether these are all that there are."""
        return self._all_plain and len(calls) == len(self.calls)

    def drop(self, number: int) -> None:
        del self.calls[:number]


def by_store(tx: WriteTx, times: StoreTime, ends: Sequence[PlainEnd]) -> Sequence[PlainEnd]:
    """The ends of calls as their journals have them, by the store's clock."""
    here = times(tx) if ends else None
    if here is None:
        return ends
    return [each._replace(finished_at=here.of(each.finished_at, each.started_at)) for each in ends]


class _NotSoQuietError(Exception):
    """The transaction is of no use: a full step is needed."""
