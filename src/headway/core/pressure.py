"""Whether the host has enough to do already: a bound on its load, and on its memory. Pure."""

from typing import NamedTuple

from headway.core.model import Wait, WaitKind


class Measured(NamedTuple):
    """The load per processor, and the bytes of memory that could be had; None: not to be known."""

    load: float | None
    memory: int | None


def strained(measured: Measured, *, most_load: float, least_memory: int) -> Wait | None:
    """Why nothing is to be started now; a bound of 0 is none."""
    if most_load and measured.load is not None and measured.load > most_load:
        return Wait(
            WaitKind.PRESSURE,
            f"the load per processor is {measured.load:.2f}, above {most_load:g}",
            at_door=True,
            remedy="wait for it to fall, or raise scheduler.pressure.load",
        )
    if least_memory and measured.memory is not None and measured.memory < least_memory:
        mebi = 1 << 20
        return Wait(
            WaitKind.PRESSURE,
            f"{measured.memory / mebi:.0f} MiB of memory are available, less than "
            f"{least_memory / mebi:.0f} MiB",
            at_door=True,
            remedy="wait for memory to be freed, or lower scheduler.pressure.memory",
        )
    return None
