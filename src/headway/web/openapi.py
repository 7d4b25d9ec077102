"""The API as an OpenAPI 3.1 document, from the route table. docs/openapi.json is its copy.

The schema of an answer says what programs may rely on. v1 only grows: a document may have more keys
than its schema, and never fewer.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from headway import __version__
from headway.base.shapes import Schema, one_of
from headway.core.model import FIELDS
from headway.core.states import API_STATUS, Status
from headway.web.route import Route

STATES = tuple(str(each) for each in Status)
STATUSES = tuple(sorted(set(API_STATUS.values())))
TEXT: Schema = {"type": "string"}
MAYBE: Schema = {"type": ["string", "null"]}
ANY_OBJECT: Schema = {"type": "object"}


def _with(**properties: Schema) -> Schema:
    """An object that has these keys, and perhaps others."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


_OBJECTS = _list(ANY_OBJECT)
_IDS = _list(TEXT)
_WHOLE: Schema = {"type": "integer"}
_MAYBE_WHOLE: Schema = {"type": ["integer", "null"]}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_MAYBE_OBJECT: Schema = {"type": ["object", "null"]}
_INSTANT: Schema = {"type": ["string", "null"], "description": "RFC 3339, in UTC"}
_JOB_KEYS: Mapping[str, Schema] = {
    "id": {"type": "string", "pattern": "^job-[0-9]+$"},
    "state": one_of(*STATES),
    "status": one_of(*STATUSES),
    "name": TEXT,
    "slug": MAYBE,
    "type": TEXT,
    "reason": MAYBE,
    "priority": _WHOLE,
    "attempt": _WHOLE,
    "max_attempts": _MAYBE_WHOLE,
    "submitted_by": MAYBE,
    "group_id": MAYBE,
    "subject": MAYBE,
    "target": MAYBE,
    "run": {
        **_with(run_id=TEXT, exit_code=_MAYBE_WHOLE, started_at=_INSTANT, finished_at=_INSTANT),
        "type": ["object", "null"],
    },
    "wait": {**_with(kind=TEXT, detail=TEXT), "type": ["object", "null"]},
}
# The rest by how a field is shown (`core.model.FIELDS`).
_SHOWN: Mapping[str, Schema] = {
    "instant": _INSTANT,
    "job": MAYBE,
    "jobs": _IDS,
    "object": ANY_OBJECT,
    "params": ANY_OBJECT,
    "list": _list({}),
}

