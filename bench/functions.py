"""Python functions as jobs: what one costs, and how soon it starts, beside peers on the same store.

In every figure the worker is up and its host has imported the module; the peers' likewise.
"""

import itertools
import os
import random
import time
from pathlib import Path

from apps import Site, chain_of, fill, held, site, stores, tree, working
from homes import refuse_failures, runs, until_drained
from measure import Figures, Lab, PeerError, pss_bytes, quantile, run_script, wait_for
from server import database

DRAINERS = {"sqlite": ("huey", "dbos"), "postgres": ("pgqueuer", "procrastinate", "dbos")}
PROMPT = {"sqlite": ("huey",), "postgres": ("pgqueuer",)}
SETTINGS = {"sqlite": (100, 1), "postgres": (100,)}


def function_drain(lab: Lab) -> Figures:
    """10,000 no-ops, all queued, until the store shows each of them finished.

    Timed from the word to begin, start-up excluded for all: a peer's consumer is up and waits for
    that word; Headway's worker is up, stopped by a signal before the jobs are submitted, and
    continued. DBOS drains 2,000: it is only shown, and slow.
    """
    count = lab.size(10_000)
    figures: Figures = {}
    for store in stores(lab):
        for max_active in SETTINGS[store]:
            rate = count / _drain(lab, store, max_active, count)
            figures[f"functions.drain.{store}.{max_active}.headway"] = rate
        for peer in DRAINERS[store]:
            size = lab.size(2_000) if peer == "dbos" else count
            found = _peer(lab, store, "consumption.py", "drain", peer, size)
            figures |= {f"functions.drain.{store}.{peer}": rate for rate in found.values()}
    return figures


def function_latency(lab: Lab) -> Figures:
    """50 submits to an idle worker: from before the call, in another process, until the function
    has begun, which it writes into a file. Beside it what the disk itself takes for two syncs: one
    is the submit's, one the claim's."""
    samples = max(10, lab.size(50))
    pairs = _two_syncs(lab.fresh("syncs") / "file", samples)
    figures: Figures = {
        "functions.latency.disk.p50": quantile(pairs, 0.5),
        "functions.latency.disk.p99": quantile(pairs, 0.99),
    }
    for store in stores(lab):
        with site(lab, store, max_active=100) as home, working(home):
            delays = [_delay(home, f"start-{number}") for number in range(samples)]
        found = {"headway": {"p50": quantile(delays, 0.5), "p99": quantile(delays, 0.99)}}
        for peer in PROMPT[store]:
            found[peer] = _peer(lab, store, "consumption.py", "latency", peer, samples)
        for name, each in found.items():
            for share, value in each.items():
                figures[f"functions.latency.{store}.{name}.{share}"] = value
    return figures


def function_dependent(lab: Lab) -> Figures:
    """A chain of 100: from the end of a function in its run row to what the next one wrote."""
    count = max(30, lab.size(100))
    figures: Figures = {}
    for store in stores(lab):
        with site(lab, store, max_active=100) as home, working(home) as process:
            with held(home, process):
                ids = _record_chain(home, count)
            until_drained(home.client)
            refuse_failures(home.client, ids)
            ended = {
                key: (run.finished_at or 0) / 1e6 for key, run in runs(home.client, ids).items()
            }
            began = {key: _instant(home.folder / f"start-{at}") for at, key in enumerate(ids)}
        gaps = [1e3 * (began[after] - ended[before]) for before, after in itertools.pairwise(ids)]
        figures[f"functions.dependent.{store}.p50"] = quantile(gaps, 0.5)
        figures[f"functions.dependent.{store}.p99"] = quantile(gaps, 0.99)
    return figures


def function_depth(lab: Lab) -> Figures:
    """100,000 queued: the most memory (PSS) that the worker and all below it take, and the pace of
    the last tenth beside that of the first, by the ends in the run rows."""
    count = lab.size(100_000)
    figures: Figures = {}
    for store in stores(lab):
        with site(lab, store, max_active=100) as home, working(home) as process:
            with held(home, process):
                ids = fill(home, count)
            most = worker = 0
            while not _drained(home, within=0.1):
                pids = tree(process.pid)
                worker = max(worker, pss_bytes(pids[0]))
                most = max(most, sum(map(pss_bytes, pids)))
            ends = sorted(run.finished_at or 0 for run in runs(home.client, ids).values())
        if len(ends) != count or not ends[0]:
            raise RuntimeError(f"{count - len(ends)} of {count} jobs have no run, or no end")
        tenth = count // 10
        first, last = ends[tenth - 1] - ends[0], ends[-1] - ends[-tenth]
        figures[f"functions.depth.{store}.first"] = 1e6 * (tenth - 1) / first
        figures[f"functions.depth.{store}.last"] = 1e6 * (tenth - 1) / last
        figures[f"functions.depth.{store}.memory_mb"] = most / 1e6
        figures[f"functions.depth.{store}.worker_mb"] = worker / 1e6
    return figures


