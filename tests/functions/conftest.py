"""Everything that needs a store is proven on both; functions run in real host processes."""

from collections.abc import Callable
from typing import Any

import pytest
from shop import Shop

from harness import Bench
from headway.engine import hosting


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
