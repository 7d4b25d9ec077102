import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import CrashableServer
from stocked import START, Opener, System

from headway.store.base import Store
from headway.testing import FakeClock
from postgres import fresh_schema
from ready import open_ready


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
        opened.append(open_ready(url, clock))
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


@pytest.fixture(scope="module")
def crashable() -> Iterator[CrashableServer]:
    # Not in pytest's own folder: each pytest that starts closes it to all users but its own, and
    # the server, which is another user when we are root, would not come up again.
    folder = Path(tempfile.mkdtemp(prefix="headway-postgres-"))
    server = CrashableServer(folder)
    yield server
    server.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def crashable_url(crashable: CrashableServer) -> Iterator[str]:
    with fresh_schema(crashable.url) as url:
        yield url
