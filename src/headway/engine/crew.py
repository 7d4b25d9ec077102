"""The worker's side of function calls: hand them out, and take in what the journals say.

What counts is a host's journal, read to its end whenever the host hints that it has grown, and once
more when its supervisor is gone. docs/protocols.md, section 10.
"""

import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway.core.model import Claim, Job, JobId
from headway.core.settle import Ending, Outcome
from headway.crashpoints import reach
from headway.engine import hosting
from headway.engine.functionhost import (
    Call,
    FunctionHost,
    News,
    Told,
    close_to_others,
    left_open,
    order_of,
    rebooted,
    remove_if_ended,
)
from headway.engine.hosting import Hosting
from headway.engine.settling import NeverRan, Verdict
from headway.functions.journal import NAME, Reader
from headway.store.base import Progress
from headway.store.seam_calls import TakenCall
from headway.supervise import rescue
from headway.supervise.evidence import Evidence, UnsafeFolder
from headway.supervise.folder import Folder, remove_tree

SHORTEST_LIFE = 1.0


class _Lost(NamedTuple):
    """A host of an earlier worker whose journal is gone, or not to be believed."""

    cause: str
    tree_gone: bool

    @classmethod
    def of(cls, evidence: Evidence, error: OSError) -> "_Lost":
        """What it still does, nobody could take in: it is ended."""
        cause = "journal is gone" if isinstance(error, FileNotFoundError) else str(error)
        return cls(cause, rescue.end_claim(evidence) == "gone")


