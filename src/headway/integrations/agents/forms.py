"""The forms that words about an agent may have, in a request as in a runner's file. Pure."""

from typing import Any

MOST_TURNS = 100_000
MOST_TOKENS = 1_000_000_000_000
MOST_TOOLS = 200
_LONGEST_SHOWN = 60


def shortly(value: Any) -> str:
    """A value as it was written, for the message that refuses it: one that nests too deeply or is
    too large a number to be written is refused as well."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return "a value that nobody could read"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def is_word(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= 200
        and value.isprintable()
        and not value.startswith("-")
        and value == value.strip()
    )


def are_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) <= MOST_TOOLS and all(map(is_word, value))


def is_number_of_turns(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TURNS


def is_number_of_tokens(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TOKENS


def is_sum(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6
