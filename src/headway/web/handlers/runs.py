"""Executions of jobs, and runs of workflows."""

from headway.base.errors import InvalidInputError, NotFoundError
from headway.core.model import shown_run
from headway.jobs.views.details import parse_run_id
from headway.web.calls import Reply, WebCall
from headway.web.handlers.jobs import retry_job
from headway.web.problems import ForbiddenError
from headway.workflows.start import RunRequest, resolve_after

# -- executions of jobs ------------------------------------------------------------------------


def show(call: WebCall) -> Reply:
    document = call.client.document(call.client.jobs.run(parse_run_id(call.path["run"])).id)
    return Reply(document={"job": document["id"], "run": document["run"]})


def list_runs(call: WebCall) -> Reply:
    found = call.client.jobs.list(limit=call.query["limit"], states=("running",))
    running = [{"job": each["id"], "run": each["run"]} for each in found.documents if each["run"]]
    return Reply(document={"runs": running})


def retry(call: WebCall) -> Reply:
    """By the id of a run, however often its job was tried."""
    return retry_job(call, call.client.jobs.run(parse_run_id(call.path["run"])).id)


# -- workflows ---------------------------------------------------------------------------------


def list_workflows(call: WebCall) -> Reply:
    return Reply(document={"workflows": call.client.workflows.list()})


def show_workflow(call: WebCall) -> Reply:
    return Reply(document={"workflow": call.client.workflows.show(_name(call))})


def start(call: WebCall) -> Reply:
    call.refuse_bound_to_templates()
    jobs, runs = resolve_after(call.client.context, call.body.get("after") or ())
    request = RunRequest(
        params=call.body.get("params") or {},
        after=jobs,
        after_runs=runs,
        key=call.key,
        priority=call.body.get("priority", 0),
        require_approval=call.body.get("require_approval", False),
    )
    started = call.client.workflows.submit(_name(call), request)
    return Reply(
        201 if started.created else 200,
        {"created": started.created, "run": call.client.workflows.run(started.run)},
        {"Location": f"/api/v1/workflow-runs/{shown_run(started.run)}"},
    )


def _name(call: WebCall) -> str:
    """Of a workflow of the home: a path would reach files elsewhere."""
    name = call.path["workflow"]
    if "/" in name or name.endswith(".toml"):
        raise NotFoundError(f"there is no workflow {name!r}")
    return name


def list_workflow_runs(call: WebCall) -> Reply:
    return Reply(
        document={"runs": call.client.workflows.runs(everything=call.query.get("all", False))}
    )


def show_workflow_run(call: WebCall) -> Reply:
    number = _number(call)
    document = {"run": call.client.workflows.run(number)}
    if "manifest" in call.query.get("include", ()):
        document["manifest"] = call.client.workflows.manifest(number)
    return Reply(document=document)


def why_workflow_run(call: WebCall) -> Reply:
    return Reply(document=call.client.workflows.why(_number(call)))


def stop(call: WebCall) -> Reply:
    number = _number(call)
    _own(call, number, "stop")
    everything = call.body.get("now", False)
    return Reply(202, {"run": call.client.workflows.stop(number, everything=everything)})


def retry_workflow_run(call: WebCall) -> Reply:
    number = _number(call)
    _own(call, number, "retry")
    done = call.client.workflows.retry(
        number,
        from_node=call.body.get("from"),
        budget_usd=call.body.get("budget_usd"),
        budget_tokens=call.body.get("budget_tokens"),
        dry_run=call.body.get("dry_run", False),
    )
    document = {"nodes": list(done.nodes), "run": call.client.workflows.run(number)}
    return Reply(200 if call.body.get("dry_run") else 201, document)


def _own(call: WebCall, number: int, verb: str) -> None:
    run = call.client.workflows.run(number)
    if not call.principal.may_change(run["created_by"]):
        raise ForbiddenError(f"{call.principal.name} may {verb} only runs that it started")


def _number(call: WebCall) -> int:
    text = call.path["run"].removeprefix("wf-")
    if not text.isdecimal() or len(text) > 18:
        raise InvalidInputError(f"{call.path['run'][:80]!r} is not a run; write one like wf-7")
    return int(text)
