"""Rows to models and back. Past this module nothing knows a column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.errors import DataError
from headway.core.model import (
    FIELDS,
    FUNCTION,
    NOT_SIMPLE,
    NOTHING,
    Approval,
    ApprovalState,
    Claim,
    Job,
    Lock,
    LockMode,
    PinnedHead,
    Rate,
    RetryPolicy,
    Run,
    Stage,
    Wait,
    WaitKind,
    of_job,
)
from headway.core.states import Status

if TYPE_CHECKING:
    from headway.core.reservations import Reservation
    from headway.store.new_jobs import Model
    from headway.store.records import Marker, RunRecord

Row = Sequence[Any]

# A field has a column of its own, or is one key of a column of JSON.
_COLUMN = {field.name: field.column for field in FIELDS if field.column}
_FORM = {field.name: field.form for field in FIELDS}
_OWN = tuple(name for name in Job._fields if "." not in _COLUMN[name])
_SHARED = {  # those of each column of JSON, by their keys there
    column: {
        _COLUMN[name].partition(".")[2]: name
        for name in Job._fields
        if _COLUMN[name].startswith(f"{column}.")
    }
    for column in ("gates", "quota")
}
_JOB_COLUMNS = ", ".join((*(_COLUMN[name] for name in _OWN), "wait_detail", *_SHARED))
_AT = {column: place for place, column in enumerate(_JOB_COLUMNS.split(", "))}
_CLAIM_COLUMNS = (
    "job_id, token, slot, worker_id, host_id, home, boot_id, folder, claimed_at, borrowed_from, "
    "probe, function_host, lease_until, occupies"
)
_OUTLINE_COLUMNS = (
    "id, name, type, status, params, created_at, chain, slug, after_ids, stage, wait_kind, "
    "wait_detail, queue, finished_at, gates"
)
_RESERVATION_COLUMNS = (
    "id, token, holder, note, host_id, pid, requested_at, expires_at, granted_at, inside, occupies"
)

_GROUP_COLUMNS = "id, mode, on_failure, created_at, created_by, name, subject, closed_at, ended_at"

_SCHEDULE_COLUMNS = (
    "id, name, document, enabled, version, host_id, created_at, created_by, changed_at, next_slot, "
    "next_fire_at, looked_at, zones, last_slot, last_job, forgotten"
)
_FIRING_COLUMNS = "schedule_id, slot, last_slot, slots, outcome, reason, job_id, at"

_WORKFLOW_RUN_COLUMNS = (
    "id, name, version, policy_hash, params, created_at, created_by, deadline, stopped_at, "
    "stopped_by, ended_at, state, unsettled, usd_budget, token_budget, usd_spent, tokens_spent, "
    "subject, target"
)

_ENDPOINT_COLUMNS = (
    "id, name, url, types, schedule, state, reason, since, fingerprint, old_fingerprint, "
    "overlap_until, holders, failures, failing_since, held_until, created_at, created_by, "
    "changed_at"
)
_DELIVERY_COLUMNS = (
    "id, endpoint, receiver, url, type, seq, job_id, chain, state, tries, due_at, created_at, "
    "waiting_since, tried_at, status_code, error, ended_at, lease"
)

_LATER = of_job(field for field in FIELDS if field.later)
_NEW = tuple(name for name in _OWN if name not in _LATER)  # those that a new job is stored with
_NEW_COLUMNS = (*(_COLUMN[name] for name in _NEW), *_SHARED)


_EMPTY = {  # how the absence of a value is written; of all other forms: null
    **dict.fromkeys(("ids", "texts", "locks"), "[]"),
    **dict.fromkeys(("object", "retry"), "{}"),
}


def _simple() -> str:
    """The condition by which a ready job is a simple call, as `core.plaincalls.is_plain` says."""
    hindering = [field for field in FIELDS if field.hinders in NOT_SIMPLE and field.column]
    columns = {field.column.partition(".")[0]: _EMPTY.get(field.form) for field in hindering}
    tests = (
        f"{name} is null" if text is None else f"{name} = '{text}'"
        for name, text in columns.items()
    )
    return " and ".join((f"type = '{FUNCTION}'", *tests))


# Of no workflow run: the words of the index of those that hold their subject themselves.
_ALONE = """replace(coalesce(gates, ''), '"run":', '') = coalesce(gates, '')"""

COLUMNS: Mapping[str, str] = {
    "ALONE": _ALONE,
    "SIMPLE": _simple(),
    "NEW": ", ".join(_NEW_COLUMNS),
    "VALUES": ", ".join(f":{name}" for name in _NEW_COLUMNS),
    "SCHEDULE": _SCHEDULE_COLUMNS,
    "FIRING": _FIRING_COLUMNS,
    "GROUP": _GROUP_COLUMNS,
    "WORKFLOW_RUN": _WORKFLOW_RUN_COLUMNS,
    "JOB": _JOB_COLUMNS,
    "CLAIM": _CLAIM_COLUMNS,
    "OUTLINE": _OUTLINE_COLUMNS,
    "RESERVATION": _RESERVATION_COLUMNS,
    "ENDPOINT": _ENDPOINT_COLUMNS,
    "DELIVERY": _DELIVERY_COLUMNS,
}


_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


def _encoder() -> Callable[[Any], str]:
    """One encoder, which `json` would make anew for every value."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without it
        return _ENCODER.encode
    quote = json.encoder.encode_basestring_ascii
    encode = make(None, _ENCODER.default, quote, None, ":", ",", True, False, True)
    return lambda value: "".join(encode(value, 0))


