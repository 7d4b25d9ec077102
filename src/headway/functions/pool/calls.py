"""The host pool: hand out function calls, and take in what the journals of the hosts say.

A host's journal decides. It is read to its end whenever the host hints that it has grown, and once
more when its supervisor is gone. docs/protocols.md, section 10.
"""

import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from headway.base.clock import Clock
from headway.base.crashpoints import reach
from headway.base.home import Home
from headway.core.artifacts import paths_of_files
from headway.core.facts import TaskView
from headway.core.model import Claim, Job, JobId
from headway.core.settle import Ending, NeverRan, Outcome, Verdict
from headway.functions.host.journal import NAME, Reader
from headway.functions.pool import processes
from headway.functions.pool.host import (
    CallEnd,
    ClaimedCall,
    FunctionHost,
    HeldCall,
    News,
    close_to_others,
    left_open,
    rebooted,
    remove_if_ended,
    steps_in,
)
from headway.functions.pool.processes import HostProcesses
from headway.store.records import Progress, RecordedStep
from headway.supervise import rescue
from headway.supervise.evidence import Evidence, UnsafeFolder
from headway.supervise.folder import Folder, remove_tree
from headway.supervise.leftover_groups import GroupsLeft

SHORTEST_LIFE = 1.0


class _Lost(NamedTuple):
    """A host of an earlier worker whose journal is gone, or not to be believed."""

    cause: str
    tree_gone: bool

    @classmethod
    def of(cls, evidence: Evidence, error: OSError) -> "_Lost":
        """It is ended: what it still does could not be taken in."""
        cause = "journal is gone" if isinstance(error, FileNotFoundError) else str(error)
        return cls(cause, rescue.end_claim(evidence) == "gone")


def _ordered(call: HeldCall) -> dict[str, Any]:
    """The params of a call, and the files that its success is to make."""
    products = paths_of_files(call.job.produces) if call.job is not None else []
    return {**call.params, "products": products} if products else dict(call.params)


