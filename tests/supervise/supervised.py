"""Real supervisors in a temporary home, and waiting for conditions instead of for time."""

import json
import os
import select
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.base import proc
from headway.supervise import rescue
from headway.supervise.evidence import Evidence, OutcomeRecord
from headway.supervise.launcher import Ack, Launcher

PATH = "/usr/local/bin:/usr/bin:/bin"


def wait_for(condition: Callable[[], Any], *, seconds: float = 15.0) -> Any:
    """The first true value of the condition; fails the test when there is none in time."""
    give_up_at = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > give_up_at:
            pytest.fail(f"not so within {seconds} s: {condition}")
        select.select([], [], [], 0.005)
    return value


def wait_for_end(pidfd: int, *, seconds: float = 20.0) -> None:
    ready, _, _ = select.select([pidfd], [], [], seconds)
    assert ready, "the process did not end in time"


class Claim:
    """One claim under test: its evidence, and its supervisor once launched."""

    def __init__(self, home: "Home", evidence: Evidence, launcher: Launcher) -> None:
        self.home = home
        self.evidence = evidence
        self.launcher = launcher
        self.pidfd: int | None = None
        self.pid: int | None = None

    @property
    def folder(self) -> Path:
        return Path(self.evidence.folder)

    def launch(self) -> "Claim":
        self.launcher.launch(self.evidence.folder, self.evidence.token)
        ack = self.home.ack(self.launcher, self.evidence.token)
        assert ack.errno is None
        self.pid, self.pidfd = ack.pid, ack.pidfd
        return self

    def ended(self, *, seconds: float = 20.0) -> "Claim":
        assert self.pidfd is not None
        wait_for_end(self.pidfd, seconds=seconds)
        crash = self.folder / f"crash.{self.evidence.token}"
        assert not crash.exists(), crash.read_text()
        return self

    def outcome(self, *, seconds: float = 20.0) -> OutcomeRecord:
        self.ended(seconds=seconds)
        outcome = self.evidence.read_outcome()
        assert outcome is not None
        return outcome

    def started(self) -> Any:
        return wait_for(self.evidence.read_started)

    def log(self, stream: str = "stdout") -> bytes:
        path = self.folder / f"{stream}.log"
        return path.read_bytes() if path.exists() else b""

    def says(self, text: bytes) -> None:
        wait_for(lambda: text in self.log())

    def cancel(self) -> None:
        self.evidence.request_cancel()
        assert rescue.poke_supervisor(self.evidence)


class Home:
    """A home folder; makes claims and ends what they started."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path / "run"
        self.run.mkdir()
        self._launchers: list[Launcher] = []
        self._claims: list[Claim] = []
        self._acks: dict[str, Ack] = {}
        self._shared: Launcher | None = None

    def launcher(self, **extra_env: str) -> Launcher:
        launcher = Launcher(extra_env)
        launcher.start()
        self._launchers.append(launcher)
        return launcher

    def ack(self, launcher: Launcher, token: str) -> Ack:
        def come() -> Ack | None:
            self._acks.update({ack.token: ack for ack in launcher.acks()})
            return self._acks.get(token)

        return wait_for(come)

    def claim(self, *argv: str, launcher: Launcher | None = None, **changes: Any) -> Claim:
        if launcher is None:
            launcher = self._shared = self._shared or self.launcher()
        token = uuid.uuid4().hex
        evidence = Evidence(str(self.path / "jobs" / token), token)
        evidence.prepare(self.spec(token, argv, **changes))
        claim = Claim(self, evidence, launcher)
        self._claims.append(claim)
        return claim

    def run_shell(self, script: str, **changes: Any) -> Claim:
        return self.claim("sh", "-c", script, **changes).launch()

    def spec(self, token: str, argv: tuple[str, ...], **changes: Any) -> dict[str, Any]:
        spec = {
            "version": 1,
            "token": token,
            "job": 24,
            "attempt": 1,
            "home": str(self.path),
            "argv": list(argv),
            "env_file": None,
            "env": {"PATH": PATH},
            "cwd": str(self.path),
            "stdin": None,
            "timeout_seconds": None,
            "grace_seconds": 10.0,
            "leftovers": "kill",
            "logs": {"head_bytes": 1 << 20, "tail_bytes": 1 << 20, "full": "drop"},
            "cgroup": "auto",
            "worker": {
                "lock": str(self.run / "worker.lock"),
                "socket": str(self.run / "worker.sock"),
                "stopped": str(self.run / "worker.stopped"),
                "argv": None,
                "environ": dict(os.environ),
            },
        }
        spec.update(changes)
        return spec

    def env_file(self, content: Any) -> str:
        path = self.path / f"env-{uuid.uuid4().hex}"
        path.write_text(json.dumps(content))
        return str(path)

    def close(self) -> None:
        claims, self._claims = self._claims, []
        for claim in claims:
            rescue.end_supervisor(claim.evidence)
            rescue.end_claim(claim.evidence)
        while self._acks:
            _, ack = self._acks.popitem()
            if ack.pidfd is not None:
                os.close(ack.pidfd)
        for launcher in self._launchers:
            launcher.stop(kill=True)


def is_alive(pid: int) -> bool:
    return proc.start_time(pid) is not None


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
