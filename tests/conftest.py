"""What all tests share: who they run as."""

import compileall
import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import bytecode  # noqa: F401  (the first of ours)
import headway
from harness import Bench
from headway.store import bulk
from headway.worker import step
from headway.worker.fastlane.lane import FastLanePart
from kinds import Guard, mark_processes
from postgres import fresh_schema, server
from ready import Schemas, keep_trust_apart, live_in_memory, ready_schema, schemas

DEFAULTS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGQUIT: signal.SIG_DFL,
}
QUICK = "not processes"

live_in_memory()
keep_trust_apart()
gc.disable()  # until all tests are collected
# How long anything takes, and be it to make up an example, is for the benchmarks to say.
settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "every function call takes the general way, in workers that run in the tests' process"
    parser.addoption("--without-fastlane", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Compile the program once: many processes that tests start do not keep what they compile.
    A run in the background ignores signals that tests send to what they start."""
    for number, handler in DEFAULTS.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    if config.getoption("--without-fastlane"):
        step.PARTS = tuple(part for part in step.PARTS if part is not FastLanePart)
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(os.path.dirname(headway.__file__), quiet=2)
    if config.getoption("-m") == QUICK:
        config.pluginmanager.register(Guard())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long ones come first. Tests that need root run as root, as CI does; elsewhere the summary
    lists them by name. Where a fast path is off, its own tests have nothing to prove."""
    if FastLanePart not in step.PARTS:
        _leave_out(config, items, lambda item: "make_lanes" in getattr(item, "fixturenames", ()))
    if not bulk.ENABLED:
        _leave_out(config, items, lambda item: item.get_closest_marker("bulk") is not None)
    mark_processes(items)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="not run: needs root"))


def _leave_out(
    config: pytest.Config, items: list[pytest.Item], unneeded: Callable[[pytest.Item], bool]
) -> None:
    left_out = [item for item in items if unneeded(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not unneeded(item)]


def pytest_collection_finish() -> None:
    """The tests themselves, thousands of them, are no garbage to be searched again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture
def store_url() -> str | None:
    """The home's own store; folders of tests that prove both stores give other answers."""
    return None


@pytest.fixture
def make_bench(tmp_path: Path, store_url: str | None) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(tmp_path, **{"store_url": store_url, **options}))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_schemas(postgres_server: str) -> Iterator[Schemas | None]:
    with schemas(postgres_server) as made:
        yield made


@pytest.fixture
def postgres_url(postgres_server: str, postgres_schemas: Schemas | None) -> Iterator[str]:
    """An empty store of the test's own."""
    with ready_schema(postgres_server, postgres_schemas) as url:
        yield url


@pytest.fixture
def bare_postgres_url(postgres_server: str) -> Iterator[str]:
    """A schema of the test's own in which nothing is made yet."""
    with fresh_schema(postgres_server) as url:
        yield url
