"""Why a job does not run: every objection of the gates that decide, and what would clear each."""

import re
from typing import Any

from headway.base.units import show_duration, show_instant
from headway.core import wait_words as say
from headway.core.artifacts import artifact_key
from headway.core.facts import Facts, NodeEnd
from headway.core.gates.routes import OF_NODE
from headway.core.model import (
    Block,
    Job,
    JobId,
    Objection,
    Stage,
    Wait,
    WaitKind,
    shown,
)
from headway.core.plan import Hold, Start, decide, explain
from headway.core.routes import InstanceEnd, NodeOutcome, node_outcome
from headway.core.settle import is_unknown
from headway.core.states import TERMINAL, Status
from headway.integrations.probes import answers_to
from headway.jobs.context import Context
from headway.jobs.facts import gather, tasks_known
from headway.jobs.lookup import find_job
from headway.jobs.upstream import root_of_block
from headway.jobs.views.capacity import (
    with_holders,
)
from headway.jobs.views.present import hindrance_of, present_capacity
from headway.jobs.worker_trouble import in_short_of, trouble_of
from headway.store.transaction import ReadTx

SECOND = 1_000_000
# Others are as somebody wanted them: a success, a skip, a cancel.
_ENDS_TO_SEE_TO = {Status.FAILED, Status.BLOCKED_BY_DEPENDENCY, Status.BLOCKED_BY_APPROVAL}
_JOB = re.compile(r"\bjob-([1-9][0-9]*)\b")


def why(context: Context, job_id: JobId) -> dict[str, Any]:
    """Every objection to starting this job, what would clear each, and its place in the queue."""
    job = find_job(context, job_id)
    with context.store.read() as tx:
        capacity = present_capacity(context, tx)
        facts = gather(tx, [job], capacity, context.queues, tasks_known(tx), home=context.home)
        facts = _answered(context, job, facts) if job.stage is not None else facts
        objections = explain(job, facts) if job.stage is not None else ()
        hindrance = hindrance_of(context, tx, job)
        objections = objections if hindrance is None else (hindrance,)
        documents = [_objection(tx, job, with_holders(tx, each)) for each in objections]
        ahead, queued = tx.waits.place_in_queue(job) if job.stage is not None else (0, 0)
        remedy = _next_step(tx, job)
        edges = edges_of(tx, job) if job.workflow_run is not None else None
    in_queue = job.stage is Stage.READY or (job.stage is Stage.WOKEN and _would_queue(job, facts))
    return {
        "id": shown(job.id),
        "state": job.status.value,
        "reason": job.reason,
        "objections": documents,
        "remedy": remedy,
        "place": ahead + 1 if in_queue else None,
        "queued": queued,
        "worker": context.worker_is_there(),
        "worker_trouble": trouble_of(context.home),
        "ended": job.status in TERMINAL,
        **({} if edges is None else {"edges": edges}),
    }


def edges_of(tx: ReadTx, job: Job) -> list[dict[str, Any]]:
    """Of a node of a workflow run: each edge that leads to it, and what came along it."""
    said = job.params[OF_NODE]["edges"]
    ends: dict[str, list[NodeEnd]] = {}
    for end in tx.workflows.node_ends(job.workflow_run or 0, [each["source"] for each in said]):
        ends.setdefault(end.node, []).append(end)
    found = []
    for each in said:
        instances = ends.get(each["source"], [])
        outcome = node_outcome(
            [InstanceEnd(end.outcome, end.fan) for end in instances],
            [NodeOutcome(word) for word in each["tolerates"]],
        )
        found.append(
            {
                "node": each["source"],
                "jobs": [shown(end.job_id) for end in instances],
                "accepts": each["accepts"],
                "required": each["required"],
                "outcome": outcome.value if outcome is not None else None,
                "taken": None if outcome is None else outcome in each["accepts"],
            }
        )
    return found


def _next_step(tx: ReadTx, job: Job) -> str | None:
    """What to do about a job that ended without success; None if nobody has to do anything."""
    if job.status not in _ENDS_TO_SEE_TO:
        return None
    last = tx.jobs.last_in_chain(job.chain)
    if last is not None and last.id != job.id:
        return say.retried_since(last.id, last.status)
    if job.status is Status.FAILED:
        if is_unknown(job.reason):
            return say.unknown_outcome(job.id)
        return say.failed_itself(job.id, has_output=job.started_at is not None)
    if job.status is Status.BLOCKED_BY_APPROVAL:
        return say.rejected(job.id)
    more = say.more_budget(job.workflow_run or 0, job.reason)
    if more is not None:
        return more
    root = root_of_block(tx, job)
    if root is not None:
        return say.retry_from(root.id)
    for before in job.after:
        if job.reason == say.missing_dependency(before).detail:
            return say.missing_dependency(before).remedy
    return _remedy_of_missing(tx, job)


