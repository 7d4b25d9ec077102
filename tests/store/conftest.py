from collections.abc import Iterator
from pathlib import Path

import pytest
from stocked import START, Opener, System

from headway.store import open_store
from headway.store.base import Store
from headway.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


# Another store is one more word here and one more branch below.
@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the store of this test is; `stocked.only_a_file` leaves but the file."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite://{tmp_path}/headway.db"


@pytest.fixture
def opener(url: str, clock: FakeClock) -> Iterator[Opener]:
    """Opens the same store again and again, as other processes would."""
    opened: list[Store] = []

    def open_again() -> Store:
        opened.append(open_store(url, clock, create=True))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(opener: Opener) -> Store:
    return opener()


@pytest.fixture
def system(store: Store, clock: FakeClock, tmp_path: Path) -> System:
    return System(store, clock, tmp_path)