class HostPool:
    """The calls that the function hosts of one worker hold."""

    def __init__(self, processes: HostProcesses, home: Home, clock: Clock, boot_id: str) -> None:
        self.processes = processes
        self._home = home
        self._groups = GroupsLeft(home)
        self._clock = clock
        self._boot_id = boot_id
        self._killed_for: dict[str, str] = {}  # host -> the token that it was ended for
        self._news = News([], [])  # of steps that were rolled back
        self._asked: dict[str, float] = {}  # calls that were asked to end, and when
        self._ended_folders: list[str] = []
        self.progress: dict[JobId, Progress] = {}
        self.steps: list[RecordedStep] = []  # that are not in the store yet
        self._keeping = 0  # so many of them are in this step's transaction

    @property
    def _hosts(self) -> dict[str, FunctionHost]:
        return self.processes.hosts

    def places(self) -> int:
        """How many more calls may be handed out now."""
        threads = self.processes.settings.threads
        return sum(host.room(threads) for host in self._hosts.values())

    @property
    def window(self) -> int:
        """How many calls the hosts may hold, by how long the last ones took."""
        return sum(host.window for host in self._hosts.values())

    @property
    def tasks(self) -> frozenset[str]:
        return self.processes.tasks

    @property
    def is_known(self) -> bool:
        """Whether some host has said which functions there are."""
        return self.processes.wanted and self.processes.trouble is None

    def view(self) -> TaskView | None:
        processes = self.processes
        return TaskView(processes.tasks, processes.trouble) if processes.wanted else None

    def running(self) -> int:
        return sum(host.held for host in self._hosts.values())

    @property
    def answers_soon(self) -> bool:
        """Whether some host is busy, and calls take it no time."""
        return any(host.answers_soon for host in self._hosts.values())

    @property
    def needs_a_look(self) -> bool:
        """Whether a journal has to be read without a hint."""
        return bool(self._asked) or any(
            host.held and (host.connection is None or host.held > len(host.begun))
            for host in self._hosts.values()
        )

    # -- handing out ---------------------------------------------------------------------------

    def choose(self) -> FunctionHost:
        """The host that is to make the next call: the one with the most room."""
        if len(self._hosts) == 1:
            return next(iter(self._hosts.values()))
        threads = self.processes.settings.threads
        return max(self._hosts.values(), key=lambda each: each.room(threads))

    def shares(self, count: int) -> Iterator[tuple[FunctionHost, int]]:
        """Divide so many calls among the hosts, as evenly as there is room."""
        threads = self.processes.settings.threads
        rooms = sorted(
            ((host.room(threads), host.token) for host in self._hosts.values()), reverse=True
        )
        while rooms and count > 0:
            room, token = rooms.pop()
            share = min(room, -(-count // (len(rooms) + 1)))
            if share > 0:
                yield self._hosts[token], share
            count -= share

    def drop(self, host: str, tokens: Iterable[str]) -> None:
        """The transaction that gave this host these calls was rolled back."""
        if host in self._hosts:
            for token in tokens:
                self._hosts[host].calls.pop(token, None)

    def unchoose(self, claims: Iterable[Claim]) -> None:
        """The transaction of these claims was rolled back."""
        for claim in claims:
            self.drop(claim.function_host or "", [claim.token])

    def send(self, claims: Iterable[Claim]) -> None:
        """Hand out what was committed."""
        lines: dict[str, list[str]] = {}
        for claim in claims:
            token = claim.function_host or ""
            call = self._hosts[token].calls[claim.token]
            attempt = call.job.attempt if call.job is not None else 1
            order = f"r {claim.token} {claim.job_id} {attempt} {json.dumps(_ordered(call))}\n"
            lines.setdefault(token, []).append(order)
        self.order(lines)

    def order(self, lines: Mapping[str, list[str]]) -> None:
        """Send these lines to their hosts."""
        for token, orders in lines.items():
            host = self._hosts.get(token)  # if it has ended by now, they were taken back
            if orders and host is not None:
                host.send_lines("".join(orders))
                self.processes.flush(host)
        if any(lines.values()):
            reach("pool.sent")

    # -- taking in -----------------------------------------------------------------------------

    def take_in(self) -> News:
        """What the journals say that was not yet settled; and what the dead left open."""
        news, self._news = self._news, News([], [])
        try:
            self._take_in(news)
        except BaseException:
            self.put_back(news)
            raise
        return news

    def _take_in(self, news: News) -> None:
        self.processes.look_for_unseen()
        for token in self.processes.gone & set(self._hosts):
            self._hosts[token].make_sure_of_its_end()
        for token in self.processes.grown | self.processes.gone:
            host = self._hosts.get(token)
            if host is not None:
                self._read(host, news)
        self.processes.grown.clear()
        self._take_back_from_the_deaf(news)
        for token in self.processes.gone & set(self._hosts):
            news.ended.extend(self._end(self._hosts[token]))
        self.processes.gone.clear()

    def _take_back_from_the_deaf(self, news: News) -> None:
        """Take back what hosts were asked for in vain: they get no calls until they answer."""
        for host in self._hosts.values():
            if host.asked_back is None or host.held == len(host.begun):
                continue
            now = self._clock.monotonic()
            if now - host.asked_back > processes.STUCK:
                host.deaf, host.asked_back = True, now
                self._take_back(host, news, "its host did not come to it")

    def read_ahead(self) -> None:
        """What the journals say by now, for the next time that it is asked for."""
        for host in self._hosts.values():
            if host.held:
                self._read(host, self._news)

    def begun(self) -> set[JobId]:
        """The jobs whose functions run, as the journals say now."""
        found = set()
        for host in self._hosts.values():
            if host.held:
                self._read(host, self._news)
            found |= {call.job_id for token, call in host.calls.items() if token in host.begun}
        return found

    @property
    def knows_more(self) -> bool:
        """Whether something was read that is still to be taken in."""
        return bool(self._news.returned or self._news.ended)

    def put_back(self, news: News) -> None:
        self._keeping = 0
        self._news.returned.extend(news.returned)
        self._news.ended.extend(news.ended)

    def look(self) -> None:
        """Have every journal read: hosts of an earlier worker do not hint."""
        self.processes.grown.update(token for token, host in self._hosts.items() if host.held)

    def _read(self, host: FunctionHost, news: News) -> None:
        """Read what was added to its journal."""
        returned, ended = len(news.returned), len(news.ended)
        host.read_into(news, self.progress, self._clock.monotonic())
        if host.steps:
            self.steps += host.steps
            host.steps.clear()
        if self.progress:
            for each in news.returned[returned:]:
                self.progress.pop(each.call.job_id, None)
            for other in news.ended[ended:]:
                self.progress.pop(other.claim.job_id, None)

    def _end(self, host: FunctionHost) -> list[CallEnd]:
        """Its supervisor is gone: what it was doing has failed, what it had not begun has not."""
        outcome, words = host.how_it_ended()
        cause = self._killed_for.pop(host.token, None)
        if outcome is not None and outcome.reason == "timed_out":
            cause = outcome.error
        host.settle_in_full()
        culprit = host.calls.get(cause or "")
        now = self._clock.now()
        ends = []
        for token, call in host.calls.items():
            begun = token in host.begun
            judgement = left_open(call, outcome, culprit, begun=begun, now=now, words=words)
            ends.append(CallEnd(call.claim, call.job, judgement))
        if not host.ready and not host.adopted:
            self.processes.not_ready(host, words)
        elif self._clock.monotonic() - host.born < SHORTEST_LIFE:
            self.processes.backoff()
        self.processes.forget(host)
        self._ended_folders.append(host.folder)
        return ends

    def steps_to_keep(self) -> list[RecordedStep]:
        """The steps that this step's transaction writes, with the ends that were read with them."""
        self._keeping = len(self.steps)
        return list(self.steps)

    def committed(self) -> None:
        """The ends are in the store, and the folders of ended hosts are not needed any more."""
        del self.steps[: self._keeping]
        self._keeping = 0
        self.processes.news = False
        self.progress.clear()
        while self._ended_folders:
            folder = self._ended_folders.pop()
            self._groups.note(folder, os.path.basename(folder))
            with suppress(OSError):
                remove_tree(folder)

    # -- cancelling ----------------------------------------------------------------------------

    def cancel(self, ids: Iterable[JobId], now: float) -> None:
        """Ask the functions of these jobs to end; those that do not within their grace end with
        their host."""
        wanted = set(ids)
        for host in self._hosts.values():
            host.settle_in_full()
            unbegun = []
            for token, call in host.calls.items():
                if call.job_id not in wanted:
                    continue
                self.processes.grown.add(host.token)  # whether it began is to be known by then
                if token not in self._asked:
                    self._asked[token] = now
                    self.processes.ask(host, {"cancel": token})
                if now - self._asked[token] < call.params.get("grace_seconds", 10.0):
                    continue
                if token in host.begun:
                    self._kill(host, token)
                else:
                    unbegun.append(token)
            if unbegun:
                self._take_back(host, self._news, "it was cancelled", unbegun)
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
        ends: list[CallEnd] = []
        lost: dict[str, _Lost] = {}
        for known in self._hosts.values():
            if known.adopted and known.reader is not None:
                known.reader.rewind()  # the last time came to nothing
        for claim, job in claims:
            token = claim.function_host or ""
            host = self._hosts.get(token)
            if claim.boot_id != self._boot_id:
                ends.append(rebooted(claim, job, self._clock.now()))
                self.steps += steps_in(claim, job)
                continue
            if host is None and token not in lost:
                try:
                    host = self._found(claim, token)
                except (FileNotFoundError, UnsafeFolder) as error:
                    lost[token] = _Lost.of(Evidence(claim.folder, token), error)
            if host is None:
                outcome = Outcome(
                    Ending.EVIDENCE_MISSING, self._clock.now(), error=lost[token].cause
                )
                ends.append(CallEnd(claim, job, Verdict(outcome, tree_gone=lost[token].tree_gone)))
            else:
                host.calls[claim.token] = ClaimedCall(claim, job, job.params)
        news = News([], ends)
        for host in self._hosts.values():
            if host.leaving:
                self._take_back(host, news, "it had not begun when its worker ended")
        return news

    def _found(self, claim: Claim, token: str) -> FunctionHost:
        host = FunctionHost(claim.folder, token, self._clock.monotonic())
        host.leaving = host.adopted = True
        with Folder(claim.folder) as folder:
            os.close(folder.open(NAME, os.O_RDONLY))  # it is no link, and may be opened
            host.reader = Reader(f"/proc/self/fd/{folder.fd}/{NAME}")
        self._hosts[token] = host
        evidence = Evidence(claim.folder, token)
        pidfd = rescue.watch_supervisor(evidence)
        if pidfd is not None:
            self.processes.watch(host, pidfd)
        else:
            self.processes.gone.add(token)
        return host

    def _take_back(
        self, host: FunctionHost, news: News, cause: str, only: Container[str] | None = None
    ) -> None:
        """What it has not begun, and now never will."""
        self._read(host, news)
        if host.held == len(host.begun):
            return
        host.settle_in_full()
        unbegun = [
            token
            for token in host.calls
            if token not in host.begun and (only is None or token in only)
        ]
        for token in host.take_back(unbegun):
            call = host.calls.pop(token)
            news.ended.append(CallEnd(call.claim, call.job, NeverRan(cause)))
        reach("pool.taken_back")

    def clear_away(self) -> None:
        """Remove the folders of hosts that ended long ago and left nothing to settle."""
        with suppress(FileNotFoundError), os.scandir(self._home.hosts) as entries:
            for entry in entries:
                if entry.name not in self._hosts:
                    remove_if_ended(entry.path, entry.name)
                    close_to_others(entry.path)

    def close(self) -> None:
        """Let go: hosts see that the worker is gone, finish what runs, and exit."""
        for host in list(self._hosts.values()):
            self.processes.forget(host)
