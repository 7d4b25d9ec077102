"""Jobs over HTTP."""

import base64
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from headway.base.errors import ConflictError, InvalidInputError
from headway.base.units import parse_duration, parse_since, show_instant
from headway.client import Client
from headway.core.model import JobId, shown
from headway.core.order import Place, Side
from headway.core.states import TERMINAL
from headway.web.calls import Answer, Later, Live, Reply, Stream, WebCall
from headway.web.problems import ForbiddenError, HttpProblem
from headway.web.streams import (
    LOG_PIECE,
    STREAMS,
    LogPlace,
    LogRead,
    logs,
    parse_log_place,
)

FILTERS = ("state", "status", "label", "name", "since", "group", "run", "subject", "target")
MOST_READ = 20_000  # rows that one page looks through, for filters that little fits
ONLY_OF_TEMPLATES = frozenset({"template", "params", "key"})


# -- looking -----------------------------------------------------------------------------------


def list_jobs(call: WebCall) -> Reply:
    said = {name: call.query[name] for name in FILTERS if name in call.query}
    found = call.client.jobs.list(
        limit=call.query["limit"],
        before=_before(call.query.get("cursor"), said),
        most_read=MOST_READ,
        **_search(call),
    )
    documents = found.documents[::-1]
    if found.next is None:
        return Reply(document={"jobs": documents, "next": None})
    cursor = _cursor(found.next, said)
    words = {**call.query, "cursor": cursor}
    query = "&".join(f"{name}={_quoted(value)}" for name, value in words.items())
    return Reply(
        document={"jobs": documents, "next": cursor},
        headers={"Link": f'</api/v1/jobs?{query}>; rel="next"'},
    )


def _search(call: WebCall) -> dict[str, Any]:
    query = call.query
    labels = [each.partition("=") for each in query.get("label", ())]
    for name, equals, _ in labels:
        if not equals:
            raise InvalidInputError(f"label {name!r} has no value; write label=K=V")
    return {
        "everything": True,
        "states": tuple(query.get("state", ())),
        "statuses": tuple(query.get("status", ())),
        "labels": {name: value for name, _, value in labels},
        "name": query.get("name"),
        "since": parse_since(query["since"], call.now, "since") if "since" in query else None,
        "groups": tuple(query.get("group", ())),
        "runs": tuple(query.get("run", ())),
        "subjects": tuple(query.get("subject", ())),
        "targets": tuple(query.get("target", ())),
    }


def _cursor(before: JobId, said: Mapping[str, Any]) -> str:
    """Opaque: where the next page begins, and of which question it is."""
    content = json.dumps([before, _digest(said)]).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _before(cursor: str | None, said: Mapping[str, Any]) -> JobId | None:
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        before, digest = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, TypeError):
        before, digest = None, None
    if not isinstance(before, int) or not 0 <= before < 1 << 62:
        raise InvalidInputError("cursor is none that a page has given")
    if digest != _digest(said):
        raise InvalidInputError("cursor is of another question; begin without one")
    return before


