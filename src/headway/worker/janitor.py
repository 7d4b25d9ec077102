"""Housekeeping that no job waits for: old jobs, events, groups and records of slots, what is known
of entries that are long gone, stale environments, the worker's log, the WAL."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from headway.base.clock import SECOND, Clock
from headway.base.crashpoints import reach
from headway.base.home import Home
from headway.jobs.inputs import remove_abandoned
from headway.jobs.retention import (
    Collector,
    forget_gone_entries,
    forget_old_firings,
    forget_old_starts,
    forget_old_traces,
)
from headway.store.store import Store
from headway.supervise.leftover_groups import GroupsLeft

EVERY = 3600.0
AT_ONCE = 20  # ended jobs looked at, or removed, before others have their turn; files take longest
TRACES_AT_ONCE = 500
SCHEDULES_AT_ONCE = 200
SOON = 0.05
KEEP_ENVIRONMENTS = 7 * 86_400 * SECOND
LOG_LIMIT = 1 << 20
ASIDE = ".aside"


def put_back_environments(home: Home) -> None:
    """Return what a janitor took away and died over: a submit may have counted on it."""
    with os.scandir(home.environments) as entries:
        aside = [entry.path for entry in entries if entry.name.endswith(ASIDE)]
    for path in aside:
        with suppress(FileExistsError, FileNotFoundError):
            os.link(path, path.removesuffix(ASIDE))
            reach("janitor.restored")
        with suppress(FileNotFoundError):
            os.unlink(path)


class Janitor:
    """One round an hour. Jobs are removed a few at a time, so that dispatch is not held up."""

    def __init__(
        self,
        store: Store,
        home: Home,
        clock: Clock,
        *,
        host_id: str,
        actor: str,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._store = store
        self._home = home
        self._clock = clock
        self._host_id = host_id
        self._actor = actor
        self._say = say
        self._next = clock.monotonic()
        self._round: Collector | None = None
        self._cleaned: int | None = None  # the schedules up to this one; None: there is no more

    def step(self) -> float:
        """Clean if it is time; returns the seconds until the next time."""
        now = self._clock.monotonic()
        if now >= self._next:
            self._round = Collector(
                self._store,
                self._home,
                self._host_id,
                actor=self._actor,
                hurried=True,
                trouble=self._say,
            )
            self.drop_stale_environments()
            self._cut_worker_log()
            GroupsLeft(self._home).remove()
            remove_abandoned(self._home, self._clock.now() / SECOND)
            forget_old_starts(self._store)
            forget_gone_entries(self._store, self._host_id)
            self._cleaned = 0
            self._store.tidy()
            self._next = now + EVERY  # else it is begun once more
        if self._round is not None:
            if self._round.step(AT_ONCE) is not None:
                return SOON
            if forget_old_traces(self._store, TRACES_AT_ONCE):
                return SOON
            self._round = None
        if self._cleaned is not None:
            self._cleaned = forget_old_firings(self._store, self._cleaned, SCHEDULES_AT_ONCE)
            if self._cleaned is not None:
                return SOON
        return self._next - now

    def drop_stale_environments(self) -> list[str]:
        """Remove environments that no active chain needs and none has used for a week.

        None in a home that serves several stores: this worker knows the jobs of one.
        """
        if self._home.serves_several_stores():
            return []
        since = self._clock.now() - KEEP_ENVIRONMENTS
        old = []
        with os.scandir(self._home.environments) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime < since / SECOND:
                        old.append(entry.name)
        if not old:
            return []
        with self._store.read() as tx:
            needed = tx.jobs.env_digests_in_use(since)
        return [name for name in old if name not in needed and self._drop(name, since)]

    def _drop(self, name: str, since: int) -> bool:
        """Move it away, then check: a submit that has just used it gets it back."""
        path = os.path.join(self._home.environments, name)
        aside = f"{path}{ASIDE}"
        with suppress(FileNotFoundError):
            os.rename(path, aside)
            reach("janitor.moved_aside")
            used = os.stat(aside).st_mtime >= since / SECOND
            if used:
                with suppress(FileExistsError):
                    os.link(aside, path)
                    reach("janitor.put_back")
            os.unlink(aside)
            reach("janitor.dropped")
            return not used
        return False

    def _cut_worker_log(self) -> None:
        """A background worker's messages go to one bounded file."""
        with suppress(OSError):
            if os.stat(self._home.worker_log).st_size > LOG_LIMIT:
                os.truncate(self._home.worker_log, 0)
                sys.stderr.write("the log was cut at its limit\n")
