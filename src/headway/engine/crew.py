"""The worker's side of function hosts: start them, hand out calls, take in what their journals say.

A host is a process under a supervisor of its own, with a folder that holds its evidence, its socket
and its journal. What counts is the journal, read to its end whenever the host hints that it has
grown, and once more when its supervisor is gone. docs/protocols.md, section 10.
"""

import json
import os
import selectors
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from headway.clock import Clock
from headway.core.facts import TaskView
from headway.core.model import Claim, Job, JobId
from headway.core.settle import Ending, Outcome
from headway.crashpoints import reach
from headway.engine.functionhost import (
    AppSettings,
    Call,
    FunctionHost,
    News,
    Told,
    in_words,
    left_open,
    listen,
    rebooted,
    remove_if_ended,
)
from headway.engine.settling import NeverRan, Verdict
from headway.functions.journal import NAME, Journal, Reader
from headway.home import Home
from headway.store.base import Progress
from headway.store.seam_calls import TakenCall
from headway.supervise import rescue
from headway.supervise.evidence import Evidence
from headway.supervise.evidence import Outcome as Written
from headway.supervise.folder import make_folder
from headway.supervise.launcher import Ack, Launcher

ONLY_CALLS = object()  # what happened is at most that calls have ended
STUCK = 0.5  # seconds without an end, after which a host gives back what it has not begun
LARGEST_JOURNAL = 64 << 20
WORST_BACKOFF = 60.0
SHORTEST_LIFE = 1.0


