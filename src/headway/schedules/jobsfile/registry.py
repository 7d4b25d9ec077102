"""The registry of the user's functions for the jobs file, and the context that they get.

    from headway import JobContext, condition, job, poll

    @poll
    def fetch():
        return {"open_prs": 3}

    @condition("office_hours")
    def office_hours(ctx: JobContext) -> bool: ...

    @job("sweep")
    def sweep(ctx: JobContext) -> None: ...

Decorators put functions into the registry of this process, which is read after the modules were
imported. They are called in processes of their own, never in a worker.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from headway.base.errors import InvalidInputError
from headway.schedules.jobsfile.model import NAME, NO_AGENTS, OPEN_PRS

if TYPE_CHECKING:
    from headway.client import Client

BUILT_IN = (NO_AGENTS, OPEN_PRS)

Function = TypeVar("Function", bound=Callable[..., Any])


class JobContext:
    """The context of a function of the jobs file. Users' tests make one with the values that they
    need."""

    def __init__(
        self,
        *,
        client: Client | None = None,
        poll_data: Any = None,
        state: dict[str, Any] | None = None,
        open_client: Callable[[], Client] | None = None,
        fetch: Callable[[], Any] | None = None,
    ) -> None:
        self.state: dict[str, Any] = {} if state is None else state  # kept from run to run
        self._client = client
        self._poll_data = poll_data
        self._open_client = open_client
        self._fetch = fetch

    @property
    def client(self) -> Client:
        """A client of this home, opened when it is first asked for."""
        if self._client is None:
            if self._open_client is None:
                raise InvalidInputError("this context has no client")
            self._client = self._open_client()
        return self._client

    @property
    def poll_data(self) -> Any:
        """The result of the poll; None for local entries, without a poll, and when it failed."""
        if self._fetch is not None:
            fetch, self._fetch = self._fetch, None
            self._poll_data = fetch()
        return self._poll_data

    def log(self, text: object) -> None:
        """Print a line to the job's log."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def close(self) -> None:
        if self._client is not None and self._open_client is not None:
            self._client.close()
            self._client = None


class Registry:
    def __init__(self) -> None:
        self.jobs: dict[str, Callable[..., Any]] = {}
        self.conditions: dict[str, Callable[..., Any]] = {}
        self.fetch: Callable[..., Any] | None = None

    def job(self, name: str) -> Callable[[Function], Function]:
        """Let `run: NAME` in a jobs file mean this function, which gets a JobContext."""
        return self._into(self.jobs, "job", name)

    def condition(self, name: str) -> Callable[[Function], Function]:
        """Let NAME among the conditions of a jobs file mean what this function returns."""
        if name in BUILT_IN:
            raise InvalidInputError(f"condition {name!r} is built in; use another name")
        return self._into(self.conditions, "condition", name)

    def poll(self, function: Function) -> Function:
        """Let this function fetch what remote entries and their conditions share. There is one."""
        _refuse_async("the poll", function)
        if self.fetch is not None and _place(self.fetch) != _place(function):
            raise InvalidInputError(
                f"there are two polls, {_place(self.fetch)} and {_place(function)}; keep one"
            )
        self.fetch = function
        return function

    def _into(
        self, known: dict[str, Callable[..., Any]], what: str, name: str
    ) -> Callable[[Function], Function]:
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f'a {what} needs a name, as @{what}("sweep")')
        if not re.fullmatch(NAME, name):
            raise InvalidInputError(
                f"no jobs file can name {what} {name!r}; use letters, digits, _ - and ., at most "
                "64 of them"
            )

        def register(function: Function) -> Function:
            _refuse_async(f"{what} {name!r}", function)
            before = known.get(name)
            if before is not None and _place(before) != _place(function):
                raise InvalidInputError(
                    f"there are two of {what} {name!r}, {_place(before)} and {_place(function)}; "
                    "rename one"
                )
            known[name] = function
            return function

        return register


REGISTRY = Registry()
job, condition, poll = REGISTRY.job, REGISTRY.condition, REGISTRY.poll


def call_with(function: Callable[..., Any], context: JobContext) -> Any:
    """Call one that may leave out the context."""
    import inspect

    try:
        inspect.signature(function).bind(context)
    except TypeError:
        return function()
    except ValueError:  # written in C, and says nothing about itself
        pass
    return function(context)


def as_json(value: Any, what: str, most: int) -> str:
    """The text of a value that is kept or handed on. Raises InvalidInputError."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"{what} is not JSON: {error}") from None
    if len(text) > most:
        raise InvalidInputError(f"{what} has {len(text):,} bytes, more than {most:,}")
    return text


def _refuse_async(what: str, function: object) -> None:
    import inspect

    if not callable(function):
        raise InvalidInputError(f"{what} is not a function")
    if inspect.iscoroutinefunction(function):
        raise InvalidInputError(f"{what} is an async function; use asyncio.run inside a plain one")


def _place(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", repr(function))
    return f"{getattr(function, '__module__', '?')}.{name}"