dump = _encoder()


@lru_cache(maxsize=1000)
def dump_pairs(pairs: tuple[tuple[str, str | int], ...]) -> str:
    """A small object: the same few come again and again."""
    return dump(dict(pairs))


def _ids(ids: Sequence[int]) -> str:
    return f"[{','.join(map(str, ids))}]" if ids else "[]"


def load(text: str, what: str) -> Any:
    """The JSON of one column; `what` names the row it stands in."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{what} cannot be read: {error}; run `headway doctor`") from error


_LIKE = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
_GLOB = re.compile(r"\*+|\?|\[!?\]?[^]]*\]|[^*?[]+|\[")


def like(glob: str) -> str:
    """A pattern of SQL that lets through at least what the glob does: a set is any character."""
    words = {"*": "%", "?": "_", "[": "["}
    return "".join(
        words.get(part[0], part.translate(_LIKE)) if len(part) < 2 or part[0] != "[" else "_"
        for part in _GLOB.findall(glob)
    )


def like_label(labels: Mapping[str, str]) -> str:
    """The same for a column of labels: those that have one of these."""
    for key, value in labels.items():
        return f"%{dump({key: value})[1:-1].translate(_LIKE)}%"
    return "%"


def load_job(row: Row) -> Job:
    try:
        return _job(row)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"the row of job-{row[0]} cannot be read: {error}") from error


# By lookup, not by call: `Status(...)` for 100,000 rows is a quarter of a second.
_STATUS = {each.value: each for each in Status}
_STAGE = {each.value: each for each in Stage}
_WAIT_KIND = {each.value: each for each in WaitKind}


def load_outline(row: Row) -> Job:
    """A job with the fields that the graph view shows. Of the parameters only those of functions
    are read, because capacity depends on them. A whole job takes three times as long, and there may
    be 100,000."""
    try:
        return Job(
            id=row[0],
            name=row[1],
            type=row[2],
            status=_STATUS[row[3]],
            priority=0,
            position=0,
            params=_mapping(row[4]) if row[2] == FUNCTION and row[9] else NOTHING,
            created_at=row[5],
            chain=row[6],
            slug=row[7],
            after=tuple(json.loads(row[8])) if row[8] != "[]" else (),
            stage=_STAGE[row[9]] if row[9] else None,
            wait=Wait(_WAIT_KIND[row[10]], row[11]) if row[10] else None,
            queue=row[12],
            finished_at=row[13],
            **(_load_shared("gates", row[14]) if row[14] else {}),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"the row of job-{row[0]} cannot be read: {error}") from error


def queue_of(row: Row) -> str:
    """In which queue a job stands, also one whose row cannot be read."""
    return str(row[_AT["queue"]])


def stand_in(row: Row) -> Job:
    """A job with what is certain about a running one whose row cannot be read."""

    def of(column: str) -> Any:
        return row[_AT[column]]

    return Job(
        id=of("id"),
        name=str(of("name")),
        type=str(of("type")),
        status=Status.RUNNING,
        priority=of("priority"),
        position=of("position"),
        params={},
        created_at=of("created_at"),
        chain=of("chain"),
        level=of("level") if of("level") != of("priority") else None,
        group_id=of("group_id"),
        sequence_number=of("sequence_number"),
    )


def _mapping(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


@lru_cache(maxsize=1000)
def _task_in(ending: str) -> str | None:
    try:
        task = json.loads(f'{{"task":{ending}').get("task")
    except ValueError:
        return None
    return task if isinstance(task, str) else None


def task_of(params: str) -> str | None:
    """The task of a function without reading its arguments; None: it is unknown.

    Few endings come again and again. If what follows the last `"task":` is the rest of an object
    and nothing more, that name is the outermost object's own.
    """
    return _task_in(params.rpartition('"task":')[2])


def _job(row: Row) -> Job:
    values = list(row[: len(_OWN)])
    for place, known, read in _READ:
        text = values[place]
        values[place] = known[text] if text in known else read(text)
    if values[_WAIT]:
        values[_WAIT] = Wait(values[_WAIT], row[_DETAIL])
    if values[_LEVEL] == values[_PRIORITY]:
        values[_LEVEL] = None
    if row[_GATES] is None and row[_QUOTA] is None:
        return Job(*values)
    shared = _load_shared("gates", row[_GATES]) if row[_GATES] else {}
    if row[_QUOTA]:
        shared |= _load_shared("quota", row[_QUOTA])
    return Job(*values)._replace(**shared)


def _load_shared(column: str, text: str) -> dict[str, Any]:
    """The fields that a column of JSON has."""
    fields = _mapping(text)
    return {
        name: _SHARED_FORMS[_FORM[name]](fields[key])
        for key, name in _SHARED[column].items()
        if key in fields
    }


def _dump_shared(column: str, job: Job) -> str | None:
    """Most jobs have none of these."""
    fields = _SHARED_OF[column](job)
    if not any(fields):
        return None
    return dump({key: value for key, value in zip(_SHARED[column], fields, strict=True) if value})


def dump_gates(job: Job) -> str | None:
    """What is stored of the gates that a job asks for."""
    return _dump_shared("gates", job)


def _same(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _pin(value: Any) -> PinnedHead:
    return PinnedHead(*value)


def _rates(value: Any) -> tuple[Rate, ...]:
    return tuple(Rate(*each) for each in value)


_SHARED_FORMS: Mapping[str, Callable[[Any], Any]] = {"": _same, "pin": _pin, "rates": _rates}
_SHARED_OF: Mapping[str, Callable[[Job], tuple[Any, ...]]] = {
    column: itemgetter(*map(Job._fields.index, keys.values())) for column, keys in _SHARED.items()
}


def _load_approval(text: str) -> Approval:
    fields = _mapping(text)
    return Approval(
        **{
            **fields,
            "state": ApprovalState(fields["state"]),
            "approved_by": tuple(fields.get("approved_by", ())),
        }
    )


def dump_approval(approval: Approval) -> str:
    fields = approval._asdict()
    if not approval.approved_by:  # as it was before several could be asked
        del fields["approved_by"]
    return dump(fields)


_NO_RETRY = RetryPolicy()


def dump_retry(policy: RetryPolicy) -> str:
    if policy == _NO_RETRY:
        return "{}"
    return dump(
        {
            "max_attempts": policy.max_attempts,
            "base": policy.base,
            "cap": policy.cap,
            "jitter": policy.jitter,
            "on": policy.on,
        }
    )


def _load_retry(text: str) -> RetryPolicy:
    if text == "{}":
        return _NO_RETRY
    fields = json.loads(text)
    return RetryPolicy(**{**fields, "on": tuple(fields["on"])})


def _load_texts(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _load_locks(text: str) -> tuple[Lock, ...]:
    return tuple(Lock(key, LockMode(mode)) for key, mode in json.loads(text))


def _dump_locks(locks: Sequence[Lock]) -> str:
    return dump([(lock.key, lock.mode.value) for lock in locks])


class _Form(NamedTuple):
    """How a column is written that is not just the value of its field."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    known: Mapping[Any, Any]  # what need not be read


