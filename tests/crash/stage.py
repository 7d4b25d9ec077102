"""A home whose processes can be told where to die, and an independent look at what is left.

Workers and commands are actors: forked from a clean process that has everything loaded, so that
one costs milliseconds and the points that are armed are its own. What its parent and supervisors
are to die of is told to it apart.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from actors import forks
from harness import Site, wait_for
from headway.base import crashpoints, proc
from headway.base.clock import SystemClock
from headway.base.home import Home
from headway.base.host import this_host
from headway.client import Client
from headway.core.model import Claim
from headway.core.states import TERMINAL
from headway.jobs.context import Context
from headway.jobs.settings import Config
from headway.jobs.specification import parse_lock
from headway.store import open_store
from headway.store.store import Store
from headway.supervise import cgroup
from headway.supervise.evidence import Evidence, Started
from headway.supervise.launcher import Launcher
from headway.worker.one_pass import single_step
from headway.worker.process import Worker, WorkerMode
from headway.worker.step import Engine


def soon(failures: int) -> int:
    """How long a host in trouble is left alone, in microseconds."""
    return 10_000


# Two looks a second apart are still two looks when the second is a short one.
IMPATIENT = {
    **{
        f"headway.worker.{part}.LOOK_AGAIN": 0.05
        for part in ("dispatch", "functions", "lendings", "outcomes")
    },
    "headway.worker.outcomes.RECOVER_EVERY": 0.1,
    "headway.worker.recovery.SWEEP_GAP": 0.05,
    "headway.worker.recovery.UNANSWERED": 0.1,
    "headway.worker.settler.probe_delay": soon,
    "headway.core.settle.LAUNCH_DELAYS": (10_000, 10_000),
}
SETTINGS = {"worker.autostart": False, "worker.crash_loop": 0, "worker.grace": "0s"}
TABLES = ("jobs", "runs", "claims", "evidence", "edges", "waits", "held_locks", "lendings")


class Part(NamedTuple):
    """What an actor needs to know."""

    home: Home
    environ: dict[str, str]
    points: str
    settings: dict[str, Any]
    patches: dict[str, Any]

    def store(self) -> Store:
        url = self.home.store_url or f"sqlite://{self.home.database}"
        return open_store(url, SystemClock(), create=True)

    def client(self) -> Client:
        return Client(
            Context(
                self.home,
                Config(self.settings),
                self.store(),
                SystemClock(),
                environ=os.environ,
                actor="actor",
            )
        )


Act = Callable[..., None]


def _play(part: Part, act: Act, arguments: tuple[Any, ...]) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(part.environ)
    for name, value in part.patches.items():
        module, _, attribute = name.rpartition(".")
        setattr(import_module(module), attribute, value)
    crashpoints.arm(part.points)
    act(part, *arguments)


def work(part: Part, mode: WorkerMode = WorkerMode.FOREGROUND) -> None:
    """Be a worker."""

    def say(message: str) -> None:
        with open(part.home.worker_log, "a", encoding="utf-8") as file:
            file.write(message + "\n")

    config, host = Config(part.settings), this_host(part.home)
    Worker(part.store(), part.home, config, host, SystemClock(), mode=mode, say=say).run()


def step_once(part: Part) -> None:
    """Be `headway scheduler run`: recover, and make one step."""
    config, host = Config(part.settings), this_host(part.home)
    single_step(part.store(), part.home, config, host, SystemClock(), limit=100)


class Unneeded(Launcher):
    """Costs nothing, and says so if it is needed."""

    def alive(self) -> bool:
        return True

    def launch(self, folder: str, token: str) -> None:
        raise AssertionError(f"{folder} is started once more")


class Stage(Site):
    def __init__(self, folder: Path, *, store_url: str | None) -> None:
        super().__init__(folder, store_url=store_url)
        self.settings: dict[str, Any] = dict(SETTINGS)
        self.patches: dict[str, Any] = dict(IMPATIENT)
        self.mark = folder / "mark"
        self.ledger = folder / "ledger"
        self.names: dict[int, str] = {}
        self._actors: list[BaseProcess] = []
        self._doors: dict[str, int] = {}  # what they wait for who wait at a gate
        self.client.set_setting("scheduler.max_active", 4)

    # -- what happens --------------------------------------------------------------------------

    def job(
        self,
        name: str,
        script: str = "",
        *,
        code: int = 0,
        locks: tuple[str, ...] = (),
        **options: Any,
    ) -> int:
        """A job that writes into the ledger when it starts and when it ends."""
        shell = f"{self.entry('start', name)}; {script}\n{self.entry('end', name)}; exit {code}"
        keys = tuple(parse_lock(key) for key in locks)
        return self.called(name, self.submit(shell=shell, locks=keys, **options))

    def ended(self, *job_ids: int) -> bool:
        """In one query, because it is asked often; no job here is retried."""
        ids = ", ".join(str(each) for each in job_ids)
        rows = self.rows(f"select id from jobs where id in ({ids}) and finished_at is null limit 1")
        return not rows

    def begin_anew(self) -> None:
        """What was played before has ended and counts no more."""
        self.names.clear()
        self._close_doors()
        for path in (self.ledger, self.mark, *self.folder.glob("gate-*")):
            path.unlink(missing_ok=True)

    def _close_doors(self) -> None:
        for name, door in self._doors.items():
            os.close(door)
            (self.folder / f"door-{name}").unlink()
        self._doors.clear()

    def entry(self, word: str, name: str) -> str:
        return f"echo {word} {name} >>{self.ledger}"

    def called(self, name: str, job: int) -> int:
        self.names[job] = name
        return job

    def number(self, name: str) -> int:
        return next(job for job, known in self.names.items() if known == name)

    def gate(self, name: str) -> str:
        """A script that waits until `open_gate`: for a line, since one that looks again and again
        starts a process for each look."""
        door = self.folder / f"door-{name}"
        if name not in self._doors:
            os.mkfifo(door)
            self._doors[name] = os.open(door, os.O_RDWR | os.O_CLOEXEC)
        return f"read line <{door}"

    def open_gate(self, name: str) -> None:
        """For all who wait or come later."""
        (self.folder / f"gate-{name}").touch()
        if name in self._doors:
            os.write(self._doors[name], b"\n" * 1000)

    def actor(self, act: Act, *arguments: Any, points: str = "", children: str = "") -> BaseProcess:
        environ = {**self.env, "HEADWAY_TEST_MARK": str(self.mark)}
        if children:
            environ["HEADWAY_POINTS"] = children
        part = Part(self.home, environ, points, self.settings, self.patches)
        process = forks().Process(target=_play, args=(part, act, arguments))
        process.start()
        self._actors.append(process)
        return process

    def killed_at(self) -> str:
        """The point at which someone died, and is now dead."""
        name, pid = wait_for(self._mark, what="the point to be reached")
        wait_for(lambda: proc.start_time(int(pid)) is None, what=f"{pid} to be dead")
        return str(name)

    def stopped_at(self, point: str) -> int:
        """The pid of the one that is stopped there."""
        name, pid = wait_for(self._mark, what="the point to be reached")
        assert name == point
        wait_for(lambda: proc.is_stopped(int(pid), proc.start_time(int(pid)) or 0))
        return int(pid)

    def _mark(self) -> list[str] | None:
        words = self.mark.read_text().split() if self.mark.exists() else []
        return words if len(words) == 2 else None

    def dies_at(self, point: str, act: Act, *arguments: Any, visit: int = 1) -> None:
        """Let an actor go to its point, and see that it died there and of nothing else."""
        actor = self.actor(act, *arguments, points=f"{point}=kill@{visit}")
        self.died(actor, point)

    def died(self, actor: BaseProcess, point: str) -> None:
        actor.join(30)
        assert (actor.exitcode, self.killed_at()) == (-signal.SIGKILL, point)

    def kill(self, actor: BaseProcess) -> None:
        actor.kill()
        actor.join(30)

    def finish(self) -> None:
        """A worker comes, brings everything to its end, and leaves."""
        worker = self.actor(work)
        self.until_ended(*self.names)
        self.leave(worker)

    def leave(self, worker: BaseProcess) -> None:
        wait_for(lambda: not self.unproven(), what="the trees to be proven gone")
        wait_for(lambda: self._newest_pid() == worker.pid, what="the worker to be up")
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGTERM)
        worker.join(30)
        assert worker.exitcode == 0

    def _newest_pid(self) -> int | None:
        with self.client.context.store.read() as tx:
            newest = tx.hosts.recent_workers(self.client.context.host.id, 1)
        return newest[0].pid if newest else None

    # -- what is left --------------------------------------------------------------------------

    def claim(self, job: int) -> Claim:
        with self.client.context.store.read() as tx:
            claim = tx.claims.of_job(job)
        assert claim is not None
        return claim

    def started(self, job: int) -> Started:
        """The start record, as soon as there is one."""

        def look() -> Started | None:
            with self.client.context.store.read() as tx:
                claim = tx.claims.of_job(job)
            return claim and Evidence(claim.folder, claim.token).read_started()

        found: Started = wait_for(look, what=f"{self.names[job]} to start")
        return found

    def evidence(self, job: int) -> Evidence:
        claim = self.claim(job)
        return Evidence(claim.folder, claim.token)

    def unproven(self) -> list[Claim]:
        with self.client.context.store.read() as tx:
            return tx.claims.unproven()

    def written(self) -> list[tuple[str, ...]]:
        """The ledger: what the commands themselves did, in their order."""
        text = self.ledger.read_text() if self.ledger.exists() else ""
        return [tuple(line.split()) for line in text.splitlines()]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        database = self.client.context.store.database  # type: ignore[attr-defined]
        with self.client.context.store.read():
            rows: list[tuple[Any, ...]] = database.execute(query, {})
        return rows

    def record(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that the store says about jobs."""
        tables = {name: sorted(self.rows(f"select * from {name}"), key=str) for name in TABLES}
        events = "select seq, kind, job_id from events where job_id is not null order by seq"
        return {**tables, "events": self.rows(events)}

    def check_settled(self) -> None:
        """What must be so after any crash, once all jobs have ended and the worker has left."""
        written = Counter(self.written())
        for job, name in self.names.items():
            last = self.client.job(job)
            assert last.status in TERMINAL, name
            ends = [kind for kind in self.kinds(job) if kind in set(TERMINAL)]
            assert ends == [last.status.value], f"{name} ended once"
            assert written["start", name] <= 1, f"{name} ran at most once"
            if last.status.value == "succeeded":
                assert written["start", name] == written["end", name] == 1
        assert self.rows("select * from held_locks") == []
        assert self.rows("select * from lendings") == []
        assert self.rows("select * from events where kind = 'missed_wake_up'") == []
        wait_for(lambda: not self.processes(), what="no process to be left")
        assert self._groups() == []
        before = self.record()
        self._start_once_more()
        assert self.record() == before, "to start once more changes nothing"

    def _start_once_more(self) -> None:
        """What a worker does when it comes up; it finds nothing to launch."""
        config, host = Config(self.settings), this_host(self.home)
        engine = Engine(
            self.client.context.store,
            self.home,
            config,
            host,
            SystemClock(),
            worker_id="worker-again",
            launcher=Unneeded(),
        )
        engine.recover()
        engine.step()
        engine.close()

    def _groups(self) -> list[str]:
        """The control groups that are left of this home's claims."""
        base = cgroup.find_base()
        tokens = {path.name.split(".")[1] for path in Path(self.home.jobs).glob("*/*.*")}
        paths = [cgroup.path_for(base, token) for token in tokens] if base else []
        return [path for path in paths if os.path.isdir(path)]

    def close(self) -> None:
        for actor in self._actors:
            if actor.is_alive():
                actor.kill()
            actor.join(10)
        _, pid = self._mark() or ("", "0")
        if proc.is_stopped(int(pid), proc.start_time(int(pid)) or 0):  # nobody woke it
            os.kill(int(pid), signal.SIGKILL)
        super().close()
        self._close_doors()
