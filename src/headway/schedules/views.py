"""Schedules as people and programs see them: rule, next and last slot, what was missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any

from headway.base.errors import InvalidInputError
from headway.base.units import exact_duration, show_instant
from headway.core.fire import Active, Firing, Schedule
from headway.core.model import Job, JobId, shown, shown_run
from headway.jobs.statistics import MOST_RUNS, lengths_of_schedule
from headway.schedules.manage import active_job, require_schedule
from headway.schedules.timing.rules import TimingRule, rule_of
from headway.schedules.timing.words import in_words
from headway.store.records import Missed, RunRecord
from headway.store.transaction import ReadTx

if TYPE_CHECKING:
    from headway.jobs.context import Context

MOST_SLOTS = 10_000


def schedules(context: Context) -> list[dict[str, Any]]:
    """The documents of all, by their ids."""
    with context.store.read() as tx:
        return schedule_documents(tx, tx.schedules.all())


def schedule(context: Context, reference: str) -> dict[str, Any]:
    with context.store.read() as tx:
        return schedule_documents(tx, [require_schedule(tx, reference)])[0]


def schedule_slots(context: Context, reference: str, limit: int = 20) -> list[dict[str, Any]]:
    """The records of its slots, the newest first."""
    if not 1 <= limit <= MOST_SLOTS:
        raise InvalidInputError(f"the limit {limit} is not between 1 and {MOST_SLOTS}")
    with context.store.read() as tx:
        found = tx.schedules.firings(require_schedule(tx, reference).id, limit)
    return [_slot_document(each) for each in found]


def schedule_runs(context: Context, reference: str, limit: int = 30) -> list[dict[str, Any]]:
    """How its last jobs, or runs of its workflow, ended and how long they took, the newest
    first."""
    if not 1 <= limit <= MOST_RUNS:
        raise InvalidInputError(f"the limit {limit} is not between 1 and {MOST_RUNS}")
    with context.store.read() as tx:
        found = require_schedule(tx, reference)
        return lengths_of_schedule(
            tx, found.shown, limit, runs=found.document.get("workflow") is not None
        )


def upcoming_slots(
    context: Context, begin: int, end: int, *, limit: int, each: int | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """The slots of all enabled schedules between two instants, the earliest first, and whether
    there are more. Of one schedule there are the first `each`."""
    with context.store.read() as tx:
        known = [each for each in tx.schedules.all() if each.enabled]
    sound = [one for one in known if isinstance(one.document.get("rule"), dict)]
    rules = [(one, rule_of(one.document["rule"])) for one in sound]
    rows = merge(*(islice(_coming(one, rule, begin, end), each) for one, rule in rules))
    found = list(islice(rows, limit + 1))
    documents = [
        {"slot": show_instant(slot), "schedule": name, "id": shown_id}
        for slot, name, shown_id in found[:limit]
    ]
    return documents, len(found) > limit


def _coming(
    schedule: Schedule, rule: TimingRule, begin: int, end: int
) -> Iterator[tuple[int, str, str]]:
    slot = rule.next_after(begin - 1)
    while slot is not None and slot <= end:
        yield slot, schedule.name, schedule.shown
        slot = rule.next_after(slot)


def schedule_documents(tx: ReadTx, found: Sequence[Schedule]) -> list[dict[str, Any]]:
    ids = [each.id for each in found]
    active = tx.schedules.active_jobs([each.shown for each in found]) if found else {}
    missed = tx.schedules.missed(ids) if found else {}
    jobs = _last_jobs(tx, [each.last_job for each in found if each.last_job is not None])
    made = sorted({job.workflow_run for job in jobs.values() if job.workflow_run is not None})
    runs = tx.workflows.by_id(made) if made else {}
    return [
        _document(each, active.get(each.shown, []), missed.get(each.id), jobs, runs)
        for each in found
    ]


def _last_jobs(tx: ReadTx, ids: Sequence[JobId]) -> dict[JobId, Job]:
    """For each the last job of its chain; those that were removed are missing."""
    if not ids:
        return {}
    lasts = tx.graph.chain_lasts(ids)
    jobs = tx.jobs.readable(sorted(set(lasts.values())))
    return {job_id: jobs[last] for job_id, last in lasts.items() if last in jobs}


def _document(
    schedule: Schedule,
    active: Sequence[Active],
    missed: Missed | None,
    jobs: dict[JobId, Job],
    runs: Mapping[int, RunRecord],
) -> dict[str, Any]:
    said = schedule.document
    no_rule = "" if isinstance(said.get("rule"), dict) else "it has no rule that can be read"
    damaged = said.get("damaged") or no_rule
    running = active_job(active)
    return {
        "id": schedule.shown,
        "name": schedule.name,
        "rule": None if damaged else _rule(said["rule"]),
        "in_words": damaged or _words(said["rule"]),
        "timezone": None if damaged else said["rule"].get("timezone", "UTC"),
        "enabled": schedule.enabled,
        "template": said.get("template"),
        "workflow": said.get("workflow"),
        "job": _job(said.get("job")),
        "params": said.get("params") or {},
        "catch_up": said.get("catch_up"),
        "window": _duration(said.get("window")),
        "overlap": said.get("overlap"),
        "jitter": _duration(said.get("jitter")),
        "created_at": show_instant(schedule.created_at),
        "created_by": schedule.created_by,
        "changed_at": show_instant(schedule.changed_at),
        "next_slot": show_instant(schedule.next_slot),
        "next_fire_at": show_instant(schedule.next_fire_at),
        "last_slot": show_instant(schedule.last_slot),
        "last_job": _last_job(schedule.last_job, jobs),
        "last_run": _last_run(jobs.get(schedule.last_job or 0), runs),
        "missed": None if missed is None else _missed(missed),
        "active_job": None if running is None else shown(running.job_id),
    }


def _rule(said: dict[str, Any]) -> dict[str, Any]:
    if not all(isinstance(said.get(word, 0), int) for word in ("every", "anchor", "at")):
        return said  # which `in_words` says is wrong
    if "every" in said and "anchor" in said:
        return {"every": exact_duration(said["every"]), "anchor": show_instant(said["anchor"])}
    return {"at": show_instant(said["at"])} if "at" in said else said


def _words(said: dict[str, Any]) -> str:
    try:
        return in_words(rule_of(said))
    except InvalidInputError as error:  # its time zone is gone
        return str(error)


def _job(words: dict[str, Any] | None) -> dict[str, Any] | None:
    """The job's words; of variables only the names, not the values."""
    if words is None or "env" not in words:
        return words
    return {**words, "env": sorted(words["env"])}


def _duration(micros: int | None) -> str | None:
    return None if micros is None else exact_duration(micros)


def _last_job(job_id: JobId | None, jobs: dict[JobId, Job]) -> dict[str, Any] | None:
    if job_id is None:
        return None
    last = jobs.get(job_id)
    state, reason = (None, "removed") if last is None else (last.status.value, last.reason)
    return {"id": shown(job_id if last is None else last.id), "state": state, "reason": reason}


def _last_run(job: Job | None, runs: Mapping[int, RunRecord]) -> dict[str, Any] | None:
    record = runs.get(job.workflow_run or 0) if job is not None else None
    return None if record is None else {"id": shown_run(record.id), "state": record.state}


def _missed(missed: Missed) -> dict[str, Any]:
    return {
        "slots": missed.slots,
        "last_at": show_instant(missed.last_at),
        "reason": missed.reason,
    }


def _slot_document(firing: Firing) -> dict[str, Any]:
    return {
        "slot": show_instant(firing.slot),
        "last_slot": show_instant(firing.last_slot),
        "slots": firing.slots,
        "outcome": firing.outcome.value,
        "reason": firing.reason,
        "job": None if firing.job_id is None else shown(firing.job_id),
        "at": show_instant(firing.at),
    }
