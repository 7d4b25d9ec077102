"""Learn how claims end: launch them through the parent, watch their supervisors, take in outcomes.

A supervisor's end shows in its pidfd; a datagram (`ended TOKEN`) may say it sooner. Neither is
trusted: what counts is the outcome on disk, or the verdict of recovery where there is none.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from headway.base.crashpoints import reach
from headway.base.watchlist import Watching, Watchlist
from headway.core.model import Claim, WaitKind
from headway.core.settle import HostFailed
from headway.functions.pool.processes import HostProcesses
from headway.supervise import rescue
from headway.supervise.evidence import Evidence, OutcomeRecord
from headway.supervise.launcher import Ack, Launcher
from headway.worker.attempts import do_all
from headway.worker.recovery import JudgedClaim, Recovery, taken_in

PARENT_ANSWERS_WITHIN = 10.0


@dataclass(slots=True)
class Watched:
    """A running claim, and its supervisor, whose pidfd becomes readable when it is gone."""

    claim: Claim
    supervisor: Watching | None = None

    @property
    def pidfd(self) -> int | None:
        return None if self.supervisor is None else int(self.supervisor.source)


class Launches:
    def __init__(
        self,
        launcher: Launcher,
        recovery: Recovery,
        watchlist: Watchlist,
        hosts: HostProcesses,
    ) -> None:
        """`hosts` are the function hosts, which are started through the same parent."""
        self.watchlist = watchlist
        self._launcher = launcher
        launcher.watch = lambda descriptor: self.watchlist.watch(descriptor, _nothing).end
        self._recovery = recovery
        self._hosts = hosts
        self._watched: dict[str, Watched] = {}
        self._ended: set[str] = set()
        self.parent_trouble: str | None = None  # why there is no parent, while there is none

    def open(self) -> None:
        try:
            self._launcher.start()
        except OSError as error:  # the first step tries again
            self._cannot_launch(error)

    def close(self) -> None:
        """Let go of everything; running jobs are left to their supervisors."""
        self._launcher.stop()
        for token in list(self._watched):
            self.forget(token)
        self.watchlist.close()

    @property
    def claims(self) -> list[Claim]:
        return [watched.claim for watched in self._watched.values()]

    def watches(self, claim: Claim) -> bool:
        return claim.token in self._watched

    def unseen(self) -> list[Claim]:
        """Running claims without a pidfd: their supervisors can only be asked through the lock."""
        waiting = self._launcher.unacknowledged
        return [
            watched.claim
            for token, watched in self._watched.items()
            if watched.pidfd is None and token not in waiting
        ]

    def judgeable(self, claims: Iterable[Claim]) -> list[Claim]:
        """Those whose supervisors are not seen here: neither awaited from the living parent,
        nor watched through a pidfd. A watched one that has left its outcome is taken in. Function
        calls have no supervisor of their own; their hosts are looked after by the host pool."""
        waiting = self._launcher.unacknowledged
        judgeable = []
        for claim in claims:
            if claim.function_host is not None:
                continue
            watched = self._watched.get(claim.token)
            if watched is None or (watched.pidfd is None and claim.token not in waiting):
                judgeable.append(claim)
            elif _written(claim) is not None:
                self._ended.add(claim.token)
        return judgeable

    def launch(self, claims: Iterable[Claim]) -> None:
        """Launch these. One that cannot be launched is judged like all that are not seen."""
        launched = list(claims)
        self._watched |= {claim.token: Watched(claim) for claim in launched}
        do_all(partial(self._launcher.launch, each.folder, each.token) for each in launched)
        reach("engine.launched")

    def unanswered(self) -> int:
        """How many launches the parent still owes an answer for."""
        return len(self._launcher.unacknowledged)

    def checking(self) -> list[Claim]:
        """The launched claims of which it is still to be seen whether they may start."""
        watched = (each.claim for each in self._watched.values())
        return [claim for claim in watched if Evidence(claim.folder, claim.token).is_checking()]

    def receive(self, message: bytes) -> None:
        """A hint from a supervisor: `ended TOKEN`."""
        word, _, token = message.decode("ascii", "replace").partition(" ")
        if word == "ended" and token in self._watched:
            self._ended.add(token)

    def take_in(self) -> list[JudgedClaim]:
        """Verdicts on all claims that are known to have ended, or never to have begun."""
        judged: list[JudgedClaim] = []
        try:
            self._take_answers(judged)
            # A supervisor whose parent died before its answer may also have sent word of its end.
            self._ended -= {each.claim.token for each in judged}
            for token in sorted(self._ended):
                verdict = self._outcome(token)
                self._ended.discard(token)
                if verdict is not None:
                    judged.append(verdict)
        except BaseException:
            self.put_back(judged)
            raise
        return judged

    def put_back(self, judged: Iterable[JudgedClaim]) -> None:
        """Their verdicts were not committed: judge them again in the next step."""
        for each in judged:
            each.release()
            self._ended.add(each.claim.token)

    def _outcome(self, token: str) -> JudgedClaim | None:
        watched = self._watched.get(token)
        if watched is None:
            return None
        outcome = _written(watched.claim)
        if outcome is not None:
            evidence = Evidence(watched.claim.folder, token)
            return JudgedClaim(watched.claim, taken_in(outcome, evidence))
        return self._recovery.judge(watched.claim, alive_worker=True)

    def _take_answers(self, judged: list[JudgedClaim]) -> None:
        """Read the parent's answers; judge what a dead or silent parent left unanswered. An answer
        comes once, so whatever is wrong with one, the others are taken."""
        do_all(partial(self._take, ack, judged) for ack in self._launcher.acks())
        if not self._launcher.alive() or self._launcher.overdue(PARENT_ANSWERS_WITHIN):
            self._replace_parent(judged)

    def _take(self, ack: Ack, judged: list[JudgedClaim]) -> None:
        if self._hosts.takes(ack):
            return
        watched = self._watched.get(ack.token)
        if watched is None:
            if ack.pidfd is not None:
                os.close(ack.pidfd)
        elif ack.errno is None:
            self.watch(watched.claim, ack.pidfd)
        else:
            verdict = _not_forked(watched.claim, ack.errno)
            if verdict is not None:
                judged.append(verdict)

    def _replace_parent(self, judged: list[JudgedClaim]) -> None:
        try:
            unanswered = self._launcher.restart()
        except OSError as error:  # the next step tries again
            self._cannot_launch(error)
            return
        self.parent_trouble = None
        reach("launches.parent_replaced")
        do_all(partial(self._unanswered, token, judged) for token in unanswered)

    def _cannot_launch(self, error: OSError) -> None:
        self.parent_trouble = f"could not start a process: {error.strerror or error}"

    def _unanswered(self, token: str, judged: list[JudgedClaim]) -> None:
        """The parent died over it: it may have been started, or never be."""
        if self._hosts.knows(token):
            self._hosts.lost(token)
        if token not in self._watched:
            return
        verdict = self._recovery.judge(self._watched[token].claim)
        if verdict is None:
            self.watch(self._watched[token].claim)
        else:
            judged.append(verdict)

    def watch(self, claim: Claim, pidfd: int | None = None) -> None:
        """Watch this claim's supervisor, through the given pidfd or one found by its record."""
        watched = self._watched.setdefault(claim.token, Watched(claim))
        if watched.supervisor is not None:
            if pidfd is not None:
                os.close(pidfd)
            return
        if pidfd is None:
            pidfd = rescue.watch_supervisor(Evidence(claim.folder, claim.token))
        if pidfd is None:
            return
        watched.supervisor = self.watchlist.watch(pidfd, self._notice(claim.token))

    def _notice(self, token: str) -> Callable[[], None]:
        def gone() -> None:
            self._ended.add(token)
            self._close_pidfd(token)

        return gone

    def end_supervisor(self, claim: Claim) -> None:
        """End a hung supervisor and its command; the claim is then judged like any other."""
        if rescue.end_supervisor(Evidence(claim.folder, claim.token)):
            return
        watched = self._watched.get(claim.token)  # it may hang before its start record
        if watched is not None and watched.pidfd is not None:
            rescue.kill_supervisor(watched.pidfd)

    def forget(self, token: str) -> None:
        self._ended.discard(token)
        if token in self._watched:
            self._close_pidfd(token)
            del self._watched[token]

    def _close_pidfd(self, token: str) -> None:
        watched = self._watched[token]
        supervisor, watched.supervisor = watched.supervisor, None
        if supervisor is not None:
            supervisor.close()


def _written(claim: Claim) -> OutcomeRecord | None:
    """The outcome, if there is one to be believed; anything else is judged by recovery."""
    try:
        return Evidence(claim.folder, claim.token).read_outcome()
    except OSError:
        return None


def _not_forked(claim: Claim, number: int) -> JudgedClaim | None:
    """The parent could not even fork: nothing was started, and the host is to blame.

    Undone only under the lock; if that cannot be had, the claim is judged like any other.
    """
    evidence = Evidence(claim.folder, claim.token)
    try:
        lock = evidence.try_lock()
        if lock is None:
            return None
    except OSError:
        return None
    try:
        evidence.make_void()
    except OSError:
        os.close(lock)  # held by us it would seem to be its supervisor's
        return None
    cause = f"could not start a process: {os.strerror(number)}"
    return JudgedClaim(claim, HostFailed(WaitKind.PRESSURE, cause), lock)


def _nothing() -> None:
    """The descriptor is only there to end the wait; the next step reads it."""
