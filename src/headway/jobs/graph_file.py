"""Read a graph of jobs from a file: JSON (an array, or an object with `jobs`) or JSON Lines.

An entry has the words of the options of `submit`, and its values are checked by the same code.
Lines are read one by one, so that of a large file only what is stored of its jobs is kept.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

from headway.base.errors import InvalidInputError
from headway.base.units import parse_duration, show_size
from headway.core.model import FIELDS
from headway.jobs.graph import Drafts
from headway.jobs.quotas import parse_rate
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock, split_command, when

LARGEST_FILE = 256 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PROGRESS_EVERY = 10_000  # jobs
OF_AGENTS = (
    *("runner", "prompt", "prompt_file", "model", "max_turns", "allowed_tools", "budget_usd"),
    "max_tokens",
)


class FieldForm(NamedTuple):
    """How a value is written, which field of a request it is, and how it becomes that."""

    field: str
    says: str
    fits: Callable[[Any], bool]
    make: Callable[[Any], Any] | None = None


def read_graph(
    stream: BinaryIO,
    drafts: Drafts,
    *,
    now: int,
    progress: Callable[[int], object] = lambda count: None,
) -> None:
    """Take in all jobs of a file. `progress` is called now and then with their number."""
    count = 0
    for where, entry in _entries(_Bounded(stream), drafts):
        count += 1
        _take(entry, where, drafts, now)
        if count % PROGRESS_EVERY == 0:
            progress(count)
    if not count:
        drafts.refuse_empty()


def read_entries(entries: Sequence[Any], drafts: Drafts, *, now: int) -> None:
    """Take in the jobs of a document that others have parsed."""
    if not entries:
        drafts.refuse_empty()
    for where, entry in _of_document(list(entries), drafts):  # which takes them out of its list
        _take(entry, where, drafts, now)


def request_of_entry(entry: Mapping[str, Any], now: int) -> Request:
    """The request of a job that stands alone, so it needs no `id`. Raises with all that is wrong
    with it."""
    wrong = list(misfits(entry))
    if not wrong and not is_agent(entry):
        wrong += _no_command(entry)
    request = None if wrong else request_of(entry, now, wrong)
    if request is None:
        raise InvalidInputError("; ".join(wrong))
    return request


def _no_command(entry: Mapping[str, Any]) -> list[str]:
    given = bool(entry.get("argv")) != (entry.get("shell") is not None)
    return [] if given else ["give argv, or shell, and not both"]


def _take(entry: Any, where: str, drafts: Drafts, now: int) -> None:
    if not isinstance(entry, dict):
        drafts.refuse(f"{where}: {_short(entry)} is not a job; write an object")
        drafts.skip(None, where)
        return
    local = entry.get("id")
    if isinstance(local, str):
        where = f"{where}, job {local!r}" if where.startswith("line") else f"job {local!r}"
    wrong = list(misfits(entry))
    meant = {_nearest(key) for key in entry if key not in FORMS}
    if "id" not in entry and "id" not in meant:
        wrong.append('it has no "id"; give it a name that others of the graph can use')
    runs = not is_agent(entry) and not meant & {"argv", "shell", *OF_AGENTS}
    if runs:
        wrong += _no_command(entry)
    request = None if wrong else request_of(entry, now, wrong)
    for problem in wrong:
        drafts.refuse(f"{where}: {problem}")
    if request is None:
        after: Any = entry.get("after")
        known = tuple(after) if _texts(after) else ()
        drafts.skip(local if isinstance(local, str) else None, where, known)
    else:
        drafts.add(request, where)


def misfits(entry: Mapping[str, Any]) -> Iterator[str]:
    """The mistakes in the keys of an entry, and in the form of their values."""
    for key, value in entry.items():
        form = FORMS.get(key)
        if form is None:
            yield f"unknown key {key!r}{_perhaps(key)}"
        elif not form.fits(value) and (value is not None or key == "id"):
            yield f"{key} is {_short(value)}; give {form.says}"


def _perhaps(key: str) -> str:
    near = _nearest(key)
    return f"; did you mean {near!r}?" if near else "; `headway submit --help` has the same words"


def _nearest(key: str) -> str | None:
    """The word that was meant; one wrong key is one mistake."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(key[:64], FORMS, 1)), None)


def request_of(entry: Mapping[str, Any], now: int, wrong: list[str]) -> Request | None:
    """The request that it describes; else why not is added to `wrong`."""
    fields: dict[str, Any] = {}
    for key, value in entry.items():
        if value is None:
            continue
        form = FORMS[key]
        try:
            fields[form.field] = value if form.make is None else form.make(value)
        except InvalidInputError as error:
            wrong.append(str(error))
    try:
        if "at" in fields:
            fields |= when(fields.pop("delay", 0), fields.pop("at"), now)
    except InvalidInputError as error:
        wrong.append(str(error))
    if entry.get("prompt") is not None and entry.get("prompt_file") is not None:
        wrong.append("give prompt or prompt_file, not both")
    if is_agent(entry):
        agent = {field[6:]: fields.pop(field) for field in list(fields) if field[:6] == "agent."}
        fields["agent"] = agent
    return None if wrong else Request(**fields)


