"""A worker's life: take the lock, recover, step until it is asked to stop, leave nothing half done.

Only the holder of the worker lock starts processes. A background worker leaves when it is idle: in
a write transaction it sees that nothing is active and gives up its place before that transaction
ends, so a submit either is seen by it or finds it gone. docs/protocols.md, section 9.
"""

import gc
import os
import resource
import select
import selectors
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headway.base.clock import SECOND, Clock
from headway.base.crashpoints import reach
from headway.base.errors import StoreBusyError, WorkerPresentError
from headway.base.home import Home
from headway.base.host import Host
from headway.base.store_folders import settle_in
from headway.base.trust import is_trusted
from headway.base.watchlist import Watching, Watchlist
from headway.base.worker_lock import (
    CALLS_CAME,
    COMING,
    COMING_FD,
    START,
    STAYS,
    WorkerLock,
    wake,
)
from headway.core.model import Pause, shown
from headway.functions.pool.processes import UNDISTURBED
from headway.jobs.routes import ENDS_CAME, UNSETTLED_RUNS
from headway.jobs.settings import Config, what_needs_trust
from headway.jobs.worker_trouble import (
    forget_ends,
    forget_trouble,
    note_end,
    note_trouble,
    unrecorded_ends,
)
from headway.store.new_jobs import Event
from headway.store.records import WorkerRecord
from headway.store.store import Store
from headway.store.transaction import WriteTx
from headway.supervise.launcher import Launcher
from headway.webhooks.part import WebhooksPart
from headway.worker.attempts import do_all
from headway.worker.effort import Effort
from headway.worker.janitor import Janitor
from headway.worker.listener import Listener
from headway.worker.step import Engine

TRUST = "trust"
HOME_GONE = "home_gone"
CHECKS = 400  # for the end of a call, before the worker goes to sleep
POLL = 1.0  # the longest time until a commit of another process is noticed
SETTLED_AFTER = 60.0
COMES_UP_WITHIN = 10.0
HANDS_OVER_WITHIN = 60.0  # it has been asked and will leave: giving up early would leave none
LAST_WORDS = 1.0  # seconds for them to the store, when a worker leaves
AT_ONCE = 0.3  # the same for one that has no time, or no hope
RARELY = (20_000, 20, 50)

Say = Callable[[str], None]


