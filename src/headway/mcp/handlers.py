"""What the tools do: one function each. It calls verbs and shows what they say."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from headway.base.crashpoints import reach
from headway.base.errors import ConflictError, TimedOutError
from headway.core.model import ApprovalState, Job, JobId, shown
from headway.core.states import TERMINAL
from headway.jobs.approvals import what_it_runs
from headway.mcp.answers import IN_A_ROW, LOG_BYTES, data, last_lines
from headway.mcp.tool import Answer, ToolCall

MOST_ROWS = 50
MOST_READ = 10_000  # rows that are looked at for a page
_OF_A_ROW = (
    *("id", "state", "priority", "attempt", "retry_of", "group_id"),
    *("created_at", "not_before", "started_at", "finished_at"),
)
_OF_THE_STATUS = (
    *("mode", "paused", "paused_at", "max_active", "active", "free", "queued_total"),
    *("queued_ready", "waiting", "worker", "last_dispatch_at"),
)


def _some(document: Mapping[str, Any], names: Sequence[str]) -> Answer:
    """These fields, without those that have nothing."""
    return {name: document[name] for name in names if document.get(name) is not None}


# -- looking -----------------------------------------------------------------------------------


def status(call: ToolCall) -> Answer:
    found = call.client.scheduler.status()
    return {
        **_some(found, _OF_THE_STATUS),
        "you_are": call.principal.actor,
        "submit": call.rule.submits.value,
        "data": data(
            why_nothing_starts=found["reason"],
            paused_by=found["paused_by"],
            paused_reason=found["paused_reason"],
            worker_trouble=found["worker_trouble"],
            free_templates=call.rule.free_templates,
        ),
    }


def list_jobs(call: ToolCall) -> Answer:
    given = call.given
    found = call.client.jobs.list(
        limit=given.get("limit", MOST_ROWS),
        before=None if "before" not in given else call.client.jobs.find(given["before"]),
        everything=True,
        states=(given["state"],) if "state" in given else (),
        labels=given.get("labels", {}),
        name=given.get("name"),
        most_read=MOST_READ,
    )
    rows = [_row(call, each) for each in reversed(found.documents)]
    return {"jobs": rows, "next": None if found.next is None else shown(found.next)}


def _row(call: ToolCall, document: Mapping[str, Any]) -> Answer:
    """A job in a list."""
    run, wait = document["run"] or {}, document["wait"] or {}
    return {
        **_some({**document, **run}, (*_OF_A_ROW, "exit_code")),
        "own": call.is_own(document["submitted_by"]),
        "waits_for": wait.get("kind"),
        "data": data(
            room=IN_A_ROW,
            name=document["name"],
            labels=document["labels"],
            reason=document["reason"],
            waits=wait.get("detail"),
            template=document["template_id"],
            submitted_by=document["submitted_by"],
        ),
    }


def show_job(call: ToolCall) -> Answer:
    jobs, job_id = call.client.jobs, call.job_id()
    document = jobs.show(job_id)
    approval, run = document["approval"] or {}, document["run"] or {}
    made = _row(call, document)
    made |= _some(run, ("duration_ms", "signal"))
    if approval:
        made["approval"] = _some(approval, ("state", "requested_at", "decided_at"))
    made["after"] = document["after"]
    tries = jobs.tries(job_id)[-MOST_ROWS:]
    made["chain"] = [_some(each, ("id", "state", "attempt", "exit_code")) for each in tries]
    made["data"] |= data(
        runs=what_it_runs(document["params"]),
        directory=document["params"].get("cwd"),
        type=document["type"],
        needs=document["needs"],
        produces=document["produces"],
        locks=[each["key"] for each in document["locks"]],
        subject=document["subject"],
        target=document["target"],
        schedule=document["schedule_id"],
        decided_by=approval.get("decided_by"),
        decision=approval.get("reason"),
        error=run.get("error"),
        artifacts=run.get("artifacts"),
        result=run.get("result"),
        progress=run.get("progress"),
    )
    return {"job": made}


def why(call: ToolCall) -> Answer:
    return {"why": _why(call, call.job_id())}


def _why(call: ToolCall, job_id: JobId) -> Answer:
    found = call.client.jobs.why(job_id)
    objections = [
        {
            **_some(each, ("kind", "final", "until")),
            "jobs": [other["id"] for other in each["jobs"]],
            "data": data(detail=each["detail"], remedy=each["remedy"]),
        }
        for each in found["objections"][:MOST_ROWS]
    ]
    return {
        **_some(found, ("id", "state", "ended", "place", "queued", "worker")),
        "objections": objections,
        "data": data(
            reason=found["reason"], remedy=found["remedy"], worker_trouble=found["worker_trouble"]
        ),
    }


def tail_log(call: ToolCall) -> Answer:
    jobs, job_id = call.client.jobs, call.job_id()
    stream, count = call.given.get("stream", "stdout"), call.given.get("lines", MOST_ROWS)
    end = jobs.log_tail(job_id, stream, 0)
    begin = jobs.log_tail(job_id, stream, count)
    offset = max(begin, end - LOG_BYTES, 0)
    part = jobs.log(job_id, stream, offset, LOG_BYTES)
    lines, left_out = last_lines(part.data, count)
    return {
        "id": shown(job_id),
        "stream": stream,
        "job_ended": jobs.get(job_id).status in TERMINAL,
        "earlier": left_out or offset > 0 or part.skipped > 0,
        "data": {"lines": lines},
    }


def wait_for_job(call: ToolCall) -> Answer:
    """The state of the last job of its chain, and why it has not ended if it has not."""
    jobs, job_id = call.client.jobs, call.job_id()
    with suppress(TimedOutError):
        jobs.wait(job_id, timeout=call.given.get("seconds", 50), meanwhile=call.refuse_gone)
    last = jobs.last_of_chain(job_id).id
    document = jobs.show(last)
    made = {"ended": document["finished_at"] is not None, "job": _row(call, document)}
    return made if made["ended"] else {**made, "why": _why(call, last)}


def list_approvals(call: ToolCall) -> Answer:
    found = call.client.jobs.approvals()
    rows = [
        {
            **_some(each, ("id", "state", "now", "requested_at", "needed", "attempt")),
            "data": data(
                room=IN_A_ROW,
                name=each["name"],
                runs=each["runs"],
                directory=each["directory"],
                question=each["question"],
                requested_by=each["requested_by"],
                approved_by=each["approved_by"],
                approvers=each["approvers"],
            ),
        }
        for each in found[:MOST_ROWS]
    ]
    return {"approvals": rows, "more": len(found) - len(rows), "next_step": A_PERSON}


def list_schedules(call: ToolCall) -> Answer:
    found = call.client.schedules.list()
    rows = [
        {
            **_some(each, ("id", "enabled", "next_slot", "last_slot", "last_job", "active_job")),
            "data": data(
                room=IN_A_ROW,
                name=each["name"],
                rule=each["in_words"],
                template=each["template"],
                workflow=each["workflow"],
            ),
        }
        for each in found[:MOST_ROWS]
    ]
    return {"schedules": rows, "more": len(found) - len(rows)}


# -- submitting --------------------------------------------------------------------------------

A_PERSON = "a person decides, with `headway jobs approve` or `reject`; no tool can"


def submit_job(call: ToolCall) -> Answer:
    entry = dict(call.given)
    if call.rule.needs_person():
        entry["require_approval"] = True
    submitted = call.client.jobs.submit_entry(entry)
    reach("mcp.submitted")
    return _submitted(call, submitted.job_id, created=submitted.created)


def submit_template(call: ToolCall) -> Answer:
    """Of parameters alone: no word of the template is replaced but the key of the request."""
    template = call.given["template"]
    words: dict[str, Any] = {"key": call.given.get("key")}
    if call.rule.needs_person(template):
        _refuse_follow_up(call, template)
        words["require_approval"] = True
    submitted = call.client.templates.submit(template, params=call.given.get("params", {}), **words)
    reach("mcp.submitted")
    return _submitted(call, submitted.job_id, created=submitted.created)


def _refuse_follow_up(call: ToolCall, template: str) -> None:
    """The command of `on_finish` also runs after a cancel, so nobody would have approved it."""
    if call.client.templates.show(template)["job"].get("on_finish"):
        raise ConflictError(
            f"template {template!r} has an on_finish, which needs no approval; a person submits "
            f"it (headway submit --template {template}), or allows it: --free-template {template}"
        )


def _submitted(call: ToolCall, job_id: JobId, *, created: bool) -> Answer:
    return {"created": created, **_begun(call, job_id)}


def _begun(call: ToolCall, job_id: JobId) -> Answer:
    """A job that waits from now on, and what has to happen."""
    document = call.client.jobs.show(job_id)
    ended, approval = document["finished_at"] is not None, document["approval"] or {}
    asked = not ended and approval.get("state") == ApprovalState.PENDING
    step = f"{'show_job' if ended else 'wait_for_job'} with {shown(job_id)}"
    if asked:
        step = f"tell a person to decide: headway jobs approve {shown(job_id)}; then {step}"
    return {"job": _row(call, document), "needs_approval": asked, "next_step": step}


# -- steering ----------------------------------------------------------------------------------


def cancel_job(call: ToolCall) -> Answer:
    job_id = call.job_id()
    call.own([call.client.jobs.get(job_id)], "cancel")
    done = call.client.jobs.cancel([job_id])
    rows = [{"id": shown(each.job_id), "was_running": each.was_running} for each in done]
    return {"cancelled": rows}


def retry_job(call: ToolCall) -> Answer:
    """Retry the job and all that follows from it, if the agent submitted all of that. A job that
    began without an approval does not avoid one now."""

    def check(jobs: Sequence[Job]) -> None:
        call.own(jobs, "retry")
        for job in jobs:
            if job.approval is None and call.rule.needs_person(job.template_id):
                raise ConflictError(
                    f"{shown(job.id)} asks for no approval, so it would run again without one; "
                    f"a person can retry it: headway jobs retry {shown(job.id)}"
                )

    rewound = call.client.jobs.retry(call.job_id(), check=check)
    again = [shown(each) for each in rewound.reset]
    return {"again": again, **_begun(call, rewound.new_root)}