def is_agent(entry: Mapping[str, Any]) -> bool:
    """Whether any of its words is about an agent."""
    return any(entry.get(word) is not None for word in OF_AGENTS)


# -- forms -------------------------------------------------------------------------------------


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wholes(value: Any) -> bool:
    return isinstance(value, list) and all(_whole(each) for each in value)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _named(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _text_or_flag(value: Any) -> bool:
    return isinstance(value, str | bool)


def _text_or_texts(value: Any) -> bool:
    return _text(value) or _texts(value)


def _what_is_checked_out(value: str | bool) -> str | None:
    """As `--pin-head` alone, or with the name of a branch."""
    if isinstance(value, bool):
        return "" if value else None
    return value


def _duration(what: str) -> FieldForm:
    return FieldForm(what, 'a duration like "5m"', _text, lambda text: parse_duration(text, what))


def _command(value: str | Sequence[str]) -> tuple[str, ...]:
    return split_command(value) if isinstance(value, str) else tuple(value)


_TEXT = "a text"
_TEXTS = "a list of texts"
_NAMED = "an object of texts"
_FLAG = "true or false"
_WHOLE = "a whole number"

# How a word of the table of fields is written.
_WORDS: Mapping[str, Callable[[str], FieldForm]] = {
    "text": lambda name: FieldForm(name, _TEXT, _text),
    "texts": lambda name: FieldForm(name, _TEXTS, _texts, tuple),
    "whole": lambda name: FieldForm(name, _WHOLE, _whole),
    "flag": lambda name: FieldForm(name, _FLAG, _flag),
}

FORMS: Mapping[str, FieldForm] = {
    "id": FieldForm("local", _TEXT, _text),
    "argv": FieldForm("argv", _TEXTS, _texts, tuple),
    "shell": FieldForm("shell", _TEXT, _text),
    "after": FieldForm("after", "a list of local names and ids like job-24", _texts, tuple),
    **{field.name: _WORDS[field.word](field.name) for field in FIELDS if field.word},
    "labels": FieldForm("labels", _NAMED, _named),
    "position": FieldForm("position", _WHOLE, _whole),
    "locks": FieldForm(
        "locks", _TEXTS, _texts, lambda keys: tuple(parse_lock(each) for each in keys)
    ),
    "pin_head": FieldForm("pin_head", "a branch or true", _text_or_flag, _what_is_checked_out),
    "require": FieldForm("require", _TEXTS, _texts, tuple),
    "timeout": _duration("timeout"),
    "idle_timeout": _duration("idle_timeout"),
    "grace": _duration("grace"),
    "retries": FieldForm("retries", _WHOLE, _whole),
    "retry_base": _duration("retry_base"),
    "retry_cap": _duration("retry_cap"),
    "retry_jitter": FieldForm("retry_jitter", "a number from 0 to 1", _number, float),
    "retry_on": FieldForm("retry_on", _TEXTS, _texts, tuple),
    "delay": _duration("delay"),
    "at": FieldForm("at", "a time like 2026-11-15T22:30", _text),
    "env": FieldForm("env", _NAMED, _named),
    "cwd": FieldForm("cwd", _TEXT, _text),
    "stdin": FieldForm("stdin", _TEXT, _text),
    "skip_exit_codes": FieldForm("skip_exit_codes", "a list of whole numbers", _wholes, tuple),
    "on_finish": FieldForm("on_finish", "a command", _text_or_texts, _command),
    "worktree": FieldForm("worktree", "a base or true", _text_or_flag, _what_is_checked_out),
    "save_patch": FieldForm("save_patch", _FLAG, _flag),
    "type": FieldForm("type", _TEXT, _text),
    "rates": FieldForm(
        "rates", _TEXTS, _texts, lambda all_: tuple(parse_rate(each) for each in all_)
    ),
    "group": FieldForm("group", _TEXT, _text),
    "any_host": FieldForm("any_host", _FLAG, _flag),
    "no_check": FieldForm("check", _FLAG, _flag, lambda skipped: not skipped),
    "runner": FieldForm("agent.runner", _TEXT, _text),
    "prompt": FieldForm("agent.prompt", _TEXT, _text),
    "prompt_file": FieldForm("agent.prompt_file", "the path of a file", _text),
    "model": FieldForm("agent.model", _TEXT, _text),
    "max_turns": FieldForm("agent.max_turns", _WHOLE, _whole),
    "allowed_tools": FieldForm("agent.allowed_tools", _TEXTS, _texts, list),
    "budget_usd": FieldForm("agent.budget_usd", "a number", _number),
    "max_tokens": FieldForm("agent.max_tokens", _WHOLE, _whole),
}


# The same as JSON Schemas, for editors and for programs that are made from them.
_SCHEMAS: Mapping[Callable[[Any], bool], Mapping[str, Any]] = {
    _text: {"type": ["string", "null"]},
    _texts: {"type": ["array", "null"], "items": {"type": "string"}},
    _whole: {"type": ["integer", "null"]},
    _number: {"type": ["number", "null"]},
    _wholes: {"type": ["array", "null"], "items": {"type": "integer"}},
    _flag: {"type": ["boolean", "null"]},
    _named: {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
    _text_or_flag: {"type": ["string", "boolean", "null"]},
    _text_or_texts: {"type": ["string", "array", "null"], "items": {"type": "string"}},
}


def schema_of_entry(*, without: Collection[str] = ()) -> dict[str, Any]:
    """The JSON Schema of an entry. What it allows may still be refused."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            key: {**_SCHEMAS[form.fits], "description": form.says}
            for key, form in FORMS.items()
            if key not in without
        },
    }


# -- the file ----------------------------------------------------------------------------------


class _Bounded:
    """A stream of which no more is read than a graph may be large."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = LARGEST_FILE

    def line(self) -> bytes:
        return self._counted(self._stream.readline(self._left + 1))

    def rest(self) -> bytes:
        return self._counted(self._stream.read(self._left + 1))

    def _counted(self, read: bytes) -> bytes:
        self._left -= len(read)
        if self._left < 0:
            raise InvalidInputError(
                f"the graph is larger than {show_size(LARGEST_FILE)}; submit it in parts"
            )
        return read


def _entries(file: _Bounded, drafts: Drafts) -> Iterator[tuple[str, Any]]:
    """The jobs, each with the place where it stands. Lines, if the first line is one job."""
    number, line = _next_line(file, 0)
    if not line:
        return
    line = line.removeprefix(_BYTE_ORDER_MARK)
    first: Any = None
    with suppress(InvalidInputError):  # it may be the beginning of a longer one
        first = _parsed(line)
    if not isinstance(first, dict) or "jobs" in first:
        rest = file.rest()
        if first is None or not (not rest or rest.isspace()):
            first = _whole_document(line + rest, number, drafts)
        yield from _of_document(first, drafts)
        return
    yield f"line {number}", first
    while True:
        number, line = _next_line(file, number)
        if not line:
            return
        try:
            yield f"line {number}", _parsed(line)
        except InvalidInputError as error:
            drafts.refuse(f"line {number}: {error}")
            drafts.skip(None, "")


def _next_line(file: _Bounded, number: int) -> tuple[int, bytes]:
    """The next that is not blank; none at the end."""
    while line := file.line():
        number += 1
        if not line.isspace():
            return number, line
    return number, b""


def _whole_document(text: bytes, first_line: int, drafts: Drafts) -> Any:
    try:
        return _parsed(text, first_line=first_line)
    except InvalidInputError as error:
        drafts.refuse(str(error))
        return None


def _of_document(document: Any, drafts: Drafts) -> Iterator[tuple[str, Any]]:
    if document is None:
        return
    try:
        jobs = _jobs_of(document)
    except InvalidInputError as error:
        drafts.refuse(str(error))
        return
    drafts.keep_to_the_limit(len(jobs))
    jobs.reverse()
    number = 0
    while jobs:  # what was taken in is let go
        number += 1
        yield f"job number {number}", jobs.pop()


def _jobs_of(document: Any) -> list[Any]:
    jobs = document.get("jobs") if isinstance(document, dict) else document
    if not isinstance(jobs, list):
        raise InvalidInputError('it is not a graph; write a list of jobs, or {"jobs": [...]}')
    if isinstance(document, dict) and len(document) > 1:
        other = next(key for key in document if key != "jobs")
        raise InvalidInputError(f'unknown key {other!r} beside "jobs"')
    return jobs


def _parsed(text: bytes, *, first_line: int | None = None) -> Any:
    try:
        return _DECODER.decode(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"it is not UTF-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        if text.lstrip()[:1] not in (b"[", b"{"):  # YAML, most often, as the jobs file is
            raise InvalidInputError(
                'it is not JSON; write a list like [{"id": "a", "argv": ["true"]}]'
            ) from None
        line = f"line {first_line + error.lineno - 1}, " if first_line is not None else ""
        raise InvalidInputError(f"{line}column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(str(error)) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice in one object")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
