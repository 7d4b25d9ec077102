"""Earlier routes, for programs that know them. Only this module has old paths and old words (C24).

They call the same verbs with the same rights. Each answer names the route that has taken its place.
"""

from typing import Any
from urllib.parse import quote

from headway.core.groups import shown_group
from headway.jobs.groups import Plan
from headway.web.calls import Reply, WebCall
from headway.web.handlers import collections, jobs
from headway.web.problems import ForbiddenError

SUNSET = "Sat, 01 Jan 2028 00:00:00 GMT"


def _old(answer: Reply, successor: str) -> Reply:
    headers = {
        **answer.headers,
        "Deprecation": "true",
        "Sunset": SUNSET,
        "Link": f'<{quote(successor)}>; rel="successor-version"',
    }
    return answer._replace(headers=headers)


def trigger(call: WebCall) -> Reply:
    """Make a job of a template."""
    template = call.path["template"]
    if call.principal.templates and template not in call.principal.templates:
        raise ForbiddenError(
            f"this token makes jobs of {', '.join(call.principal.templates)} alone"
        )
    params = {name: str(value) for name, value in (call.body.get("params") or {}).items()}
    key = {} if call.key is None else {"key": call.key}
    made = call.client.templates.submit(template, params=params, **key)
    document = call.client.document(made.job_id)
    return _old(
        Reply(202, {"job_id": document["id"], "status": document["status"], "job": document}),
        "/api/v1/jobs",
    )


def trigger_batch(call: WebCall) -> Reply:
    """Make jobs of several templates, as one group."""
    entries: list[dict[str, Any]] = call.body["jobs"]
    names = {each["template"] for each in entries}
    if call.principal.templates and not names <= set(call.principal.templates):
        raise ForbiddenError(
            f"this token makes jobs of {', '.join(call.principal.templates)} alone"
        )
    requests = [
        call.client.templates.request(
            each["template"],
            params={name: str(value) for name, value in (each.get("params") or {}).items()},
        )
        for each in entries
    ]
    plan = Plan(call.body.get("mode", "sequential"), call.body.get("on_failure", "stop"))
    made, submitted = call.client.groups.submit(requests, plan)
    document = {
        "group_id": shown_group(made.group),
        "jobs": call.client.jobs.documents([each.job_id for each in submitted]),
    }
    return _old(Reply(202, document), "/api/v1/groups")


def show_batch(call: WebCall) -> Reply:
    return _old(collections.show_group(call), f"/api/v1/groups/{call.path['group']}")


def list_jobs(call: WebCall) -> Reply:
    return _old(jobs.list_jobs(call), "/api/v1/jobs")


def show_job(call: WebCall) -> Reply:
    return _old(jobs.show(call), f"/api/v1/jobs/{call.path['job']}")


def cancel_job(call: WebCall) -> Reply:
    return _old(jobs.cancel(call), f"/api/v1/jobs/{call.path['job']}/cancel")