SCHEMAS: Mapping[str, Schema] = {
    "Anything": ANY_OBJECT,
    "Text": TEXT,
    "Stream": {"description": "server-sent events"},
    "Job": _with(
        **{
            field.shown: _JOB_KEYS.get(field.shown, _SHOWN.get(field.show, {}))
            for field in FIELDS
            if field.shown
        }
    ),
    "OneJob": _with(job=_ref("Job")),
    "Jobs": _with(jobs=_list(_ref("Job"))),
    "JobPage": _with(jobs=_list(_ref("Job")), next=MAYBE),
    "Submitted": _with(created={"type": "boolean"}, job=_ref("Job")),
    "SubmittedGraph": _with(created={"type": "boolean"}, jobs=_list(_ref("Job"))),
    "Edited": _with(job=_ref("Job"), changed=_IDS),
    "Moved": _with(job=_ref("Job"), moved={"type": "boolean"}),
    "Repinned": _with(job=_ref("Job"), **{"from": TEXT, "to": TEXT}),
    "Retried": _with(retry_root=TEXT, retry_set=_IDS, reset=_IDS),
    "Why": _with(id=TEXT, ended={"type": "boolean"}),
    "Result": _with(job=TEXT, result={}),
    "Queue": _with(jobs=_list(_ref("Job")), more={"type": "boolean"}),
    "Reordered": _with(moved=_IDS),
    "Approvals": _with(approvals=_OBJECTS),
    "Graph": ANY_OBJECT,
    "Runs": _with(runs=_OBJECTS),
    "OneRun": _with(job=TEXT, run=ANY_OBJECT),
    "Workflows": _with(workflows=_OBJECTS),
    "OneWorkflow": _with(workflow=ANY_OBJECT),
    "WorkflowRuns": _with(runs=_OBJECTS),
    "OneWorkflowRun": _with(run=_with(id=TEXT, workflow=TEXT, state=TEXT, nodes=_OBJECTS)),
    "StartedWorkflowRun": _with(
        created={"type": "boolean"}, run=_with(id=TEXT, workflow=TEXT, state=TEXT, nodes=_OBJECTS)
    ),
    "RetriedRun": _with(nodes=_IDS, run=ANY_OBJECT),
    "Groups": _with(groups=_OBJECTS),
    "OneGroup": _with(group=_with(id=TEXT)),
    "CancelledGroup": _with(group=_with(id=TEXT), cancelled=_IDS),
    "Schedules": _with(schedules=_OBJECTS),
    "OneSchedule": _with(schedule=_with(id=TEXT, name=TEXT)),
    "Slots": _with(slots=_OBJECTS),
    "Upcoming": _with(slots=_OBJECTS, more={"type": "boolean"}),
    "Triggered": _with(schedule=ANY_OBJECT, job=_ref("Job")),
    "Templates": _with(templates=_OBJECTS),
    "OneTemplate": _with(template=_with(name=TEXT)),
    "SchedulerStatus": _with(mode=TEXT, paused={"type": "boolean"}),
    "Plan": _with(would_start=_OBJECTS, skipped=_OBJECTS),
    "ResetDone": _with(breakers=_IDS, jobs=_IDS),
    "ClearedItems": _with(cleared=_IDS, running=_IDS),
    "Settings": _with(settings=_list(_with(key=TEXT, value={}))),
    "OneReservation": _with(reservation=_with(id=TEXT, state=one_of("waiting", "running"))),
    "Load": _with(
        since=TEXT,
        until=TEXT,
        bucket_seconds=_WHOLE,
        complete_since=TEXT,
        truncated={"type": "boolean"},
        slots=_WHOLE,
        buckets=_list(_with(at=TEXT, ended=_MAYBE_WHOLE, waiting=_MAYBE_WHOLE)),
    ),
    "Lengths": _with(runs=_list(_with(job=MAYBE, run=MAYBE, state=TEXT, seconds=_MAYBE_NUMBER))),
    "Spend": _with(
        days=_list(_with(day=TEXT, usd={"type": "number"}, tokens=_WHOLE)),
        unknown=_WHOLE,
        truncated={"type": "boolean"},
    ),
    "Timeline": _with(
        of=TEXT,
        truncated={"type": "boolean"},
        rows=_list(_with(name=TEXT, job=TEXT, state=TEXT, intervals=_OBJECTS)),
    ),
    "Artifacts": _with(artifacts=_OBJECTS),
    "Locks": _with(locks=_OBJECTS),
    "Hosts": _with(hosts=_list(_with(id=TEXT, name=TEXT))),
    "Limits": ANY_OBJECT,
    "Targets": _with(targets=_OBJECTS),
    "Runners": _with(runners=_OBJECTS),
    "OneRunner": _with(runner=ANY_OBJECT),
    "Resumed": _with(resumed={"type": "boolean"}),
    "JobsFile": ANY_OBJECT,
    "Events": _with(
        events=_list(_with(seq={"type": "integer"}, at=TEXT, kind=TEXT)), epoch=TEXT, next=TEXT
    ),
    "Endpoints": _with(endpoints=_OBJECTS),
    "OneEndpoint": _with(endpoint=_with(id=TEXT, name=TEXT, state=TEXT)),
    "Tested": _with(delivered={"type": "boolean"}),
    "Rotated": _with(name=MAYBE, secret=TEXT, fingerprint=TEXT),
    "Deliveries": _with(deliveries=_OBJECTS),
    "OneDelivery": _with(delivery=_with(id=TEXT, state=TEXT)),
    "Replayed": _with(replayed={"type": "integer"}),
    "LegacyTriggered": _with(job_id=TEXT, status=TEXT, job=_ref("Job")),
    "LegacyBatch": _with(group_id=TEXT, jobs=_list(_ref("Job"))),
    "Me": _with(name=TEXT, kind=TEXT, role=TEXT),
    "Version": _with(version=TEXT, api=TEXT),
    "Ready": _with(ready={"type": "boolean"}),
    "Problem": _with(type=TEXT, title=TEXT, status={"type": "integer"}, detail=TEXT, instance=TEXT),
}

HEADERS: Mapping[str, str] = {
    "Idempotency-Key": "the same key twice makes one job",
    "Prefer": "wait=N: wait for the end, N seconds at most",
    "If-Match": "the ETag of what was seen",
    "Last-Event-ID": "go on behind this event",
    "Range": "bytes=FIRST-[LAST]",
}
ANSWER_HEADERS: Mapping[str, str] = {
    "ETag": "the revision, for If-Match",
    "Headway-Log-Next": "the offset behind the last byte",
    "Headway-Log-Skipped": "how many bytes before these are not kept",
    "Headway-Log-Ended": "true if nothing more will be written",
}
WITH_REVISION = frozenset({"/api/v1/jobs/{job}", "/api/v1/queue", "/jobs/{job}"})
# What any route may answer besides its own codes, and what only some do.
ALWAYS_REFUSED = (400, 401, 403, 404, 405, 421, 429, 431, 500, 503, 504)
WITH_A_BODY = (413, 415, 422)
WITH_IF_MATCH = (412, 428)
WITH_A_RANGE = (416,)
OF_CHANGES = (409, 507)


