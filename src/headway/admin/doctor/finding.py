"""What a check is given and what it gives back, and how it looks at files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from headway.base.clock import Clock, SystemClock
from headway.base.home import Home
from headway.jobs.settings import Config
from headway.store.inspect import Inspection

GREEN, YELLOW, RED = "green", "yellow", "red"
RESTORE = "headway restore FILE, with the last good backup"


class Finding(NamedTuple):
    check: str
    level: str
    detail: str
    next_step: str | None = None


class CheckedHome(NamedTuple):
    """Where the checks of the home look."""

    home: Home
    config: Config
    url: str
    clock: Clock

    @property
    def path(self) -> str | None:
        """The database file, if it is one."""
        return self.url.removeprefix("sqlite://") if self.url.startswith("sqlite://") else None

    @property
    def beside(self) -> str:
        """What files of a restore are named after."""
        return self.path or self.home.database


class OpenedHome(NamedTuple):
    """The same place, with its store open to be looked at."""

    home: Home
    url: str
    path: str | None
    clock: Clock
    store: Inspection


HostCheck = Callable[[], Iterable[Finding]]
HomeCheck = Callable[[CheckedHome], Iterable[Finding]]
StoreCheck = Callable[[OpenedHome], Iterable[Finding]]


def entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def job_ids(home: Home) -> Iterator[int]:
    return (int(each) for each in entries(home.jobs) if each.isdigit())


def changed_at(path: str) -> int:
    """Microseconds UTC; what is gone by now was changed just now."""
    try:
        return os.stat(path, follow_symlinks=False).st_mtime_ns // 1000
    except FileNotFoundError:
        return SystemClock().now()


def size_of(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def folder_size(folder: str) -> int:
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(base, name), follow_symlinks=False).st_size
    return total


def counted_files(paths: list[str]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"


def named(paths: list[str]) -> str:
    names = ", ".join(os.path.basename(each) for each in paths[:3])
    return names + (" ..." if len(paths) > 3 else "")
