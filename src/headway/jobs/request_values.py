"""What a program may give for the fields of a request, and how each is read.

A wrong value is named in the words of Python, as the caller wrote it. None is as if the field were
not given. The options of tasks are read by the same readers (`functions/task_options`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from headway.base.errors import InvalidInputError
from headway.base.units import Duration, Instant, read_duration, read_instant
from headway.core.model import FIELDS, Lock, Rate
from headway.jobs.quotas import parse_rate
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock, split_command, when

Reader = Callable[[str, Any], Any]
_USUAL = Request()


def read_request(request: Request, now: Callable[[], int]) -> Request:
    """The same request with a value of the right type in every field. Raises InvalidInputError with
    the name of the first field that has none; `now` is asked if a time has to be read."""
    if not isinstance(request, Request):
        raise InvalidInputError(f"{request!r} is not a request; give headway.Request(argv=[...])")
    changed: dict[str, Any] = {}
    for name, given, usual in zip(Request._fields, request, _USUAL, strict=True):
        if given is usual or name == "at":
            continue
        read = usual if given is None else _READERS[name](name, given)
        if read is not given:
            changed[name] = read
    read_so_far = request._replace(**changed) if changed else request
    return read_so_far if request.at is None else _at_a_time(read_so_far, now)


def _at_a_time(request: Request, now: Callable[[], int]) -> Request:
    if isinstance(request.at, str):
        return request._replace(**{"at": None} | when(request.delay, request.at, now()))
    if isinstance(request.at, Instant):
        return request._replace(at=read_instant(request.at, now(), "at"))
    _micros("at", request.at)
    return request


# -- readers -----------------------------------------------------------------------------------


def several(name: str, given: Any) -> list[Any]:
    if isinstance(given, list | tuple | set | frozenset) and not isinstance(given, Lock | Rate):
        return list(given)
    raise InvalidInputError(f"{name} is {given!r}; give a list")


def of_type(kind: type, wanted: str) -> Reader:
    def read(name: str, given: Any) -> Any:
        if isinstance(given, kind) and (kind is bool or not isinstance(given, bool)):
            return given
        raise InvalidInputError(f"{name} is {given!r}, not {wanted}")

    return read


read_text = of_type(str, "a text")
read_whole = of_type(int, "a whole number")
read_flag = of_type(bool, "True or False")
_micros = of_type(int, "a time; give a datetime or a text like '2026-11-15T22:30'")


def read_each(read: Reader) -> Reader:
    """A list of values that are read alike."""

    def read_all(name: str, given: Any) -> tuple[Any, ...]:
        values = several(name, given)
        found = tuple(read(f"{name}[{place}]", each) for place, each in enumerate(values))
        return given if found == given else found

    return read_all


def read_parsed(parse: Callable[[str], Any], kind: type | None = None) -> Reader:
    """A text that is parsed, or else what parsing gives."""

    def read(name: str, given: Any) -> Any:
        if kind is not None and isinstance(given, kind):
            return given
        return parse(read_text(name, given))

    return read


def read_fraction(name: str, given: Any) -> float:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return given
    raise InvalidInputError(f"{name} is {given!r}, not a number from 0 to 1")


def read_labels(name: str, given: Any) -> Mapping[str, str]:
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"{name} is {given!r}; give a dict of texts")
    for key, value in given.items():
        read_text(f"{name}[{key!r}]", value)
        read_text(f"a name of {name}", key)
    return given


def read_group(name: str, given: Any) -> str:
    number = isinstance(given, int) and not isinstance(given, bool)
    return str(given) if number else str(read_text(name, given))


def _duration(name: str, given: Any) -> int:
    """A whole number is of microseconds here, as requests have always had it."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given  # its bounds are checked with the rest
    if isinstance(given, Duration) and not isinstance(given, float | bool):
        return read_duration(given, name)
    raise InvalidInputError(
        f"{name} is {given!r}, not a duration; give a text like '90s', a timedelta, "
        "or microseconds as a whole number"
    )


def _reference(name: str, given: Any) -> int | str:
    if isinstance(given, int | str) and not isinstance(given, bool):
        return given
    raise InvalidInputError(f"{name} is {given!r}, not the id, the slug or the local name of a job")


def _command(name: str, given: Any) -> tuple[str, ...]:
    return split_command(given, name) if isinstance(given, str) else _words(name, given)


def _checked_out(name: str, given: Any) -> str | None:
    """A branch or a base; True is what is checked out."""
    if isinstance(given, bool):
        return "" if given else None
    return str(read_text(name, given))


_words = read_each(read_text)
_FIELD_WORDS: Mapping[str, Reader] = {
    "text": read_text,
    "texts": _words,
    "whole": read_whole,
    "flag": read_flag,
}
_READERS: Mapping[str, Reader] = {
    **{field.name: _FIELD_WORDS[field.word] for field in FIELDS if field.word},
    **dict.fromkeys(("shell", "cwd", "stdin", "local", "type", "template"), read_text),
    **dict.fromkeys(("argv", "require", "retry_on"), _words),
    **dict.fromkeys(("position", "retries"), read_whole),
    **dict.fromkeys(("any_host", "check", "save_patch"), read_flag),
    **dict.fromkeys(
        ("delay", "timeout", "idle_timeout", "grace", "retry_base", "retry_cap"), _duration
    ),
    **dict.fromkeys(("labels", "env"), read_labels),
    **dict.fromkeys(("pin_head", "worktree"), _checked_out),
    "after": read_each(_reference),
    "skip_exit_codes": read_each(read_whole),
    "locks": read_each(read_parsed(parse_lock, Lock)),
    "rates": read_each(read_parsed(parse_rate, Rate)),
    "on_finish": _command,
    "group": read_group,
    "retry_jitter": read_fraction,
    "input": of_type(bytes, "bytes"),
    "agent": of_type(Mapping, "what headway.agent_request puts together"),
}
