"""Many worlds, one after the other or side by side, until enough jobs were simulated."""

from collections.abc import Callable
from typing import NamedTuple

from headway.store import open_store
from headway.store.base import Store
from headway.testing import FakeClock
from simulation.watching import Violation
from simulation.world import World

JOBS_PER_WORLD = 1000


class Simulated(NamedTuple):
    """What became of one world."""

    seed: str
    jobs: int
    crashes: int
    digest: int
    ends: dict[str, int]
    events: int


def open_file(folder: str, clock: FakeClock) -> Store:
    store = open_store(f"sqlite://{folder}/headway.db", clock, create=True)
    # What is checked here is no power cut, and the worlds are many.
    store.database.execute("pragma synchronous = off", {})  # type: ignore[attr-defined]
    return store


def simulate(
    seed: str,
    *,
    jobs: int = JOBS_PER_WORLD,
    hosts: int = 1,
    open_: Callable[[str, FakeClock], Store] = open_file,
) -> Simulated:
    """One world; raises Violation, with the seed in its message."""
    world = World(seed, open_, jobs=jobs, hosts=hosts)
    try:
        world.run()
        watch = world.watch
        return Simulated(seed, len(watch.jobs), world.crashes, watch.digest, watch.ends, watch._seq)
    except Violation:
        raise
    except Exception as error:
        raise Violation(f"seed {seed}: {type(error).__name__}: {error}") from error
    finally:
        world.close()
