"""The load and the free memory of the host, as its kernel reports them."""

import os

from headway.core.pressure import Measured


def measure() -> Measured:
    """The load of the last minute for each processor that we may use, and the available memory."""
    return Measured(_load(), _memory())


def _load() -> float | None:
    try:
        return os.getloadavg()[0] / len(os.sched_getaffinity(0))
    except OSError:
        return None


def _memory() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None
