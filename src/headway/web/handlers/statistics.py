"""Numbers over time."""

from headway.core.model import shown_run
from headway.web.calls import Reply, WebCall
from headway.workflows.runs import run_id


def load(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.load(call.query["span"]))


def of_jobs(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.jobs(call.path["name"], call.query["limit"]))


def of_workflow(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.runs(call.path["workflow"], call.query["limit"]))


def of_schedule(call: WebCall) -> Reply:
    found = call.client.schedules.runs(call.path["schedule"], call.query["limit"])
    return Reply(document={"runs": list(found)})


def spend(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.spend(call.query["days"]))


def timeline_of_run(call: WebCall) -> Reply:
    name = shown_run(run_id(call.path["run"]))
    return Reply(document=call.client.statistics.timeline_of_run(name))


def timeline_of_group(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.timeline_of_group(call.path["group"]))


def timeline_of_job(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.timeline_of_job(call.path["job"]))
