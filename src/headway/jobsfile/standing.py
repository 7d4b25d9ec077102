"""How the jobs file and its entries stand: what is declared, and what is known of it.

Shown are the entries that count: those of the file, and while it is broken those of the last good
one, by which workers go on.
"""

import os
from typing import Any, NamedTuple

from headway.client import Client
from headway.core.model import Job, shown
from headway.core.periodic import NEVER, due_at, not_in_future
from headway.errors import HeadwayError, InvalidInputError, NotFoundError
from headway.jobsfile.making import timing_of
from headway.jobsfile.model import FILE, Entry, entry_of
from headway.jobsfile.problems import JobsFileError, Problem
from headway.jobsfile.reading import file_content, read_jobs_file
from headway.store.seam_entries import EntryRecord, JobsFile
from headway.trust import is_trusted
from headway.units import exact_duration, show_instant

GOOD, BROKEN, MISSING, UNTRUSTED = "good", "broken", "missing", "untrusted"


class Present(NamedTuple):
    """The file as it is now."""

    state: str
    entries: tuple[Entry, ...] = ()
    problems: tuple[Problem, ...] = ()


def path_of(client: Client) -> str:
    return os.path.join(client.home.path, FILE)


def look_at_file(path: str) -> Present:
    try:
        return Present(GOOD, tuple(read_jobs_file(file_content(path))))
    except NotFoundError:
        return Present(MISSING)
    except JobsFileError as error:
        return Present(BROKEN, problems=tuple(error.problems))
    except HeadwayError as error:
        return Present(BROKEN, problems=(Problem(1, "", str(error)),))


def standing(client: Client) -> dict[str, Any]:
    """`jobs_file` and `entries`, as documents."""
    present = look_at_file(path_of(client))
    if present.state != MISSING and not is_trusted(client.home.path):
        present = Present(UNTRUSTED)  # nothing of it counts, be it good or broken
    host_id = client.host.id
    with client.store.read() as tx:
        known = tx.jobs_file(host_id)
        entries = _last_good(known) if present.state == BROKEN else present.entries
        makers = [entry.schedule_id for entry in entries]
        active = {
            job.schedule_id: job for job in tx.active_made_by(makers) if job.queue in client.queues
        }
        records = tx.entries(host_id)
        busy, now = tx.other_work(), tx.now()
    return {
        "untrusted": list(client.config.untrusted),
        "jobs_file": _file(path_of(client), present, known),
        "worker": client.worker_is_there(),
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


def _last_good(known: JobsFile | None) -> tuple[Entry, ...]:
    """A set that another version wrote, with other words, counts as none."""
    if known is None or known.entries is None:
        return ()
    try:
        return tuple(entry_of(dict(each)) for each in known.entries)
    except (TypeError, KeyError, ValueError):
        return ()


def _file(path: str, present: Present, known: JobsFile | None) -> dict[str, Any]:
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


def _taken_over(present: Present, known: JobsFile | None) -> bool:
    """Whether workers go by the present file. By a broken one nobody does."""
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
