"""Where the simulation is put in the place of the outside: processes, files, chance, crash points.

The program has no switch for any of this. Each name is replaced in the one module that uses it, and
put back afterwards.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import headway.jobs.cancel
import headway.worker.ends
import headway.worker.launches
import headway.worker.outcomes
import headway.worker.planner
import headway.worker.recovery
import headway.worker.step
import headway.worker.tokens
from headway.store.store import Store
from simulation.machines import SimulatedEvidence, SimulatedLock, SimulatedRescue

Passed = Callable[[str], None]


class Crash(BaseException):
    """A worker dies here and now. Not an Exception: nothing may take it for an error."""


class _Os:
    """`os`, where it is chance that is asked for, or a lock that is let go."""

    path = os.path
    strerror = staticmethod(os.strerror)

    def __init__(self, rng: Random) -> None:
        self.urandom = rng.randbytes

    @staticmethod
    def close(descriptor: int | SimulatedLock) -> None:
        if isinstance(descriptor, SimulatedLock):
            descriptor.close()
        else:
            os.close(descriptor)


@contextmanager
def installed(rng: Random, passed: Passed) -> Iterator[None]:
    """`passed` hears of every crash point."""
    ends, outcomes, launches = headway.worker.ends, headway.worker.outcomes, headway.worker.launches
    planner, recovery = headway.worker.planner, headway.worker.recovery
    shim = _Os(rng)
    replaced: list[tuple[Any, str, Any]] = [
        (planner, "Evidence", SimulatedEvidence),
        (headway.worker.tokens, "os", shim),
        (recovery, "Evidence", SimulatedEvidence),
        (recovery, "rescue", SimulatedRescue),
        (recovery, "os", shim),
        (recovery, "reach", passed),
        (launches, "Evidence", SimulatedEvidence),
        (launches, "rescue", SimulatedRescue),
        (launches, "os", shim),
        (launches, "reach", passed),
        (headway.worker.step, "reach", passed),
        (ends, "Evidence", SimulatedEvidence),
        (ends, "reach", passed),
        (ends, "forget_cgroup", SimulatedRescue.forget_cgroup),
        (ends, "write_job_files", lambda claim, document: None),
        (outcomes, "Evidence", SimulatedEvidence),
        (outcomes, "reach", passed),
        (outcomes, "ask_to_cancel", SimulatedRescue.ask_to_cancel),
        (headway.jobs.cancel, "Evidence", SimulatedEvidence),
        (headway.jobs.cancel, "ask_to_cancel", SimulatedRescue.ask_to_cancel),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    try:
        for module, name, value in replaced:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


class WorkersStore:
    """A worker's store: it may die before a transaction, before its commit, and after it."""

    def __init__(self, store: Store, passed: Passed) -> None:
        self._store = store
        self._passed = passed

    @contextmanager
    def write(self) -> Iterator[Any]:
        self._passed("store.begin")
        with self._store.write() as tx:
            yield tx
            self._passed("store.commit")
        self._passed("store.committed")

    @contextmanager
    def read(self) -> Iterator[Any]:
        self._passed("store.read")
        with self._store.read() as tx:
            yield tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
