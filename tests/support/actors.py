"""Forks the processes that tests tell where to die, from a clean one that has everything loaded."""

import multiprocessing
import os
import sys
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext

import pytest

LOADED = (
    *("pytest", "psycopg", "headway.worker.process", "headway.worker.one_pass", "headway.client"),
    *("headway.webhooks.courier", "stage", "scenes", "calls", "checkouts", "leftovers"),
    *("removals", "rewinds", "flows", "periodic", "slots", "frozen"),
)


@cache
def forks() -> ForkServerContext:
    """It is not told where this process finds its modules, and says nothing of those that it does
    not find, as those of tests that are not run."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LOADED))
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context
