"""A home in a temporary folder with everything real: store, engine, processes.

`Bench` steps an engine by hand, so a test decides when time passes and when a step is made.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headway.client import Client
from headway.clock import Clock, SystemClock
from headway.config import Config
from headway.core.model import Job
from headway.core.states import TERMINAL, Status
from headway.engine.engine import Engine
from headway.home import Home, make_home
from headway.host import this_host
from headway.store import open_store
from headway.store.base import Event
from headway.submission import Request
from headway.supervise.launcher import Launcher

DEADLINE = 30.0
_TICK = threading.Event()  # never set: waiting on it is a pause between two looks


def wait_for(condition: Callable[[], Any], *, what: str = "", deadline: float = DEADLINE) -> Any:
    """Poll a condition until it is true; fail loudly when the deadline passes."""
    give_up_at = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not within {deadline} s: {what or condition}")
        _TICK.wait(0.005)


class Bench:
    """Client and engine on one home; no worker, no background process but the jobs' own."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock | None = None,
        settings: dict[str, Any] | None = None,
        max_active: int | None = None,
    ) -> None:
        self.home = Home(str(folder / ".headway"))
        make_home(self.home)
        values = {"worker.autostart": False, **(settings or {})}
        self.config = Config(values)
        self.clock = clock or SystemClock()
        self.store = open_store(f"sqlite://{self.home.database}", self.clock, create=True)
        self.client = Client(
            self.home,
            self.config,
            self.store,
            self.clock,
            environ={"PATH": os.environ["PATH"], "HOME": "/"},
            actor="tester",
        )
        self.folder = folder
        self.engine = self.new_engine()
        if max_active is not None:
            self.client.set_setting("scheduler.max_active", max_active)

    def new_engine(self) -> Engine:
        """As after a crash: a new engine that knows nothing but the store."""
        engine = Engine(
            self.store,
            self.home,
            self.config,
            this_host(self.home),
            self.clock,
            worker_id="worker-test",
            launcher=Launcher(),
        )
        engine.finisher.open()
        self.engine = engine
        return engine

    def crash(self) -> Engine:
        """The engine is gone as by kill -9: its parent dies with it, supervisors go on."""
        launcher = self.engine.finisher._launcher
        launcher.stop(kill=True)
        return self.new_engine()

    def submit(self, *argv: str, **options: Any) -> int:
        shell = options.pop("shell", None)
        request = Request(argv=argv, shell=shell, **options)
        return self.client.submit(request).job_id

    def job(self, job_id: int) -> Job:
        return self.client.job(job_id)

    def status(self, job_id: int) -> Status:
        return self.job(job_id).status

    def last(self, job_id: int) -> Job:
        return self.client.last_of_chain(job_id)

    def events(self, job_id: int) -> list[Event]:
        return self.client.history(job_id)

    def kinds(self, job_id: int) -> list[str]:
        return [event.kind for event in self.events(job_id)]

    def step(self, **options: Any) -> float:
        return self.engine.step(**options)

    def turn(self, seconds: float = 0.05) -> None:
        """Wait for something to happen, at most that long, then step."""
        for key, _ in self.engine.finisher.selector.select(seconds):
            key.data()
        self.engine.step()

    def until(self, condition: Callable[[], Any], what: str = "") -> Any:
        """Step until the condition holds."""
        give_up_at = time.monotonic() + DEADLINE
        self.engine.step()
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > give_up_at:
                raise AssertionError(f"not within {DEADLINE} s: {what or condition}")
            self.turn()

    def until_ended(self, *job_ids: int) -> list[Job]:
        """Step until the last jobs of all these chains have ended."""
        self.until(lambda: all(self.last(each).status in TERMINAL for each in job_ids))
        return [self.last(each) for each in job_ids]

    def close(self) -> None:
        with self.store.read() as tx:
            running = [claim.job_id for claim in tx.live_claims()]
        if running:
            self.client.cancel(running)
            self.until(lambda: not self._live(), "all jobs to end")
        self.engine.finisher.close()
        self.store.close()

    def _live(self) -> bool:
        with self.store.read() as tx:
            return bool(tx.live_claims())