_value = attrgetter("value")
_FORMS: Mapping[str, _Form] = {
    "status": _Form(Status, _value, _STATUS),
    "stage": _Form(Stage, _value, {None: None, **_STAGE}),
    "kind": _Form(WaitKind, _value, {None: None, **_WAIT_KIND}),
    "wait": _Form(WaitKind, _value, {None: None, **_WAIT_KIND}),
    "object": _Form(_mapping, dump, {"{}": NOTHING}),
    "ids": _Form(_load_texts, _ids, {"[]": ()}),
    "texts": _Form(_load_texts, dump, {"[]": ()}),
    "locks": _Form(_load_locks, _dump_locks, {"[]": ()}),
    "retry": _Form(_load_retry, dump_retry, {"{}": _NO_RETRY}),
    "approval": _Form(_load_approval, dump_approval, {None: None}),
}
_READ = tuple(
    (place, _FORMS[_FORM[name]].known, _FORMS[_FORM[name]].read)
    for place, name in enumerate(_OWN)
    if _FORM[name] in _FORMS
)
_WRITE = tuple(
    (_COLUMN[name], _FORMS[_FORM[name]].write, _EMPTY.get(_FORM[name]))
    for name in _NEW
    if _FORM[name] in _FORMS
)
_WAIT, _LEVEL, _PRIORITY = map(_OWN.index, ("wait", "level", "priority"))
_DETAIL, _GATES, _QUOTA = (_AT[column] for column in ("wait_detail", "gates", "quota"))
_new_of: Callable[[Job], tuple[Any, ...]] = itemgetter(*map(Job._fields.index, _NEW))


