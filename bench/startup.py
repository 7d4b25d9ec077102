"""How long a person waits for `headway submit -- true`, beside `python -c pass`, in one run.

`make bench-startup` runs only this; it exits 1 when the goal is missed.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from measure import Figures, Lab, seconds

GOAL = 8.0


def startup(lab: Lab) -> Figures:
    """The whole command, worker up, and a program that only imports Headway, or declares an app,
    beside the bare interpreter; and the two imports that the command needs."""
    return _figures(lab.fresh("startup"), rounds=max(5, lab.size(25)))


def _figures(folder: Path, *, rounds: int) -> Figures:
    headway = str(Path(sys.executable).with_name("headway"))
    commands = {
        "startup.python": [sys.executable, "-c", "pass"],
        "startup.imports": [sys.executable, "-c", "import click, apsw"],
        "startup.library": [sys.executable, "-c", "import headway"],
        "startup.app": [sys.executable, "-c", "import headway; headway.App()"],
        "startup.headway": [headway, "submit", "--", "true"],
    }
    os.mkdir(folder / ".headway", 0o700)
    _run(commands["startup.headway"], folder)  # makes the store, starts the worker
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(seconds(lambda command=command: _run(command, folder)))
    _end_worker(folder)
    return {name: 1e3 * statistics.median(taken) for name, taken in times.items()}


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)


def _end_worker(folder: Path) -> None:
    from headway.base.home import Home
    from headway.base.worker_lock import WorkerLock, worker_is_there

    lock = Home(str(folder / ".headway")).worker_lock
    pid = WorkerLock(lock).read_pid()
    if pid and worker_is_there(lock):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def main() -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        figures = _figures(Path(folder), rounds=25)
    for name, milliseconds in figures.items():
        ratio = milliseconds / figures["startup.python"]
        print(f"{name.removeprefix('startup.'):24s} {milliseconds:7.1f} ms   {ratio:5.2f} x")
    met = figures["startup.headway"] <= GOAL * figures["startup.python"]
    print(f"goal: at most {GOAL:g} x: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
