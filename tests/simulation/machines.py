"""Machines without processes: what launcher, supervisors and evidence look like to the engine.

A claim's process is an entry of its machine, with the same steps as a real one: asked for, forked,
locked, started, ended, its outcome written, its worker told. Each step but the first may be late or
never come. Supervisors outlive their worker; a reboot ends them all.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from headway.base.clock import SECOND
from headway.core.model import Lock
from headway.supervise.launcher import Ack
from headway.supervise.records import OutcomeRecord
from headway.testing.clock import FakeClock

FORK, BEGIN, FINISH, KILLED, TREE_ENDS = "fork", "begin", "finish", "killed", "tree ends"


@dataclass(slots=True)
class Fate:
    """How a job's process will behave, drawn before it starts."""

    seconds: float = 0.1
    code: int = 0
    signal: str | None = None
    spawn_errno: int | None = None
    killed: bool = False  # its supervisor dies in the middle and leaves no outcome
    tree_stays: float = 0.0  # seconds that something of its tree lives on
    deaf: float = 0.0  # seconds until it ends after a cancel


@dataclass(slots=True)
class Process:
    token: str
    job_id: int
    folder: str
    boot: int
    void: bool = False
    cancelled: bool = False
    started_at: int | None = None
    supervised: bool = False  # its supervisor lives
    lock: str | None = None  # who holds the claim's lock: "supervisor" or "rescuer"
    tree_lives: bool = False
    outcome: OutcomeRecord | None = None
    fate: Fate = field(default_factory=Fate)


class Outside(Protocol):
    """What machines need of the world around them."""

    clock: FakeClock
    rng: Random
    noise: bool  # whether things may go wrong

    def later(self, seconds: float, act: Callable[[], None]) -> None: ...
    def fate(self, job_id: int) -> Fate: ...
    def locks_of(self, job_id: int) -> tuple[Lock, ...]: ...
    def process_started(self, machine: "Machine", process: Process) -> None: ...
    def process_runs(self, machine: "Machine", process: Process) -> None: ...
    def tell_worker(self, machine: "Machine", message: bytes) -> None: ...


