"""Recovery: what became of claims whose supervisors are not watched. docs/protocols.md, section 6.

The lock of a claim says whether its supervisor lives. A worker that takes it reads all evidence
under it, and keeps it until the verdict is committed, so the supervisor cannot finish in between.
Judging twice gives the same.
"""

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from headway.base.clock import Clock
from headway.base.crashpoints import reach
from headway.base.host import Host
from headway.core.model import Claim, Job, WaitKind
from headway.core.settle import (
    Ending,
    HostFailed,
    Judgement,
    NeverRan,
    Outcome,
    RunnerLimit,
    Verdict,
)
from headway.jobs.copied_claims import here
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx
from headway.supervise import rescue
from headway.supervise.evidence import Evidence, OutcomeRecord, UnsafeFolder

UNANSWERED = 10.0
SWEEP_GAP = 1.0


class JudgedClaim(NamedTuple):
    """A judgement and the lock under which its evidence was read; None: nothing to hold."""

    claim: Claim
    judgement: Judgement
    lock: int | None = None

    def release(self) -> None:
        if self.lock is not None:
            os.close(self.lock)


class Recovery:
    def __init__(
        self,
        host: Host,
        worker_id: str,
        clock: Clock,
        *,
        left: Callable[[Claim], None] = lambda claim: None,
    ) -> None:
        """`left` is called with a claim whose control group could not be removed, before its row
        goes: it could not be found afterwards."""
        self._left = left
        self._host = host
        self._worker_id = worker_id
        self._clock = clock
        self._first_empty: dict[str, float] = {}
        self._since: dict[tuple[str, str], float] = {}

    def mine(self, claims: Iterable[Claim]) -> list[Claim]:
        """Only the claims of this host's home can be judged by their evidence.

        The host id belongs to one folder, so a home of another path is the same one, moved: its
        evidence moved with it.
        """
        return [here(claim, self._host) for claim in claims if claim.host_id == self._host.id]

    def judge_copy(self, claim: Claim, original: str) -> JudgedClaim | None:
        """The verdict on a claim that came with a copy of its home: what the copy says, else that
        nobody here will ever know. No process is searched for or ended: all of them are the
        original's.

        None: its supervisor holds the lock in this very folder. So this is no copy; it is the same
        home, which only seems to be another one, as in a container that was made anew.
        """
        evidence = Evidence(claim.folder, claim.function_host or claim.token)
        outcome = lock = None
        with suppress(FileNotFoundError, UnsafeFolder):
            lock = evidence.try_lock()
            if lock is None:
                return None
            if claim.function_host is not None:  # many calls have the one lock of their host
                os.close(lock)
                lock = None
            else:
                outcome = evidence.read_outcome()
        if outcome is not None:
            return JudgedClaim(claim, taken_in(outcome, evidence), lock)
        if claim.boot_id != self._host.boot_id:
            return JudgedClaim(claim, self._crashed(Ending.HOST_REBOOTED, tree_gone=True), lock)
        cause = f"this home is a copy; it ran, and may still run, in {original}"
        return JudgedClaim(
            claim, self._crashed(Ending.OUTCOME_UNKNOWN, cause, tree_gone=True), lock
        )

    def rebooted(self, claims: Iterable[Claim]) -> list[JudgedClaim]:
        """Of claims of another host in a store that is this machine's alone: those of another
        boot. Their home was copied or restored; whatever they ran is gone."""
        return [
            JudgedClaim(claim, self._crashed(Ending.HOST_REBOOTED, tree_gone=True))
            for claim in claims
            if claim.host_id != self._host.id and claim.boot_id != self._host.boot_id
        ]

    def judge(self, claim: Claim, *, alive_worker: bool = False) -> JudgedClaim | None:
        """The verdict on one claim, or None while its supervisor lives.

        With `alive_worker` its supervisor was started by this very worker and is gone: if it left
        no start record, the host could not start it.
        """
        evidence = Evidence(claim.folder, claim.token)
        try:
            return self._judge(claim, evidence, alive_worker=alive_worker)
        except FileNotFoundError as error:
            return JudgedClaim(claim, self._lost(claim, evidence, error.strerror or str(error)))
        except UnsafeFolder as error:
            return JudgedClaim(claim, self._lost(claim, evidence, str(error)))
        except OSError:
            return None  # too many files, a full disk: nothing is known now, so nothing is said

    def _judge(self, claim: Claim, evidence: Evidence, *, alive_worker: bool) -> JudgedClaim | None:
        lock = evidence.try_lock()
        if lock is None:
            outcome = evidence.read_outcome()
            return None if outcome is None else JudgedClaim(claim, taken_in(outcome, evidence))
        reach("recovery.locked")
        try:
            judgement = self._verdict(claim, evidence)
            if alive_worker and isinstance(judgement, NeverRan) and not evidence.is_cancelled():
                judgement = self._not_started(evidence)
        except BaseException:
            os.close(lock)
            raise
        return JudgedClaim(claim, judgement, lock)

    def _not_started(self, evidence: Evidence) -> Judgement:
        """Its supervisor ended too early: by its own fault, which is the job's, or the host's."""
        crash = evidence.read_crash()
        if crash is None:
            cause = "could not start a process: its supervisor ended too early"
            return HostFailed(WaitKind.PRESSURE, cause)
        error = f"its supervisor failed: {crash}"
        outcome = Outcome(Ending.SPAWN_ERROR, self._clock.now(), errno=errno.EINVAL, error=error)
        return Verdict(outcome, tree_gone=True)

    def _verdict(self, claim: Claim, evidence: Evidence) -> Judgement:
        """The first row of the table that fits; called with the claim's lock held."""
        outcome = evidence.read_outcome()
        if outcome is not None:
            return taken_in(outcome, evidence)
        if claim.boot_id != self._host.boot_id:
            return self._crashed(Ending.HOST_REBOOTED, tree_gone=True)
        if not evidence.exists():
            return self._lost(claim, evidence, "claim file is gone")
        if evidence.is_void() or evidence.read_started() is None:
            evidence.make_void()
            if not rescue.forget_cgroup(evidence.token):
                self._left(claim)
            reach("recovery.voided")
            return NeverRan("nothing had been started when the scheduler came back")
        proof = rescue.end_claim(evidence)
        reach("recovery.ended_claim")
        return self._crashed(Ending.OUTCOME_UNKNOWN, tree_gone=proof == "gone")

    def _lost(self, claim: Claim, evidence: Evidence, cause: str) -> Verdict:
        if claim.boot_id != self._host.boot_id:
            return self._crashed(Ending.HOST_REBOOTED, tree_gone=True)
        proof = rescue.end_claim(evidence)
        reach("recovery.ended_lost")
        return self._crashed(Ending.EVIDENCE_MISSING, cause, tree_gone=proof == "gone")

    def _crashed(self, ending: Ending, cause: str | None = None, *, tree_gone: bool) -> Verdict:
        return Verdict(Outcome(ending, self._clock.now(), error=cause), tree_gone)

    def readopted(self, tx: WriteTx, claims: Iterable[Claim]) -> None:
        tx.events.add(
            (Event("readopted", claim.job_id, {"token": claim.token[:8]}) for claim in claims),
            actor=self._worker_id,
        )

    def unanswered(self, tx: ReadTx, claims: Iterable[Claim]) -> list[Claim]:
        """Claims whose supervisor should long have acted on a cancel or a deadline.

        Counted on the monotonic clock from when this worker first saw the cancel or the claim, as
        the supervisor's own deadline is: a machine that slept is not a supervisor that hangs.
        """
        now = self._clock.monotonic()
        claims = list(claims)
        jobs = tx.jobs.running([claim.job_id for claim in claims])
        living = {claim.token for claim in claims}
        self._since = {key: since for key, since in self._since.items() if key[0] in living}
        late = [claim for claim in claims if self._is_late(claim, jobs[claim.job_id], now)]
        return [c for c in late if rescue.is_stuck(Evidence(c.folder, c.token))]

    def _is_late(self, claim: Claim, job: Job, now: float) -> bool:
        limits = []
        seen = self._since.setdefault((claim.token, "running"), now)
        if job.params.get("timeout_seconds") is not None:
            limits.append(seen + job.params["timeout_seconds"])
        if job.cancelling:
            limits.append(self._since.setdefault((claim.token, "cancelling"), now))
        patience = job.params.get("grace_seconds", 10.0) + UNANSWERED
        return bool(limits) and now > min(limits) + patience

    def prove_gone(self, claims: Iterable[Claim]) -> list[Claim]:
        """Settled claims whose trees two checks, a second apart, found empty."""
        proven = []
        for claim in claims:
            if claim.boot_id != self._host.boot_id:
                proven.append(claim)
            elif not rescue.tree_is_empty(Evidence(claim.folder, claim.token)):
                rescue.end_claim(Evidence(claim.folder, claim.token), patience=0.0)
                self._first_empty.pop(claim.token, None)
            else:
                now = self._clock.monotonic()
                first = self._first_empty.setdefault(claim.token, now)
                if now - first >= SWEEP_GAP:
                    del self._first_empty[claim.token]
                    proven.append(claim)
        return proven