class Crew:
    """The function hosts of one worker, and those that an earlier worker left behind."""

    def __init__(
        self,
        home: Home,
        settings: AppSettings,
        launcher: Launcher,
        selector: selectors.BaseSelector,
        *,
        specify: Callable[[str, str, list[str]], dict[str, Any]],
        logs: Mapping[str, Any],
        boot_id: str,
        clock: Clock,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._home = home
        self._settings = settings
        self._launcher = launcher
        self._selector = selector
        self._specify = specify
        self._logs = dict(logs)
        self._boot_id = boot_id
        self._clock = clock
        self._say = say
        self._hosts: dict[str, FunctionHost] = {}
        self._grown: set[str] = set()  # hosts whose journals are to be read
        self._gone: set[str] = set()  # hosts whose supervisors are gone
        self._unseen: set[str] = set()  # hosts of a parent that died before it answered
        self._killed_for: dict[str, str] = {}  # host -> the token that it was ended for
        self._news = News([], [])  # of steps that were rolled back
        self._asked: dict[str, float] = {}  # calls that were asked to end, and when
        self._ended_folders: list[str] = []
        self._failures = 0
        self._next_start = 0.0
        self.progress: dict[JobId, Progress] = {}
        self.tasks: frozenset[str] = frozenset()
        self.trouble: str | None = "the modules are being imported" if settings.modules else None
        self.news = True  # tasks or trouble changed since someone asked, also since another worker

    @property
    def wanted(self) -> bool:
        return bool(self._settings.modules)

    def places(self) -> int:
        """How many more calls may be handed out now."""
        return sum(host.room(self._settings.threads) for host in self._hosts.values())

    @property
    def is_known(self) -> bool:
        """Whether some host has told which functions there are."""
        return self.wanted and self.trouble is None

    def view(self) -> TaskView | None:
        return TaskView(self.tasks, self.trouble) if self.wanted else None

    def running(self) -> int:
        return sum(host.held for host in self._hosts.values())

    # -- starting hosts ------------------------------------------------------------------------

    def keep_up(self, now: float) -> float | None:
        """See to it that there are as many hosts as wanted; seconds until the next try."""
        for host in self._hosts.values():
            self._mind(host, now)
        if not self.wanted:
            return None
        present = sum(not host.leaving for host in self._hosts.values())
        if present >= self._settings.processes:
            return None
        if now < self._next_start:
            return self._next_start - now
        for _ in range(self._settings.processes - present):
            self._start()
        return None

    def _mind(self, host: FunctionHost, now: float) -> None:
        """One that is slow gives back what waits inside it, one with a long journal leaves."""
        host.flush()
        waiting = host.held - len(host.begun)
        if waiting and host.begun and not host.asked_back and now - host.read_at > STUCK:
            host.asked_back = True
            host.window = 1
            self._send(host, {"give_back": True})
        if host.reader is not None and host.reader.offset > LARGEST_JOURNAL and not host.leaving:
            self._let_go(host)

    def _let_go(self, host: FunctionHost) -> None:
        """Have it finish what runs, and exit; another takes its place."""
        host.leaving = True
        self._send(host, {"leave": True})

    def drain(self) -> None:
        """The worker is about to leave: nothing more is begun."""
        for host in self._hosts.values():
            self._let_go(host)

    @property
    def needs_a_look(self) -> bool:
        """Whether something is due that no host hints at."""
        return bool(self._asked) or any(
            host.held and (host.connection is None or host.held > len(host.begun))
            for host in self._hosts.values()
        )

    def _start(self) -> None:
        token = os.urandom(16).hex()
        folder = os.path.join(self._home.hosts, token)
        make_folder(folder)
        host = FunctionHost(folder, token, self._clock.monotonic())
        settings = {
            "modules": list(self._settings.modules),
            "threads": self._settings.threads,
            "path": [os.path.dirname(self._home.path)],
            "jobs": self._home.jobs,
            "logs": self._logs,
        }
        with open(os.path.join(folder, "host.json"), "w", encoding="utf-8") as file:
            json.dump(settings, file)
        host.listener = listen(folder)
        Journal(os.path.join(folder, NAME)).close()
        host.reader = Reader(os.path.join(folder, NAME))
        argv = [sys.executable, "-m", "headway.functions.host", folder]
        Evidence(folder, token).prepare(self._specify(token, folder, argv))
        self._hosts[token] = host
        self._selector.register(host.listener, selectors.EVENT_READ, lambda: self._accept(host))
        self._launcher.launch(folder, token)
        reach("crew.launched")

    def _accept(self, host: FunctionHost) -> None:
        assert host.listener is not None  # noqa: S101
        connection, _ = host.listener.accept()
        self._selector.unregister(host.listener)
        host.listener.close()
        host.listener = None
        host.connection = connection
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._hear(host))

    def _hear(self, host: FunctionHost) -> object:
        """`ONLY_CALLS`, if there is nothing new but perhaps in its journal."""
        self._grown.add(host.token)
        self._flush(host)
        messages = host.hear()
        for message in messages:
            if "ready" in message:
                host.ready = True
                self._failures = 0
                self._learn(frozenset(message["ready"]), None)
            elif "broken" in message:
                host.broken = True
                self._learn(self.tasks, f"importing it failed: {message['broken']}")
            elif "lent" in message:
                host.lent = message["lent"]
            elif message.get("gone"):
                self._disconnect(host)
        return None if messages else ONLY_CALLS

    def _send(self, host: FunctionHost, message: Mapping[str, Any]) -> None:
        host.send(message)
        self._flush(host)

    def _flush(self, host: FunctionHost) -> None:
        """Wait for room as long as something is left to be sent."""
        left = host.flush()
        if host.connection is not None:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if left else 0)
            key = self._selector.get_key(host.connection)
            if key.events != events:
                self._selector.modify(host.connection, events, key.data)

    def _learn(self, tasks: frozenset[str], trouble: str | None) -> None:
        if (tasks, trouble) == (self.tasks, self.trouble):
            return
        if trouble is not None and trouble != self.trouble:
            self._say(f"{', '.join(self._settings.modules)}: {trouble}")
        self.tasks, self.trouble, self.news = tasks, trouble, True

    def _disconnect(self, host: FunctionHost) -> None:
        host.leaving = True
        if host.connection is not None:
            self._selector.unregister(host.connection)
            host.connection.close()
            host.connection = None

    def takes(self, ack: Ack) -> bool:
        """Whether the parent's answer is about one of these hosts."""
        host = self._hosts.get(ack.token)
        if host is None:
            return False
        if ack.pidfd is None:
            self._gone.add(host.token)
        else:
            self._watch(host, ack.pidfd)
        return True

    def knows(self, token: str) -> bool:
        return token in self._hosts

    def lost(self, token: str) -> None:
        """The parent died before it answered: the host may have been started, or never be."""
        self._unseen.add(token)
        self._look_for_unseen()

    def _look_for_unseen(self) -> None:
        for token in list(self._unseen):
            host = self._hosts.get(token)
            if host is None or host.pidfd is not None or self._seen(host):
                self._unseen.discard(token)

    def _seen(self, host: FunctionHost) -> bool:
        """Watch its supervisor, or make sure that there will be none."""
        evidence = Evidence(host.folder, host.token)
        try:
            lock = evidence.try_lock()
        except OSError:
            return False
        if lock is None:
            pidfd = rescue.watch_supervisor(evidence)
            if pidfd is not None:
                self._watch(host, pidfd)
            return pidfd is not None
        try:
            evidence.make_void()
        finally:
            os.close(lock)
        self._gone.add(host.token)
        return True

    def _watch(self, host: FunctionHost, pidfd: int) -> None:
        host.pidfd = pidfd

        def ended() -> None:
            self._selector.unregister(pidfd)
            os.close(pidfd)
            host.pidfd = None
            self._gone.add(host.token)

        self._selector.register(pidfd, selectors.EVENT_READ, ended)

    # -- handing out ---------------------------------------------------------------------------

    def choose(self) -> FunctionHost:
        """The host that is to make the next call: the one with the most room."""
        if len(self._hosts) == 1:
            return next(iter(self._hosts.values()))
        threads = self._settings.threads
        return max(self._hosts.values(), key=lambda each: each.room(threads))

    def shares(self, count: int) -> Iterator[tuple[FunctionHost, int]]:
        """Who is to make so many plain calls, and how many of them: as evenly as there is room."""
        threads = self._settings.threads
        rooms = sorted(
            ((host.room(threads), host.token) for host in self._hosts.values()), reverse=True
        )
        while rooms and count > 0:
            room, token = rooms.pop()
            share = min(room, -(-count // (len(rooms) + 1)))
            if share > 0:
                yield self._hosts[token], share
            count -= share

    def give_up(self, batches: Mapping[str, Sequence[TakenCall]]) -> None:
        """The transaction that took these calls for these hosts was rolled back."""
        for token, taken in batches.items():
            for each in taken:
                self._hosts[token].plain.pop(each.token, None)

    def unchoose(self, claims: Iterable[Claim]) -> None:
        """Their transaction was rolled back."""
        for claim in claims:
            host = self._hosts.get(claim.function_host or "")
            if host is not None:
                host.calls.pop(claim.token, None)

    def send(self, claims: Iterable[Claim]) -> None:
        """Hand out what was committed."""
        lines: dict[str, list[str]] = {}
        for claim in claims:
            token = claim.function_host or ""
            call = self._hosts[token].calls[claim.token]
            attempt = call.job.attempt if call.job is not None else 1
            order = f"r {claim.token} {claim.job_id} {attempt} {json.dumps(dict(call.params))}\n"
            lines.setdefault(token, []).append(order)
        self._order(lines)

    def send_calls(self, batches: Mapping[str, Sequence[TakenCall]]) -> None:
        """The same for plain calls, by their hosts."""
        self._order(
            {
                host: [
                    f"r {token} {job_id} {attempt} {params}\n"
                    for (job_id, attempt, _, _, params), token, _, _ in taken
                ]
                for host, taken in batches.items()
            }
        )

    def _order(self, lines: Mapping[str, list[str]]) -> None:
        for token, orders in lines.items():
            if orders:
                host = self._hosts[token]
                host.send_lines("".join(orders))
                self._flush(host)
        if any(lines.values()):
            reach("crew.sent")

    # -- taking in -----------------------------------------------------------------------------

    def take_in(self) -> News:
        """What the journals say that was not yet settled; and what the dead left open."""
        news, self._news = self._news, News([], [])
        self._look_for_unseen()
        for token in self._gone & set(self._hosts):
            self._hosts[token].make_sure_of_its_end()
        for token in self._grown | self._gone:
            host = self._hosts.get(token)
            if host is not None:
                self._read(host, news)
        self._grown.clear()
        for token in self._gone & set(self._hosts):
            news.told.extend(self._end(self._hosts[token]))
        self._gone.clear()
        return news

    def put_back(self, news: News) -> None:
        self._news.ends.extend(news.ends)
        self._news.told.extend(news.told)

    def look(self) -> None:
        """Read every journal: for hosts of an earlier worker nobody hints."""
        self._grown.update(token for token, host in self._hosts.items() if host.held)

    def _read(self, host: FunctionHost, news: News) -> None:
        """What its journal says since the last look."""
        read, progress = host.read(self._clock.monotonic())
        self.progress.update(progress)
        if self.progress:
            for job_id in (*(e.job_id for e in read.ends), *(t.claim.job_id for t in read.told)):
                self.progress.pop(job_id, None)
        news.ends.extend(read.ends)
        news.told.extend(read.told)

    def _end(self, host: FunctionHost) -> list[Told]:
        """Its supervisor is gone: what it was doing has failed, what it had not begun has not."""
        outcome = Evidence(host.folder, host.token).read_outcome()
        cause = self._killed_for.pop(host.token, None)
        if outcome is not None and outcome.reason == "timed_out":
            cause = outcome.error
        host.unfold()
        culprit = host.calls.get(cause or "")
        now = self._clock.now()
        told = []
        for token, call in host.calls.items():
            judgement = left_open(call, outcome, culprit, begun=token in host.begun, now=now)
            told.append(Told(call.claim, call.job, judgement))
        if not host.ready and not host.adopted:
            self._not_ready(host, outcome)
        elif self._clock.monotonic() - host.born < SHORTEST_LIFE:
            self._backoff()
        self._forget(host)
        self._ended_folders.append(host.folder)
        return told

    def _not_ready(self, host: FunctionHost, outcome: Written | None) -> None:
        self._backoff()
        if not host.broken:
            self._learn(self.tasks, f"its host died while it was imported: {in_words(outcome)}")

    def _backoff(self) -> None:
        self._failures += 1
        delay = min(WORST_BACKOFF, 0.5 * 2 ** min(self._failures, 8))
        self._next_start = self._clock.monotonic() + delay

    def _forget(self, host: FunctionHost) -> None:
        self._disconnect(host)
        if host.listener is not None:
            self._selector.unregister(host.listener)
            host.listener.close()
        if host.pidfd is not None:
            self._selector.unregister(host.pidfd)
            os.close(host.pidfd)
        if host.reader is not None:
            host.reader.close()
        del self._hosts[host.token]

    def committed(self) -> None:
        """What was told is in the store, and the folders of ended hosts are not needed any more."""
        self.news = False
        self.progress.clear()
        while self._ended_folders:
            shutil.rmtree(self._ended_folders.pop(), ignore_errors=True)

    # -- cancelling ----------------------------------------------------------------------------

    def cancel(self, ids: Iterable[JobId], now: float) -> None:
        """Ask the functions of these jobs to end; those that do not within their grace end with
        their host."""
        wanted = set(ids)
        for host in self._hosts.values():
            host.unfold()
            for token, call in host.calls.items():
                if call.claim.job_id not in wanted:
                    continue
                self._grown.add(host.token)  # whether it began is to be known by then
                if token not in self._asked:
                    self._asked[token] = now
                    self._send(host, {"cancel": token})
                grace = call.params.get("grace_seconds", 10.0)
                if token in host.begun and now - self._asked[token] >= grace:
                    self._kill(host, token)
        living = {token for host in self._hosts.values() for token in host.calls}
        self._asked = {token: at for token, at in self._asked.items() if token in living}

    def _kill(self, host: FunctionHost, token: str) -> None:
        if host.token in self._killed_for:
            return
        self._killed_for[host.token] = token
        host.leaving = True
        rescue.end_supervisor(Evidence(host.folder, host.token))

    # -- hosts of an earlier worker --------------------------------------------------------------

    def adopt(self, claims: Iterable[tuple[Claim, Job]]) -> News:
        """Take up the calls that an earlier worker handed out. Its hosts start nothing more, so
        what they have not begun is taken back; what they have is waited for."""
        told: list[Told] = []
        for known in self._hosts.values():
            if known.adopted and known.reader is not None:
                known.reader.rewind()  # the last time came to nothing
        for claim, job in claims:
            token = claim.function_host or ""
            host = self._hosts.get(token)
            if claim.boot_id != self._boot_id:
                told.append(rebooted(claim, job, self._clock.now()))
                continue
            if host is None:
                host = self._found(claim, token)
            if host is None:
                lost = Outcome(
                    Ending.EVIDENCE_MISSING, job.started_at or 0, error="journal is gone"
                )
                told.append(Told(claim, job, Verdict(lost, tree_gone=True)))
            else:
                host.calls[claim.token] = Call(claim, job, job.params)
        news = News([], told)
        for host in self._hosts.values():
            if host.leaving:
                self._take_back(host, news)
        return news

    def _found(self, claim: Claim, token: str) -> FunctionHost | None:
        host = FunctionHost(claim.folder, token, self._clock.monotonic())
        host.leaving = host.adopted = True
        try:
            host.reader = Reader(os.path.join(claim.folder, NAME))
        except OSError:
            return None
        self._hosts[token] = host
        evidence = Evidence(claim.folder, token)
        pidfd = rescue.watch_supervisor(evidence)
        if pidfd is not None:
            self._watch(host, pidfd)
        else:
            self._gone.add(token)
        return host

    def _take_back(self, host: FunctionHost, news: News) -> None:
        self._read(host, news)
        unbegun = [call for token, call in host.calls.items() if token not in host.begun]
        if not unbegun:
            return
        cause = "it had not begun when its worker ended"
        for token in host.take_back([call.claim.token for call in unbegun]):
            call = host.calls.pop(token)
            news.told.append(Told(call.claim, call.job, NeverRan(cause)))
        reach("crew.taken_back")

    def clear_away(self) -> None:
        """Remove the folders of hosts that ended long ago and left nothing to settle."""
        with suppress(FileNotFoundError), os.scandir(self._home.hosts) as entries:
            for entry in entries:
                if entry.name not in self._hosts:
                    remove_if_ended(entry.path, entry.name)

    def close(self) -> None:
        """Let go: hosts see that the worker is gone, finish what runs, and exit."""
        for host in list(self._hosts.values()):
            self._forget(host)