class SimulatedLock:
    """Stands for the descriptor of a claim's lock; it is free when it is closed."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def close(self) -> None:
        if self._process.lock == "rescuer":
            self._process.lock = None


class Machine:
    """One host: its processes and what they have left on its disk."""

    def __init__(self, world: Outside, name: str) -> None:
        self.world = world
        self.name = name
        self.boot = 1
        self.processes: dict[str, Process] = {}
        self.worker_lives = False

    # -- what a worker's evidence does ---------------------------------------------------------

    def prepare(self, token: str, job_id: int, folder: str) -> None:
        self.processes[token] = Process(token, job_id, folder, self.boot)

    def discard(self, token: str) -> None:
        if self.worker_lives:
            self.processes.pop(token, None)

    def release_worker_locks(self) -> None:
        for process in self.processes.values():
            if process.lock == "rescuer":
                process.lock = None

    # -- what processes do ---------------------------------------------------------------------

    def _soon(self, seconds: float, what: str, token: str) -> None:
        boot = self.boot

        def happens() -> None:
            process = self.processes.get(token)
            if boot == self.boot and process is not None:
                _STEPS[what](self, process)

        self.world.later(seconds, happens)

    def fork(self, token: str, delay: float) -> None:
        """The parent has read the request."""
        if delay:
            self._soon(delay, BEGIN, token)
        elif token in self.processes:
            self._begin(self.processes[token])

    def _begin(self, process: Process) -> None:
        """A supervisor's first acts: lock, look, start, record."""
        untouched = process.started_at is None and process.outcome is None
        if process.lock is not None or process.void or process.cancelled or not untouched:
            return
        fate = process.fate = self.world.fate(process.job_id)
        if fate.spawn_errno is not None:
            self._write(process, "spawn_error", errno=fate.spawn_errno)
            return
        process.lock, process.supervised, process.tree_lives = "supervisor", True, True
        process.started_at = self.world.clock.now()
        self.world.process_started(self, process)
        self._soon(fate.seconds, KILLED if fate.killed else FINISH, process.token)
        self.world.process_runs(self, process)

    def _finish(self, process: Process) -> None:
        if not process.supervised:
            return
        fate = process.fate
        stays = fate.tree_stays > 0
        if process.cancelled:
            self._write(process, "cancelled", exit_code=143, stays=stays)
        elif fate.signal:
            self._write(process, "signalled", signal=fate.signal, stays=stays)
        else:
            self._write(process, "exited", exit_code=fate.code, stays=stays)

    def _write(
        self,
        process: Process,
        reason: str,
        *,
        exit_code: int | None = None,
        signal: str | None = None,
        errno: int | None = None,
        stays: bool = False,
    ) -> None:
        now = self.world.clock.now()
        process.outcome = OutcomeRecord(
            token=process.token,
            job=process.job_id,
            reason=reason,
            exit_code=exit_code,
            signal=signal,
            errno=errno,
            error=os.strerror(errno) if errno else None,
            started_at=process.started_at or now,
            finished_at=now,
            usage={},
            logs={},
            tree="unproven" if stays else "gone",
        )
        process.supervised, process.lock, process.tree_lives = False, None, stays
        if stays:
            self._soon(process.fate.tree_stays, TREE_ENDS, process.token)
        self.world.tell_worker(self, f"ended {process.token}".encode())

    def _die(self, process: Process) -> None:
        """kill -9 of the supervisor: the command dies with it, what it started may not."""
        if not process.supervised:
            return
        process.supervised, process.lock = False, None
        process.tree_lives = process.fate.tree_stays > 0
        if process.tree_lives:
            self._soon(process.fate.tree_stays, TREE_ENDS, process.token)

    def _end_tree(self, process: Process) -> None:
        process.tree_lives = False

    def end_tree(self, token: str) -> str:
        """A rescuer ends what is left of a claim; where there is no cgroup it proves nothing."""
        process = self.processes.get(token)
        if process is None or not process.tree_lives:
            return "gone" if self.world.rng.random() < 0.8 else "unproven"
        return "unproven"

    def cancel(self, process: Process) -> None:
        process.cancelled = True
        if process.supervised:
            self._soon(process.fate.deaf, FINISH, process.token)

    def kill_supervisor(self, token: str) -> None:
        process = self.processes.get(token)
        if process is not None:
            self._die(process)

    def reboot(self) -> None:
        self.boot += 1
        for process in self.processes.values():
            process.supervised, process.lock, process.tree_lives = False, None, False

    def forget_ended(self, live: set[str]) -> None:
        """What is settled is no longer evidence for anyone."""
        for token in [each for each in self.processes if each not in live]:
            process = self.processes[token]
            if not process.tree_lives and not process.supervised:
                del self.processes[token]


_STEPS: dict[str, Callable[[Machine, Process], None]] = {
    BEGIN: Machine._begin,
    FINISH: Machine._finish,
    KILLED: Machine._die,
    TREE_ENDS: Machine._end_tree,
}


