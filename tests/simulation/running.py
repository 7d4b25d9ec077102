"""Many worlds, side by side, until enough jobs were simulated; each is named by its seed.

`SEED.NUMBER.JOBS.HOSTS` says all that a world is made of, so it is all that is needed to see it
again: `HEADWAY_SIM_SEED=7.12.3000.1 make test ARGS=tests/simulation`.
"""

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import NamedTuple

from headway.store import open_store
from headway.store.store import Store
from headway.testing.clock import FakeClock
from simulation.watching import Violation
from simulation.world import World

JOBS_PER_WORLD = 3000
MOST_SHOWN = 5
TELL_SECONDS = 10.0
Opener = Callable[[str, FakeClock], Store]


class Simulated(NamedTuple):
    """What became of one world."""

    seed: str
    jobs: int
    crashes: int
    events: int
    digest: int  # of everything that happened, in its order
    ends: dict[str, int]


def seed_of(seed: int, number: int, *, jobs: int, hosts: int) -> str:
    return f"{seed}.{number}.{jobs}.{hosts}"


def simulate(seed: str, open_: Opener) -> Simulated:
    """One world from its beginning to its end; raises Violation, with the seed in its message."""
    _, _, jobs, hosts = seed.split(".")
    world = World(seed, open_, jobs=int(jobs), hosts=int(hosts))
    try:
        world.run()
    except Violation:
        raise
    except Exception as error:
        raise Violation(f"seed {seed}: {type(error).__name__}: {error}") from error
    finally:
        world.close()
    watch = world.watch
    return Simulated(seed, len(watch.jobs), world.crashes, watch.seq, watch.digest, watch.ends)


def in_file(folder: str, clock: FakeClock) -> Store:
    from ready import open_ready

    store = open_ready(f"sqlite://{folder}/headway.db", clock)
    # What is looked for here is no power cut, and the worlds are many.
    store.database.execute("pragma synchronous = off", {})  # type: ignore[attr-defined]
    return store


@contextmanager
def on_server(server: str) -> Iterator[Opener]:
    """A store of its own on this server."""
    from postgres import fresh_schema

    def open_there(folder: str, clock: FakeClock) -> Store:
        store = open_store(url, clock, create=True)
        store.database.execute("set synchronous_commit = off", {})  # type: ignore[attr-defined]
        return store

    with fresh_schema(server) as url:
        yield open_there


def _one(seed: str, server: str | None) -> Simulated | str:
    """In a process of its own: an exception would lose its words on the way back."""
    try:
        if server is None:
            return simulate(seed, in_file)
        with on_server(server) as open_there:
            return simulate(seed, open_there)
    except Violation as error:
        return str(error)


def run(store: str, *, jobs: int, seed: int, processes: int) -> bool:
    """Simulate that many jobs and print what was found."""
    print(f"{store}, seed {seed}: {jobs} simulated jobs", flush=True)
    hosts = 1 if store == "sqlite" else 3
    count = max(1, round(jobs / JOBS_PER_WORLD))
    each = -(-jobs // count)
    seeds = [seed_of(seed, number, jobs=each, hosts=hosts) for number in range(count)]
    began = time.monotonic()
    totals: Counter[str] = Counter()
    broken: list[str] = []
    with _server(store) as server, ProcessPoolExecutor(processes) as pool:
        ahead = iter(seeds)
        running = {pool.submit(_one, next(ahead), server) for _ in range(min(count, 2 * processes))}
        last = began
        while running:
            done: Future[Simulated | str] = next(as_completed(running))
            running.discard(done)
            if len(broken) < MOST_SHOWN and (following := next(ahead, None)) is not None:
                running.add(pool.submit(_one, following, server))
            _take_in(done.result(), totals, broken)
            if time.monotonic() - last > TELL_SECONDS:
                last = time.monotonic()
                print(f"  {totals['jobs']} jobs, {last - began:.0f} s", flush=True)
    took = time.monotonic() - began
    rate = totals["jobs"] / took if took else 0
    print(
        f"  {totals['jobs']} jobs in {totals['worlds']} worlds, {totals['crashes']} crashes of "
        f"workers, {totals['events']} events, {took:.0f} s, {rate:.0f} jobs/s"
    )
    print("  " + ", ".join(f"{n} {kind}" for kind, n in sorted(totals.items()) if kind not in OWN))
    for words in broken:
        print(f"  VIOLATION {words}")
    print(f"  {len(broken)} violations", flush=True)
    return not broken


OWN = ("jobs", "worlds", "crashes", "events")


def _take_in(result: Simulated | str, totals: Counter[str], broken: list[str]) -> None:
    if isinstance(result, str):
        broken.append(result)
        return
    totals.update(result.ends)
    totals.update(jobs=result.jobs, worlds=1, crashes=result.crashes, events=result.events)


@contextmanager
def _server(store: str) -> Iterator[str | None]:
    if store == "sqlite":
        yield None
        return
    from postgres import server

    with server() as url:
        yield url


def main() -> int:
    parser = argparse.ArgumentParser(prog="make torture SIM=1000000")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="sqlite")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    seed = random.randrange(1_000_000) if asked.seed is None else asked.seed
    stores = ("sqlite", "postgres") if asked.store == "both" else (asked.store,)
    green = [run(each, jobs=asked.jobs, seed=seed, processes=asked.processes) for each in stores]
    sys.stdout.flush()
    return 0 if all(green) else 1
