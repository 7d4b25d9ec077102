"""Durable submits per second, one by one and 10,000 in one call, in the submitter's process."""

from enqueue import CONTENDERS
from measure import Figures, Lab, PeerError, run_script
from server import database

ON_SQLITE = ("headway", "huey")
ON_POSTGRES = ("headway", "pgqueuer", "procrastinate")


def on_sqlite(lab: Lab) -> Figures:
    """Client.submit and submit_many on SQLite beside Huey's enqueue (it has no bulk call).

    Every contender has a process and an empty store of its own; what is timed is the loop of calls,
    after one that makes the store and loads the code. No worker is there.
    """
    count = str(lab.size(10_000))
    figures: Figures = {}
    for contender in ON_SQLITE:
        figures |= _named("sqlite", contender, _try(lab, contender, count))
    return figures


def on_postgres(lab: Lab) -> Figures:
    """The same on PostgreSQL beside pgqueuer and Procrastinate, each in an empty database."""
    if lab.postgres is None:
        return {}
    count = str(lab.size(10_000))
    figures: Figures = {}
    for contender in ON_POSTGRES:
        with database(lab.postgres) as url:
            figures |= _named("postgres", contender, _try(lab, contender, count, url))
    return figures


def _try(lab: Lab, contender: str, *arguments: str) -> Figures:
    assert contender in CONTENDERS
    folder = lab.fresh(contender)
    try:
        return run_script("enqueue.py", contender, str(folder), *arguments)
    except PeerError as error:
        lab.lacks(contender, str(error))
        return {}


def _named(store: str, contender: str, rates: Figures) -> Figures:
    return {f"submit.{store}.{way}.{contender}": rate for way, rate in rates.items()}