def _remedy_of_missing(tx: ReadTx, job: Job) -> str | None:
    """What to do about a job that was blocked because something it needs is not there."""
    for text in job.needs:
        if job.reason != say.without_producer(text).detail:
            continue
        key = artifact_key(text, job.repo)
        makers = tx.graph.artifact_views([key])[key].producers
        good = [each.job_id for each in makers if each.status is Status.SUCCEEDED]
        if good:
            return say.not_produced(text, good[0]).remedy
        return say.then_retry(job.id, text) if not makers else None
    return None


def _would_queue(job: Job, facts: Facts) -> bool:
    """Whether the next step, which has yet to check this job, lets it start or stand in the queue
    for a slot. What waits for something else has no place there."""
    match decide(job, facts):
        case Start():
            return True
        case Hold() as hold:
            return hold.for_capacity or hold.expected
        case Block():
            return False


def _answered(context: Context, job: Job, facts: Facts) -> Facts:
    """The facts, with the answers of the probes that the gates ask for."""
    while True:
        asked = {ask for each in explain(job, facts) if isinstance(each, Wait) for ask in each.asks}
        unseen = asked - facts.answers.keys()
        if not unseen:
            return facts
        answers = {**facts.answers, **answers_to(unseen, context.config.conditions)}
        facts = facts._replace(answers=answers)


def _objection(tx: ReadTx, job: Job, objection: Objection) -> dict[str, Any]:
    """The objection as people see it: with the names of the jobs in the way, and for how long."""
    final = isinstance(objection, Block)
    others = {} if final else _in_the_way(tx, job, objection.remedy)
    remedy = _JOB.sub(
        lambda found: others[found[0]][0] if found[0] in others else found[0], objection.remedy
    )
    if objection.kind is WaitKind.APPROVAL and job.approval is not None:
        remedy += f", {_rounded(tx.now() - job.approval.requested_at)} ago"
    return {
        "kind": objection.kind.value,
        "detail": objection.detail,
        "remedy": remedy or None,
        "final": final,
        "until": show_instant(None if isinstance(objection, Block) else objection.until),
        "jobs": [document for _, document in others.values()],
    }


def _in_the_way(tx: ReadTx, job: Job, remedy: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """For each other job that a remedy names: how to call it, and what is known of it. Of a chain
    that goes on it is the last job that counts."""
    ids = {int(each) for each in _JOB.findall(remedy)} - {job.id}
    found = {}
    for named in tx.jobs.readable(sorted(ids)).values():
        last = tx.jobs.last_in_chain(named.chain) or named
        since = last.started_at or last.created_at
        state = f"{last.status} for {_rounded(tx.now() - since)}"
        now = f"now {shown(last.id)}, " if last.id != named.id else ""
        document = {
            "id": shown(last.id),
            "name": last.name,
            "state": last.status.value,
            "since": show_instant(since),
        }
        found[shown(named.id)] = (f"{shown(named.id)} ({last.name}, {now}{state})", document)
    return found


def _rounded(passed: int) -> str:
    """How long, in whole seconds from one on."""
    return show_duration(passed - passed % SECOND if passed >= SECOND else max(0, passed))


def why_not(context: Context, job_id: JobId) -> str | None:
    """In a few words, what is in the way of a job that does not run: the first objection."""
    documents = why(context, job_id)
    if documents["ended"] or documents["state"] == Status.RUNNING:
        return None
    if documents["objections"]:
        return _in_short(documents["objections"][0])
    if not documents["worker"]:
        return "no worker is there (`headway work` is one)"
    return documents["worker_trouble"] and in_short_of(documents["worker_trouble"])


def not_importable(context: Context, job_id: JobId) -> str | None:
    """Why nobody can call the function of a job, if that is all that is in its way."""
    objections = why(context, job_id)["objections"]
    first = objections[0] if objections else None
    return _in_short(first) if first and first["kind"] == WaitKind.TASK else None


def _in_short(objection: dict[str, Any]) -> str:
    remedy = f" ({objection['remedy']})" if objection["remedy"] else ""
    return f"{objection['detail']}{remedy}"
