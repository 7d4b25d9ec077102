"""The helpers of targets: commands that are run once after a pass has started work for a target.

They are small processes in the background. Each has a few seconds, which the kernel keeps even if
the worker is gone; nobody waits for them, and what goes wrong with one is an event and no more.
"""

import os
import subprocess
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from headway.base.clock import Clock
from headway.base.environment import MINIMAL_PATH
from headway.base.home import Home
from headway.base.programs import end
from headway.core.targets import Target
from headway.jobs.passes import Cycle
from headway.jobs.settings import Config
from headway.store.new_jobs import Event
from headway.store.store import Store
from headway.store.transaction import WriteTx

SECONDS = 10.0
MOST_AT_ONCE = 8
LOOK_AGAIN = 0.2
_BOUNDED = (
    "import os, signal, sys; signal.alarm(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
)


class Failed(NamedTuple):
    target: str
    error: str


@dataclass(slots=True)
class _Running:
    target: str
    process: subprocess.Popen[bytes]
    end_at: float


class Helpers:
    def __init__(self, home: Home, config: Config, clock: Clock) -> None:
        self._home = home
        self._config = config
        self._clock = clock
        self._wanted: dict[str, Target] = {}
        self._running: list[_Running] = []
        self.failures: list[Failed] = []  # to be written down

    @property
    def busy(self) -> bool:
        return bool(self._wanted or self._running)

    def want(self, targets: Iterable[Target]) -> None:
        """Work was started for these: each one's helper is run once, however much it was."""
        self._wanted |= {each.name: each for each in targets if each.helper}

    def run_for(self, names: Collection[str], store: Store) -> float | None:
        """Those of these targets, once each, after what failed before was written down."""
        self.failures.clear()
        if names:
            with store.read() as tx:
                known = tx.workitems.targets()
            self.want(known[name] for name in names if name in known)
        return self.tend()

    def note_failures(self, tx: WriteTx, *, actor: str) -> None:
        if self.failures:
            events = (Event("helper_failed", None, each._asdict()) for each in self.failures)
            tx.events.add(events, actor=actor)

    def tend(self) -> float | None:
        """Take in those that ended, end those that take too long, start those that are wanted.
        Returns the seconds until the next call."""
        if not self.busy:
            return None
        self._take_in()
        Cycle(
            self._clock,
            capacity=lambda: MOST_AT_ONCE - len(self._running),
            query=lambda: list(self._wanted.values()),
            execute=self._start,
            on_success=self._begun,
            on_failure=self._not_begun,
        ).run()
        return LOOK_AGAIN if self.busy else None

    def finish(self) -> None:
        """Wait until all are through, which is bounded; for those who leave after one pass."""
        while self.busy:
            self.tend()
            for each in self._running:
                with suppress(subprocess.TimeoutExpired):
                    each.process.wait(LOOK_AGAIN)

    def close(self) -> None:
        """Leave none behind."""
        self._wanted.clear()
        for each in self._running:
            end(each.process)

    def _start(self, target: Target) -> None:
        argv = [sys.executable, "-I", "-S", "-c", _BOUNDED, str(int(SECONDS) + 1), *target.helper]
        store = {"HEADWAY_STORE": self._home.store_url} if self._home.store_url else {}
        own = {"HEADWAY_HOME": self._home.path, "HEADWAY_TARGET": target.name}
        process = subprocess.Popen(
            argv,
            cwd=target.cwd or os.path.dirname(self._home.path),
            env={"PATH": MINIMAL_PATH, **self._config.env, **store, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._running.append(_Running(target.name, process, self._clock.monotonic() + SECONDS))

    def _begun(self, target: Target) -> None:
        del self._wanted[target.name]

    def _not_begun(self, target: Target, error: Exception) -> None:
        del self._wanted[target.name]
        self.failures.append(Failed(target.name, f"it cannot be started: {error}"))

    def _take_in(self) -> None:
        now = self._clock.monotonic()
        for each in list(self._running):
            code = each.process.poll()
            if code is None and now < each.end_at:
                continue
            self._running.remove(each)
            if code is None:
                end(each.process)
                self.failures.append(Failed(each.target, f"it took longer than {SECONDS:g} s"))
            elif code != 0:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                self.failures.append(Failed(each.target, how))
