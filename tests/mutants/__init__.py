"""A proof of the tests: mistakes that somebody could make, and the tests that must notice them.

Each list here has the mistakes of one room. `make mutants` makes them one at a time, in a copy, and
runs only the tests that are named with each.
"""

from mutants import (
    admin,
    base,
    cli,
    core,
    integrations,
    jobs,
    mcp,
    store,
    supervise,
    web,
    webhooks,
    worker,
    workflows,
    workitems,
)
from mutants.mutant import Mutant

ROOMS: dict[str, tuple[Mutant, ...]] = {
    "base": base.MUTANTS,
    "core": core.MUTANTS,
    "store": store.MUTANTS,
    "supervise": supervise.MUTANTS,
    "integrations": integrations.MUTANTS,
    "worker": worker.MUTANTS,
    "jobs": jobs.MUTANTS,
    "admin": admin.MUTANTS,
    "web": web.MUTANTS,
    "mcp": mcp.MUTANTS,
    "cli": cli.MUTANTS,
    "workflows": workflows.MUTANTS,
    "workitems": workitems.MUTANTS,
    "webhooks": webhooks.MUTANTS,
}
ALL: tuple[Mutant, ...] = tuple(each for mutants in ROOMS.values() for each in mutants)