def document(routes: Iterable[Route]) -> dict[str, Any]:
    schemas = dict(SCHEMAS)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headway",
            "version": __version__,
            "description": "Jobs that start when they may start, and once. docs/http.md",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {"Refused": _REFUSED},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`headway tokens add NAME --role R` makes one",
                }
            },
        },
    }


_REFUSED = {
    "description": "refused; `detail` says why",
    "content": {"application/problem+json": {"schema": _ref("Problem")}},
}


def _operation(route: Route, schemas: dict[str, Schema]) -> dict[str, Any]:
    refused = {"$ref": "#/components/responses/Refused"}
    answers = {str(code): _answer(route, name) for code, name in route.answers.items()}
    made: dict[str, Any] = {
        "operationId": operation_id(route),
        "tags": [_noun(route)],
        "summary": route.about,
        "description": _right(route),
        "parameters": [*_parameters(route)],
        "responses": {**{str(code): refused for code in refusals(route)}, **answers},
    }
    if route.body is not None:
        media = ["application/json"]
        media += ["application/x-www-form-urlencoded"] if route.form else []
        schema = _named(route.body, schemas)
        made["requestBody"] = {
            "required": bool(route.body.get("required")),
            "content": {each: {"schema": schema} for each in media},
        }
    if route.right.public:
        made["security"] = []
    if route.old:
        made["deprecated"] = True
    return made


def refusals(route: Route) -> list[int]:
    codes = [*ALWAYS_REFUSED]
    if route.body is not None:
        codes += WITH_A_BODY
    if "If-Match" in route.headers:
        codes += WITH_IF_MATCH
    if "Range" in route.headers:
        codes += WITH_A_RANGE
    if route.method != "GET" or route.path.startswith("/api/v1/jobs/{job}/"):
        codes += OF_CHANGES  # and what a job does not have yet, or another host has
    return sorted(set(codes) - set(route.answers))


def _named(schema: Any, schemas: dict[str, Schema]) -> Any:
    """The schema with a reference in place of each part that has a title. Such a part stands in the
    document once, so generated programs have one type for it."""
    if isinstance(schema, list):
        return [_named(each, schemas) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: _named(each, schemas) for key, each in schema.items()}
    if not isinstance(schema.get("title"), str):
        return made
    schemas[schema["title"]] = made
    return _ref(schema["title"])


def operation_id(route: Route) -> str:
    """`post_jobs`, `get_jobs_job`; of one that is legacy, `legacy_post_jobs_template_trigger`."""
    words = re.findall(r"[a-z0-9]+", route.path.removeprefix("/api/v1").lower()) or ["home"]
    return "_".join([*(["legacy"] if route.old else []), route.method.lower(), *words])


def _noun(route: Route) -> str:
    if route.old:
        return "legacy"
    return route.path.removeprefix("/api/v1").split("/")[1] or "home"


def _right(route: Route) -> str:
    if route.right.public:
        return "Needs no credential."
    own = "; with the role submit, of its own jobs alone" if route.own else ""
    person = ", a person" if route.right.person else ""
    return f"Needs the role {route.right.role.word}{person}{own}."


def _parameters(route: Route) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", route.path):
        schema: Schema = one_of("stdout", "stderr") if name == "stream" else TEXT
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    for name, shape in route.query.items():
        made: dict[str, Any] = {"name": name, "in": "query", "required": False, "schema": shape}
        if shape.get("type") == "array":
            made |= {"style": "form", "explode": False}
        yield made
    for name in route.headers:
        yield {
            "name": name,
            "in": "header",
            "required": False,
            "description": HEADERS[name],
            "schema": TEXT,
        }


def _answer(route: Route, name: str) -> dict[str, Any]:
    if not name:
        return {"description": "done"}
    content = {route.media.partition(";")[0]: {"schema": _ref(name)}}
    if route.path.endswith("/graph"):
        for media in ("image/svg+xml", "text/vnd.graphviz", "text/plain"):
            content[media] = {"schema": TEXT}
    if route.path.endswith("/events"):
        content["text/event-stream"] = {"schema": _ref("Stream")}
    answer = {"description": "done", "content": content}
    headers = _answer_headers(route)
    return {**answer, "headers": headers} if headers else answer


def _answer_headers(route: Route) -> dict[str, Any]:
    words: tuple[str, ...] = ()
    if "If-Match" in route.headers or route.path in WITH_REVISION:
        words = ("ETag",)
    elif "Range" in route.headers:
        words = ("Headway-Log-Next", "Headway-Log-Skipped", "Headway-Log-Ended")
    return {
        word: {"description": ANSWER_HEADERS[word], "required": True, "schema": TEXT}
        for word in words
    }