class Crew(Hosting):
    """The function hosts of one worker, by what they are doing."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._killed_for: dict[str, str] = {}  # host -> the token that it was ended for
        self._news = News([], [])  # of steps that were rolled back
        self._asked: dict[str, float] = {}  # calls that were asked to end, and when
        self._ended_folders: list[str] = []
        self.progress: dict[JobId, Progress] = {}

    @property
    def needs_a_look(self) -> bool:
        """Whether something is due that no host hints at."""
        return bool(self._asked) or any(
            host.held and (host.connection is None or host.held > len(host.begun))
            for host in self._hosts.values()
        )

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

    def runner(self) -> FunctionHost | None:
        """The host that makes the only call there is, if that is a plain one and over at once."""
        busy = [host for host in self._hosts.values() if host.held]
        if len(busy) != 1 or self.news or self.progress or self.knows_more:
            return None
        (host,) = busy
        if host.leaving or host.deaf or host.calls or len(host.plain) > 1:
            return None
        return host if host.answers_soon else None

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
                host: [order_of(call, token) for call, token, _, _ in taken]
                for host, taken in batches.items()
            }
        )

    def _order(self, lines: Mapping[str, list[str]]) -> None:
        for token, orders in lines.items():
            host = self._hosts.get(token)  # if it has ended by now, they were taken back
            if orders and host is not None:
                host.send_lines("".join(orders))
                self.flush(host)
        if any(lines.values()):
            reach("crew.sent")

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
        self._look_for_unseen()
        for token in self._gone & set(self._hosts):
            self._hosts[token].make_sure_of_its_end()
        for token in self._grown | self._gone:
            host = self._hosts.get(token)
            if host is not None:
                self._read(host, news)
        self._grown.clear()
        self._take_back_from_the_deaf(news)
        for token in self._gone & set(self._hosts):
            news.told.extend(self._end(self._hosts[token]))
        self._gone.clear()

    def _take_back_from_the_deaf(self, news: News) -> None:
        """What hosts were told to give back and did not: they get nothing more until they speak."""
        for host in self._hosts.values():
            if host.asked_back is None or host.held == len(host.begun):
                continue
            now = self._clock.monotonic()
            if now - host.asked_back > hosting.STUCK:
                host.deaf, host.asked_back = True, now
                self._take_back(host, news, "its host did not come to it")

    def read_ahead(self) -> None:
        """What the journals say by now, for the next time that it is asked for."""
        for host in self._hosts.values():
            if host.plain:
                self._read(host, self._news)

    def begun(self) -> set[JobId]:
        """The jobs whose functions run, as the journals say now."""
        found = set()
        for host in self._hosts.values():
            if host.held:
                self._read(host, self._news)
            found |= {each.claim.job_id for t, each in host.calls.items() if t in host.begun}
            found |= {each.call.job_id for t, each in host.plain.items() if t in host.begun}
        return found

    @property
    def knows_more(self) -> bool:
        """Whether something was read that is still to be taken in."""
        return bool(self._news.ends or self._news.told)

    def put_back(self, news: News) -> None:
        self._news.ends.extend(news.ends)
        self._news.told.extend(news.told)

    def look(self) -> None:
        """Read every journal: for hosts of an earlier worker nobody hints."""
        self._grown.update(token for token, host in self._hosts.items() if host.held)

    def _read(self, host: FunctionHost, news: News) -> None:
        """What its journal says since the last look."""
        ends, told = len(news.ends), len(news.told)
        host.read_into(news, self.progress, self._clock.monotonic())
        if self.progress:
            for end in news.ends[ends:]:
                self.progress.pop(end.job_id, None)
            for other in news.told[told:]:
                self.progress.pop(other.claim.job_id, None)

    def _end(self, host: FunctionHost) -> list[Told]:
        """Its supervisor is gone: what it was doing has failed, what it had not begun has not."""
        outcome, words = host.how_it_ended()
        cause = self._killed_for.pop(host.token, None)
        if outcome is not None and outcome.reason == "timed_out":
            cause = outcome.error
        host.unfold()
        culprit = host.calls.get(cause or "")
        now = self._clock.now()
        told = []
        for token, call in host.calls.items():
            begun = token in host.begun
            judgement = left_open(call, outcome, culprit, begun=begun, now=now, words=words)
            told.append(Told(call.claim, call.job, judgement))
        if not host.ready and not host.adopted:
            self._not_ready(host, words)
        elif self._clock.monotonic() - host.born < SHORTEST_LIFE:
            self._backoff()
        self._forget(host)
        self._ended_folders.append(host.folder)
        return told

    def committed(self) -> None:
        """What was told is in the store, and the folders of ended hosts are not needed any more."""
        self.news = False
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
            host.unfold()
            unheard = []
            for token, call in host.calls.items():
                if call.claim.job_id not in wanted:
                    continue
                self._grown.add(host.token)  # whether it began is to be known by then
                if token not in self._asked:
                    self._asked[token] = now
                    self._send(host, {"cancel": token})
                if now - self._asked[token] < call.params.get("grace_seconds", 10.0):
                    continue
                if token in host.begun:
                    self._kill(host, token)
                else:
                    unheard.append(token)
            if unheard:
                self._take_back(host, self._news, "it was cancelled", unheard)
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
        lost: dict[str, _Lost] = {}
        for known in self._hosts.values():
            if known.adopted and known.reader is not None:
                known.reader.rewind()  # the last time came to nothing
        for claim, job in claims:
            token = claim.function_host or ""
            host = self._hosts.get(token)
            if claim.boot_id != self._boot_id:
                told.append(rebooted(claim, job, self._clock.now()))
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
                told.append(Told(claim, job, Verdict(outcome, tree_gone=lost[token].tree_gone)))
            else:
                host.calls[claim.token] = Call(claim, job, job.params)
        news = News([], told)
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
            self._watch(host, pidfd)
        else:
            self._gone.add(token)
        return host

    def _take_back(
        self, host: FunctionHost, news: News, cause: str, only: Container[str] | None = None
    ) -> None:
        """What it has not begun, and now never will."""
        self._read(host, news)
        if host.held == len(host.begun):
            return
        host.unfold()
        unbegun = [
            token
            for token in host.calls
            if token not in host.begun and (only is None or token in only)
        ]
        for token in host.take_back(unbegun):
            call = host.calls.pop(token)
            news.told.append(Told(call.claim, call.job, NeverRan(cause)))
        reach("crew.taken_back")

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
            self._forget(host)