def _allow_many_descriptors() -> None:
    """A worker watches each running job through one; its jobs get the limit back that it had."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _for_us(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class WorkerMode(StrEnum):
    FOREGROUND = "foreground"
    BACKGROUND = "background"


@dataclass(slots=True)
class _Wishes:
    """Requests to this worker since its last step."""

    woken: bool = True
    disturbed: bool = True  # by something else than the end of calls
    leave: str | None = None
    signals: int = 0
    signalled_at: float = 0.0
    askers: list[Any] = field(default_factory=list)


class Worker:
    def __init__(
        self,
        store: Store,
        home: Home,
        config: Config,
        host: Host,
        clock: Clock,
        *,
        mode: WorkerMode,
        say: Say,
        patient: bool = False,
    ) -> None:
        """`patient`: beside another worker, wait until that one leaves."""
        self.id = f"worker-{os.urandom(4).hex()}"
        settle_in(home, store)
        self._store = store
        self._home = home
        self._config = config
        self._host = host
        self._clock = clock
        self._mode = mode
        self._patient = patient
        self._say = say
        self._wishes = _Wishes()
        self._lock = WorkerLock(home.worker_lock)
        self._engine = Engine(
            store,
            home,
            config,
            host,
            clock,
            worker_id=self.id,
            launcher=Launcher(),
            report=self._report,
            say=say,
            descriptors=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            look_in_thread=True,
        )
        self._janitor = Janitor(store, home, clock, host_id=host.id, actor=self.id, say=say)
        self._trusted = not config.untrusted and is_trusted(home.path)
        self._needs_trust = bool(config.untrusted) or bool(what_needs_trust(home, config))
        self._trust_at = self._home_at = 0.0
        self._recovered = False
        self._left = False  # it has given up its place
        self._end_is_recorded = False
        self._checked_at = 0.0  # whether others had committed
        self._due = clock.monotonic()  # when the next step is to be made without news
        self._delay = 0.0  # until then, by the last one
        self._drain_until: float | None = None
        self._stepping, self._cleaning, self._leaving, self._recording = self._efforts = [
            self._effort(name) for name in ("step", "clean", "leave", "record its life")
        ]
        self._descriptors = Listener(lambda: self._effort("hear"))
        self._noted_trouble: tuple[Any, ...] | None = None
        self._ours: list[Watching] = []  # which never rest
        store.watch_hints(lambda line: self._watchlist.watch(line, self._hinted).end)
        self._has_processors = len(os.sched_getaffinity(0)) > 1

    @property
    def _watchlist(self) -> Watchlist:
        return self._engine.launches.watchlist

    def _effort(self, name: str) -> Effort:
        return Effort(name, self._clock, self._say)

    def run(self) -> str:
        """Live until idle, asked to hand over, or asked to stop; `TRUST` if it must begin anew,
        because the folder that it reads its settings from is trusted now, or no more."""
        _allow_many_descriptors()
        gc.freeze()  # what is there now stays; of what comes, next to nothing is in circles
        gc.set_threshold(*RARELY)
        self._store.patience.be_a_workers()
        self._come_in()
        try:
            self._listen()
            if self._come_up():
                self._engine.launches.open()
                ending = self._loop()
                self._depart(ending)
                return ending
            return "signal"
        finally:
            self._store.patience.have_time()
            forget_trouble(self._home)
            for watching in self._ours:
                watching.close()
            self._engine.close()
            self._lock.close()

    # -- coming up -----------------------------------------------------------------------------

    def _come_in(self) -> None:
        """A service must not be started again and again while another worker is there."""
        while True:
            try:
                return self._take_place()
            except WorkerPresentError as error:
                if not self._patient:
                    raise
                self._lock.close()
                self._say(f"{error}; waiting until it leaves")
                self._lock.wait_until_free(STAYS)

    def _take_place(self) -> None:
        inherited = os.environ.pop(COMING_FD, None)
        if inherited is not None:
            self._lock = WorkerLock.adopt(int(inherited))
        elif not self._lock.take_within(COMING, COMES_UP_WITHIN):
            raise self._lock.occupied()
        if not self._lock.take_from_the_dead(STAYS, COMES_UP_WITHIN):
            if self._mode is WorkerMode.BACKGROUND or not self._ask_to_hand_over():
                raise self._lock.occupied()
            if not self._lock.take_within(STAYS, HANDS_OVER_WITHIN):
                raise self._lock.occupied()
        grace = self._config.micros("worker.grace") / SECOND + COMES_UP_WITHIN
        if not self._lock.take_within(START, grace):
            raise self._lock.occupied()
        self._lock.write_pid()
        with suppress(FileNotFoundError):
            os.unlink(self._home.worker_stopped)
        reach("worker.placed")

    def _ask_to_hand_over(self) -> bool:
        with self._store.read() as tx:
            newest = tx.hosts.recent_workers(self._host.id, 1)
        present = bool(newest) and newest[0].mode == WorkerMode.BACKGROUND
        return present and wake(self._home.worker_socket, b"handover")

    def _come_up(self) -> bool:
        """Be recorded, and let others come. A store that is away is waited for, and False says that
        it is not any longer. Any other error is raised at once, for whoever starts the worker."""
        registering = Effort("register", self._clock, self._say, forgives=StoreBusyError)
        while not registering.make(self._register):
            if self._wishes.signals:
                self._leaving.make(self._start_draining)
                return False
            pause = registering.pause(self._clock.monotonic())
            select.select([self._signalled], [], [], pause)
        self._lock.give_up(COMING)
        reach("worker.up")
        return True

    def _register(self) -> None:
        limit = self._config["worker.crash_loop"]
        with self._store.write() as tx:
            for worker_id, ending in unrecorded_ends(self._home):
                tx.hosts.end_worker(worker_id, ending)
            recent = tx.hosts.recent_workers(self._host.id, limit + 1)
            if all(each.id != self.id for each in recent):  # else only the answer was lost
                self._add_to(tx, recent[:limit], limit)
        reach("worker.registered")
        forget_ends(self._home)
        self._say(f"worker {self.id} (pid {os.getpid()}) is up")

    def _add_to(self, tx: WriteTx, recent: list[WorkerRecord], limit: int) -> None:
        record = WorkerRecord(self.id, os.getpid(), self._mode.value, tx.now(), None, None, None)
        forgiven = tx.settings.marks()["crashes_forgiven_at"]
        dead = [
            each
            for each in recent
            if each.started_at > forgiven and each.ended_at is None and each.settled_at is None
        ]
        tx.hosts.add_worker(
            record, host_id=self._host.id, home=self._host.home, boot_id=self._host.boot_id
        )
        tx.events.add([Event("worker_started", None, {"pid": record.pid})], actor=self.id)
        if limit and len(dead) == limit:
            self._hold_up(tx, f"the last {limit} workers died within a minute of their start")

    def _hold_up(self, tx: WriteTx, reason: str) -> None:
        """Start nothing here; other hosts of a store that is shared go on."""
        host_id = self._host.id if self._store.shared else None
        if tx.settings.pause(Pause("crash-loop", reason, tx.now(), host_id)):
            data = {"reason": reason} | ({"host_id": host_id} if host_id else {})
            tx.events.add([Event("paused", None, data)], actor="crash-loop")

    # -- living --------------------------------------------------------------------------------

    def _loop(self) -> str:
        engine, clock = self._engine, self._clock
        settle_at: float | None = clock.monotonic() + SETTLED_AFTER
        busy_at = self._due = clean_at = clock.monotonic()
        while True:
            now = clock.monotonic()
            self._step_if_due(now)
            if settle_at is not None and now >= settle_at:
                done = self._recording.make(self._settled)
                settle_at = None if done else self._recording.again_at
            if now >= clean_at:
                clean_at = now + self._clean()
            if engine.tools.is_busy():
                busy_at = now
            if self._wishes.leave is not None:
                return self._wishes.leave
            if self._home_is_gone(now):
                return HOME_GONE
            if not self._wishes.signals and self._trust_changed(now):
                return TRUST
            if self._wishes.signals:
                if self._is_drained(now):
                    return "signal"
            elif self._idle(now, busy_at) and self._leaving.may_be_made(now):
                self._leaving.make(self._leave_idle)
                if self._left:
                    return "idle"
                busy_at = now
            if not self._stepping.failures:
                self._watch_hints()
            self._note_trouble()
            self._wait(self._time_left(clean_at))

    def _step_if_due(self, now: float) -> None:
        if not self._stepping.may_be_made(now, news=self._wishes.woken):
            return
        if not self._stepping.make(lambda: self._check_and_step(now)):
            self._due = self._stepping.again_at

    def _check_and_step(self, now: float) -> None:
        self._engine.rounds.notice()  # the background thread that reads it wakes us
        if self._wishes.woken or now >= self._due or self._changed_meanwhile(now):
            self._step()
            self._due = now + self._delay
            self._descriptors.stepped()

    def _time_left(self, clean_at: float) -> float:
        """The seconds until there is something to do without being woken."""
        now = self._clock.monotonic()
        if self._stepping.failures:
            return self._stepping.pause(now, news=self._wishes.woken)
        again = self._descriptors.next_at()
        times = (self._due, clean_at, self._checked_at + POLL, again)
        return min(each for each in times if each is not None) - now

    def _home_is_gone(self, now: float) -> bool:
        """Whether the folder of evidence and logs was removed or moved away. A server would still
        be there, and the worker of a home that nobody can find would never be idle enough."""
        if now < self._home_at:
            return False
        self._home_at = now + POLL
        return self._lock.is_gone()

    def _trust_changed(self, now: float) -> bool:
        """Whether the trust that the settings were read by has changed. The jobs file has its own
        check. A worker without a setting that needs trust need not check."""
        if not self._needs_trust or now < self._trust_at:
            return False
        self._trust_at = now + POLL
        return is_trusted(self._home.path) != self._trusted

    def _changed_meanwhile(self, now: float) -> bool:
        """Check for commits of others, unless a hint made us check just now."""
        if now - self._checked_at < POLL or not self._changed():
            return False
        self._wishes.disturbed |= not self._store.undisturbed()
        return True

    def _changed(self) -> bool:
        self._checked_at = self._clock.monotonic()
        try:
            return self._store.changed()
        except StoreBusyError:
            return True  # the step will say what is wrong

    def _step(self) -> None:
        """Make a step; if it fails, everything is kept for the next."""
        undisturbed, self._wishes.disturbed = not self._wishes.disturbed, False
        self._wishes.woken = False
        askers, self._wishes.askers = self._wishes.askers, []
        try:
            if not self._recovered:
                self._engine.recover()
                self._recovered = True
            self._delay = self._engine.step(undisturbed=undisturbed)
        except Exception:
            self._wishes.askers = askers + self._wishes.askers
            self._wishes.disturbed = True
            raise
        for asker in askers:
            with suppress(OSError):
                self._listener.sendto(b"stepped", asker)
                reach("worker.answered")

    def _note_trouble(self) -> None:
        """Leave a note for others about an error that does not go away by itself."""
        failing = (
            each for each in (*self._efforts, *self._descriptors.efforts) if each.failures > 1
        )
        worst = next(failing, None)
        trouble = None if worst is None else (worst.name, worst.error, worst.failures, worst.since)
        if trouble == self._noted_trouble:
            return
        self._noted_trouble = trouble
        if trouble is None:
            forget_trouble(self._home)
        else:
            keys = ("what", "error", "failures", "since")
            note_trouble(self._home, pid=os.getpid(), **dict(zip(keys, trouble, strict=True)))

    def _clean(self) -> float:
        """Housekeeping; returns the seconds until there is more of it."""
        delay = POLL

        def clean() -> None:
            nonlocal delay
            delay = self._janitor.step()

        if not self._cleaning.make(clean):
            delay = max(POLL, self._cleaning.pause(self._clock.monotonic()))
        return delay

    def _settled(self) -> None:
        with self._store.write() as tx:
            tx.hosts.worker_settled(self.id)
        reach("worker.settled")

    def _wait(self, seconds: float) -> None:
        watchlist = self._watchlist
        self._descriptors.try_again(self._clock.monotonic())
        stuck = bool(self._stepping.failures)
        for key, _ in self._soon(watchlist) or watchlist.select(max(0.0, seconds)):
            only_once = stuck and key.data not in self._ours
            said = self._descriptors.receive(key.data, only_once=only_once)
            if said is not False:  # a store's hint may be about our own commit
                self._wishes.woken = True
                self._wishes.disturbed |= said is not UNDISTURBED

    def _soon(self, selector: selectors.BaseSelector) -> list[Any]:
        """Poll for a moment while short calls are under way. To sleep and be woken takes as long as
        a commit, on a machine that shares its processors."""
        if self._stepping.failures or not self._engine.pool.answers_soon:
            return []
        checks = (selector.select(0) for _ in range(CHECKS if self._has_processors else 0))
        return next((happened for happened in checks if happened), [])

    def _listen(self) -> None:
        folder = os.open(self._home.run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        name = os.path.basename(self._home.worker_socket)
        with suppress(FileNotFoundError):
            os.unlink(self._home.worker_socket)
        self._listener.bind(f"/proc/self/fd/{folder}/{name}")
        os.chmod(name, 0o600, dir_fd=folder)
        os.close(folder)
        reach("worker.listening")
        self._ours.append(self._watchlist.watch(self._listener, self._receive))
        self._catch_signals()

    def _watch_hints(self) -> None:
        """The store's own hints come over a line that may be lost; it is made anew."""
        self._store.hints()

    def _hinted(self) -> object:
        """False: it was about our own commit."""
        changed = self._changed()
        return UNDISTURBED if changed and self._store.undisturbed() else changed

    def _receive(self) -> object:
        """Read the messages. `UNDISTURBED`, if they say no more than that; a store in a file cannot
        tell commits apart, so there every message counts."""
        undisturbed = self._store.shared
        while True:
            try:
                message, sender = self._listener.recvfrom(256)
            except BlockingIOError:
                return UNDISTURBED if undisturbed else None
            undisturbed = undisturbed and message == CALLS_CAME
            if message == b"handover" and self._mode is WorkerMode.BACKGROUND:
                self._wishes.leave = "handover"
            elif message == b"step" and sender:
                self._wishes.askers.append(sender)
            else:
                self._engine.launches.receive(message)

    def _catch_signals(self) -> None:
        self._signalled, wakeup = socket.socketpair()
        self._signalled.setblocking(False)
        wakeup.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
        self._wakeup = wakeup
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._ours.append(self._watchlist.watch(self._signalled, self._read_signals))

    def _on_signal(self, number: int, frame: object) -> None:
        """From now on nothing is waited for longer than there is time, and after a second one
        nothing at all, in whatever wait this comes."""
        wishes, patience = self._wishes, self._store.patience
        wishes.signals += 1
        if wishes.signals == 1:
            wishes.signalled_at = self._clock.monotonic()
            patience.end_within(self._grace + AT_ONCE)
        else:
            patience.end_within(0.0)

    @property
    def _grace(self) -> float:
        return self._config.micros("worker.grace") / SECOND

    def _read_signals(self) -> None:
        with suppress(BlockingIOError):
            self._signalled.recv(64)

    def _report(self, document: dict[str, Any]) -> None:
        reason = f" ({document['reason']})" if document["reason"] else ""
        self._say(f"{document['id']} {document['name']}: {document['state']}{reason}")

    # -- leaving -------------------------------------------------------------------------------

    def _is_drained(self, now: float) -> bool:
        """After a signal: whether nothing is waited for any longer."""
        if self._drain_until is None:
            self._drain_until = self._wishes.signalled_at + self._grace
            self._leaving.make(self._start_draining)
        idle = not self._engine.tools.is_busy()
        return idle or now >= self._drain_until or self._wishes.signals > 1

    def _start_draining(self) -> None:
        """Stop dispatching and give up the place, so that a command which comes now starts a
        worker of its own; that one waits until this one has left."""
        self._engine.dispatching = False
        do_all(
            (
                self._engine.pool.processes.drain,
                self._mark_stopped,
                lambda: self._lock.give_up(STAYS),
            )
        )
        reach("worker.draining")
        running = self._running()
        if running:
            self._say(f"stopping: waiting for {running}; a second signal leaves at once")

    def _mark_stopped(self) -> None:
        with open(self._home.worker_stopped, "w", encoding="ascii", opener=_for_us) as file:
            file.write("the last worker left on a signal\n")
        reach("worker.stop_marked")

    def _idle(self, now: float, busy_at: float) -> bool:
        if self._mode is WorkerMode.FOREGROUND or self._engine.tools.is_busy():
            return False
        if self._store.shared:  # another host's submit could not start a worker here
            return False
        return now - busy_at >= self._config.micros("worker.idle") / SECOND

    def _leave_idle(self) -> None:
        """Leave only if nothing needs a worker; the place is given up inside the transaction."""
        with self._store.write() as tx:
            if self._engine.rounds.awake or tx.settings.marks()["next_fire_at"]:
                return
            if tx.jobs.anything_active() or tx.claims.unproven():
                return
            if tx.settings.marks()[UNSETTLED_RUNS] == ENDS_CAME:
                return
            idle = self._config.micros("worker.idle") / SECOND
            if self._engine.part(WebhooksPart).needs_worker(tx, idle):
                return
            tx.hosts.end_worker(self.id, "idle")
            tx.events.add([Event("worker_left", None, {"ending": "idle"})], actor=self.id)
            self._lock.give_up(STAYS)
            self._left = True
            reach("worker.gave_up")
        self._end_is_recorded = True
        reach("worker.left")

    def _depart(self, ending: str) -> None:
        self._lock.give_up(STAYS)
        if not self._end_is_recorded:
            hurried = self._wishes.signals > 1 or self._stepping.failures
            self._store.patience.end_within(AT_ONCE if hurried else LAST_WORDS)
            recorded = self._recording.make(lambda: self._record_end(ending))
            if not recorded and ending != HOME_GONE:
                note_end(self._home, self.id, ending)
        left = self._running()
        if left:
            self._say(f"left {left} running; the next worker takes them up again")

    def _running(self) -> str:
        ids = {claim.job_id for claim in self._engine.launches.claims} | self._engine.pool.begun()
        return ", ".join(shown(job_id) for job_id in sorted(ids))

    def _record_end(self, ending: str) -> None:
        with self._store.write() as tx:
            tx.hosts.end_worker(self.id, ending)
            tx.events.add([Event("worker_left", None, {"ending": ending})], actor=self.id)
        reach("worker.end_recorded")
