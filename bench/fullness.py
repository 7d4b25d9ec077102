"""Functions in a store that holds very much already: the drain must not become slower."""

import time

from apps import Site, fill, held, site, stores, working
from homes import refuse_failures
from measure import Figures, Lab, wait_for
from planning import PostgresRows, Rows, SqliteRows, cloning

DAY = "86400s"
TABLES = ("jobs", "runs", "claims", "edges", "waits", "events")


def function_full(lab: Lab) -> Figures:
    """10,000 no-ops, all queued, in an empty store and in one with 1,000,000 finished and 100,000
    waiting ones: from the word to begin until the last of them has finished, per second.

    The others are copies, row by row, of one that was run and of one that waits for a job which
    does not come to its end.
    """
    count, finished, waiting = lab.size(10_000), lab.size(1_000_000), lab.size(100_000)
    figures: Figures = {}
    for store in stores(lab):
        for name, sizes in (("empty", (0, 0)), ("full", (finished, waiting))):
            with site(lab, store, max_active=100) as home:
                _stock(home, *sizes)
                figures[f"functions.full.{store}.{name}"] = count / _drain(home, count)
    return figures


def _stock(home: Site, finished: int, waiting: int) -> None:
    with working(home):
        done = home.noop.submit(1, 2)
        done.result(timeout=60)
        never = home.noop.options(delay=DAY).submit(1, 2)
        filed = home.noop.submit(1, 2, after=[never])
        wait_for(lambda: _is_filed(home, filed.job_id))
    url = home.client.context.home.store_url
    rows: Rows = PostgresRows(url) if url else SqliteRows(home.client.context.home.database)
    for job_id, number in ((done.job_id, finished), (filed.job_id, waiting)):
        if number:
            with home.client.context.store.write() as tx:
                given = {"count": number, "base": tx.jobs.take_ids(number), "job_id": job_id}
            for table in TABLES:
                rows.run(cloning(table, rows.columns(table)), given)
    home.client.context.store.tidy()
    rows.analyze()


def _is_filed(home: Site, job_id: int) -> bool:
    with home.client.context.store.read() as tx:
        return tx.jobs.by_id([job_id])[job_id].wait is not None


def _drain(home: Site, count: int) -> float:
    with working(home) as process:
        with held(home, process):
            ids = fill(home, count)
            begin = time.perf_counter()
        wait_for(lambda: _has_ended(home, ids[-1]), every=0.02, within=300.0)
        taken = time.perf_counter() - begin
        wait_for(lambda: all(_has_ended(home, each) for each in ids[-200:]))
        refuse_failures(home.client, ids)
    return taken


def _has_ended(home: Site, job_id: int) -> bool:
    with home.client.context.store.read() as tx:
        return tx.jobs.by_id([job_id])[job_id].finished_at is not None
