"""Function hosts as processes: start them, receive their messages, see them end.

A host is a process under a supervisor of its own, with a folder that holds its evidence, its socket
and its journal. docs/protocols.md, section 10.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from headway.base.clock import Clock
from headway.base.crashpoints import reach
from headway.base.home import Home
from headway.base.watchlist import Watchlist
from headway.core.facts import IMPORTING, NO_HOST
from headway.functions.host.journal import NAME, Journal, Reader
from headway.functions.pool.host import (
    SETTINGS,
    AppSettings,
    FunctionHost,
    listen,
)
from headway.supervise import rescue
from headway.supervise.evidence import Evidence, UnsafeFolder
from headway.supervise.folder import make_folder
from headway.supervise.launcher import Ack, Launcher

UNDISTURBED = object()  # what happened is at most that calls have ended
STUCK = 0.5  # seconds without an end, after which a host gives back what it has not begun
LARGEST_JOURNAL = 64 << 20
WORST_BACKOFF = 60.0


class HostProcesses:
    """The processes that make calls for one worker, and those that an earlier one left behind."""

    def __init__(
        self,
        home: Home,
        settings: AppSettings,
        launcher: Launcher,
        watchlist: Watchlist,
        *,
        specify: Callable[[str, str, list[str]], dict[str, Any]],
        logs: Mapping[str, Any],
        clock: Clock,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._home = home
        self.settings = settings
        self._launcher = launcher
        self._watchlist = watchlist
        self._specify = specify
        self._logs = dict(logs)
        self._clock = clock
        self._say = say
        self.hosts: dict[str, FunctionHost] = {}
        self.grown: set[str] = set()  # hosts whose journals are to be read
        self.gone: set[str] = set()  # hosts whose supervisors are gone
        self._unseen: set[str] = set()  # hosts of a parent that died before it answered
        self._failures = 0
        self._next_start = 0.0
        self.tasks: frozenset[str] = frozenset()
        self.trouble: str | None = IMPORTING if settings.modules else None
        self.news = True  # tasks or trouble changed since they were last written

    @property
    def wanted(self) -> bool:
        return bool(self.settings.modules)

    def keep_up(self, now: float) -> float | None:
        """See to it that there are as many hosts as wanted; seconds until the next try."""
        for host in self.hosts.values():
            self._mind(host, now)
        if not self.wanted:
            return None
        present = sum(not host.leaving for host in self.hosts.values())
        if present >= self.settings.processes:
            return None
        if now < self._next_start:
            return self._next_start - now
        for _ in range(self.settings.processes - present):
            try:
                self._start()
            except OSError as error:  # a full disk must not keep the worker from its other work
                self._cannot_start(error)
                return self._next_start - now
        return None

    def _mind(self, host: FunctionHost, now: float) -> None:
        """One that is slow gives back what waits inside it, one with a long journal leaves."""
        host.flush()
        waiting = host.held - len(host.begun)
        if waiting and host.asked_back is None and now - host.read_at > STUCK:
            self.grown.add(host.token)  # hosts do not hint at a start
            if host.begun:
                host.asked_back = now
                host.window = 1
                self.ask(host, {"give_back": True})
        if host.reader is not None and host.reader.offset > LARGEST_JOURNAL and not host.leaving:
            self._let_go(host)

    def _let_go(self, host: FunctionHost) -> None:
        """Have it finish what runs, and exit; another takes its place."""
        host.leaving = host.dismissed = True
        self.ask(host, {"leave": True})

    def drain(self) -> None:
        """The worker is about to leave: nothing more is begun."""
        for host in self.hosts.values():
            self._let_go(host)

    def _start(self) -> None:
        token = os.urandom(16).hex()
        folder = os.path.join(self._home.hosts, token)
        make_folder(folder)
        host = FunctionHost(folder, token, self._clock.monotonic())
        try:
            self._prepare(host)
        except OSError:
            host.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.hosts[token] = host
        host.watch(self._watchlist, "listener", lambda: self._accept(host))
        self._launcher.launch(folder, token)
        reach("pool.launched")

    def _prepare(self, host: FunctionHost) -> None:
        """Make what it will find in its folder."""
        settings = {
            "modules": list(self.settings.modules),
            "threads": self.settings.threads,
            "path": [os.path.dirname(self._home.path)],
            "jobs": self._home.jobs,
            "logs": self._logs,
        }
        path = os.path.join(host.folder, SETTINGS)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(settings, file)
        host.listener = listen(host.folder)
        Journal(os.path.join(host.folder, NAME)).close()
        host.reader = Reader(os.path.join(host.folder, NAME))
        argv = [sys.executable, "-m", "headway.functions.host.process", host.folder]
        Evidence(host.folder, host.token).prepare(self._specify(host.token, host.folder, argv))

    def _cannot_start(self, error: OSError) -> None:
        self.backoff()
        if not any(host.ready and not host.leaving for host in self.hosts.values()):
            self._learn(self.tasks, f"{NO_HOST}: {error.strerror or error}")

    def _accept(self, host: FunctionHost) -> None:
        assert host.listener is not None  # noqa: S101
        host.connection, _ = host.listener.accept()
        host.drop("listener")
        host.watch(self._watchlist, "connection", lambda: self.receive(host))

    def receive(self, host: FunctionHost) -> object:
        """Read its messages. `UNDISTURBED`, if there is nothing new but perhaps in its journal."""
        self.grown.add(host.token)
        host.deaf = False
        self.flush(host)
        messages = host.receive()
        for message in messages:
            if "ready" in message:
                host.ready, host.tasks = True, frozenset(message["ready"])
                self._failures = 0
                self._learn(self._known_to_all(), None)
            elif "broken" in message:
                host.broken = True
                self._learn(self.tasks, f"importing {self._modules} failed: {message['broken']}")
            elif "lent" in message:
                host.lent = message["lent"]
            elif message.get("gone"):
                self._disconnect(host)
        return None if messages else UNDISTURBED

    def ask(self, host: FunctionHost, message: Mapping[str, Any]) -> None:
        host.send(message)
        self.flush(host)

    def flush(self, host: FunctionHost) -> None:
        """Wait for room as long as something is left to be sent."""
        host.want_room(host.flush())

    def _known_to_all(self) -> frozenset[str]:
        """The functions of every host that makes calls: after a change of the code some hosts may
        have the old one, and a call may be handed to any."""
        makers = [host for host in self.hosts.values() if host.ready and not host.leaving]
        return frozenset.intersection(*(host.tasks for host in makers)) if makers else self.tasks

    @property
    def _modules(self) -> str:
        return ", ".join(self.settings.modules)

    def _learn(self, tasks: frozenset[str], trouble: str | None) -> None:
        if (tasks, trouble) == (self.tasks, self.trouble):
            return
        if trouble is not None and trouble != self.trouble:
            self._say(trouble)
        self.tasks, self.trouble, self.news = tasks, trouble, True

    def _disconnect(self, host: FunctionHost) -> None:
        host.leaving = True
        host.drop("connection")

    def takes(self, ack: Ack) -> bool:
        """Whether the parent's answer is about one of these hosts."""
        host = self.hosts.get(ack.token)
        if host is None:
            return False
        if ack.pidfd is None:
            self.gone.add(host.token)
        else:
            self.watch(host, ack.pidfd)
        return True

    def knows(self, token: str) -> bool:
        return token in self.hosts

    def lost(self, token: str) -> None:
        """The parent died before it answered: the host may have been started, or never be."""
        self._unseen.add(token)
        self.look_for_unseen()

    def look_for_unseen(self) -> None:
        for token in list(self._unseen):
            host = self.hosts.get(token)
            if host is None or host.pidfd is not None or self._seen(host):
                self._unseen.discard(token)

    def _seen(self, host: FunctionHost) -> bool:
        """Watch its supervisor, or make sure that there will be none."""
        evidence = Evidence(host.folder, host.token)
        try:
            lock = evidence.try_lock()
        except (FileNotFoundError, UnsafeFolder):
            self.gone.add(host.token)  # what carries its token is ended
            return True
        except OSError:
            return False
        if lock is None:
            pidfd = rescue.watch_supervisor(evidence)
            if pidfd is not None:
                self.watch(host, pidfd)
            return pidfd is not None
        try:
            evidence.make_void()
        except OSError:  # no room to say so; the next step tries again
            return False
        finally:
            os.close(lock)
        self.gone.add(host.token)
        return True

    def watch(self, host: FunctionHost, pidfd: int) -> None:
        if host.pidfd is not None:
            os.close(pidfd)
            return
        host.pidfd = pidfd

        def ended() -> None:
            self.gone.add(host.token)
            host.drop("pidfd")

        host.watch(self._watchlist, "pidfd", ended)

    def not_ready(self, host: FunctionHost, words: str) -> None:
        """It has ended, and was not known to be ready."""
        self._receive_last(host)
        self.backoff()
        if not (host.broken or host.ready or host.dismissed):
            self._learn(self.tasks, f"its host died while it imported {self._modules}: {words}")

    def _receive_last(self, host: FunctionHost) -> None:
        """What it wrote just before it ended, of which nothing may have been read yet."""
        if host.listener is not None:
            host.listener.setblocking(False)
            with suppress(BlockingIOError):
                self._accept(host)
        if host.connection is not None:
            self.receive(host)

    def backoff(self) -> None:
        self._failures += 1
        delay = min(WORST_BACKOFF, 0.5 * 2 ** min(self._failures, 8))
        self._next_start = self._clock.monotonic() + delay

    def forget(self, host: FunctionHost) -> None:
        host.leaving = True
        host.close()
        del self.hosts[host.token]
