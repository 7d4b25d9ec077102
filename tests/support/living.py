"""The processes of the machine that came up since a moment. To look at older ones, of which other
tests and servers have many, takes longer than most of what is asked of them."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
START = 19  # of the words that follow the name in /proc/PID/stat
MOST = int(Path("/proc/sys/kernel/pid_max").read_text())
SURELY = MOST // 2  # so many numbers were given out, and each at most once
BACK = 500  # a test sets the numbers back a little, for one that comes twice


class Moment(NamedTuple):
    tick: int  # since the machine came up
    number: int  # the last one that a process or a thread was given
    given: int  # so many since the machine came up


_since: dict[str, Moment] = {}


def moment(place: str) -> Moment:
    """When this place was first asked for."""
    return _since.setdefault(place, _now())


def younger(since: Moment) -> Iterator[tuple[int, bytes]]:
    """The pid and the command of each but our own. One of the kernel's, or a dead one, has none."""
    now = _now()
    for name in filter(str.isdigit, os.listdir("/proc")):
        if not _may_be_younger(int(name), since, now) or int(name) == os.getpid():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_bytes()
            if int(stat.rpartition(b")")[2].split()[START]) < since.tick:
                continue
            command = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:  # it has just ended
            continue
        if command:
            yield int(name), command


def _now() -> Moment:
    tick = int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS) - 1
    given = Path("/proc/stat").read_bytes().partition(b"\nprocesses ")[2].split()[0]
    return Moment(tick, int(Path("/proc/loadavg").read_bytes().split()[-1]), int(given))


def _may_be_younger(pid: int, since: Moment, now: Moment) -> bool:
    """By its number alone, without a look at it: numbers are given out in turn, and begin anew
    after the last. What comes while we look is seen with the next look, as ever."""
    if now.given - since.given > SURELY:
        return True
    first = since.number - BACK
    return (pid - first) % MOST <= (now.number - first) % MOST
