"""Loaded last by the process that actors are forked from: what a worker loads and spells when it
first needs it is there already in each of them. All of it is no garbage, and a search for some
would copy it into each."""

import gc
import pkgutil
from importlib import import_module

from headway.jobs import policies
from headway.store import bulk, store, tables
from headway.store.postgres import database as postgres
from headway.store.sqlite import database as sqlite

for package in (tables, bulk):
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        import_module(found.name)
for name in (
    *("encodings.ascii", "headway.store.scheduler_state", "headway.store.sqlite.filesystems"),
    *("headway.store.sqlite.store", "headway.store.postgres.store", "headway.worker.launch.node"),
    *("headway.integrations.git.cleanup", "headway.integrations.git.patches"),
):
    import_module(name)
for dialect in (sqlite.DIALECT, postgres.DIALECT):
    queries = store._queries_of(dialect)
    for each in queries.all():
        queries.of_one(each)
policies.all_policies()

gc.collect()
gc.freeze()
