"""Everything here is proven on both stores."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from declaring import Declaring
from harness import Bench
from keeping import Keeping, Wall
from several import Hosts, several
from simulation.running import in_file, on_server
from simulation.seams import installed

# For a test of what no store has to do with: git and its worktrees, control groups, words.
on_a_file = pytest.mark.parametrize("store_url", [None], ids=["sqlite"])


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def hosts(tmp_path: Path, postgres_url: str) -> Iterator[Hosts]:
    """Makes homes on one store, two unless more are named."""
    with several(tmp_path, postgres_url) as make:
        yield make


@pytest.fixture
def keeping(make_bench: Callable[..., Bench]) -> Keeping:
    clock = Wall()
    return Keeping(make_bench(clock=clock), clock)


@pytest.fixture
def paused(keeping: Keeping) -> Keeping:
    """Jobs are made and wait."""
    keeping.client.pause("looking at schedules alone")
    return keeping


@pytest.fixture
def declared_yard(
    tmp_path: Path, request: pytest.FixtureRequest, store_url: str | None
) -> Iterator[Declaring]:
    """Without processes, and with a jobs file."""
    with ExitStack() as open_:
        opening: Any = in_file
        if store_url is not None:
            opening = open_.enter_context(on_server(request.getfixturevalue("postgres_server")))
        open_.enter_context(installed(Random(1), lambda point: None))
        made = Declaring(tmp_path, opening)
        open_.callback(made.close)
        yield made
