"""Targets: named places that slung work goes to, each with its recipe. Pure.

A recipe is a command whose words may have placeholders: `{subject}`, `{title}`, `{target}`,
`{args}` and variables that are given when something is slung. They are filled in word by word, so
that no value ever becomes two words; `{{name}}` stands for `{name}` itself. A word that is a script
for a shell takes only what can be no code: the target, and a subject of plain characters. Instead
of a command a recipe may be a workflow, with values for its parameters that have placeholders, too.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headway.base.shells import scripts
from headway.core.model import NOTHING

KNOWN = ("subject", "title", "target", "args")
_PLAIN = re.compile(r"[A-Za-z0-9._/:@-]*")
_PLACEHOLDER = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}|\{([a-z][a-z0-9_]*)\}")


class Target(NamedTuple):
    """Durations are microseconds; locks are as people write them."""

    name: str
    argv: tuple[str, ...] = ()
    prefix: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = NOTHING
    resources: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    timeout: int | None = None
    retries: int = 0
    helper: tuple[str, ...] = ()  # a command that is run after a pass has started work for it
    workflow: str | None = None  # in the place of a command
    params: Mapping[str, str] = NOTHING  # of the workflow
    created_at: int = 0
    created_by: str = ""


def placeholders(words: Iterable[str]) -> frozenset[str]:
    """The names that these words ask for."""
    return frozenset(
        match[2] for word in words for match in _PLACEHOLDER.finditer(word) if match[2]
    )


def filled(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """The words with every placeholder replaced; all names must be there."""

    def value(match: re.Match[str]) -> str:
        return f"{{{match[1]}}}" if match[1] else values[match[2]]

    return tuple(_PLACEHOLDER.sub(value, word) for word in words)


def run_as_code(words: Sequence[str], values: Mapping[str, str]) -> tuple[str, str] | None:
    """A placeholder whose value a shell would run, and the shell. The search is repeated with the
    values filled in, because one of them may be the shell, or its option."""
    places = scripts(words) | scripts(filled(words, values))
    for place, shell in sorted(places.items()):
        for name in sorted(placeholders([words[place]])):
            if could_be_code(name, values):
                return name, shell
    return None


def could_be_code(name: str, values: Mapping[str, str]) -> bool:
    """Whether the value of a placeholder may be more than plain characters, as somebody else has
    written it."""
    if name == "subject":
        return not _PLAIN.fullmatch(values[name])
    return name != "target"


def target_for(subject: str, targets: Iterable[Target]) -> Target | None:
    """The target whose prefix the subject has, the longest if there are several."""
    fitting = [each for each in targets if each.prefix and subject.startswith(each.prefix)]
    return max(fitting, key=lambda each: len(each.prefix or ""), default=None)


def fits(subject: str, target: Target, targets: Iterable[Target]) -> bool:
    """Whether the subject belongs to this target; one without a prefix takes any."""
    return target.prefix is None or target_for(subject, targets) == target
