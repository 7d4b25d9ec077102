"""Rows to models and back. Past this module nothing knows a column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headway.core.model import (
    FUNCTION,
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
)
from headway.core.states import Status
from headway.errors import DataError

if TYPE_CHECKING:
    from headway.core.reservations import Reservation
    from headway.store.seam_adding import Model

Row = Sequence[Any]

_JOB_COLUMNS = (
    "id, name, type, status, priority, position, params, created_at, chain, slug, labels, "
    "after_ids, locks, retry, retry_of, attempt, retries_used, not_before, env_digest, "
    "idempotency_key, spec_digest, on_finish, submitted_by, launch_failures, last_failure, "
    "launch_wait, stage, wait_kind, wait_detail, waited_on, reason, started_at, finished_at, "
    "cancel_requested_at, cancel_requested_by, queue, gates, approval, level, group_id, "
    "sequence_number, subject, target, template_id, quota, schedule_id"
)
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

COLUMNS: Mapping[str, str] = {
    "SCHEDULE": _SCHEDULE_COLUMNS,
    "FIRING": _FIRING_COLUMNS,
    "GROUP": _GROUP_COLUMNS,
    "JOB": _JOB_COLUMNS,
    "CLAIM": _CLAIM_COLUMNS,
    "OUTLINE": _OUTLINE_COLUMNS,
    "RESERVATION": _RESERVATION_COLUMNS,
}


_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


def _encoder() -> Callable[[Any], str]:
    """What `json` would make anew for every value, made once."""
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
    """A job as far as a schedule shows it. Of the parameters only those of functions are read, for
    the door asks for them: a whole job takes three times as long, and there may be 100,000."""
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
            **(_load_gates(row[14]) if row[14] else {}),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"the row of job-{row[0]} cannot be read: {error}") from error


_QUEUE = [each.strip() for each in _JOB_COLUMNS.split(",")].index("queue")


def queue_of(row: Row) -> str:
    """In which queue a job stands, also one whose row cannot be read."""
    return str(row[_QUEUE])


def stand_in(row: Row) -> Job:
    """What is certain about a running job whose row cannot be read."""
    return Job(
        id=row[0],
        name=str(row[1]),
        type=str(row[2]),
        status=Status.RUNNING,
        priority=row[4],
        position=row[5],
        params={},
        created_at=row[7],
        chain=row[8],
        level=row[38] if row[38] != row[4] else None,
        group_id=row[39],
        sequence_number=row[40],
    )


def _mapping(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


@lru_cache(maxsize=1000)
def _told_by(ending: str) -> str | None:
    try:
        task = json.loads(f'{{"task":{ending}').get("task")
    except ValueError:
        return None
    return task if isinstance(task, str) else None


def task_of(params: str) -> str | None:
    """The task of a function without reading its arguments; None: that cannot be told.

    Few endings come again and again. If what follows the last `"task":` is the rest of an object
    and nothing more, that name is the outermost object's own.
    """
    return _told_by(params.rpartition('"task":')[2])


def _job(row: Row) -> Job:
    return Job(
        id=row[0],
        name=row[1],
        type=row[2],
        status=_STATUS[row[3]],
        priority=row[4],
        position=row[5],
        params=_mapping(row[6]),
        created_at=row[7],
        chain=row[8],
        slug=row[9],
        labels=_mapping(row[10]) if row[10] != "{}" else {},
        after=tuple(json.loads(row[11])) if row[11] != "[]" else (),
        locks=tuple(Lock(key, LockMode(mode)) for key, mode in json.loads(row[12]))
        if row[12] != "[]"
        else (),
        retry=_load_retry(row[13]),
        retry_of=row[14],
        attempt=row[15],
        retries_used=row[16],
        not_before=row[17],
        env_digest=row[18],
        key=row[19],
        spec_digest=row[20],
        on_finish=tuple(json.loads(row[21])) if row[21] != "[]" else (),
        submitted_by=row[22],
        launch_failures=row[23],
        last_failure=row[24],
        launch_wait=WaitKind(row[25]) if row[25] else None,
        stage=_STAGE[row[26]] if row[26] else None,
        wait=Wait(WaitKind(row[27]), row[28]) if row[27] else None,
        waited_on=tuple(json.loads(row[29])) if row[29] != "[]" else (),
        reason=row[30],
        started_at=row[31],
        finished_at=row[32],
        cancel_requested_at=row[33],
        cancel_requested_by=row[34],
        queue=row[35],
        **(_load_gates(row[36]) if row[36] else {}),
        approval=_load_approval(row[37]) if row[37] else None,
        level=row[38] if row[38] != row[4] else None,
        group_id=row[39],
        sequence_number=row[40],
        subject=row[41],
        target=row[42],
        template_id=row[43],
        **(_load_quota(row[44]) if row[44] else {}),
        schedule_id=row[45],
    )


def _load_gates(text: str) -> dict[str, Any]:
    fields = _mapping(text)
    pin = fields.get("pin")
    return {
        "needs": tuple(fields.get("needs", ())),
        "produces": tuple(fields.get("produces", ())),
        "pinned_head": PinnedHead(*pin) if pin else None,
        "preconditions": tuple(fields.get("preconditions", ())),
        "repo": fields.get("repo"),
        "requested_start": fields.get("at"),
    }


def dump_gates(job: Job) -> str | None:
    """Most jobs have none of these."""
    fields = {
        "needs": job.needs,
        "produces": job.produces,
        "pin": job.pinned_head,
        "preconditions": job.preconditions,
        "repo": job.repo,
        "at": job.requested_start,
    }
    present = {name: value for name, value in fields.items() if value}
    return dump(present) if present else None


def _load_quota(text: str) -> dict[str, Any]:
    fields = _mapping(text)
    return {
        "resources": tuple(fields.get("resources", ())),
        "rates": tuple(Rate(*each) for each in fields.get("rates", ())),
    }


def dump_quota(job: Job) -> str | None:
    """Most jobs name no resource and no rate."""
    fields = {"resources": job.resources, "rates": job.rates}
    present = {name: value for name, value in fields.items() if value}
    return dump(present) if present else None


def _load_approval(text: str) -> Approval:
    fields = _mapping(text)
    return Approval(**{**fields, "state": ApprovalState(fields["state"])})


def dump_approval(approval: Approval) -> str:
    return dump(approval._asdict())


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


def dump_job(job: Job) -> dict[str, Any]:
    """The parameters of `add_jobs`. What it waits for is stored only of one that lies filed."""
    wait = job.wait if job.stage is Stage.FILED else None
    return {
        "id": job.id,
        "name": job.name,
        "type": job.type,
        "status": job.status.value,
        "priority": job.priority,
        "position": job.position,
        "params": dump(job.params),
        "created_at": job.created_at,
        "chain": job.chain,
        "slug": job.slug,
        "labels": dump(job.labels) if job.labels else "{}",
        "after_ids": _ids(job.after),
        "locks": dump([(lock.key, lock.mode.value) for lock in job.locks]) if job.locks else "[]",
        "retry": dump_retry(job.retry),
        "retry_of": job.retry_of,
        "attempt": job.attempt,
        "retries_used": job.retries_used,
        "not_before": job.not_before,
        "env_digest": job.env_digest,
        "idempotency_key": job.key,
        "spec_digest": job.spec_digest,
        "on_finish": dump(job.on_finish) if job.on_finish else "[]",
        "submitted_by": job.submitted_by,
        "stage": job.stage.value if job.stage else None,
        "queue": job.queue,
        "gates": dump_gates(job),
        "approval": dump_approval(job.approval) if job.approval else None,
        "level": job.dispatch_level,
        "group_id": job.group_id,
        "sequence_number": job.sequence_number,
        "subject": job.subject,
        "target": job.target,
        "template_id": job.template_id,
        "quota": dump_quota(job),
        "schedule_id": job.schedule_id,
        "wait_kind": wait.kind.value if wait else None,
        "wait_detail": wait.detail if wait else None,
        "wake_at": wait.until if wait else None,
        "checked_at": job.created_at if wait else None,
        "waited_on": f'["{wait.kind.value}"]' if wait else "[]",
    }


def written(model: Model) -> Mapping[str, Any]:
    """The parameters of `add_jobs` for jobs of this model, but for what says nothing in it; and
    what is told of each when it is submitted."""
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
