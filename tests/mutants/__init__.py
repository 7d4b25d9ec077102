"""A proof of the tests: mistakes that somebody could make, and the tests that must notice them.

Each list here has the mistakes of one room. `make mutants` makes them one at a time, in a copy, and
runs only the tests that are named with each.
"""

from mutants import cli, core, jobs, store, supervise, worker, workflows
from mutants.mutant import Mutant

ROOMS: dict[str, tuple[Mutant, ...]] = {
    "core": core.MUTANTS,
    "store": store.MUTANTS,
    "supervise": supervise.MUTANTS,
    "worker": worker.MUTANTS,
    "jobs": jobs.MUTANTS,
    "cli": cli.MUTANTS,
    "workflows": workflows.MUTANTS,
}
ALL: tuple[Mutant, ...] = tuple(each for mutants in ROOMS.values() for each in mutants)
