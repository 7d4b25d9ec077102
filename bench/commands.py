"""Many commands that do nothing: what a job costs beyond the command itself."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from headway.client import Client
from headway.jobs.request import Request
from homes import environment, home, refuse_failures, submit, until_drained, worker
from measure import Figures, Lab, seconds, wait_for

TSP_SLOTS = 8


def flat(lab: Lab) -> Figures:
    """2,000 times `true` at max_active 1 and 8, beside `make -j1`, `make -j8` and task-spooler.

    Headway: all jobs are queued; timed from the start of the worker, its start-up included, until
    the store says that none is active. make: 2,000 phony targets, each `@true`, which make executes
    without a shell. task-spooler: 500 jobs, one `tsp` call each as it has no other way, timed
    together with the enqueueing, eight slots.
    """
    count = lab.size(2_000)
    spooled = lab.size(500)
    figures: Figures = {}
    for slots in (1, TSP_SLOTS):
        figures[f"commands.{slots}.headway"] = count / _headway(lab.fresh("flat"), slots, count)
        figures[f"commands.{slots}.make"] = count / _make(lab.fresh("make"), slots, count)
    if shutil.which("tsp"):
        figures["commands.8.tsp"] = spooled / _task_spooler(lab.fresh("tsp"), spooled)
    else:
        lab.lacks("task-spooler", "`tsp` is not installed (apt-get install task-spooler)")
    return figures


def chain(lab: Lab) -> Figures:
    """2,000 times `true`, each after the one before, as a time per job beside that of `flat`."""
    count = lab.size(2_000)
    with home(lab.fresh("chain"), max_active=1) as client:
        ids = submit_chain(client, count, "true")
        taken = _drain(client)
        refuse_failures(client, ids)
    return {"commands.chain.headway": count / taken}


def submit_chain(client: Client, count: int, *argv: str) -> list[int]:
    ids: list[int] = []
    for _ in range(count):
        ids.append(client.submit(Request(argv=argv, after=tuple(ids[-1:]))).job_id)
    return ids


def _headway(folder: Path, slots: int, count: int) -> float:
    with home(folder, max_active=slots) as client:
        ids = submit(client, count, "true")
        taken = _drain(client)
        refuse_failures(client, ids)
    return taken


def _drain(client: Client) -> float:
    """From the start of a worker until nothing is active; its leaving is not counted."""
    begin = time.perf_counter()
    with worker(client):
        until_drained(client)
        return time.perf_counter() - begin


def _make(folder: Path, slots: int, count: int) -> float:
    targets = " ".join(f"t{number}" for number in range(count))
    (folder / "Makefile").write_text(
        f".PHONY: all {targets}\nall: {targets}\n{targets}:\n\t@true\n"
    )
    command = ["make", f"-j{slots}", "-C", str(folder), "--no-print-directory", "-s"]
    return seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _task_spooler(folder: Path, count: int) -> float:
    env = {
        **environment(folder),
        "TS_SOCKET": str(folder / "socket"),
        "TMPDIR": str(folder),
        "TS_MAXFINISHED": str(count + 1),
    }

    def tsp(*arguments: str) -> str:
        done = subprocess.run(["tsp", *arguments], env=env, capture_output=True, text=True)
        return done.stdout

    tsp("-S", str(TSP_SLOTS))
    script = f"i=0; while [ $i -lt {count} ]; do tsp -n true >/dev/null; i=$((i+1)); done; tsp -w"

    def spool() -> None:
        subprocess.run(["sh", "-c", script], env=env, check=True)
        wait_for(lambda: tsp("-l").count(" finished ") >= count, within=60)

    try:
        return seconds(spool)
    finally:
        tsp("-K")
        if os.path.exists(folder / "socket"):
            os.unlink(folder / "socket")
