"""Durable submits per second, one by one and 10,000 in one call, in the submitter's process."""

from enqueue import CONTENDERS
from measure import Figures, Lab, PeerError, run_script
from server import database

ON_SQLITE = ("headway", "tasks", "huey", "dbos")
ON_POSTGRES = ("headway", "tasks", "pgqueuer", "procrastinate", "dbos")


def on_sqlite(lab: Lab) -> Figures:
    """Submits of commands and of functions on SQLite beside Huey's and DBOS's (no bulk calls).

    Commands are Client.submit and submit_many, functions Task.submit and App.submit_many. DBOS
    stores a fifth as many: it is only shown, and slow.

    Every contender has a process and an empty store of its own; what is timed is the loop of calls,
    after one that makes the store and loads the code. No worker is there.
    """
    figures: Figures = {}
    for contender in ON_SQLITE:
        figures |= _named("sqlite", contender, _try(lab, contender))
    return figures


def on_postgres(lab: Lab) -> Figures:
    """The same on PostgreSQL beside pgqueuer and Procrastinate, each in an empty database."""
    if lab.postgres is None:
        return {}
    figures: Figures = {}
    for contender in ON_POSTGRES:
        with database(lab.postgres) as url:
            figures |= _named("postgres", contender, _try(lab, contender, url))
    return figures


def _try(lab: Lab, contender: str, *url: str) -> Figures:
    assert contender in CONTENDERS
    count = str(lab.size(2_000 if contender == "dbos" else 10_000))
    folder = lab.fresh(contender)
    try:
        return run_script("enqueue.py", contender, str(folder), count, *url)
    except PeerError as error:
        lab.lacks(contender, str(error))
        return {}


def _named(store: str, contender: str, rates: Figures) -> Figures:
    return {f"submit.{store}.{way}.{contender}": rate for way, rate in rates.items()}
