"""Whole graphs, submitted as one: how long a large one takes to be accepted, what a job of it costs
the planner at the beginning and at the end, and whether long and wide ones run to the end."""

import json
import os
import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from apps import Site, chain_of, site, stores, working
from headway.base.clock import SystemClock
from headway.client import Client
from headway.core.model import Claim
from headway.core.settle import Ending, Outcome, Verdict
from headway.functions.tasks import Call
from headway.jobs.request import Request
from headway.worker.planner import PlannedStep, Planner
from headway.worker.probes import Probes
from headway.worker.settler import Settler
from homes import HEADWAY, environment, open_client, refuse_failures, until_drained
from measure import Figures, Lab
from server import database

NEAR = 100  # a job waits for two of so many before it
SLOTS = 20


def graph(lab: Lab) -> Figures:
    """Accepted: `headway submit --graph` of 100,000 commands, each after two of the 100 before it,
    the whole command: seconds, and the most memory that its process had. Planned: such a graph is
    run through without processes, 20 at a time, one transaction for each end and the start that it
    allows; processor time for each job, in the first tenth and in the last. Run: 2,000 functions in
    a row, and 1, then 10,000, then 1, each submitted in one call, by a real worker, per node."""
    figures: Figures = {}
    for store in stores(lab):
        figures |= _accepted(lab, store)
        figures |= _planned(lab, store)
        figures |= _run(lab, store)
    return figures


def _after(count: int) -> Iterator[list[int]]:
    chance = random.Random(1)
    for number in range(count):
        near = range(max(0, number - NEAR), number)
        yield sorted({chance.choice(near), chance.choice(near)}) if number >= NEAR else []


def _accepted(lab: Lab, store: str) -> Figures:
    count = lab.size(100_000)
    folder = lab.fresh(f"graph-{store}")
    with (folder / "graph.jsonl").open("w") as file:
        for number, after in enumerate(_after(count)):
            names = [f"n{each}" for each in after]
            file.write(json.dumps({"id": f"n{number}", "argv": ["true"], "after": names}) + "\n")
    with database(lab.postgres) if store == "postgres" else nullcontext(None) as url:
        open_client(folder, url).close()
        begin = time.perf_counter()
        process = subprocess.Popen(
            [*HEADWAY, *(("--store", url) if url else ()), "submit", "--graph", "graph.jsonl"],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        taken = time.perf_counter() - begin
        if status:
            raise RuntimeError(f"the graph was refused: {os.waitstatus_to_exitcode(status)}")
    return {
        f"graph.accept.{store}.seconds": taken,
        f"graph.accept.{store}.peak_mb": used.ru_maxrss * 1024 / 1e6,
    }


def _planned(lab: Lab, store: str) -> Figures:
    count = lab.size(100_000)
    folder = lab.fresh(f"planned-{store}")
    with database(lab.postgres) if store == "postgres" else nullcontext(None) as url:
        client = open_client(folder, url)
        client.set_setting("scheduler.max_active", SLOTS)
        requests = [
            Request(argv=("true",), local=f"n{number}", after=tuple(f"n{each}" for each in after))
            for number, after in enumerate(_after(count))
        ]
        client.submit_many(requests)
        del requests
        first, last = _tenths(_Engine(client), count)
        client.close()
    return {f"graph.planning.{store}.first": first, f"graph.planning.{store}.last": last}


class _Engine:
    """Planner and settler without processes: a claim ends when this says so."""

    def __init__(self, client: Client) -> None:
        self._store = client.context.store
        self._settler = Settler(client.context.host, "worker")
        self._planner = Planner(
            client.context.host,
            "worker",
            self._settler,
            specify=lambda job, claim: {},
            log_budget=1 << 60,
            home=client.context.home,
            probes=Probes(lambda questions: {}, SystemClock(), in_thread=False),
            queues=client.context.queues[:-1],
        )

    def begin(self) -> PlannedStep:
        with self._store.write() as tx:
            tx.waits.wake_everything()
            return self._planner.step(tx)

    def hand_on(self, ended: Claim) -> PlannedStep:
        with self._store.write() as tx:
            outcome = Outcome(Ending.EXITED, tx.now(), exit_code=0)
            self._settler.apply(tx, [(ended, Verdict(outcome, tree_gone=True))])
            return self._planner.step(tx)


def _tenths(engine: _Engine, count: int) -> tuple[float, float]:
    """Milliseconds of processor time for a job in the first and in the last tenth."""
    running: list[Claim] = list(engine.begin().started)
    spent = [time.process_time()]
    for number in range(1, count + 1):
        running += engine.hand_on(running.pop(0)).started
        if number % (count // 10) == 0:
            spent.append(time.process_time())
    if running:
        raise RuntimeError(f"{len(running)} jobs still run")
    tenth = count // 10
    return 1e3 * (spent[1] - spent[0]) / tenth, 1e3 * (spent[-1] - spent[-2]) / tenth


def _run(lab: Lab, store: str) -> Figures:
    length, width = lab.size(2_000), lab.size(10_000)
    figures: Figures = {}
    for shape, count in (("chain", length), ("fan", width + 2)):
        with site(lab, store, max_active=100) as home, working(home):
            calls = chain_of(home, count) if shape == "chain" else _fan(home, count)
            begin = time.perf_counter()
            ids = [each.job_id for each in home.app.submit_many(calls)]
            until_drained(home.client)
            taken = time.perf_counter() - begin
            refuse_failures(home.client, ids)
        figures[f"graph.{shape}.{store}"] = 1e3 * taken / count
    return figures


def _fan(home: Site, count: int) -> Sequence[Call]:
    first = home.noop.call(1, 2)
    then = home.noop.options(after=[first])
    middle = [then.call(1, 2) for _ in range(count - 2)]
    return [first, *middle, home.noop.options(after=middle).call(1, 2)]
