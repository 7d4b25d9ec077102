"""The real program in a folder of its own, and the promise that nothing of it is left running."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headway
import warm
from headway.home import Home, make_home
from headway.supervise.workerlock import WorkerLock, worker_is_there

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


class CommandLine:
    """Runs `python -m headway` in a folder with a home whose worker soon leaves when idle."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".headway"
        kept = ("PATH", "HOME", "TMPDIR", "VIRTUAL_ENV", "XDG_STATE_HOME")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"USER": "ada", "LANG": "C.UTF-8", "PYTHONPATH": SOURCES}

    def configure(self, text: str = '[worker]\nidle = "1s"\n') -> None:
        make_home(Home(str(self.home)))  # so it is trusted
        (self.home / "config.toml").write_text(text)

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
        return subprocess.Popen(
            self.argv(*argv),
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

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
        if (self.home / "headway.db").exists() and self.processes():
            listed = self("jobs", "list", "--json", code=None)
            if listed.returncode == 0:
                jobs = json.loads(listed.stdout)["jobs"]
                active = [each["id"] for each in jobs if each["state"] in ACTIVE]
                if active:
                    self("jobs", "cancel", *active, code=None)
        lock = str(self.home / "run" / "worker.lock")
        if worker_is_there(lock):
            pid = WorkerLock(lock).read_pid()
            if pid in self.processes():
                os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not self.processes())

    def processes(self) -> dict[int, str]:
        """Living processes that belong to this home: by command line or by environment."""
        found = {}
        mark = str(self.home).encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "cmdline").read_bytes()
                if mark in words or b"HEADWAY_HOME=" + mark in (entry / "environ").read_bytes():
                    found[int(entry.name)] = words.replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
        return found
