"""Homes with servers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from served import Served, serving, serving_new_home

from harness import Bench


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str | None:
    """The home's own; `on_both_stores` asks for the other one as well."""
    if getattr(request, "param", None) != "postgres":
        return None
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests of a module that do not disturb each other."""
    with serving_new_home(tmp_path_factory.mktemp("home")) as served:
        yield served


@pytest.fixture
def serve(make_bench: Callable[..., Bench]) -> Iterator[Callable[..., Served]]:
    """Starts a server of a home of the test's own."""
    with ExitStack() as stack:

        def start(bench: Bench | None = None, *args: Any, **settings: Any) -> Served:
            bench = bench or make_bench(max_active=4)
            return stack.enter_context(serving(bench, *args, **settings))

        yield start


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    return serve()