def taken_in(written: OutcomeRecord, evidence: Evidence | None = None) -> Verdict:
    """A supervisor's own word as a verdict, with the outputs that it vouches for."""
    said = written.verdict or {}
    met = _limit_met(said, written.finished_at)
    outcome = Outcome(
        ending=Ending(written.reason) if met is None else Ending.ASKED_AGAIN,
        finished_at=written.finished_at,
        exit_code=written.exit_code,
        signal=written.signal,
        errno=written.errno,
        error=said.get("error", written.error),
        classes=tuple(said.get("classes", ())),
        changed=bool(written.changed),
        met=met,
    )
    document: dict[str, Any] = {
        name: getattr(written, name)
        for name in (
            "reason",
            "exit_code",
            "signal",
            "wait_status",
            "errno",
            "error",
            "started_at",
            "finished_at",
            "usage",
            "logs",
            "tree",
            "core_dumped",
        )
    }
    document |= {
        name: value
        for name in ("patch", "unmade", "verdict")
        if (value := getattr(written, name)) is not None
    }
    sealed = written.outputs
    return Verdict(
        outcome,
        tree_gone=written.tree in ("gone", "left"),
        document=document,
        outputs=evidence.read_outputs(sealed) if sealed and evidence is not None else b"",
    )


def _limit_met(said: Mapping[str, Any], finished_at: int) -> RunnerLimit | None:
    """What an agent says that holds for all of its runner. Its instant is by this host's clock, as
    that of its end."""
    if "parks" not in said:
        return None
    again_at = said.get("again_at")
    after = None if again_at is None else max(0, again_at - finished_at)
    return RunnerLimit(after, said["parks"] == "auth", said.get("session_id"))
