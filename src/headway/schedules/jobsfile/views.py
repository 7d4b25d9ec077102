"""How the jobs file and its entries stand: what is declared, and what is known of it.

Shown are the entries that count: those of the file, and while it is broken those of the last good
one, by which workers go on.
"""

import os
from typing import Any, NamedTuple

from headway.base.errors import HeadwayError, InvalidInputError, NotFoundError
from headway.base.trust import is_trusted
from headway.base.units import exact_duration, show_instant
from headway.core.model import Job, shown
from headway.core.periodic import NEVER, due_at, not_in_future
from headway.jobs.context import Context
from headway.schedules.jobsfile.job_of_entry import timing_of
from headway.schedules.jobsfile.model import FILE, Entry, entry_of
from headway.schedules.jobsfile.problems import JobsFileError, Problem
from headway.schedules.jobsfile.reader import file_content, read_jobs_file
from headway.store.records import EntryRecord, JobsFileRecord

GOOD, BROKEN, MISSING, UNTRUSTED = "good", "broken", "missing", "untrusted"


class PresentFile(NamedTuple):
    """The file as it is now."""

    state: str
    entries: tuple[Entry, ...] = ()
    problems: tuple[Problem, ...] = ()


def path_of(context: Context) -> str:
    return os.path.join(context.home.path, FILE)


def look_at_file(path: str) -> PresentFile:
    try:
        return PresentFile(GOOD, tuple(read_jobs_file(file_content(path))))
    except NotFoundError:
        return PresentFile(MISSING)
    except JobsFileError as error:
        return PresentFile(BROKEN, problems=tuple(error.problems))
    except HeadwayError as error:
        return PresentFile(BROKEN, problems=(Problem(1, "", str(error)),))


def standing(context: Context) -> dict[str, Any]:
    """`jobs_file` and `entries`, as documents."""
    present = look_at_file(path_of(context))
    if present.state != MISSING and not is_trusted(context.home.path):
        present = PresentFile(UNTRUSTED)  # nothing of it counts, be it good or broken
    host_id = context.host.id
    with context.store.read() as tx:
        known = tx.jobsfile.file(host_id)
        entries = _last_good(known) if present.state == BROKEN else present.entries
        makers = [entry.schedule_id for entry in entries]
        active = {
            job.schedule_id: job
            for job in tx.jobsfile.active_made_by(makers)
            if job.queue in context.queues
        }
        records = tx.jobsfile.entries(host_id)
        busy, now = tx.jobsfile.other_work(), tx.now()
    return {
        "untrusted": list(context.config.untrusted),
        "jobs_file": _file(path_of(context), present, known),
        "worker": context.worker_is_there(),
        "entries": [
            _entry(
                entry,
                records.get(entry.name, EntryRecord(entry.name)),
                active.get(entry.schedule_id),
                busy=busy,
                now=now,
            )
            for entry in entries
        ],
    }


def missing_from_file(context: Context) -> list[dict[str, Any]]:
    """What the entries of a good file name and is not there."""
    from headway.schedules.jobsfile.absences import absences

    if not is_trusted(context.home.path):
        return []
    try:
        content = file_content(path_of(context))
        return [each.document() for each in absences(content, context.home, context.config)]
    except (NotFoundError, InvalidInputError):  # `standing` says it
        return []


def _last_good(known: JobsFileRecord | None) -> tuple[Entry, ...]:
    """A set that another version wrote, with other words, counts as none."""
    if known is None or known.entries is None:
        return ()
    try:
        return tuple(entry_of(dict(each)) for each in known.entries)
    except (TypeError, KeyError, ValueError):
        return ()


def _file(path: str, present: PresentFile, known: JobsFileRecord | None) -> dict[str, Any]:
    polled = known is not None and known.polled_at is not None
    return {
        "path": path,
        "state": present.state,
        "problems": [problem.document() for problem in present.problems],
        "taken_over": _taken_over(present, known),
        "read_at": show_instant(known.read_at) if known else None,
        "loaded_at": show_instant(known.loaded_at) if known else None,
        "poll": {"at": show_instant(known.polled_at), "trouble": known.poll_trouble}
        if known and polled
        else None,
    }


def _taken_over(present: PresentFile, known: JobsFileRecord | None) -> bool:
    """Whether workers use the present file. Nobody uses a broken one."""
    return present.state != BROKEN and present.entries == _last_good(known)


def _entry(
    entry: Entry, record: EntryRecord, active: Job | None, *, busy: bool, now: int
) -> dict[str, Any]:
    return {
        "name": entry.name,
        "type": entry.type,
        "line": entry.line,
        "enabled": entry.enabled,
        "interval": _span(entry.interval),
        "interval_active": _span(entry.interval_active),
        "interval_idle": _span(entry.interval_idle),
        "cron": entry.cron,
        "timezone": entry.timezone if entry.cron is not None else None,
        "group": entry.group,
        "conditions": list(entry.conditions),
        "active_job": shown(active.id) if active else None,
        "last_run": _last_run(record, active),
        "next_at": show_instant(_next(entry, record, active, busy=busy, now=now)),
        "held": {"reason": record.held, "at": show_instant(record.held_at)}
        if record.held is not None and entry.enabled
        else None,
    }


def _span(micros: int | None) -> str | None:
    return None if micros is None else exact_duration(micros)


def _last_run(record: EntryRecord, active: Job | None) -> dict[str, Any] | None:
    """The last that has ended. Its job may be removed, or be another one by now."""
    if record.last_end_at is None:
        return None
    ended = record.last_job if active is None else None
    return {
        "job": shown(ended) if ended is not None else None,
        "status": record.last_status,
        "ended_at": show_instant(record.last_end_at),
    }


def _next(
    entry: Entry, record: EntryRecord, active: Job | None, *, busy: bool, now: int
) -> int | None:
    """When it is due, if there is as much other work then as now; None: not before something else
    happens."""
    if active is not None or not entry.enabled:
        return None
    try:
        timing = timing_of(entry)
    except InvalidInputError:  # of the last good set, with a zone that is gone since
        return None
    if record.next_at is None:  # nobody has placed it yet
        return now if timing.rule is None else timing.rule.next_after(now)
    ended = not_in_future(record.last_end_at, now)
    at = due_at(timing, ended=ended, next_at=record.next_at, busy=busy)
    return at if at < NEVER else None
