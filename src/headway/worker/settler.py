"""Settle claims: ask the core what an outcome means, and write it down, fenced by the token."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, assert_never

from headway.base.crashpoints import reach
from headway.base.home import Home
from headway.base.host import Host
from headway.base.units import parse_duration
from headway.core.agents import calls_agent
from headway.core.artifacts import ArtifactKind
from headway.core.backoff import probe_delay
from headway.core.gates.routes import OF_NODE
from headway.core.model import AGENT, FUNCTION, NOTHING, Claim, HostTrouble, Job, JobId, WaitKind
from headway.core.outputs import OutputsError, outputs_of_checks, parse_outputs
from headway.core.settle import (
    UNKNOWABLE,
    ChainEnd,
    Ended,
    Ending,
    HostFailed,
    Judgement,
    NeverRan,
    Outcome,
    StillRuns,
    Undone,
    Verdict,
    beside,
    host_trouble,
    is_unknown,
    never_ran,
    settle,
)
from headway.core.states import Status
from headway.jobs.budgets import spend
from headway.jobs.lifecycle import chains_succeeded, continue_chain, end_chains
from headway.jobs.locks import release_locks
from headway.jobs.log_limits import kept_log_bytes
from headway.jobs.log_tail import tail_of
from headway.jobs.runners import park_runner, runner_works, with_session
from headway.jobs.settings import store_setting
from headway.store.new_jobs import Event
from headway.store.records import Finish, Unclaim
from headway.store.transaction import WriteTx
from headway.supervise.evidence import Evidence
from headway.worker.store_time import HostTime


class Settler:
    def __init__(
        self,
        host: Host,
        worker_id: str,
        *,
        chance: Callable[[], float] = random.random,
        times: Callable[[WriteTx], HostTime | None] = lambda tx: None,
        home: Home | None = None,
    ) -> None:
        """`times` says how the clock by which outcomes are written stands to the store's; `home`
        has the logs of functions."""
        self._host = host
        self._worker_id = worker_id
        self._chance = chance
        self._times = times
        self._home = home

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
        jobs = {**known, **tx.jobs.running(unknown)} if unknown else known
        ended: list[_SettledEnd] = []
        for claim, judgement in judged:
            job = jobs[claim.job_id]
            if job.status is not Status.RUNNING:
                self._too_late(tx, claim, judgement)
                continue
            answer = self._answer(tx, job, judgement, times)
            if isinstance(answer, Undone):
                self._undo(tx, job, claim, answer)
            else:
                ended.append(_SettledEnd(job, claim, judgement, answer))
        return self._end(tx, ended)

    def _answer(
        self, tx: WriteTx, job: Job, judgement: Judgement, times: HostTime | None
    ) -> Ended | Undone:
        since = None
        if times is not None and isinstance(judgement, Verdict):
            since = times.waits_from(judgement.outcome.finished_at)
        match judgement:
            case Verdict(outcome=outcome) if outcome.ending is Ending.SPAWN_ERROR:
                cooldown = parse_duration(store_setting(tx.settings.all(), "scheduler.cooldown"))
                return settle(job, outcome, cooldown=cooldown, since=since)
            case Verdict(outcome=outcome):
                outcome = _with_outputs(job, judgement)
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
            tx.claims.keep_late_outcome(claim, judgement.document)

    def _undo(self, tx: WriteTx, job: Job, claim: Claim, undone: Undone) -> None:
        unclaim = Unclaim(
            token=claim.token,
            job_id=claim.job_id,
            cause=undone.cause,
            not_before=undone.not_before,
            launch_failures=undone.launch_failures,
            launch_wait=undone.launch_wait.value if undone.launch_wait else None,
        )
        if not tx.claims.undo([unclaim])[0]:
            return
        tx.events.add(
            [Event("unclaimed", claim.job_id, {"cause": undone.cause})], actor=self._worker_id
        )
        release_locks(tx, [claim.job_id])
        tx.limits.forget_starts(job, claim)
        if undone.host_trouble is not None:
            self.host_failed(tx, undone.host_trouble, undone.cause)

    def host_failed(self, tx: WriteTx, kind: WaitKind, cause: str) -> None:
        """Start nothing here until a probe succeeds; probes are made ever more rarely."""
        known = tx.hosts.trouble(self._host.id)
        failures = (known.failures if known else 0) + 1
        trouble = HostTrouble(kind, cause, failures, tx.now() + probe_delay(failures))
        tx.hosts.open_breaker(self._host.id, trouble)
        data = {"kind": kind.value, "cause": cause, "failures": failures}
        tx.events.add([Event("host_trouble", None, data)], actor=self._worker_id)

    def look_at_probes(self, tx: WriteTx, claims: Iterable[Claim]) -> None:
        """A probe that got as far as its command proves that the host can start again."""
        if tx.hosts.trouble(self._host.id) is None:
            return
        for claim in claims:
            if claim.probe and _has_begun(claim):
                self.host_recovered(tx)
                return

    def host_recovered(self, tx: WriteTx) -> None:
        if tx.hosts.close_breaker(self._host.id):
            tx.events.add([Event("host_recovered")], actor=self._worker_id)

    def _end(self, tx: WriteTx, ended: Sequence["_SettledEnd"]) -> list[tuple[Claim, Ended]]:
        """Write the ends all together, then what follows from each that was still to be written."""
        for each in ended:
            if each.answer.launch_failures:
                _strike_out(tx, each)
        written = tx.claims.finish([_finish(each, tx.now()) for each in ended])
        done = []
        for each, fenced in zip(ended, written, strict=True):
            if fenced:
                done.append(each)
            else:
                self._too_late(tx, each.claim, each.judgement)
        tx.events.add([_ended_event(each.job, each.answer) for each in done], actor=self._worker_id)
        tx.events.add([each for end in done for each in _not_made(end)], actor=self._worker_id)
        plain: list[_SettledEnd] = []
        others: list[_SettledEnd] = []
        for each in done:
            (plain if _has_no_other_consequence(each) else others).append(each)
        chains_succeeded(tx, [each.job.chain for each in plain], actor=self._worker_id)
        self._follow(tx, others)
        return [(each.claim, each.answer) for each in done]

    def _follow(self, tx: WriteTx, ends: Sequence["_SettledEnd"]) -> None:
        """What follows from these ends, besides the rows of jobs and claims."""
        last: list[ChainEnd] = []
        for each in ends:
            ended, job = each.answer, self._job_at_end(tx, each)
            if ended.retry is not None:
                data = {"reason": ended.reason, "not_before": ended.retry.not_before}
                continue_chain(tx, job, ended.retry, actor=self._worker_id, data=data)
            else:
                last.append(ChainEnd(job, ended, _report(each, self._log_folder(each))))
        release_locks(tx, [each.job.id for each in ends if _is_tree_gone(each)])
        # After all retries: a group must not seem to have ended while one of its chains goes on.
        end_chains(tx, last, actor=self._worker_id)

    def _job_at_end(self, tx: WriteTx, end: "_SettledEnd") -> Job:
        """What its end means for others than its chain is written. The job as its chain goes on."""
        job, ended = end.job, end.answer
        if calls_agent(job) and ended.executed:
            job = self._agent_ended(tx, end)
        if not ended.executed:
            tx.limits.forget_starts(job, end.claim)
        if end.claim.probe and ended.executed:
            self.host_recovered(tx)
        if isinstance(end.judgement, Verdict) and end.judgement.document is not None:
            tx.settings.add_to_mark("log_bytes", kept_log_bytes(end.judgement.document))
        return job

    def _agent_ended(self, tx: WriteTx, end: "_SettledEnd") -> Job:
        """What an agent used is counted, and a limit that it met holds for its runner. The job as
        its chain goes on."""
        job, met, exited = end.job, None, False
        if isinstance(end.judgement, Verdict):
            met = end.judgement.outcome.met
            exited = end.judgement.outcome.ending is Ending.EXITED
        if job.workflow_run is not None:
            spend(tx, job, end.claim, exited=exited)
        if met is not None:
            park_runner(tx, job, met, end.answer.error or "", actor=self._worker_id)
            reach("agent.parked")
            return with_session(job, met)
        if job.type == AGENT and end.answer.status is Status.SUCCEEDED:
            runner_works(tx, job)
        return job

    def _log_folder(self, end: "_SettledEnd") -> str:
        """Where its output is. The folder of a function's claim is its host's."""
        if end.job.type == FUNCTION and self._home is not None:
            return self._home.job(end.job.id)
        return end.claim.folder


def _has_begun(claim: Claim) -> bool:
    try:
        return Evidence(claim.folder, claim.token).has_begun()
    except OSError:  # what cannot be read proves nothing
        return False


class _SettledEnd(NamedTuple):
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
        known = {name: document[name] for name in ("started_at", "finished_at") if name in document}
        moved = {name: times.of(at, claim.claimed_at) for name, at in known.items() if at}
        document = {**document, **moved}
    finished_at = times.of(outcome.finished_at, claim.claimed_at)
    return judgement._replace(outcome=outcome._replace(finished_at=finished_at), document=document)


def _has_no_other_consequence(end: _SettledEnd) -> bool:
    """A success that changes nothing but what waits for it."""
    document = end.judgement.document if isinstance(end.judgement, Verdict) else None
    return (
        end.answer.status is Status.SUCCEEDED
        and document is None
        and not (end.job.locks or end.job.on_finish or end.claim.probe or end.job.group_id)
        and end.job.workflow_run is None
    )


def _is_tree_gone(end: _SettledEnd) -> bool:
    return not isinstance(end.judgement, Verdict) or end.judgement.tree_gone


def _report(end: _SettledEnd, folder: str) -> Mapping[str, Any]:
    """What a node of a workflow run left, besides its status."""
    if end.job.workflow_run is None:
        return NOTHING
    report = {"exit_code": end.answer.exit_code, "summary": end.answer.reason}
    if not isinstance(end.judgement, Verdict):
        return report
    report["summary"] = end.answer.reason or end.judgement.outcome.error
    report["tail"] = tail_of(folder)
    outputs = own = NOTHING
    if end.judgement.outcome.ending not in UNKNOWABLE:
        own = _own_outputs(end.job, passed=end.answer.status is Status.SUCCEEDED)
    with suppress(OutputsError):
        outputs = parse_outputs(end.judgement.outputs, (), own)
    unknown = calls_agent(end.job) and is_unknown(end.answer.reason)
    classes = end.judgement.outcome.classes
    return {**report, "classes": classes, "outputs": outputs, "unknown": unknown}


def _with_outputs(job: Job, verdict: Verdict) -> Outcome:
    """A node that ended well without setting what it declares has failed."""
    outcome = verdict.outcome
    if job.workflow_run is None or outcome.ending is not Ending.EXITED or outcome.exit_code != 0:
        return outcome
    declared, own = job.params[OF_NODE]["outputs"], _own_outputs(job, passed=True)
    try:
        parse_outputs(verdict.outputs, declared, own)
    except OutputsError as error:
        return outcome._replace(exit_code=1, error=str(error))
    return outcome


def _own_outputs(job: Job, *, passed: bool) -> Mapping[str, Any]:
    return outputs_of_checks(job.params[OF_NODE]["policy"], passed)


def _strike_out(tx: WriteTx, end: _SettledEnd) -> None:
    """Before the end is written: afterwards the row is final."""
    answer = end.answer
    cause = answer.last_failure or ""
    tx.hosts.strike_out(end.job.id, end.claim.token, answer.launch_failures, cause)


def _finish(end: _SettledEnd, now: int) -> Finish:
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
        tree_gone=_is_tree_gone(end),
        document=verdict.document if verdict else None,
    )


def _not_made(end: _SettledEnd) -> Iterator[Event]:
    """A success that lacks files which it announced: those that need them are blocked by it."""
    document = end.judgement.document if isinstance(end.judgement, Verdict) else None
    if document is not None and document.get("unmade") and end.answer.status is Status.SUCCEEDED:
        texts = [f"{ArtifactKind.FILE}:{path}" for path in document["unmade"]]
        yield Event("not_produced", end.job.id, {"artifacts": texts})


def _ended_event(job: Job, ended: Ended) -> Event:
    data: dict[str, Any] = {"attempt": job.attempt}
    if ended.exit_code is not None:
        data["exit_code"] = ended.exit_code
    if ended.reason is not None:
        data["reason"] = ended.reason
    return Event(ended.status.value, job.id, data)
