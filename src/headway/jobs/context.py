"""In whose name, where and by which store a verb acts: what every verb is handed.

A `Context` holds what a process would otherwise be asked for: its folder, its environment, its
umask, who is logged in. So a server can act for others. `headway.Client` is for users: it
has the same verbs, and hands them its context.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from headway.base.clock import Clock, SystemClock
from headway.base.environment import MINIMAL_PATH, present_umask
from headway.base.errors import NotFoundError, StoreError
from headway.base.home import Home, find_home, refuse_no_home, refuse_root, refuse_unsafe
from headway.base.store_trust import refuse_untrusted_store
from headway.base.worker_lock import WAKE, worker_is_there
from headway.core.model import FUNCTIONS
from headway.jobs.settings import Config, choose_store, load_config
from headway.jobs.wake import WorkerWakeUp
from headway.store import open_nothing, open_store

if TYPE_CHECKING:
    from headway.base.host import Host
    from headway.store.store import Store

THIS_PROCESS = 0  # as a pid: whichever process asks

# Wakes a worker with this word, or starts one; says whether one is there or coming up.
Wake = Callable[[bytes | None], bool]


class _Changes:
    """Counts the commits of others; a store tells of each only once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.Lock()
        self._number = 0

    def count(self) -> int:
        with self._turn:
            self._number += self._store.changed()
            return self._number


