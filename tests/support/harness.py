"""A home in a temporary folder with everything real: store, engine, processes.

`Bench` steps an engine by hand, so a test decides when time passes and when a step is made.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import warm
from headway.base.clock import Clock, SystemClock
from headway.base.home import Home
from headway.base.host import this_host
from headway.base.new_home import make_home
from headway.base.trust import record
from headway.base.worker_lock import STAYS, WorkerLock
from headway.client import Client
from headway.core.model import Job
from headway.core.states import TERMINAL, Status
from headway.jobs.context import Context
from headway.jobs.request import Request
from headway.jobs.settings import Config
from headway.store.new_jobs import Event
from headway.supervise.evidence import Evidence
from headway.supervise.rescue import end_claim
from headway.testing.clock import FakeClock
from headway.web.place import ServerPlace, place_of
from headway.worker.process import Worker, WorkerMode
from headway.worker.step import Engine
from living import moment, younger
from parents import KeptLauncher
from ready import open_ready

DEADLINE = 30.0
MISSED = "missed_wake_up"
_TICK = threading.Event()  # never set: waiting on it is a pause between two looks


def wait_for(condition: Callable[[], Any], *, what: str = "", deadline: float = DEADLINE) -> Any:
    """Poll a condition until it is true; fail loudly when the deadline passes. Most of the time is
    left to those who are waited for, also if to look is work."""
    give_up_at = time.monotonic() + deadline
    while True:
        begin = time.thread_time()
        value = condition()
        if value:
            return value
        left = give_up_at - time.monotonic()
        if left < 0:
            raise AssertionError(f"not within {deadline} s: {what or condition}")
        long = min(0.05, (deadline - left) / 10)  # what took a while may take a little longer
        _TICK.wait(max(0.005, long, 2 * (time.thread_time() - begin)))


class _UndoneError(Exception):
    """A transaction that was only to see what would happen."""


class Bench:
    """Client and engine on one home; no worker, no background process but the jobs' own."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock | None = None,
        settings: dict[str, Any] | None = None,
        max_active: int | None = None,
        store_url: str | None = None,
        store_clock: Clock | None = None,
    ) -> None:
        self.home = Home(str(folder / ".headway"), store_url)
        make_home(self.home)
        values = {"worker.autostart": False, **(settings or {})}
        self.config = Config(values)
        self.clock = clock or SystemClock()
        url = store_url or f"sqlite://{self.home.database}"
        self.store = open_ready(url, store_clock or self.clock)
        self.client = Client(
            Context(
                self.home,
                self.config,
                self.store,
                self.clock,
                environ={"PATH": os.environ["PATH"], "HOME": "/"},
                actor="tester",
            )
        )
        self.folder = folder
        self.may_miss = False  # a test that breaks rows or wake-ups on purpose says so
        self.engine = self.new_engine()
        if max_active is not None:
            self.client.set_setting("scheduler.max_active", max_active)

    def new_engine(self) -> Engine:
        """As after a crash: a new engine that knows nothing but the store."""
        engine = Engine(
            self.store,
            self.home,
            self.config,
            this_host(self.home),
            self.clock,
            worker_id="worker-test",
            launcher=KeptLauncher(),
        )
        engine.launches.open()
        self.engine = engine
        return engine

    def new_worker(self, say: Callable[[str], None] = lambda text: None) -> Worker:
        """A worker of this home with an engine of its own. The test makes its rounds."""
        return Worker(
            *(self.store, self.home, self.config, self.client.context.host, self.clock),
            mode=WorkerMode.FOREGROUND,
            say=say,
        )

    def crash(self) -> Engine:
        """The engine is gone as by kill -9: its parent dies with it, supervisors go on."""
        self.engine.pool.close()  # its ends of the lines to function hosts
        launcher = self.engine.launches._launcher
        launcher.stop(kill=True)
        return self.new_engine()

    def submit(self, *argv: str, **options: Any) -> int:
        shell = options.pop("shell", None)
        request = Request(argv=argv, shell=shell, **options)
        return self.client.submit(request).job_id

    def job(self, job_id: int) -> Job:
        return self.client.job(job_id)

    def status(self, job_id: int) -> Status:
        return self.job(job_id).status

    def last(self, job_id: int) -> Job:
        return self.client.jobs.last_of_chain(job_id)

    def events(self, job_id: int) -> list[Event]:
        return self.client.jobs.history(job_id)

    def kinds(self, job_id: int) -> list[str]:
        return [event.kind for event in self.events(job_id)]

    def step(self, **options: Any) -> float:
        return self.engine.step(**options)

    def turn(self, seconds: float = 0.05) -> None:
        """Wait for something to happen, at most that long, then step. A fake clock, too, goes on
        while a test waits for real processes."""
        begin = time.monotonic()
        for key, _ in self.engine.launches.watchlist.select(seconds):
            key.data()
        if isinstance(self.clock, FakeClock):
            self.clock.advance(time.monotonic() - begin)
        self.engine.step()

    def until(self, condition: Callable[[], Any], what: str = "") -> Any:
        """Step until the condition holds."""
        give_up_at = time.monotonic() + DEADLINE
        self.engine.step()
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > give_up_at:
                raise AssertionError(f"not within {DEADLINE} s: {what or condition}")
            self.turn()

    def until_ended(self, *job_ids: int) -> list[Job]:
        """Step until the last jobs of all these chains have ended."""
        left = list(job_ids)

        def ended() -> bool:
            """What has ended stays so, and is not asked for again."""
            while left and self.last(left[-1]).status in TERMINAL:
                left.pop()
            return not left

        self.until(ended, f"{job_ids} to end")
        return [self.last(each) for each in job_ids]

    def until_begun(self) -> None:
        """Wait until what was launched has begun: before that a recovery undoes it, as it must."""

        def begun() -> bool:
            with self.store.read() as tx:
                live = tx.claims.live()
            evidence = (Evidence(each.folder, each.token) for each in live)
            return all(each.read_started() is not None for each in evidence)

        wait_for(begun, what="all that was launched to begin")

    def missed_wake_ups(self) -> list[int]:
        """Jobs that lay where they were although nothing stood in their way any more: those that
        a sweep has told of, and those that one would find if it came now."""
        with self.store.read() as tx:
            told = [each.job_id or 0 for each in tx.events.since(0, 100_000) if each.kind == MISSED]
        found: list[int] = []
        planner = self.engine.planner
        planner.begin()
        with suppress(_UndoneError), self.store.write() as tx:
            planner.step(tx)
            found += [job.id for job in planner.sweep(tx, tx.now() + 1)]
            raise _UndoneError
        planner.undo()
        return sorted({*told, *found})

    def close(self) -> None:
        try:
            missed = [] if self.may_miss else self.missed_wake_ups()
        finally:
            self._end_everything()
        assert not missed, f"a wake-up was missed: jobs {missed}"

    def _end_everything(self) -> None:
        with self.store.read() as tx:
            running = [claim.job_id for claim in tx.claims.live()]
        if running:
            self.client.pause("the test is over")
            self.client.cancel(running)
            self.end_hosts()
            self.until(lambda: not self._live(), "all jobs to end")
        left_behind = self.engine.launches.watchlist.dead()
        self.engine.close()
        self.end_hosts()
        self.store.close()
        assert not left_behind, f"numbers without a descriptor: {left_behind}"

    def hosts(self) -> list[Evidence]:
        """The function hosts that there are, or were, with what is known of their processes."""
        with suppress(FileNotFoundError):
            names = sorted(os.listdir(self.home.hosts))
            return [Evidence(os.path.join(self.home.hosts, name), name) for name in names]
        return []

    def end_hosts(self) -> None:
        """Kill every function host, whatever it does; no other takes its place."""
        self.engine.dispatching = False
        for evidence in self.hosts():
            end_claim(evidence)

    def _live(self) -> bool:
        with self.store.read() as tx:
            return bool(tx.claims.live())


