"""Whether the host has enough to do already: a bound on its load, and on its memory. Pure."""

from typing import NamedTuple

from headway.core import wait_words as say
from headway.core.model import Wait, WaitKind


class Measured(NamedTuple):
    """The load per processor, and the bytes of memory that could be had; None: not to be known."""

    load: float | None
    memory: int | None


def strained(measured: Measured, *, most_load: float, least_memory: int) -> Wait | None:
    """Why nothing is to be started now; a bound of 0 is none."""
    if most_load and measured.load is not None and measured.load > most_load:
        return _strained(say.high_load(measured.load, most_load))
    if least_memory and measured.memory is not None and measured.memory < least_memory:
        return _strained(say.little_memory(measured.memory, least_memory))
    return None


def _strained(words: say.Words) -> Wait:
    return Wait(WaitKind.PRESSURE, words.detail, for_capacity=True, remedy=words.remedy)
