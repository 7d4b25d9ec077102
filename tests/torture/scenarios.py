"""One sequence for each safeguard, played with it and without it, and judged by the same checker.

A random kill seldom meets a window of microseconds. So each sequence is led into its window by
crash points and by stopping processes; nothing depends on how quick the machine is.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture import database, ledger, processes
from torture.arena import Arena
from torture.killer import Killer
from torture.records import Kill
from torture.workload import Wish

LONG = 2000  # beats; a gate opens before
WITHIN = 30.0


class Stage:
    """An arena in which a play says who lives, and when."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.worker = arena.start_worker
        self.killer = Killer(arena.files, arena.mark, 0)

    def gate_job(self) -> int:
        return self.arena.submit([Wish("gate", LONG, (0,))])[0]

    def open_gate(self) -> None:
        Path(f"{self.arena.files.ledger}.open").touch()

    def until_started(self) -> None:
        self.until(lambda: ledger.read(self.arena.files.ledger).lines, "the job's first line")

    def until_stopped(self, process: subprocess.Popen[bytes]) -> None:
        self.until(lambda: processes.stopped(process.pid), "a worker to stop at its point")

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        give_up_at = time.monotonic() + WITHIN
        while not (value := condition()):
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"not within {WITHIN} s: {what}")
            time.sleep(0.01)
        return value


def claim_token(stage: Stage) -> None:
    """Two workers, because their lock file was deleted. One has undone a claim that the other
    thinks alive, and has started the job anew; then the other judges the old claim."""
    stage.gate_job()
    stage.worker("engine.claimed=kill").wait(WITHIN)
    first = stage.worker("recovery.voided=stop")
    stage.until_stopped(first)
    os.unlink(stage.arena.home.worker_lock)
    second = stage.worker("engine.recovered=stop,engine.settled=kill")
    stage.until_stopped(second)
    first.send_signal(signal.SIGCONT)
    stage.until_started()
    second.send_signal(signal.SIGCONT)
    second.wait(WITHIN)  # it has judged
    stage.open_gate()


def start_record(stage: Stage) -> None:
    """A supervisor is killed while its command runs."""
    stage.gate_job()
    stage.worker()
    stage.until_started()
    stage.killer.kill(stage.arena.living("supervisor"))
    stage.until(lambda: _events(stage, "failed", "unclaimed"), "a verdict")
    stage.open_gate()


def lock_before_evidence(stage: Stage) -> None:
    """A job ends while a new worker is about to judge its claim."""
    stage.gate_job()
    stage.worker()
    stage.until_started()
    stage.killer.kill([*stage.arena.living("worker"), *stage.arena.living("parent")])
    judging = stage.worker("torture.before_lock=stop")
    stage.until_stopped(judging)
    (supervisor,) = stage.arena.living("supervisor")
    stage.open_gate()
    # By its state: it loses its environment, by which it is found, before it lets go of its lock.
    stage.until(lambda: not processes.exists(supervisor.pid), "the supervisor to end")
    judging.send_signal(signal.SIGCONT)


def getppid_check(stage: Stage) -> None:
    """A supervisor dies after the go byte, and before its child has asked to die with it."""
    job = stage.gate_job()
    points = "launcher.sent=kill,supervisor.go=kill,torture.before_pdeathsig=stop"
    stage.worker(points).wait(WITHIN)
    folder = Path(stage.arena.home.job(job))
    record = stage.until(lambda: _start_record(folder), "the start record")
    supervisor, command = record["supervisor_pid"], record["child_pid"]
    stage.until(lambda: not processes.exists(supervisor), "the supervisor to die")
    stage.until(lambda: processes.stopped(command), "the child to stop")
    offset = ledger.size(stage.arena.files.ledger)
    stage.arena.files.killed([Kill(1, "point", "supervisor", supervisor, record["token"], offset)])
    stage.open_gate()
    os.kill(command, signal.SIGCONT)
    stage.until(lambda: not processes.exists(command), "the child to end")


def _events(stage: Stage, *kinds: str) -> bool:
    with database.opened(stage.arena.url) as select:
        return any(event.kind in kinds for event in database.read(select).events)


def _start_record(folder: Path) -> dict[str, Any] | None:
    for path in folder.glob("started.*"):
        if not path.name.endswith(".tmp"):
            return {**json.loads(path.read_text()), "token": path.name.removeprefix("started.")}
    return None


SCENARIOS: dict[str, Callable[[Stage], None]] = {
    "claim token": claim_token,
    "start record": start_record,
    "lock before evidence": lock_before_evidence,
    "getppid check": getppid_check,
}


def play(arena: Arena, scenario: str) -> None:
    SCENARIOS[scenario](Stage(arena))
    arena.rest(within=WITHIN)
    arena.stop()
