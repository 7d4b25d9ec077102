"""Numbers over time."""

from headway.web.calls import Reply, WebCall


def load(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.load(call.query["span"]))


def of_jobs(call: WebCall) -> Reply:
    """Of a name; of all names it would say nothing."""
    return Reply(document=call.client.statistics.jobs(call.path["name"], call.query["limit"]))


def of_workflow(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.runs(call.path["workflow"], call.query["limit"]))


def of_schedule(call: WebCall) -> Reply:
    found = call.client.schedules.runs(call.path["schedule"], call.query["limit"])
    return Reply(document={"runs": list(found)})


def spend(call: WebCall) -> Reply:
    return Reply(document=call.client.statistics.spend(call.query["days"]))
