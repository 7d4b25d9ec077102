"""Call a function and say how that ended: its result, what it asked for, or what it raised."""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from types import CoroutineType
from typing import Any

from headway.base.current import Retry, Skip, wait_before
from headway.functions.current import Current, storable
from headway.functions.type_checks import json_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping

LARGEST_RESULT = 1 << 20
LONGEST_ERROR = 2000
MOST_CLASSES = 50

# Exit code, result, error, and what the function asked for next, or the classes of what it raised.
Outcome = tuple[int, Any, str | None, Any]
WELL: Outcome = (0, None, None, None)


class Caller:
    """Calls functions, one at a time, in one thread. `show` gets what they raise."""

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]], show: Callable[[str], object]
    ) -> None:
        self._functions = functions
        self._show = show
        self._runner: asyncio.Runner | None = None  # made for the first coroutine

    def call(self, task: str, arguments: dict[str, Any], job: Current) -> Outcome:
        try:
            result = self._functions[task](**arguments)
            if result is None:
                return WELL
            if isinstance(result, CoroutineType):
                result = self._awaited(result, job)
                if result is None:
                    return WELL
            problem = _problem(result)
        except BaseException as error:
            return self._outcome_of(error, job)
        if problem is not None:
            return 1, None, _short(f"its result {problem}"), None
        return 0, result, None, None

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()

    def _awaited(self, coroutine: Any, job: Current) -> Any:
        """Run an async function to its end; a cancel of its job cancels it."""
        import asyncio
        import contextvars

        if self._runner is None:
            self._runner = asyncio.Runner()
        loop = self._runner.get_loop()

        async def watched() -> Any:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101
            job.cancel = lambda: _discard(loop.call_soon_threadsafe(task.cancel))
            if job.cancelled():
                task.cancel()
            return await coroutine

        # The runner's own context is that of the first job it ran.
        return self._runner.run(watched(), context=contextvars.copy_context())

    def _outcome_of(self, error: BaseException, job: Current) -> Outcome:
        """An exception may answer in any way when it is asked what it says."""
        try:
            return self._raised(error, job)
        except BaseException:
            names = class_names(error)
            said = f"{names[0] if names else 'an exception'}, which cannot be shown"
            return 1, None, _short(said), "cancelled" if job.cancelled() else names

    def _raised(self, error: BaseException, job: Current) -> Outcome:
        match error:
            case Skip():
                return 0, None, _short(str(error)) or "skipped", "skip"
            case Retry():
                asked = _short(str(error)) or "it asked to be tried again"
                return 1, None, asked, wait_before(error)
            case SystemExit():
                return _left(error)
        if _is_cancelled(error):
            return 143, None, "cancelled", "cancelled" if job.cancelled() else None
        self._show("".join(traceback.format_exception(error.with_traceback(_own(error)))))
        then = "cancelled" if job.cancelled() else class_names(error)
        return 1, None, last_words(error), then


def not_made(outcome: Outcome, products: Iterable[str]) -> list[str]:
    """Of a success: the files that it was to make, and that are not there."""
    code, _, error, _ = outcome
    if code != 0 or error is not None:
        return []
    return [each for each in products if not os.path.lexists(each)]


def _discard(_: object) -> None:
    """For a lambda that returns nothing."""


def _problem(result: Any) -> str | None:
    """Why a result cannot be kept, if it cannot."""
    problem = json_value(result, "")
    if problem is None and len(json.dumps(result)) > LARGEST_RESULT:
        problem = "is larger than 1 MiB; write a file and return its path"
    return problem


def _left(left: SystemExit) -> Outcome:
    """sys.exit ends the call, not the host."""
    if left.code in (None, 0):
        return WELL
    code = left.code if isinstance(left.code, int) else 1
    return code & 0xFF or 1, None, _short(f"sys.exit({left.code!r})"), None


def _is_cancelled(error: BaseException) -> bool:
    """Whether it is asyncio's; a function that has not imported asyncio cannot have raised it."""
    exceptions = sys.modules.get("asyncio.exceptions")
    return exceptions is not None and isinstance(error, exceptions.CancelledError)


def _own(error: BaseException) -> Any:
    """The traceback without the host's own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace or error.__traceback__


def class_names(error: BaseException) -> list[str]:
    """Its class and those it is made from, each by name and as module.Class: what a retry policy
    may be about."""
    names: list[str] = []
    with suppress(Exception):  # a class may answer in any way when it is asked for its name
        for each in type(error).__mro__[:MOST_CLASSES]:
            if each is not object:
                names += (each.__qualname__, f"{each.__module__}.{each.__qualname__}")
    return [storable(name) for name in names]


def last_words(error: BaseException) -> str:
    return _short("".join(traceback.format_exception_only(error)).strip())


def _short(text: str) -> str:
    return storable(text[:LONGEST_ERROR])
