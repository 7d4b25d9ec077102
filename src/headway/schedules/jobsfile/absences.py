"""What the entries of a good jobs file name and is not there: programs, functions, conditions.

Such an entry is held back when it is due, and no other. `jobsfile check`, `jobsfile list` and the
doctor say it before. Programs are looked for, not run. Modules are imported, in a process of their
own, and only if the home is trusted.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.base.environment import MINIMAL_PATH
from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.trust import is_trusted
from headway.jobs.request import find_program
from headway.jobs.settings import Config
from headway.schedules.jobsfile.job_of_entry import PATH_REMEDY, check_workflow, spec_of
from headway.schedules.jobsfile.model import (
    AGENT,
    COMMAND,
    NO_AGENTS,
    OPEN_PRS,
    SCRIPT,
    WORKFLOW,
    Entry,
)
from headway.schedules.jobsfile.problems import Problem, Problems, brief
from headway.schedules.jobsfile.questions import COMMAND as COMMAND_CONDITION
from headway.schedules.jobsfile.questions import FILE as FILE_CONDITION
from headway.schedules.jobsfile.questions import Asking
from headway.schedules.jobsfile.reader import read_jobs_file
from headway.schedules.jobsfile.yaml import read_yaml

_OPERATORS = "|&;<>`"
_OF_A_SHELL = frozenset(
    {"cd", "export", "source", ".", "set", "unset", "alias", "eval", "umask", "ulimit", "if"}
    | {"for", "while", "until", "case", "{", "(", "!"}
)


def absences(content: bytes, home: Home | None, config: Config | None) -> list[Problem]:
    """All of them, by line, of a file that can be read. Without a home only what the file itself
    shows: a line for a shell."""
    entries = [entry for entry in read_jobs_file(content) if entry.enabled]
    lines = _Lines(content)
    found = list(_shell_lines(entries, lines))
    if home is not None and config is not None:
        needs_shell = {problem.key for problem in found}
        trusted = is_trusted(home.path)
        # A runner of a home that is not trusted does not count, and what would is not known.
        known = [each for each in entries if trusted or each.type != AGENT]
        found += _programs(known, lines, home, config, needs_shell)
        if trusted:
            found += _python(entries, lines, home, config)
    return sorted(found, key=lambda problem: problem.line)


class _Lines:
    """Where the keys of entries stand, and what is written there."""

    def __init__(self, content: bytes) -> None:
        root = read_yaml(content, Problems())
        self._jobs: Mapping[str, Any] = root.value["jobs"].node.value if root is not None else {}

    def problem(self, entry: Entry, key: str, text: str) -> Problem:
        pair = self._jobs[entry.name].node.value.get(key)
        line = pair.line if pair is not None else entry.line
        return Problem(line, f"jobs.{brief(entry.name)}.{key}", text)

    def written(self, entry: Entry, key: str) -> Any:
        return self._jobs[entry.name].node.value[key].node.value


# -- lines for a shell ---------------------------------------------------------------------------


def _shell_lines(entries: Sequence[Entry], lines: _Lines) -> Iterator[Problem]:
    """No shell sees the words of a command; a text that was written for one does something else.
    Words that stand in a list were told apart on purpose."""
    for entry in entries:
        text = lines.written(entry, "run") if entry.type == COMMAND else None
        if isinstance(text, str) and (sign := sign_of_shell(text)) is not None:
            advice = f"run: [sh, -c, {json.dumps(brief(text))}]"  # as YAML quotes it, too
            yield lines.problem(
                entry, "run", f"{sign} is for a shell, and none reads this line; write {advice}"
            )


def sign_of_shell(text: str) -> str | None:
    """What in a line only a shell understands: outside of quotes an operator, a variable or a
    home; inside of double ones a variable. Patterns as `*.py` may be meant for the program."""
    quote, begins = "", True
    place = 0
    while place < len(text):
        char = text[place]
        if char == "\\" and quote != "'":
            place += 2
            begins = False
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _OPERATORS:
            return char * 2 if text[place + 1 : place + 2] == char else char
        elif char == "~" and begins:
            return char
        if quote != "'" and char == "$" and _names_a_value(text[place + 1 :]):
            return text[place:].split()[0][:20]
        if quote == '"' and char == "`":
            return char
        begins = char.isspace()
        place += 1
    first = text.split()[0]
    name, equals, _ = first.partition("=")
    return first if first in _OF_A_SHELL or (equals and name.isidentifier()) else None


def _names_a_value(rest: str) -> bool:
    return rest[:1].isalpha() or rest[:1] in ("_", "{", "(")


# -- programs ------------------------------------------------------------------------------------


def _programs(
    entries: Sequence[Entry], lines: _Lines, home: Home, config: Config, known: set[str]
) -> Iterator[Problem]:
    for entry in entries:
        if entry.type == WORKFLOW:
            try:
                check_workflow(entry, home, config)
            except (InvalidInputError, NotFoundError) as error:
                yield lines.problem(entry, "workflow", str(error))
        elif entry.type != SCRIPT and f"jobs.{brief(entry.name)}.run" not in known:
            try:
                spec_of(entry, home, config, None)
            except InvalidInputError as error:
                key = "runner" if entry.type == AGENT else "run"
                yield lines.problem(entry, key, str(error))
        for condition in entry.conditions:
            argv = _command_of(condition, config)
            if argv and not find_program(argv, os.path.dirname(home.path), _path(config)):
                words = f"program {argv[0]!r} was not found, or may not be executed"
                text = f"condition {condition}: {words} ({PATH_REMEDY})"
                yield lines.problem(entry, "conditions", text)


def _command_of(condition: str, config: Config) -> Sequence[str]:
    """The words of a condition that is a command, else none."""
    if condition.startswith(COMMAND_CONDITION):
        return shlex.split(condition.removeprefix(COMMAND_CONDITION))
    return config.conditions.get(condition, ())


def _path(config: Config) -> str:
    return config.env.get("PATH", MINIMAL_PATH)


# -- Python --------------------------------------------------------------------------------------


def _python(
    entries: Sequence[Entry], lines: _Lines, home: Home, config: Config
) -> Iterator[Problem]:
    """Functions and conditions of the user's modules."""
    runs = [each for each in entries if each.type == SCRIPT and each.run is not None]
    named = [
        (entry, condition)
        for entry in entries
        for condition in entry.conditions
        if condition not in (NO_AGENTS, OPEN_PRS)
        and condition not in config.conditions
        and not condition.startswith((COMMAND_CONDITION, FILE_CONDITION))
    ]
    questions = [f"run:{each.run}" for each in runs] + [f"known:{name}" for _, name in named]
    if not questions:
        return
    answers = Asking(home, config).look_for(list(dict.fromkeys(questions)))
    for entry in runs:
        reason = answers[f"run:{entry.run}"]
        if reason is not None:
            yield lines.problem(entry, "run", reason)
    for entry, name in named:
        reason = answers[f"known:{name}"]
        if reason is not None:
            yield lines.problem(entry, "conditions", reason)
