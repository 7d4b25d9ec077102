"""How long a person waits for `headway submit -- true`, beside `python -c pass`, in one run.

The goal is a ratio: at most 8. Run with `make bench-startup`; exits 1 when the goal is missed.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 25
GOAL = 8.0


def seconds(command: list[str], folder: str) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def main() -> int:
    headway = str(Path(sys.executable).with_name("headway"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import click, apsw": [sys.executable, "-c", "import click, apsw"],
        "headway submit -- true": [headway, "submit", "--", "true"],
    }
    folder = tempfile.mkdtemp()
    os.mkdir(os.path.join(folder, ".headway"), 0o700)
    seconds(commands["headway submit -- true"], folder)  # makes the store, starts the worker
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(seconds(command, folder))
    base = statistics.median(times["python -c pass"])
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"{name:24s} {median * 1000:7.1f} ms   {median / base:5.2f} x")
    ratio = statistics.median(times["headway submit -- true"]) / base
    subprocess.run([headway, "scheduler", "pause"], cwd=folder, capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)
    print(f"goal: at most {GOAL:g} x: {'met' if ratio <= GOAL else 'MISSED'}")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
