"""The real program in a folder of its own, and the promise that nothing of it is left running."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import headway
import warm
from headway.base.clock import SystemClock
from headway.base.home import Home
from headway.base.host import this_host
from headway.base.new_home import make_home
from headway.base.worker_lock import WorkerLock, worker_is_there
from living import moment, younger
from ready import open_ready

DEADLINE = 60.0
SOURCES = str(Path(headway.__file__).parent.parent)
ACTIVE = ("queued", "waiting_on_deps", "waiting_on_approval", "waiting_on_locks", "running")


def wait_for(condition: Callable[[], Any], *, seconds: float = DEADLINE) -> Any:
    """The first true value of the condition; fails the test when there is none in time."""
    begin = time.monotonic()
    give_up_at = begin + seconds
    while not (value := condition()):
        now = time.monotonic()
        if now > give_up_at:
            pytest.fail(f"not so within {seconds} s: {condition}")
        # A command that looks is work, and most of the time is for those who are waited for.
        select.select([], [], [], min(0.1, max(0.01, now - begin)))
        begin = time.monotonic()
    return value


class Said(NamedTuple):
    """What a command line came to that was run in the test's own process."""

    code: int
    out: str
    err: str


Run = Callable[..., Said]


class CommandLine:
    """Runs `python -m headway` in a folder with a home whose worker soon leaves when idle."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._since = moment(str(folder))
        self.home = folder / ".headway"
        kept = ("PATH", "HOME", "TMPDIR", "VIRTUAL_ENV", "XDG_STATE_HOME")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"USER": "ada", "LANG": "C.UTF-8", "PYTHONPATH": SOURCES}

    def configure(self, text: str = '[worker]\nidle = "1s"\n') -> None:
        make_home(Home(str(self.home)))  # so it is trusted
        (self.home / "config.toml").write_text(text)

    def make_store(self) -> None:
        """As the first command does."""
        home = Home(str(self.home))
        open_ready(f"sqlite://{home.database}", SystemClock()).close()
        this_host(home)

    def __call__(
        self, *argv: str, code: int | None = 0, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        env = {**self.env, **(env or {})}
        done = warm.headway(["-P"], argv, cwd=self.folder, env=env, timeout=DEADLINE)
        if code is not None:
            assert done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
        return done

    def argv(self, *argv: str) -> list[str]:
        return [sys.executable, "-P", "-m", "headway", *argv]

    def start(self, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return warm.start(["-P"], argv, cwd=self.folder, env=self.env, **options)

    def out(self, *argv: str, **options: Any) -> str:
        return self(*argv, **options).stdout.strip()

    def json(self, *argv: str, **options: Any) -> Any:
        document = json.loads(self(*argv, "--json", **options).stdout)
        assert document["version"] == 1
        return document

    def submit(self, *argv: str) -> str:
        return self.out("submit", *argv)

    def state(self, job: str) -> str:
        return self.out("jobs", "status", job)

    def until_running(self, job: str) -> None:
        wait_for(lambda: self.state(job) == "running")

    def count(self) -> int:
        return len(self.json("jobs", "list", "--all")["jobs"])

    def close(self) -> None:
        """End what the test left active and the worker, then see that nothing lives on."""
        lock = str(self.home / "run" / "worker.lock")
        waiting = None
        if (self.home / "headway.db").exists() and self.processes():
            listed = self("jobs", "list", "--json", code=None)
            if listed.returncode == 0:
                jobs = json.loads(listed.stdout)["jobs"]
                active = [each["id"] for each in jobs if each["state"] in ACTIVE]
                if active and not worker_is_there(lock) and self._starts_none():
                    waiting = self.start("jobs", "cancel", *active)  # for an end that nobody sees
                elif active:
                    self("jobs", "cancel", *active, code=None)
        asked: set[int] = set()
        wait_for(lambda: self._has_ended(lock, asked))
        if waiting is not None:
            waiting.kill()
            waiting.communicate()

    def _has_ended(self, lock: str, asked: set[int]) -> bool:
        """Whether nothing lives on. Each worker is asked once to end, also one that was just coming
        up: else it stays for as long as it may be idle."""
        there = self.processes()
        workers = {pid for pid, command in there.items() if " work --background" in command}
        if worker_is_there(lock):
            workers.add(WorkerLock(lock).read_pid() or 0)
        for pid in (there.keys() & workers) - asked:
            asked.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return not there

    def _starts_none(self) -> bool:
        config = self.home / "config.toml"
        return config.exists() and "autostart = false" in config.read_text()

    def processes(self) -> dict[int, str]:
        """Living processes that belong to this home: by command line or by environment."""
        found = {}
        mark = str(self.home).encode()
        for pid, command in younger(self._since):
            with suppress(OSError):
                environ = Path(f"/proc/{pid}/environ")
                if mark in command or b"HEADWAY_HOME=" + mark in environ.read_bytes():
                    found[pid] = command.replace(b"\0", b" ").decode(errors="replace")
        return found
