"""Everything here is proven on both stores."""

from collections.abc import Callable

import pytest
from keeping import Keeping, Wall

from harness import Bench


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def keeping(make_bench: Callable[..., Bench]) -> Keeping:
    clock = Wall()
    return Keeping(make_bench(clock=clock), clock)


@pytest.fixture
def paused(keeping: Keeping) -> Keeping:
    """Jobs are made and wait."""
    keeping.client.pause("looking at schedules alone")
    return keeping
