"""Settle claims: ask the core what an outcome means, and write it down, fenced by the token."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, assert_never

from headway.config import store_setting
from headway.consequences import (
    chains_succeeded,
    continue_chain,
    end_chain,
    kept_log_bytes,
    release_locks,
)
from headway.core.backoff import probe_delay
from headway.core.model import NOTHING, Claim, HostTrouble, Job, JobId, WaitKind
from headway.core.settle import (
    Ended,
    Ending,
    Outcome,
    Undone,
    beside,
    host_trouble,
    never_ran,
    settle,
)
from headway.core.states import Status
from headway.engine.storetime import HostTime
from headway.host import Host
from headway.store.base import Event, Finish, Unclaim, WriteTx
from headway.supervise.evidence import Evidence
from headway.units import parse_duration


class Verdict(NamedTuple):
    """How a claim ended, and whether its process tree is proven gone."""

    outcome: Outcome
    tree_gone: bool
    document: Mapping[str, Any] | None = None

    @property
    def left(self) -> bool:
        """Whether processes of it were left alone, as its policy wants."""
        return self.document is not None and self.document.get("tree") == "left"


class NeverRan(NamedTuple):
    """Nothing was started, and that is proven."""

    cause: str


class HostFailed(NamedTuple):
    """Nothing was started, because the host could not."""

    kind: WaitKind
    cause: str


class StillRuns(NamedTuple):
    """Nothing was started, because an earlier start of the job still runs."""

    cause: str


Judgement = Verdict | NeverRan | HostFailed | StillRuns


def has_changed(judgement: Judgement) -> bool:
    """Whether its claim was undone because the world is not as its gates had seen it."""
    return isinstance(judgement, Verdict) and judgement.outcome.changed


class Settler:
    def __init__(
        self,
        host: Host,
        worker_id: str,
        *,
        chance: Callable[[], float] = random.random,
        times: Callable[[WriteTx], HostTime | None] = lambda tx: None,
    ) -> None:
        """`times` tell how the clock by which outcomes are written stands to the store's."""
        self._host = host
        self._worker_id = worker_id
        self._chance = chance
        self._times = times

    def apply(
        self,
        tx: WriteTx,
        judged: Sequence[tuple[Claim, Judgement]],
        known: Mapping[JobId, Job] = NOTHING,
    ) -> list[tuple[Claim, Ended]]:
        """Write each judgement; returns the claims whose jobs came to their end.

        A claim that is no longer live was settled by someone else: a terminal row never changes.
        `known` are jobs as they were claimed, for callers who remember them.
        """
        times = self._times(tx) if judged else None
        if times is not None:
            judged = [(claim, _by_store(judgement, claim, times)) for claim, judgement in judged]
        unknown = [claim.job_id for claim, _ in judged if claim.job_id not in known]
        jobs = {**known, **tx.running_jobs(unknown)} if unknown else known
        ended: list[_End] = []
        for claim, judgement in judged:
            job = jobs[claim.job_id]
            if job.status is not Status.RUNNING:
                self._too_late(tx, claim, judgement)
                continue
            answer = self._answer(tx, job, judgement, times)
            if isinstance(answer, Undone):
                self._undo(tx, job, claim, answer)
            else:
                ended.append(_End(job, claim, judgement, answer))
        return self._end(tx, ended)

    def _answer(
        self, tx: WriteTx, job: Job, judgement: Judgement, times: HostTime | None
    ) -> Ended | Undone:
        since = None
        if times is not None and isinstance(judgement, Verdict):
            since = times.waits_from(judgement.outcome.finished_at)
        match judgement:
            case Verdict(outcome=outcome) if outcome.ending is Ending.SPAWN_ERROR:
                cooldown = parse_duration(store_setting(tx.settings(), "scheduler.cooldown"))
                return settle(job, outcome, cooldown=cooldown, since=since)
            case Verdict(outcome=outcome):
                return settle(job, outcome, chance=self._chance(), since=since)
            case NeverRan(cause):
                return never_ran(job, cause)
            case HostFailed(kind, cause):
                return host_trouble(job, kind, cause)
            case StillRuns(cause):
                return beside(job, cause, tx.now())
            case _:
                assert_never(judgement)

    def _too_late(self, tx: WriteTx, claim: Claim, judgement: Judgement) -> None:
        if isinstance(judgement, Verdict) and judgement.document is not None:
            tx.keep_late_outcome(claim, judgement.document)

    def _undo(self, tx: WriteTx, job: Job, claim: Claim, undone: Undone) -> None:
        unclaim = Unclaim(
            token=claim.token,
            job_id=claim.job_id,
            cause=undone.cause,
            not_before=undone.not_before,
            launch_failures=undone.launch_failures,
            launch_wait=undone.launch_wait.value if undone.launch_wait else None,
        )
        if not tx.unclaim([unclaim])[0]:
            return
        tx.add_events(
            [Event("unclaimed", claim.job_id, {"cause": undone.cause})], actor=self._worker_id
        )
        release_locks(tx, claim.job_id)
        tx.forget_starts(job, claim)
        if undone.host_trouble is not None:
            self.host_failed(tx, undone.host_trouble, undone.cause)

    def host_failed(self, tx: WriteTx, kind: WaitKind, cause: str) -> None:
        """Shut the door for all until a probe succeeds, tried ever more rarely."""
        known = tx.host_trouble(self._host.id)
        failures = (known.failures if known else 0) + 1
        trouble = HostTrouble(kind, cause, failures, tx.now() + probe_delay(failures))
        tx.open_breaker(self._host.id, trouble)
        data = {"kind": kind.value, "cause": cause, "failures": failures}
        tx.add_events([Event("host_trouble", None, data)], actor=self._worker_id)

    def look_at_probes(self, tx: WriteTx, claims: Iterable[Claim]) -> None:
        """A probe that got as far as its command proves that the host can start again."""
        if tx.host_trouble(self._host.id) is None:
            return
        for claim in claims:
            if claim.probe and _has_begun(claim):
                self.host_recovered(tx)
                return

    def host_recovered(self, tx: WriteTx) -> None:
        if tx.close_breaker(self._host.id):
            tx.add_events([Event("host_recovered")], actor=self._worker_id)

    def _end(self, tx: WriteTx, ended: Sequence["_End"]) -> list[tuple[Claim, Ended]]:
        """Write the ends all together, then what follows from each that was still to be written."""
        for each in ended:
            if each.answer.launch_failures:
                _strike_out(tx, each)
        written = tx.finish([_finish(each, tx.now()) for each in ended])
        done = []
        for each, fenced in zip(ended, written, strict=True):
            if fenced:
                done.append(each)
            else:
                self._too_late(tx, each.claim, each.judgement)
        tx.add_events([_ended_event(each.job, each.answer) for each in done], actor=self._worker_id)
        plain: list[_End] = []
        others: list[_End] = []
        for each in done:
            (plain if _has_no_other_consequence(each) else others).append(each)
        chains_succeeded(tx, [each.job.chain for each in plain], actor=self._worker_id)
        # Retries first: a group must not seem to have ended while one of its chains goes on.
        for each in sorted(others, key=lambda end: end.answer.retry is None):
            self._follow(tx, each)
        return [(each.claim, each.answer) for each in done]

    def _follow(self, tx: WriteTx, end: "_End") -> None:
        job, ended = end.job, end.answer
        if ended.retry is not None:
            data = {"reason": ended.reason, "not_before": ended.retry.not_before}
            continue_chain(tx, job, ended.retry, actor=self._worker_id, data=data)
        else:
            end_chain(tx, job, ended, actor=self._worker_id)
        verdict = end.judgement if isinstance(end.judgement, Verdict) else None
        if verdict is None or verdict.tree_gone:
            release_locks(tx, job.id)
        if not ended.executed:
            tx.forget_starts(job, end.claim)
        if end.claim.probe and ended.executed:
            self.host_recovered(tx)
        if verdict is not None and verdict.document is not None:
            tx.add_to_mark("log_bytes", kept_log_bytes(verdict.document))


