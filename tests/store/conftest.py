import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from servers import CrashableServer, Line, line_to
from stocked import START, Opener, System

from headway.store import open_store
from headway.store.store import Store
from headway.testing.clock import FakeClock
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


@pytest.fixture
def opened() -> Iterator[Callable[..., Store]]:
    """Opens stores by their URLs, and closes them in the end."""
    with ExitStack() as stack:

        def open_it(url: str, **options: Any) -> Store:
            store = open_store(url, FakeClock(START), create=True, **options)
            stack.callback(store.close)
            return store

        yield open_it


@pytest.fixture
def line(postgres_url: str) -> Iterator[Line]:
    """A way to the server that can be cut."""
    with line_to(postgres_url) as line:
        yield line