class Site:
    """A folder with the real program: commands, workers and jobs are processes."""

    def __init__(
        self,
        folder: Path,
        *,
        config: str = "",
        env: dict[str, str] | None = None,
        store_url: str | None = None,
    ) -> None:
        self.folder = folder
        self._since = moment(str(folder))
        self.home = Home(str(folder / ".headway"), store_url)
        make_home(self.home)
        record(self.home.path)  # its user trusts it, also if it is a copy of another
        Path(self.home.config).write_text(config)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": os.environ.get("XDG_STATE_HOME", ""),
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
            "PYTHONDONTWRITEBYTECODE": "1",
            **({"HEADWAY_STORE": store_url} if store_url else {}),
            **(env or {}),
        }
        self._workers: list[subprocess.Popen[str]] = []  # and servers
        url = store_url or f"sqlite://{self.home.database}"
        store = open_ready(url, SystemClock())
        self.client = Client(
            Context(
                self.home,
                Config({"worker.autostart": False}),
                store,
                SystemClock(),
                environ=self.env,
                actor="tester",
            )
        )

    def run(
        self, *arguments: str, env: dict[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        env = {**self.env, **(env or {})}
        done = warm.headway([], arguments, cwd=self.folder, env=env, timeout=60)
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments} exited {done.returncode}: {done.stderr}")
        return done

    def submit(self, *argv: str, **options: Any) -> int:
        """Directly through the client, without waking anyone."""
        shell = options.pop("shell", None)
        return self.client.submit(Request(argv=argv, shell=shell, **options)).job_id

    def worker(self, *, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """A worker in the foreground, up and recovered."""
        process = self.start_worker(env=env)
        wait_for(
            lambda: process.poll() is not None or self.lock.is_held(STAYS), what="a worker to come"
        )
        return process

    def start_worker(self, *, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        process = warm.start(
            [],
            ["work"],
            cwd=self.folder,
            env={**self.env, **(env or {})},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._workers.append(process)
        return process

    def serve(self, *options: str, env: dict[str, str] | None = None) -> ServerPlace:
        """A server of this folder, up. It ends with the site."""
        process = warm.start(
            ["-P"],
            ["serve", *options],
            cwd=self.folder,
            env={**self.env, **(env or {})},
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._workers.append(process)
        place: ServerPlace = wait_for(lambda: place_of(self.home), what="a server")
        return place

    @property
    def lock(self) -> WorkerLock:
        return WorkerLock(self.home.worker_lock)

    def status(self, job_id: int) -> Status:
        return self.client.job(job_id).status

    def ended(self, *job_ids: int) -> bool:
        return all(self.client.jobs.last_of_chain(each).status in TERMINAL for each in job_ids)

    def until_ended(self, *job_ids: int, deadline: float = DEADLINE) -> None:
        wait_for(lambda: self.ended(*job_ids), what=f"{job_ids} to end", deadline=deadline)

    def kinds(self, job_id: int) -> list[str]:
        return [event.kind for event in self.client.jobs.history(job_id)]

    def processes(self) -> dict[int, str]:
        """Every living process of this site: it names the home in its command or environment,
        or, as supervisors do, holds a file of it open."""
        found = {}
        home = self.home.path.encode()
        for pid, command in younger(self._since):
            with suppress(OSError):
                if home in command or self._belongs(pid):
                    found[pid] = command.replace(b"\0", b" ").decode(errors="replace")
        return found

    def _belongs(self, pid: int) -> bool:
        mark = b"HEADWAY_HOME=" + self.home.path.encode()
        if mark in Path(f"/proc/{pid}/environ").read_bytes():
            return True
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):  # one that was just closed says nothing of the others
                if os.readlink(f"/proc/{pid}/fd/{fd}").startswith(self.home.path):
                    return True
        return False

    def background_pid(self) -> int | None:
        return self.lock.read_pid() if self.lock.is_held(STAYS) else None

    def close(self) -> None:
        """End everything that is left, the workers first."""
        for process in self._workers:
            if process.poll() is None:
                process.kill()
            process.communicate()
        pid = self.background_pid()
        if pid is not None and pid != os.getpid():
            # A process that was just being forked may hold the lock of a dead one for an instant.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not self.lock.is_held(STAYS))
        wait_for(self._kill_all, what="nothing of the site to be left")
        self.client.close()

    def _kill_all(self) -> bool:
        """True when there was none: one that is just being forked is seen the next time."""
        left = self.processes()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left