class SimulatedLauncher:
    """The preloaded parent of one worker; it may be slow, fail to fork, die or fall silent."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._unanswered: dict[str, float] = {}
        self._acks: list[Ack] = []
        self._lives = True
        self._silent = False
        self._ends = (os.eventfd(0), os.eventfd(0))
        self.pidfd = self._ends[1]

    def start(self) -> None:
        self._lives, self._silent = True, False

    def launch(self, folder: str, token: str) -> None:
        self._unanswered[token] = self._machine.world.clock.monotonic()
        rng = self._machine.world.rng
        trouble = rng.random() if self._machine.world.noise else 1.0
        if trouble < 0.002:
            self._lives = False
        elif trouble < 0.004:
            self._silent = True
        if not self._lives or self._silent:
            if trouble < 0.5:  # it forked, and died or hung before it could say so
                self._machine.fork(token, 0.01)
            return
        if trouble < 0.01:
            self._answer(Ack(token, errno=11))
        elif trouble < 0.1:
            self._machine.fork(token, rng.choice((0.01, 0.5, 3.0)))
            self._machine.world.later(0.005, lambda: self._answer(Ack(token, pid=1)))
        else:
            self._answer(Ack(token, pid=1))
            self._machine.fork(token, 0.0)

    def _answer(self, ack: Ack) -> None:
        if self._lives and ack.token in self._unanswered:
            self._acks.append(ack)

    def acks(self) -> list[Ack]:
        acks, self._acks = self._acks, []
        for ack in acks:
            self._unanswered.pop(ack.token, None)
        return acks

    @property
    def unacknowledged(self) -> set[str]:
        return set(self._unanswered)

    def overdue(self, seconds: float) -> bool:
        oldest = min(self._unanswered.values(), default=None)
        return oldest is not None and self._machine.world.clock.monotonic() - oldest > seconds

    def alive(self) -> bool:
        return self._lives

    def restart(self) -> list[str]:
        lost = list(self._unanswered)
        self._unanswered.clear()
        self._acks.clear()
        self.start()
        return lost

    def fileno(self) -> int:
        return self._ends[0]

    def stop(self, kill: bool = False) -> None:
        for end in self._ends:
            os.close(end)


class SimulatedEvidence:
    """The files of one claim, as the engine asks for them."""

    def __init__(self, folder: str, token: str) -> None:
        self.folder = folder
        self.token = token
        self._machine = machine_of(folder)

    @property
    def _process(self) -> Process | None:
        return self._machine.processes.get(self.token)

    def prepare(self, spec: dict[str, Any]) -> None:
        world = self._machine.world
        if world.noise and world.rng.random() < 0.0005:
            raise OSError(28, os.strerror(28))
        self._machine.prepare(self.token, int(self.folder.rpartition("/")[2]), self.folder)

    def discard(self) -> None:
        self._machine.discard(self.token)

    def shed(self) -> None: ...

    def exists(self) -> bool:
        return self._process is not None

    def read_started(self) -> int | None:
        return self._process.started_at if self._process else None

    def has_begun(self) -> bool:
        return self.read_started() is not None

    def read_outcome(self) -> OutcomeRecord | None:
        return self._process.outcome if self._process else None

    def read_crash(self) -> None:
        return None

    def is_void(self) -> bool:
        return self._process is not None and self._process.void

    def make_void(self) -> None:
        if self._process is not None and self._machine.worker_lives:
            self._process.void = True

    def is_cancelled(self) -> bool:
        return self._process is not None and self._process.cancelled

    def request_cancel(self) -> None:
        if self._process is not None:
            self._machine.cancel(self._process)

    def try_lock(self) -> SimulatedLock | None:
        process = self._process
        if process is None:
            raise FileNotFoundError(2, "No such file or directory")
        if process.lock is not None:
            return None
        process.lock = "rescuer"
        return SimulatedLock(process)


class SimulatedRescue:
    """`supervise.rescue`, as the engine uses it."""

    @staticmethod
    def end_claim(evidence: SimulatedEvidence, patience: float = 0.0) -> str:
        return evidence._machine.end_tree(evidence.token)

    @staticmethod
    def tree_is_empty(evidence: SimulatedEvidence) -> bool:
        process = evidence._process
        return process is None or not process.tree_lives

    @staticmethod
    def end_supervisor(evidence: SimulatedEvidence) -> bool:
        evidence._machine.kill_supervisor(evidence.token)
        return True

    @staticmethod
    def ask_to_cancel(evidence: SimulatedEvidence) -> None:
        evidence.request_cancel()

    @staticmethod
    def is_stuck(evidence: SimulatedEvidence) -> bool:
        return True

    @staticmethod
    def watch_supervisor(evidence: SimulatedEvidence) -> None:
        return None

    @staticmethod
    def forget_cgroup(token: str) -> bool:
        return True


_MACHINES: dict[str, Machine] = {}


def machine_of(folder: str) -> Machine:
    """The machine on whose disk a job's folder is."""
    return _MACHINES[folder.rpartition("/jobs/")[0]]


def place(home: str, machine: Machine) -> None:
    _MACHINES[home] = machine


def remove(home: str) -> None:
    del _MACHINES[home]


MICROSECONDS = SECOND