def dump_job(job: Job) -> dict[str, Any]:
    """The parameters of `add_jobs`. What it waits for is stored only of one that is parked."""
    given: dict[str, Any] = dict(zip(_NEW_COLUMNS, _new_of(job), strict=False))
    for column, write, empty in _WRITE:
        value = given[column]
        given[column] = write(value) if value else empty
    given["level"] = job.dispatch_level
    given["gates"] = dump_gates(job)
    given["quota"] = _dump_shared("quota", job)
    wait = job.wait if job.stage is Stage.PARKED else None
    given["wait_kind"] = wait.kind.value if wait else None
    given["wait_detail"] = wait.detail if wait else None
    given["wake_at"] = wait.until if wait else None
    given["checked_at"] = job.created_at if wait else None
    given["waited_on"] = f'["{wait.kind.value}"]' if wait else "[]"
    return given


def written(model: Model) -> Mapping[str, Any]:
    """The parameters of `add_jobs` for jobs of this model, without the fields that mean nothing in
    it; and those of the event of each submit."""
    if model.written is None:
        model.written = {**dump_job(model.job), "told": dump({"name": model.job.name})}
    return model.written


def load_claim(row: Row) -> Claim:
    return Claim(
        job_id=row[0],
        token=row[1],
        slot=row[2],
        worker_id=row[3],
        host_id=row[4],
        home=row[5],
        boot_id=row[6],
        folder=row[7],
        claimed_at=row[8],
        borrowed_from=row[9],
        probe=bool(row[10]),
        function_host=row[11],
        lease_until=row[12],
        occupies=tuple(row[13].split()) if row[13] else (),
    )


def dump_claim(claim: Claim) -> dict[str, Any]:
    return {
        "job_id": claim.job_id,
        "token": claim.token,
        "slot": claim.slot,
        "worker_id": claim.worker_id,
        "host_id": claim.host_id,
        "home": claim.home,
        "boot_id": claim.boot_id,
        "folder": claim.folder,
        "claimed_at": claim.claimed_at,
        "borrowed_from": claim.borrowed_from,
        "probe": int(claim.probe),
        "function_host": claim.function_host,
        "lease_until": claim.lease_until,
        "occupies": " ".join(claim.occupies) or None,
    }


def load_reservation(row: Row) -> Reservation:
    from headway.core.reservations import Reservation

    return Reservation(*row)._replace(occupies=_words(row[10]))


def dump_reservation(reservation: Reservation) -> dict[str, Any]:
    return {**reservation._asdict(), "occupies": " ".join(reservation.occupies) or None}


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(text.split()) if text else ()


def load_run(row: Row) -> Run:
    what = f"the row of run-{row[0]}"
    return Run(
        job_id=row[0],
        started_at=row[1],
        worker_id=row[2],
        params_snapshot=load(row[3], what),
        status=row[4],
        exit_code=row[5],
        error=row[6],
        artifacts=tuple(load(row[7], what)),
        finished_at=row[8],
    )


def load_workflow_run(row: Row) -> RunRecord:
    from headway.store.records import RunRecord

    params = load(row[4], f"the parameters of wf-{row[0]}")
    return RunRecord._make((*row[:4], params, *row[5:]))


def load_marker(row: Row) -> Marker:
    from headway.store.records import Marker

    key, job_id, at, data, withdrawn_at = row
    value = load(data, f"the data of {key}") if data is not None else None
    return Marker(key, job_id, at, value, withdrawn_at)


def waited_on(job: Job, wait: Wait | None) -> list[str]:
    """The kinds of waits that are remembered of this job, with this one."""
    kinds = list(job.waited_on)
    if wait is not None and wait.kind.value not in kinds:
        kinds.append(wait.kind.value)
    return kinds