def function_graphs(lab: Lab) -> Figures:
    """A chain of 2,000 and a fan of 1 to 10,000 to 1, in ms per node, beside DBOS.

    From the first submit until the store shows the last one finished; the worker is up and begins
    with the first while others are still submitted, as DBOS does. The chain once in one call, as
    DBOS gets it as one workflow, and once one by one.
    """
    length, width = lab.size(2_000), lab.size(10_000)
    figures: Figures = {}
    shapes = (("chain", _chain, length), ("links", _links, length), ("fan", _fan, width + 2))
    for store in stores(lab):
        for shape, submit, nodes in shapes:
            with site(lab, store, max_active=100) as home, working(home):
                begin = time.perf_counter()
                ids = submit(home, nodes)
                until_drained(home.client)
                taken = time.perf_counter() - begin
                refuse_failures(home.client, ids)
            figures[f"functions.{shape}.{store}.headway"] = 1e3 * taken / nodes
        found = _peer(lab, store, "dbosgraph.py", length, width)
        figures |= {f"functions.{shape}.{store}.dbos": each for shape, each in found.items()}
    return figures


def _drain(lab: Lab, store: str, max_active: int, count: int) -> float:
    with site(lab, store, max_active=max_active) as home, working(home) as process:
        with held(home, process):
            ids = fill(home, count)
            begin = time.perf_counter()
        until_drained(home.client)
        taken = time.perf_counter() - begin
        refuse_failures(home.client, ids)
    return taken


def _delay(home: Site, name: str) -> float:
    path = home.folder / name
    time.sleep(random.uniform(0.1, 0.3))  # idle again, in step with nothing
    begin = time.time()
    home.record.submit(str(path))
    wait_for(path.exists)
    return 1e3 * (_instant(path) - begin)


def _two_syncs(path: Path, samples: int) -> list[float]:
    delays = []
    with path.open("wb", buffering=0) as file:
        for _ in range(samples):
            time.sleep(random.uniform(0.1, 0.3))
            begin = time.perf_counter()
            for _ in range(2):
                file.write(bytes(4096))
                os.fdatasync(file.fileno())
            delays.append(1e3 * (time.perf_counter() - begin))
    return delays


def _instant(path: Path) -> float:
    return int(path.read_text()) / 1e9


def _record_chain(home: Site, count: int) -> list[int]:
    ids: list[int] = []
    for number in range(count):
        path = str(home.folder / f"start-{number}")
        ids.append(home.record.submit(path, after=ids[-1:]).job_id)
    return ids


def _chain(home: Site, count: int) -> list[int]:
    return [each.job_id for each in home.app.submit_many(chain_of(home, count))]


def _links(home: Site, count: int) -> list[int]:
    ids: list[int] = []
    for _ in range(count):
        ids.append(home.noop.submit(1, 2, after=ids[-1:]).job_id)
    return ids


def _fan(home: Site, nodes: int) -> list[int]:
    first = home.noop.submit(1, 2)
    leaf = home.noop.options(after=[first])
    leaves = home.app.submit_many(leaf.call(1, 2) for _ in range(nodes - 2))
    last = home.noop.submit(1, 2, after=leaves)
    return [each.job_id for each in (first, *leaves, last)]


def _drained(home: Site, *, within: float) -> bool:
    try:
        until_drained(home.client, within=within)
    except TimeoutError:
        return False
    return True


def _peer(lab: Lab, store: str, script: str, *arguments: object) -> Figures:
    """What a script about a peer says, in a new folder or database; nothing if it cannot be run."""
    words = [str(each) for each in arguments]
    name = "dbos" if script == "dbosgraph.py" else words[1]
    folder = lab.fresh(name)
    at = 2 if script == "consumption.py" else 0
    words.insert(at, str(folder))
    try:
        if store == "sqlite":
            return run_script(script, *words)
        assert lab.postgres is not None
        with database(lab.postgres) as url:
            return run_script(script, *words, url)
    except PeerError as error:
        lab.lacks(f"{name} ({store}, {script.removesuffix('.py')})", str(error))
        return {}
