"""What all benchmarks share: sizes, scratch folders, timing, and what /proc says of a process.

A benchmark is a function that takes the Lab and returns raw figures by name. It runs Headway and
its peers one after the other; `run.py` calls all of them three times over and takes medians, so no
contender has a quieter machine than another.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).resolve().parent
Figures = dict[str, float]
Made = TypeVar("Made")


class Lab:
    """One run: its sizes, its scratch folder, its PostgreSQL, and the peers that are missing."""

    def __init__(self, folder: Path, *, quick: bool) -> None:
        self.folder = folder
        self.quick = quick
        self.postgres: str | None = None
        self.missing: dict[str, str] = {}
        self._made: dict[str, Any] = {}
        self._count = 0

    def size(self, full: int) -> int:
        """Ten times smaller with BENCH=quick."""
        return full // 10 if self.quick else full

    def fresh(self, name: str) -> Path:
        """A new empty folder, on a disk at rest; those of the round before are of no use any
        more."""
        self._settle()
        self._count += 1
        folder = self.folder / f"{name}-{self._count}"
        folder.mkdir(mode=0o700)
        return folder

    def _settle(self) -> None:
        """Wait for what is still on its way to the disk, so that it is not felt by who comes next.
        A server writes for minutes what it was told."""
        if self.postgres is not None:
            import psycopg

            with psycopg.connect(self.postgres, autocommit=True) as connection:
                connection.execute("checkpoint")
        os.sync()

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """What is too dear to make in every round."""
        if name not in self._made:
            self._made[name] = make()
        made: Made = self._made[name]
        return made

    def lacks(self, peer: str, why: str) -> None:
        """Say it in the table and go on."""
        self.missing.setdefault(peer, why)


def run_script(script: str, *arguments: str) -> dict[str, float]:
    """Run a script of this folder in a process of its own; the figures that it prints as JSON."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        raise PeerError((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


class PeerError(Exception):
    """A contender could not be run."""


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of all is not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def medians(rounds: Sequence[Figures]) -> Figures:
    names = dict.fromkeys(name for figures in rounds for name in figures)
    return {
        name: statistics.median(figures[name] for figures in rounds if name in figures)
        for name in names
    }


def wait_for(condition: Callable[[], Any], *, within: float = 300.0, every: float = 0.005) -> Any:
    give_up_at = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"not within {within} s: {condition}")
        time.sleep(every)


# -- processes ---------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def cpu_seconds(pid: int) -> float:
    """Time on a processor, in nanoseconds from the scheduler: ticks are too coarse for idleness."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def wake_ups(pid: int) -> int:
    """Voluntary context switches: each is one time that the process woke and slept again."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                total += int(line.split()[1])
    return total


def pss_bytes(pid: int) -> int:
    """Memory, with each shared page divided among those who share it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"no Pss for {pid}")


# -- what was measured with what ---------------------------------------------------------------


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    import apsw

    found = {
        "python": sys.version.split()[0],
        "kernel": os.uname().release,
        "cores": str(os.cpu_count()),
        "sqlite": apsw.sqlite_lib_version(),
    }
    peers = ("huey", "pgqueuer", "procrastinate", "dbos")
    for package in ("headway", "apsw", *peers, "psycopg", "asyncpg"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    for name, command in {"make": ["make", "--version"], "task-spooler": ["tsp", "-V"]}.items():
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True)
            found[name] = (done.stdout or done.stderr).strip().splitlines()[0]
    found["scratch"] = _file_system(os.environ.get("TMPDIR", "/tmp"))
    return found


def _file_system(path: str) -> str:
    done = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
