"""`python -m torture.terminations --times 50 --jobs 2000`: a server that ends connections.

Again and again, at random moments while jobs run, the server is told to end every connection of a
worker. The worker must stay alive, and every job must run and end exactly once. Exit code 1 if not.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import psycopg

from harness import Site, wait_for
from headway.base.worker_lock import STAYS
from headway.core.states import TERMINAL, Status
from headway.jobs.request import Request

NAME = "headway-torture-worker"
CONFIG = "[worker]\nautostart = false\n"
_END = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = %s"


class Told(NamedTuple):
    """What became of it."""

    ended: int  # connections
    seconds: float
    violations: list[str]


def torture(folder: Path, url: str, *, times: int, jobs: int, seed: int) -> Told:
    site = Site(folder, config=CONFIG, store_url=url)
    began = time.monotonic()
    try:
        site.client.set_setting("scheduler.max_active", 8)
        ledger = folder / "ledger"
        ids = _submit(site, ledger, jobs)
        worker = _worker(site)
        ended = _end_connections(site, worker, url, ids, times, random.Random(seed))
        wait_for(
            lambda: worker.poll() is not None or _ended(site) == len(ids),
            what="all jobs to end",
            deadline=600,
        )
        return Told(ended, time.monotonic() - began, _violations(site, worker, ledger, ids))
    finally:
        site.close()


def _worker(site: Site) -> "subprocess.Popen[str]":
    """It says a line of each job, more than a pipe holds that nobody reads."""
    with open(site.folder / "worker.log", "w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "headway", "work"],
            cwd=site.folder,
            env={**site.env, "PGAPPNAME": NAME},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    site._workers.append(process)
    wait_for(lambda: process.poll() is not None or site.lock.is_held(STAYS), what="a worker")
    return process


def _submit(site: Site, ledger: Path, jobs: int) -> list[int]:
    """Each writes one line, in one append."""
    made = []
    for number in range(jobs):
        shell = f"echo {number} >> {ledger}"
        made.append(site.client.submit(Request(shell=shell)).job_id)
    return made


def _ended(site: Site) -> int:
    with site.client.context.store.read() as tx:
        counts = tx.jobs.count_finished(0)
    return sum(count for status, count in counts.items() if status in TERMINAL)


def _end_connections(
    site: Site,
    worker: "subprocess.Popen[str]",
    url: str,
    ids: list[int],
    times: int,
    rng: random.Random,
) -> int:
    """At so many random points of the way through the jobs."""
    ended = 0
    with psycopg.connect(url, autocommit=True) as connection:
        for share in sorted(rng.random() for _ in range(times)):
            wait_for(
                lambda share=share: worker.poll() is not None or _ended(site) >= share * len(ids),
                what="jobs to end between two losses",
                deadline=600,
            )
            row = connection.execute(_END, [NAME]).fetchone()
            ended += row[0] if row else 0
    return ended


def _violations(
    site: Site, worker: "subprocess.Popen[str]", ledger: Path, ids: list[int]
) -> list[str]:
    found = []
    if worker.poll() is not None:
        said = (site.folder / "worker.log").read_text()
        found.append(f"the worker died with {worker.returncode}: {said[-2000:]}")
    runs = Counter(ledger.read_text().split())
    for number, job_id in enumerate(ids):
        if runs[str(number)] != 1:
            found.append(f"job-{job_id} ran {runs[str(number)]} times")
        kinds = Counter(site.kinds(job_id))
        if site.status(job_id) is not Status.SUCCEEDED or kinds["succeeded"] != 1:
            found.append(f"job-{job_id} is {site.status(job_id)}, with the events {dict(kinds)}")
    with site.client.context.store.read() as tx:
        workers = len(tx.hosts.recent_workers(site.client.context.host.id, 10))
        if workers != 1:
            found.append(f"{workers} workers came up")
        if tx.claims.live():
            found.append("claims are left")
        if tx.settings.pause_in_force() is not None:
            found.append("the queue was paused")
    return found


def main() -> int:
    from postgres import fresh_schema, server

    parser = argparse.ArgumentParser(prog="make torture TERMINATIONS=50")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = random.randrange(1_000_000) if asked.seed is None else asked.seed
    with (
        tempfile.TemporaryDirectory(prefix="headway-terminations-") as folder,
        server() as server_url,
        fresh_schema(server_url) as url,
    ):
        told = torture(Path(folder), url, times=asked.times, jobs=asked.jobs, seed=seed)
    print(
        f"seed {seed}: {asked.jobs} jobs, connections ended {asked.times} times "
        f"({told.ended} of them), {told.seconds:.0f} s, {len(told.violations)} violations"
    )
    print(os.linesep.join(told.violations[:20]))
    return 1 if told.violations else 0


if __name__ == "__main__":
    sys.exit(main())
