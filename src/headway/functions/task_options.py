"""The options of a task and its jobs: which there are, and what each may be.

A wrong one is named in the words of Python, as the caller wrote it. An option that is None is as
if it were not given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headway.base.errors import InvalidInputError
from headway.base.units import read_duration, read_instant
from headway.core.model import FIELDS
from headway.jobs.quotas import parse_rate
from headway.jobs.request_values import (
    read_each,
    read_flag,
    read_fraction,
    read_group,
    read_labels,
    read_parsed,
    read_text,
    read_whole,
    several,
)
from headway.jobs.specification import parse_lock


def in_words(options: Mapping[str, Any], now: int) -> dict[str, Any]:
    """The options as the words of a request, but for `after`, which may name other calls."""
    refuse_unknown(options)
    return {
        name: read_instant(value, now, name) if name == "at" else _READERS[name](name, value)
        for name, value in options.items()
        if value is not None and name != "after"
    }


def refuse_unknown(options: Mapping[str, Any]) -> None:
    for word in options:
        if word not in OPTIONS:
            raise InvalidInputError(
                f"{word!r} is not an option of a task{meant_option(word)}; "
                f"there are {', '.join(sorted(OPTIONS))}"
            )


def meant_option(word: str) -> str:
    """The option that was probably meant, as the end of a message."""
    if word in _ELSEWHERE:
        return f"; {_ELSEWHERE[word]}"
    from difflib import get_close_matches

    close = get_close_matches(word, OPTIONS, 1)
    return f"; did you mean the option {close[0]}?" if close else ""


# Words of others, docs/coming-from.md.
_ELSEWHERE = {
    "autoretry_for": "here it is retry_on",
    "bind": "the job is headway.current()",
    "context": "the job is headway.current()",
    "countdown": "here it is delay",
    "depends_on": "here it is after",
    "eta": "here it is at",
    "expires": "there is no such thing here; see timeout",
    "ignore_result": "a result is always kept",
    "job_id": "here it is key",
    "job_timeout": "here it is timeout",
    "lock": "here it is locks, a list",
    "max_retries": "here it is retries",
    "pass_context": "the job is headway.current()",
    "queue": "there is one queue; see priority and resources",
    "queueing_lock": "here it is key",
    "retry": "here it is retries",
    "schedule_at": "here it is at",
    "schedule_in": "here it is delay",
    "soft_time_limit": "here it is timeout",
    "time_limit": "here it is timeout",
}


def _duration(name: str, given: Any) -> int:
    return read_duration(given, name)


def _texts(name: str, given: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in several(name, given))


def _causes(name: str, given: Any) -> tuple[str, ...]:
    """A class of exceptions is known by its name: the worker may not have it."""
    return tuple(
        f"{each.__module__}.{each.__qualname__}" if isinstance(each, type) else str(each)
        for each in several(name, given)
    )


# How a word of the table of fields is read.
_WORDS: Mapping[str, Callable[[str, Any], Any]] = {
    "text": read_text,
    "texts": _texts,
    "whole": read_whole,
    "flag": read_flag,
}
_READERS: dict[str, Callable[[str, Any], Any]] = {
    **{field.name: _WORDS[field.word] for field in FIELDS if field.word},
    **dict.fromkeys(("position", "retries"), _WORDS["whole"]),
    **dict.fromkeys(("delay", "timeout", "grace", "retry_base", "retry_cap"), _duration),
    "on_finish": _texts,
    "labels": read_labels,
    "group": read_group,
    "retry_jitter": read_fraction,
    "retry_on": _causes,
    "locks": read_each(read_parsed(parse_lock)),
    "rates": read_each(read_parsed(parse_rate)),
}
OPTIONS = frozenset({*_READERS, "after", "at"})