class Context:
    """One home and its store, for one caller."""

    def __init__(
        self,
        home: Home,
        config: Config,
        store: Store,
        clock: Clock,
        *,
        environ: Mapping[str, str],
        actor: str,
        kind: str = "person",  # as in core.principals
        folder: str | None = None,
        umask: int | None = None,
        pid: int | None = THIS_PROCESS,
        changes: _Changes | None = None,
        host: Host | None = None,
        wake: Wake | None = None,
        reading: bool = False,
        made_home: bool = False,
    ) -> None:
        """Without `folder` or `umask` those of the process count, as they are at each verb.
        `made_home`: the home was made to open this."""
        if home.store_url is not None:
            from headway.base.store_folders import settle_in

            settle_in(home, store)
        self.home = home
        self.config = config
        self.store = store
        self.clock = clock
        self.environ = environ
        self.actor = actor
        self.kind = kind
        self.made_home = made_home
        self.no_check: str | None = None  # the caller's option for a program that is not there yet
        self._folder = folder
        self._umask = umask
        self._pid = pid
        self._reading = reading
        self._began_empty = reading and not (home.store_url or os.path.exists(home.database))
        self._wake_up = WorkerWakeUp(home)
        self._wake = wake
        self._changes = _Changes(store) if changes is None else changes
        self._lent = changes is not None
        if host is not None:
            self.host = host

    def acting(
        self,
        actor: str,
        kind: str,
        *,
        umask: int,
        folder: str | None = None,
        environ: Mapping[str, str] | None = None,
        pid: int | None = None,
    ) -> Context:
        """The same home and store for another caller, of whom this process knows all this; perhaps
        also by which process of this machine it asks. Who has no folder is in the one that holds
        the home, and who has no environment has that of schedules: `[env]` and a minimal PATH."""
        usual = {"PATH": MINIMAL_PATH, **self.config.env}
        return Context(
            self.home,
            self.config,
            self.store,
            self.clock,
            environ=usual if environ is None else environ,
            actor=actor,
            kind=kind,
            folder=os.path.dirname(self.home.path) if folder is None else folder,
            umask=umask,
            pid=pid,
            changes=self._changes,
            host=self.host,
            wake=self.wake,
        )

    def close(self) -> None:
        """One that acts for another leaves the store open for those that it shares it with."""
        self._wake_up.close()
        if not self._lent:
            self.store.close()

    # -- the caller ----------------------------------------------------------------------------

    @property
    def folder(self) -> str:
        """Where the caller is; what is relative is meant from there."""
        return os.getcwd() if self._folder is None else self._folder

    @property
    def umask(self) -> int:
        return present_umask() if self._umask is None else self._umask

    @property
    def pid(self) -> int | None:
        """The process that asks; None: it is not known, as on another machine."""
        return os.getpid() if self._pid == THIS_PROCESS else self._pid

    # -- the host and its worker ---------------------------------------------------------------

    @cached_property
    def host(self) -> Host:
        from headway.base.host import known_host, this_host

        return known_host(self.home) if self._reading else this_host(self.home)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that a worker of this home serves: the common one, its host's own, and that
        of functions, if it has any."""
        from headway.base.host import queues_of

        return (*queues_of(self.store.shared, self.host), FUNCTIONS)

    def wake(self, word: bytes | None = WAKE) -> bool:
        """Make sure that a worker sees what was committed; False if none is there. Without a word
        one that is there is left alone."""
        if self._wake is not None:
            return self._wake(word)
        return self._wake_up.send(self.environ, word, start=self.config["worker.autostart"])

    def worker_is_there(self) -> bool:
        return worker_is_there(self.home.worker_lock)

    # -- the store -----------------------------------------------------------------------------

    def now(self) -> int:
        """By the clock that what is stored goes by."""
        return self.store.present()

    def changes(self) -> int:
        """A number that is another one whenever somebody else committed since it was last asked
        for: all that wait with one store, for whomever, see every change."""
        return self._changes.count()

    def was_empty_and_is_not(self) -> bool:
        """Whether a reader that began before there was a store must open it again to see it."""
        return self._began_empty and os.path.exists(self.home.database)


def open_context(
    *,
    home: str | None = None,
    store_url: str | None = None,
    create: bool = False,
    reading: bool = False,
    environ: Mapping[str, str] | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
) -> Context:
    """Open the home that applies here; with `create`, make one where none is. With `reading`
    nothing is made at all: a home without a store is an empty one."""
    environ = os.environ if environ is None else environ
    clock = clock or SystemClock()
    found, exists = find_home(home, environ, os.getcwd())
    if not exists and not create:
        where = f"at {found.path}" if home or environ.get("HEADWAY_HOME") else "here or above"
        raise NotFoundError(
            f"there is no .headway/ {where}; `headway init` makes one, and so does the first submit"
        )
    if exists:
        refuse_unsafe(found.path)
        if not create or os.listdir(found.path):
            refuse_no_home(found.path)
    elif not (home or environ.get("HEADWAY_HOME")):
        refuse_root(found.path)
    config = load_config(found, environ)
    url = choose_store(config, store_url, environ)
    found = Home(found.path, url)
    if exists:
        refuse_untrusted_store(found, environ)
    if not reading and (create or not os.path.isdir(found.run)):
        from headway.base.new_home import make_home

        make_home(found, environ)
    if not url:
        _refuse_lost_store(found)
    return Context(
        found,
        config,
        _opened(found, url, config, clock, create=create, reading=reading),
        clock,
        environ=environ,
        actor=actor or environ.get("HEADWAY_ACTOR") or login(environ),
        reading=reading,
        made_home=not exists,
    )


def context_without_home(path: str, actor: str | None = None) -> Context:
    """What is to be seen where no home is: an empty one, and nothing is made."""
    clock = SystemClock()
    actor = actor or login(os.environ)
    store = open_nothing(clock)
    home = Home(path)
    return Context(home, Config(), store, clock, environ=os.environ, actor=actor, reading=True)


def _opened(
    home: Home, url: str, config: Config, clock: Clock, *, create: bool, reading: bool
) -> Store:
    if reading and not url and not os.path.lexists(home.database):
        return open_nothing(clock)
    return open_store(
        url or f"sqlite://{home.database}",
        clock,
        create=create or not url,
        unsafe_fs=config["store.unsafe_fs"],
        poll_only=config["store.poll_only"],
        reading=reading,
    )


def _refuse_lost_store(home: Home) -> None:
    """A new store would give the numbers of old jobs to new ones, in the same folders."""
    if os.path.exists(home.database) or not os.path.isdir(home.jobs):
        return
    if os.listdir(home.jobs):
        raise StoreError(
            f"{home.database} is gone, but {home.jobs} has the files of its jobs. "
            "Restore a backup, or move that folder away to begin anew"
        )


def login(environ: Mapping[str, str]) -> str:
    """Who asks: the job that runs this, or the person logged in."""
    if "HEADWAY_JOB_ID" in environ:
        return environ["HEADWAY_JOB_ID"]
    if environ.get("USER"):
        return environ["USER"]
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
