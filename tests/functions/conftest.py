"""Everything that needs a store is proven on both; functions run in real host processes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lanes import Elsewhere, Lanes
from shop import Shop

from harness import Bench
from headway.functions.pool import host as functionhost
from headway.functions.pool import processes as hosting
from headway.store.access import Access
from headway.store.bulk.calls import Calls
from headway.testing.clock import FakeClock


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def make_shop(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Shop]:
    """A bench whose worker runs the functions of a module with that source."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(hosting, "STUCK", 3600.0)  # what waits in a host stays there

    def make(source: str, *, threads: int = 1, processes: int = 1, **options: Any) -> Shop:
        settings = {
            "app.modules": ("shop_tasks",),
            "app.threads": threads,
            "app.processes": processes,
            **options.pop("settings", {}),
        }
        return Shop(make_bench(settings=settings, **options), source)

    return make


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The named queries of write transactions, in order."""
    names: list[str] = []
    for part, verb in (
        *((Access, verb) for verb in ("all", "ask", "many", "send")),
        (Calls, "_send_given"),
    ):
        ask = getattr(part, verb)

        def counted(self: Any, query: Any, /, *rows: Any, ask: Any = ask, **said: Any) -> Any:
            names.extend([query] if isinstance(query, str) else query)
            return ask(self, query, *rows, **said)

        monkeypatch.setattr(part, verb, counted)
    return names


@pytest.fixture
def make_lanes(
    make_bench: Callable[..., Bench], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Lanes]:
    """Time stands still, so that it ends no quiet."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(hosting, "STUCK", 3600.0)
    monkeypatch.setattr(functionhost, "AIM", 1e9)  # calls may wait inside however long others take

    def make(*, max_active: int = 1, processes: int = 1, threads: int = 1) -> Lanes:
        settings = {
            "app.modules": ("shop_tasks",),
            "app.threads": threads,
            "app.processes": processes,
        }
        bench = make_bench(settings=settings, max_active=max_active, clock=FakeClock())
        lanes = Lanes(bench, asked)
        lanes.come_up()
        return lanes

    return make


@pytest.fixture
def lanes(make_lanes: Callable[..., Lanes]) -> Lanes:
    return make_lanes()


@pytest.fixture
def elsewhere(lanes: Lanes) -> Iterator[Elsewhere]:
    other = Elsewhere(lanes.bench)
    yield other
    other.store.close()
