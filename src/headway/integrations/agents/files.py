"""Runner files: those that are shipped, and `.headway/runners/NAME.toml`, which come first.

A file is checked as a whole. All that is wrong with it is reported together, with the file and the
key.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.toml_file import parse, read_content
from headway.base.trust import NEXT_STEP, is_trusted
from headway.base.units import parse_duration
from headway.integrations.agents.forms import (
    are_words,
    is_number_of_tokens,
    is_number_of_turns,
    is_sum,
    is_word,
    shortly,
)
from headway.integrations.agents.limits import GROUPS
from headway.integrations.agents.model import PARSERS, PROMPTS, Runner, Timeouts, Words

MOST_PROBLEMS = 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
PLACE = re.compile(r"\{([a-z_]+)\}")
PLACES = (
    *("prompt", "prompt_file", "model", "max_turns", "allowed_tools", "budget_usd", "access"),
    *("session_id", "argv"),
)
_BUILTIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "builtin")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GLOB = re.compile(r"[A-Za-z_][A-Za-z0-9_*?]*")
_PRICES = ("input", "cached", "output")
_USUAL_TIMEOUTS = {"first_output": "2m", "idle": "15m", "wall": "2h"}


def folders(home_path: str | None) -> tuple[str, ...]:
    """Where runner files are; the first that has a name counts. Those of a home count only if its
    folder is trusted: they say which program is started."""
    if home_path is None:
        return (_BUILTIN,)
    own = os.path.join(home_path, "runners")
    return (own, _BUILTIN) if os.path.isdir(own) and is_trusted(home_path) else (_BUILTIN,)


def is_builtin(path: str) -> bool:
    return os.path.dirname(path) == _BUILTIN


def runner_names(home_path: str | None) -> list[str]:
    """All runners that there are, shipped or not, sound or not."""
    found = set()
    for folder in folders(home_path):
        with suppress(OSError):
            found |= {
                each.removesuffix(".toml") for each in os.listdir(folder) if each.endswith(".toml")
            }
    return sorted(name for name in found if is_word(name))


def runner_path(name: str, home_path: str | None) -> str | None:
    """Where the file of a runner is, sound or not."""
    paths = (os.path.join(folder, f"{name}.toml") for folder in folders(home_path))
    return next((path for path in paths if os.path.lexists(path)), None)


def load_runner(name: str, home_path: str | None) -> Runner:
    """The runner of that name. Raises NotFoundError, or InvalidInputError with all problems."""
    if NAME.fullmatch(name):
        for folder in folders(home_path):
            path = os.path.join(folder, f"{name}.toml")
            content = read_content(path)
            if content is not None:
                return _read(name, path, content)
    elif name in runner_names(home_path):
        raise InvalidInputError(
            f"{runner_path(name, home_path)}: no job can say this name; "
            "use letters, digits, - and _, at most 64"
        )
    _refuse_untrusted(name, home_path)
    there = ", ".join(runner_names(home_path))
    raise NotFoundError(
        f"there is no runner {shortly(name)}; there are {there}; "
        ".headway/runners/NAME.toml adds one"
    )


def read_runner(path: str) -> Runner:
    """What a file says, whether it counts or not."""
    content = read_content(path)
    if content is None:
        raise NotFoundError(f"there is no {path}")
    return _read(os.path.basename(path).removesuffix(".toml"), path, content)


def _refuse_untrusted(name: str, home_path: str | None) -> None:
    """Say so, if there is a file of this name that does not count."""
    if home_path is None or not NAME.fullmatch(name):
        return
    path = os.path.join(home_path, "runners", f"{name}.toml")
    if os.path.lexists(path) and not is_trusted(home_path):
        raise NotFoundError(f"{path} describes the runner, but is not trusted; {NEXT_STEP}")


def _read(name: str, path: str, content: bytes) -> Runner:
    document = parse(path, content)
    try:
        problems = list(_problems(document))
    except ValueError as error:  # as a number of thousands of digits, which cannot be shown
        raise InvalidInputError(f"{path}: {error}") from None
    if problems:
        rest = len(problems) - MOST_PROBLEMS
        more = [f"and {rest} more"] if rest > 0 else []
        raise InvalidInputError(f"{path}: " + "; ".join([*problems[:MOST_PROBLEMS], *more]))
    return _made(name, path, document)


def _made(name: str, path: str, document: Mapping[str, Any]) -> Runner:
    times = {**_USUAL_TIMEOUTS, **document.get("timeouts", {})}
    return Runner(
        name=name,
        path=path,
        argv=tuple(each if isinstance(each, str) else tuple(each) for each in document["argv"]),
        prompt=document["prompt"],
        parser=document["parser"],
        timeouts=Timeouts(*(_time(times[each]) for each in Timeouts._fields)),
        env_pass=tuple(document.get("env_pass", ())),
        env=document.get("env", {}),
        access=document.get("access", {}),
        defaults=document.get("defaults", {}),
        denials=document.get("denials", "fail"),
        version_command=tuple(document.get("version_command", ())),
        tested=document.get("tested", ""),
        prices=document.get("prices", {}),
        limits=tuple(each["match"] for each in document.get("limits", ())),
        auth=document.get("auth", "park"),
    )


def _time(text: str) -> int | None:
    return None if text == "none" else parse_duration(text)


# -- checking ----------------------------------------------------------------------------------


def _problems(document: Mapping[str, Any]) -> Iterator[str]:
    for key in document:
        if key not in _CHECKS:
            yield f"unknown key {shortly(key)} ({_there_are(key, _CHECKS)})"
    for key in ("argv", "prompt", "parser"):
        if key not in document:
            yield f"{key} is missing"
    for key, check in _CHECKS.items():
        if key in document:
            yield from (f"{key} {problem}" for problem in check(document[key]))
    yield from _places_that_do_not_fit(document)


def _argv(value: Any) -> Iterator[str]:
    if not isinstance(value, list) or not value:
        yield "is no list of words"
        return
    for each in value:
        if not _is_words(each):
            yield f"has {shortly(each)}, which is no text and no list of texts"
            continue
        for word in [each] if isinstance(each, str) else each:
            for name in PLACE.findall(word):
                if name not in PLACES:
                    yield f"has {{{_plain(name)}}} ({_there_are(name, PLACES)})"
            if "{argv}" in word and word != "{argv}":
                yield f"has {shortly(word)}; {{argv}} stands alone"
    first = value[0]
    if not isinstance(first, str) or not first:
        yield "begins with no program"
    elif PLACE.search(first) and first != "{argv}":
        yield f"begins with {shortly(first)}; the program is a plain word"


def _is_words(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value
    return isinstance(value, list) and bool(value) and all(_is_text(each) for each in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _plain(key: str) -> str:
    """A key as it is, if that can be shown."""
    return key if is_word(key) and len(key) <= 60 else shortly(key)


def _there_are(wrong: Any, words: Iterable[str]) -> str:
    """The word that was perhaps meant, else all that there are."""
    from difflib import get_close_matches  # only after a mistake

    known = list(words)
    meant = get_close_matches(wrong[:60], known, 1, 0.75) if isinstance(wrong, str) else []
    return f"did you mean {meant[0]}?" if meant else f"there are {', '.join(known)}"


def _one_of(*words: str) -> Callable[[Any], Iterator[str]]:
    def check(value: Any) -> Iterator[str]:
        if value not in words:
            yield f"is {shortly(value)} ({_there_are(value, words)})"

    return check


def _env_pass(value: Any) -> Iterator[str]:
    if not isinstance(value, list):
        yield "is no list of names"
        return
    for each in value:
        if not isinstance(each, str) or not _GLOB.fullmatch(each):
            yield f"has {shortly(each)}; give names of variables, with * and ? if need be"


def _env(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "is no table"
        return
    for name, text in value.items():
        if not _VARIABLE.fullmatch(name) or not _is_text(text):
            yield f"has {_plain(name)} = {shortly(text)}; give a name and a text"


def _access(value: Any) -> Iterator[str]:
    if not isinstance(value, dict) or set(value) != {"read", "write"}:
        yield "has not just read and write"
    elif not all(_is_text(each) for each in value.values()):
        yield "has a value that is no text"


def _defaults(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "is no table"
        return
    forms: Mapping[str, Callable[[Any], bool]] = {
        "model": is_word,
        "max_turns": is_number_of_turns,
        "allowed_tools": are_words,
        "budget_usd": is_sum,
        "max_tokens": is_number_of_tokens,
    }
    for key, given in value.items():
        if key not in forms:
            yield f"has {_plain(key)} ({_there_are(key, forms)})"
        elif not forms[key](given):
            yield f"has {key} = {shortly(given)}, which cannot be"


def _timeouts(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "is no table"
        return
    for key, text in value.items():
        if key not in _USUAL_TIMEOUTS:
            yield f"has {_plain(key)} ({_there_are(key, _USUAL_TIMEOUTS)})"
            continue
        try:
            time = _time(text) if isinstance(text, str) and len(text) <= 60 else 0
        except InvalidInputError as error:
            yield f"has {key}: {error}"
            continue
        if time == 0:
            yield f'has {key} = {shortly(text)}; give a duration like "15m", or "none"'


def _prices(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "is no table"
        return
    for model, row in value.items():
        known = isinstance(row, dict) and {"input", "output"} <= set(row) <= set(_PRICES)
        if not known or not all(_is_price(each) for each in row.values()):
            wanted = "input, output and perhaps cached, in dollars for a million tokens"
            yield f"has {_plain(model)} = {shortly(row)}; give {wanted}"


def _limits(value: Any) -> Iterator[str]:
    if not isinstance(value, list):
        yield "is no list of tables"
        return
    for each in value:
        if not isinstance(each, dict) or set(each) != {"match"} or not _is_text(each["match"]):
            yield f"has {shortly(each)}; give {{ match = REGEX }}"
            continue
        try:
            groups = re.compile(each["match"]).groupindex
        except (re.error, RecursionError, OverflowError) as error:
            yield f"has match {shortly(each['match'])}: {error}"
            continue
        for name in groups:
            if name not in GROUPS:
                yield f"has the group {_plain(name)} ({_there_are(name, GROUPS)})"


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6


def _command(value: Any) -> Iterator[str]:
    if not isinstance(value, list) or not value or not all(map(_is_text, value)):
        yield "is no list of words"


def _text(value: Any) -> Iterator[str]:
    if not _is_text(value):
        yield "is no text"


_CHECKS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "argv": _argv,
    "prompt": _one_of(*PROMPTS),
    "parser": _one_of(*PARSERS),
    "env_pass": _env_pass,
    "env": _env,
    "access": _access,
    "defaults": _defaults,
    "denials": _one_of("fail", "allow"),
    "version_command": _command,
    "tested": _text,
    "timeouts": _timeouts,
    "prices": _prices,
    "limits": _limits,
    "auth": _one_of("park", "fail"),
}
_PROMPT_PLACE = {"file": "prompt_file", "argument": "prompt"}


def _places_that_do_not_fit(document: Mapping[str, Any]) -> Iterator[str]:
    """Where the prompt goes must be said once: by `prompt`, and by its place in argv."""
    argv = document.get("argv")
    if not isinstance(argv, list) or not all(_is_words(each) for each in argv):
        return
    used = {name for each in argv for word in _flat(each) for name in PLACE.findall(word)}
    way = document.get("prompt")
    wanted = _PROMPT_PLACE.get(way) if isinstance(way, str) else None
    if wanted is not None and wanted not in used:
        yield f"prompt is {shortly(way)}, but argv has no {{{wanted}}}"
    for other in sorted({"prompt", "prompt_file"} & used - {wanted}):
        yield f"prompt is {shortly(way)}, but argv has {{{other}}}"
    if ("access" in used) != ("access" in document):
        yield "access and its place {access} in argv belong together"


def _flat(words: Words) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)