def _has_begun(claim: Claim) -> bool:
    try:
        return Evidence(claim.folder, claim.token).has_begun()
    except OSError:  # what cannot be read proves nothing
        return False


class _End(NamedTuple):
    """A claim with the final word on its job."""

    job: Job
    claim: Claim
    judgement: Judgement
    answer: Ended


def _by_store(judgement: Judgement, claim: Claim, times: HostTime) -> Judgement:
    """The same, with the instants of this host's clock as instants of the store's."""
    if not isinstance(judgement, Verdict):
        return judgement
    outcome, document = judgement.outcome, judgement.document
    if document is not None:
        told = {name: document[name] for name in ("started_at", "finished_at") if name in document}
        moved = {name: times.of(at, claim.claimed_at) for name, at in told.items() if at}
        document = {**document, **moved}
    finished_at = times.of(outcome.finished_at, claim.claimed_at)
    return judgement._replace(outcome=outcome._replace(finished_at=finished_at), document=document)


def _has_no_other_consequence(end: _End) -> bool:
    """A success that only those who wait for it need to hear of."""
    document = end.judgement.document if isinstance(end.judgement, Verdict) else None
    return (
        end.answer.status is Status.SUCCEEDED
        and document is None
        and not (end.job.locks or end.job.on_finish or end.claim.probe or end.job.group_id)
    )


def _strike_out(tx: WriteTx, end: _End) -> None:
    """Before the end is written: afterwards the row is final."""
    answer = end.answer
    cause = answer.last_failure or ""
    tx.strike_out(end.job.id, end.claim.token, answer.launch_failures, cause)


def _finish(end: _End, now: int) -> Finish:
    verdict = end.judgement if isinstance(end.judgement, Verdict) else None
    return Finish(
        token=end.claim.token,
        job_id=end.job.id,
        status=end.answer.status,
        reason=end.answer.reason,
        finished_at=verdict.outcome.finished_at if verdict else now,
        exit_code=end.answer.exit_code,
        error=end.answer.error,
        executed=end.answer.executed,
        tree_gone=verdict.tree_gone if verdict else True,
        document=verdict.document if verdict else None,
    )


def _ended_event(job: Job, ended: Ended) -> Event:
    data: dict[str, Any] = {"attempt": job.attempt}
    if ended.exit_code is not None:
        data["exit_code"] = ended.exit_code
    if ended.reason is not None:
        data["reason"] = ended.reason
    return Event(ended.status.value, job.id, data)
