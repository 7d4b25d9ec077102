"""Groups, schedules, templates, and what else is looked at as a list."""

from collections.abc import Mapping
from typing import Any

from headway.base.errors import InvalidInputError
from headway.base.units import parse_instant, show_instant
from headway.core.groups import shown_group
from headway.core.model import shown
from headway.jobs.groups import Plan
from headway.web.calls import Reply, WebCall
from headway.workitems.targets import target_document

LONGEST_LOOK = 92 * 24 * 3600 * 1_000_000


# -- groups ------------------------------------------------------------------------------------


def list_groups(call: WebCall) -> Reply:
    found = call.client.groups.list(everything=call.query.get("all", False))
    return Reply(document={"groups": list(found)})


def show_group(call: WebCall) -> Reply:
    return Reply(document={"group": call.client.groups.show(call.path["group"])})


def create_group(call: WebCall) -> Reply:
    call.refuse_bound_to_templates()
    body = call.body
    plan = Plan(body.get("mode", "sequential"), body.get("on_failure", "stop"), body.get("name"))
    ids = [call.client.jobs.find(each) for each in body.get("jobs") or ()]
    call.own(ids, "group")
    made = call.client.groups.create(plan, ids, stays_open=body.get("open", False))
    name = shown_group(made.group)
    return Reply(
        201, {"group": call.client.groups.show(name)}, {"Location": f"/api/v1/groups/{name}"}
    )


def close_group(call: WebCall) -> Reply:
    call.client.groups.close(call.path["group"])
    return show_group(call)


def cancel_group(call: WebCall) -> Reply:
    name = call.path["group"]
    _, done = call.client.groups.cancel(name)
    cancelled = [shown(each.job_id) for each in done]
    document = {"group": call.client.groups.show(name), "cancelled": cancelled}
    return Reply(202 if any(each.was_running for each in done) else 200, document)


# -- schedules ---------------------------------------------------------------------------------


def list_schedules(call: WebCall) -> Reply:
    return Reply(document={"schedules": list(call.client.schedules.list())})


def show_schedule(call: WebCall) -> Reply:
    return Reply(document={"schedule": call.client.schedules.show(call.path["schedule"])})


def slots(call: WebCall) -> Reply:
    found = call.client.schedules.slots(call.path["schedule"], call.query["limit"])
    return Reply(document={"slots": list(found)})


def upcoming(call: WebCall) -> Reply:
    begin = _instant(call, "from", call.now)
    end = _instant(call, "until", begin + 24 * 3600 * 1_000_000)
    if not begin <= end <= begin + LONGEST_LOOK:
        raise InvalidInputError("until is before from, or more than 92 days after it")
    found, more = call.client.schedules.upcoming(begin, end, limit=call.query["limit"])
    return Reply(
        document={
            "from": show_instant(begin),
            "until": show_instant(end),
            "slots": list(found),
            "more": more,
        }
    )


def _instant(call: WebCall, word: str, default: int) -> int:
    said = call.query.get(word)
    return default if said is None else parse_instant(said, call.now, what=word)


def add_schedule(call: WebCall) -> Reply:
    made = call.client.schedules.add(**_given(call.body))
    return Reply(
        201,
        {"schedule": call.client.schedules.show(made.shown)},
        {"Location": f"/api/v1/schedules/{made.shown}"},
    )


def _given(body: Mapping[str, Any]) -> dict[str, Any]:
    """The words of the verb: those of a job stand under `job`."""
    job = body.get("job") or {}
    if job and (body.get("template") or body.get("workflow")):
        raise InvalidInputError("give job, template or workflow, and one of them alone")
    given = {word: value for word, value in body.items() if word != "job" and value is not None}
    return {**given, **job}


def remove_schedule(call: WebCall) -> Reply:
    call.client.schedules.remove(call.path["schedule"])
    return Reply(204)


def enable_schedule(call: WebCall) -> Reply:
    call.client.schedules.enable(call.path["schedule"])
    return show_schedule(call)


def disable_schedule(call: WebCall) -> Reply:
    call.client.schedules.disable(call.path["schedule"])
    return show_schedule(call)


def trigger_schedule(call: WebCall) -> Reply:
    name = call.path["schedule"]
    made = call.client.schedules.trigger(name, key=call.key)
    document = {
        "created": made.created,
        "schedule": call.client.schedules.show(name),
        "job": call.client.document(made.job_id),
    }
    status = 201 if made.created else 200
    return Reply(status, document, {"Location": f"/api/v1/jobs/{shown(made.job_id)}"})


# -- templates ---------------------------------------------------------------------------------


def list_templates(call: WebCall) -> Reply:
    found = call.client.templates.list(archived=call.query.get("all", False))
    return Reply(document={"templates": list(found)})


def show_template(call: WebCall) -> Reply:
    return Reply(document={"template": call.client.templates.show(call.path["template"])})


def put_template(call: WebCall) -> Reply:
    name, body = call.path["template"], dict(call.body)
    params = body.pop("params", None) or {}
    known = {each["name"] for each in call.client.templates.list(archived=True)}
    call.client.templates.add(name, params=params, replace=True, **body)
    return Reply(200 if name in known else 201, {"template": call.client.templates.show(name)})


def archive_template(call: WebCall) -> Reply:
    call.client.templates.archive(call.path["template"])
    return Reply(204)


# -- others ------------------------------------------------------------------------------------


def artifacts(call: WebCall) -> Reply:
    found, left_out = call.client.artifacts.list()
    return Reply(document={"artifacts": list(found), "left_out": left_out})


def locks(call: WebCall) -> Reply:
    return Reply(document={"locks": list(call.client.scheduler.locks())})


def hosts(call: WebCall) -> Reply:
    return Reply(document={"hosts": list(call.client.scheduler.hosts())})


def limits(call: WebCall) -> Reply:
    document = call.client.scheduler.status()
    wanted = ("mode", "max_active", "active", "free", "limits", "rates", "reservations")
    return Reply(document={word: document[word] for word in wanted})


def targets(call: WebCall) -> Reply:
    return Reply(
        document={"targets": [target_document(each) for each in call.client.targets.list()]}
    )


def items(call: WebCall) -> Reply:
    return Reply(document={"targets": list(call.client.items.list())})


def runners(call: WebCall) -> Reply:
    return Reply(document={"runners": list(call.client.runners.list())})


def show_runner(call: WebCall) -> Reply:
    return Reply(document={"runner": call.client.runners.show(call.path["runner"])})


def resume_runner(call: WebCall) -> Reply:
    return Reply(document={"resumed": call.client.runners.resume(call.path["runner"])})


def jobs_file(call: WebCall) -> Reply:
    return Reply(document=call.client.jobsfile.list())
