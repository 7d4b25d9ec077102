"""The causes for which a job may be tried again. Pure."""

import re
from collections.abc import Iterable

from headway.base.errors import InvalidInputError

WORDS = ("signal", "timeout", "unknown")
OF_AGENTS = ("transient", "auth", "limit", "permission", "stalled", "task")
HOST = "host"  # trouble of it, such as a full disk, which what Headway itself does can tell
# Of what Headway itself does for workflows, by default. Its process may be killed at any moment: it
# finds what it did before.
OF_OPERATIONS = ("unknown", HOST, "signal")
_EXIT_CODE = re.compile(r"[1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5]")
_CLASS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def check_causes(words: Iterable[str]) -> None:
    """Of a command: how its process ended."""
    for word in words:
        if not _says_how_it_ended(word):
            raise InvalidInputError(
                f"--retry-on {word!r} is not an exit code or one of {', '.join(WORDS)}"
            )


def check_causes_of_agent(words: Iterable[str]) -> None:
    """Of an agent also why it failed, in the words of `headway.integrations.agents`."""
    for word in words:
        if not _says_how_it_ended(word) and word not in OF_AGENTS:
            raise InvalidInputError(
                f"--retry-on {word!r} is not an exit code or one of "
                f"{', '.join((*WORDS, *OF_AGENTS))}"
            )


def check_causes_of_call(words: Iterable[str]) -> None:
    """Of a function also the class of what it raised, by name or as module.Class."""
    for word in words:
        if not _says_how_it_ended(word) and not _CLASS.fullmatch(word):
            raise InvalidInputError(
                f"retry_on {word!r} is not an exit code, a class of exceptions or one of "
                f"{', '.join(WORDS)}"
            )


def _says_how_it_ended(word: str) -> bool:
    return word in WORDS or _EXIT_CODE.fullmatch(word) is not None