def _digest(said: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _quoted(value: Any) -> str:
    from urllib.parse import quote

    texts = value if isinstance(value, list) else [value]
    return ",".join(quote(str(each), safe="") for each in texts)


def show(call: WebCall) -> Reply:
    job_id = _id(call)
    document: dict[str, Any] = {"job": call.client.document(job_id)}
    wanted = call.query.get("include", ())
    if "chain" in wanted:
        document["chain"] = call.client.jobs.tries(job_id)
    if "events" in wanted:
        document["events"] = [
            {"seq": each.seq, "at": show_instant(each.at), "kind": each.kind, "actor": each.actor}
            | {"data": each.data}
            for each in call.client.jobs.history(job_id)
        ]
        document["event_epoch"] = call.client.events.epoch()
    return _tagged(call.client, job_id, document)


def _tagged(client: Client, job_id: JobId, document: Mapping[str, Any], status: int = 200) -> Reply:
    return Reply(status, document, {"ETag": f'"{client.jobs.revision(job_id)}"'})


def why(call: WebCall) -> Reply:
    return Reply(document=call.client.jobs.why(_id(call)))


def result(call: WebCall) -> Reply:
    document = call.client.document(_id(call))
    if document["run"] is None:
        raise ConflictError(f"{document['id']} has not run; it is {document['state']}")
    return Reply(document={"job": document["id"], "result": document["run"]["result"]})


def patch(call: WebCall) -> Reply:
    """The patch of its worktree, as it was saved."""
    content = call.client.jobs.patch(_id(call))
    return Reply(body=content, media="text/x-diff; charset=utf-8")


# -- submitting --------------------------------------------------------------------------------


def submit(call: WebCall) -> Answer:
    submitted = _submit(call)
    client, job_id = call.client, submitted.job_id
    document = {"created": submitted.created, "job": client.document(job_id)}
    status = 201 if submitted.created else 200
    headers = {"Location": f"/api/v1/jobs/{shown(job_id)}"}
    seconds = call.seconds_to_wait()
    if not seconds:
        return Reply(status, document, headers)

    def look(client: Client) -> Reply | None:
        last = client.jobs.last_of_chain(job_id)
        if last.status not in TERMINAL:
            return None
        ended = {"created": submitted.created, "job": client.document(last.id)}
        return Reply(200, ended, headers)

    return Later(look, Reply(202, document, headers), seconds)


def _submit(call: WebCall) -> Any:
    body = dict(call.body)
    if call.key is not None:
        if body.get("key") not in (None, call.key):
            raise InvalidInputError("key and Idempotency-Key are two keys; give one")
        body["key"] = call.key
    template = body.pop("template", None)
    if call.principal.templates:
        _refuse_beyond_templates(call, template, body)
    if template is not None:
        params = body.pop("params", None) or {}
        return call.client.templates.submit(template, params=params, **body)
    if "params" in body:
        raise InvalidInputError("params are of a template; name it")
    return call.client.jobs.submit_entry(body)


def _refuse_beyond_templates(call: WebCall, template: Any, body: Mapping[str, Any]) -> None:
    allowed = call.principal.templates
    if template not in allowed:
        raise ForbiddenError(f"this token makes jobs of {', '.join(allowed)} alone")
    others = sorted(set(body) - ONLY_OF_TEMPLATES)
    if others:
        raise ForbiddenError(f"this token gives params and a key alone, and not {others[0]}")


def submit_graph(call: WebCall) -> Reply:
    call.refuse_bound_to_templates()
    entries = [dict(each) for each in call.body["jobs"]]
    if call.key is not None:
        for number, each in enumerate(entries, 1):
            each.setdefault("key", f"{call.key}/{number}")
    submitted = call.client.jobs.submit_entries(entries)
    documents = call.client.jobs.documents([each.job_id for each in submitted])
    created = any(each.created for each in submitted)
    return Reply(201 if created else 200, {"created": created, "jobs": documents})


# -- steering ----------------------------------------------------------------------------------


def edit(call: WebCall) -> Reply:
    call.refuse_bound_to_templates()
    job_id = _id(call)
    call.own([job_id], "edit")
    changes = {word: value for word, value in call.body.items() if value is not None}
    if not changes:
        raise InvalidInputError("what is to be changed? Give a key")
    for word in ("timeout", "grace"):
        if word in changes:
            changes[word] = parse_duration(changes[word], word)
    if "argv" in changes:
        changes["argv"] = tuple(changes["argv"])
    edited = call.client.jobs.edit(job_id, revision=call.revision, **changes)
    document = {"job": call.client.document(job_id), "changed": list(edited.fields)}
    return _tagged(call.client, job_id, document)


def cancel(call: WebCall) -> Reply:
    job_id = _id(call)
    downstream = call.body.get("downstream", False)
    touched = call.client.jobs.downstream(job_id) if downstream else [job_id]
    call.own(touched, "cancel")
    verb = call.client.jobs.cancel_downstream if downstream else call.client.jobs.cancel
    done = verb([job_id])
    running = any(each.was_running for each in done)
    documents = call.client.jobs.documents([each.job_id for each in done])
    return Reply(202 if running else 200, {"jobs": documents})


def retry(call: WebCall) -> Reply:
    return retry_job(call, _id(call))


def retry_job(call: WebCall, job_id: JobId) -> Reply:
    jobs = call.client.jobs
    again = call.body.get("again", False)
    planned = (jobs.preview_repeat if again else jobs.preview_retry)(job_id)
    call.own(planned.members, "retry")
    if call.body.get("dry_run", False):
        return Reply(document={"dry_run": True, **planned.document(())})
    rewound = (jobs.repeat if again else jobs.retry)(job_id)
    document = rewound.document(())
    document["job"] = call.client.document(rewound.new_root)
    return Reply(201, document, {"Location": f"/api/v1/jobs/{shown(rewound.new_root)}"})


def move(call: WebCall) -> Reply:
    job_id = _id(call)
    given = {word: value for word, value in call.body.items() if value not in (None, False)}
    if len(given) != 1:
        raise InvalidInputError("where to? Give one of before, after, position and front")
    (word, value), *_ = given.items()
    done = call.client.jobs.move(job_id, _place(call, word, value), revision=call.revision)
    document = {"job": call.client.document(job_id), "moved": done.moved}
    return _tagged(call.client, job_id, document)


def _place(call: WebCall, word: str, value: Any) -> Place:
    if word == "front":
        return Place(Side.FRONT)
    if word == "position":
        return Place(Side.POSITION, value)
    return Place(Side(word), call.client.jobs.find(value))


def approve(call: WebCall) -> Reply:
    job_id = _id(call)
    call.client.jobs.approve(job_id, revision=call.required_revision())
    return _tagged(call.client, job_id, {"job": call.client.document(job_id)})


def reject(call: WebCall) -> Reply:
    job_id = _id(call)
    call.client.jobs.reject(job_id, call.body.get("reason"), revision=call.revision)
    return _tagged(call.client, job_id, {"job": call.client.document(job_id)})


def repin(call: WebCall) -> Reply:
    job_id = _id(call)
    old, new = call.client.jobs.repin(job_id, revision=call.revision)
    document = {"job": call.client.document(job_id), "from": old.oid, "to": new.oid}
    return _tagged(call.client, job_id, document)


def remove(call: WebCall) -> Reply:
    call.client.jobs.clean(_id(call))
    return Reply(204)


def approvals(call: WebCall) -> Reply:
    return Reply(document={"approvals": list(call.client.jobs.approvals())})


def graph(call: WebCall) -> Reply:
    from headway.jobs.views.graph import formats
    from headway.jobs.views.graph.svg import svg

    words: dict[str, Any] = {"everything": call.query.get("all", False), "top": call.query["top"]}
    if "job" in call.query:
        words["focus"] = call.client.jobs.find(call.query["job"])
    if "depth" in call.query:
        words["depth"] = call.query["depth"]
    loaded = call.client.jobs.graph(**words)
    match call.query["format"]:
        case "svg":
            return Reply(body="\n".join(svg(loaded)).encode(), media="image/svg+xml")
        case "dot":
            return Reply(body="\n".join(formats.dot(loaded)).encode(), media="text/vnd.graphviz")
        case "mermaid":
            return Reply(body="\n".join(formats.mermaid(loaded)).encode(), media="text/plain")
    return Reply(document={**formats.document(loaded), "more": loaded.hidden > 0})


# -- the queue ---------------------------------------------------------------------------------


def queue(call: WebCall) -> Reply:
    line = call.client.jobs.queue(limit=call.query["limit"])
    return Reply(
        document={"jobs": line.documents, "more": line.more},
        headers={"ETag": f'"{call.client.jobs.queue_revision()}"'},
    )


def reorder(call: WebCall) -> Reply:
    moved = call.client.jobs.reorder(call.body["order"], revision=call.required_revision())
    return Reply(
        document={"moved": [shown(each.job.id) for each in moved if each.moved]},
        headers={"ETag": f'"{call.client.jobs.queue_revision()}"'},
    )


# -- logs --------------------------------------------------------------------------------------


def log(call: WebCall) -> Reply:
    """A part of one stream, by its logical offsets."""
    job_id, stream = _id(call), call.path["stream"]
    if stream not in STREAMS:
        raise HttpProblem(404, "not-found", f"a job has {' and '.join(STREAMS)}")
    refuse_elsewhere(call.client, job_id)
    limit = call.query["limit"]
    if "tail" in call.query:
        offset = call.client.jobs.log_tail(job_id, stream, call.query["tail"])
    else:
        offset, limit, ranged = _range(call)
    found = call.client.jobs.log(job_id, stream, offset, limit)
    headers = {
        "Headway-Log-Next": str(found.next),
        "Headway-Log-Skipped": str(found.skipped),
        "Headway-Log-Ended": str(found.ended).lower(),
    }
    media = "text/plain; charset=utf-8"
    if "tail" in call.query or not ranged:
        return Reply(200, None, headers, found.data, media)
    if found.skipped or not found.data:
        raise HttpProblem(
            416,
            "range-not-satisfiable",
            f"those bytes are not there; the next are from {found.next - len(found.data)} on",
            headers={**headers, "Content-Range": "bytes */*"},
        )
    headers["Content-Range"] = f"bytes {found.next - len(found.data)}-{found.next - 1}/*"
    return Reply(206, None, headers, found.data, media)


def _range(call: WebCall) -> tuple[int, int, bool]:
    """From `Range: bytes=A-[B]`, or from the query."""
    said = call.header("range")
    limit: int = call.query["limit"]
    if said is None:
        return call.query.get("offset", 0), limit, False
    unit, _, rest = said.partition("=")
    first, dash, last = rest.partition("-")
    wrong = unit.strip() != "bytes" or not dash or not first.isdecimal() or len(first) > 18
    if wrong or (last and (not last.isdecimal() or len(last) > 18 or int(last) < int(first))):
        raise HttpProblem(416, "range-not-satisfiable", "give one range: bytes=FIRST-[LAST]")
    if last:
        limit = min(limit, int(last) - int(first) + 1)
    return int(first), limit, True


def follow(call: WebCall) -> Stream:
    """What it writes, as it comes."""
    job_id = _id(call)
    refuse_elsewhere(call.client, job_id)
    this = call.query.get("this", False)
    said = call.header("last-event-id")
    place = LogPlace(job_id) if said is None else parse_log_place(said)
    if place.job not in _chain(call.client, job_id):
        raise InvalidInputError(f"{said} is not of the chain of {shown(job_id)}")

    def read(client: Client, place: LogPlace) -> LogRead:
        return read_logs(client, place, this=this)

    def make(live: Live) -> AsyncGenerator[bytes, None]:
        return logs(live.ask, live.tail, place, read)

    return Stream(make)


def _chain(client: Client, job_id: JobId) -> list[JobId]:
    return [client.jobs.find(each["id"]) for each in client.jobs.tries(job_id)]


def read_logs(client: Client, place: LogPlace, *, this: bool) -> LogRead:
    """The state is read before the bytes: what was written before an end is then there."""
    job = client.jobs.get(place.job)
    ended = job.status in TERMINAL
    pieces = []
    for stream in STREAMS:
        found = client.jobs.log(place.job, stream, getattr(place, stream), LOG_PIECE)
        if found.data or found.skipped:
            pieces.append((stream, found.next, found.data, found.skipped))
    following = None
    if ended and not this:
        later = [each for each in _chain(client, place.job) if each > place.job]
        following = later[0] if later else None
    return LogRead(place.job, str(job.status), pieces, ended, following)


def refuse_elsewhere(client: Client, job_id: JobId) -> None:
    where = client.jobs.ran_elsewhere(job_id)
    if where is not None:
        raise HttpProblem(
            409, "log-elsewhere", f"what {shown(job_id)} wrote is on {where.host}; ask there"
        )


def _id(call: WebCall) -> JobId:
    return call.client.jobs.find(call.path["job"])
