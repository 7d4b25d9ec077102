"""Slung work as it stands: what is scheduled for which target, and how to take it back."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from headway.base.units import show_instant
from headway.core.facts import Facts
from headway.core.model import Job, JobId, shown
from headway.core.states import WAITING, Move, Status, after
from headway.core.subjects import SLING, subject_question, subject_ready
from headway.integrations.probes import answers_to
from headway.jobs.context import Context
from headway.jobs.lifecycle import end_unstarted
from headway.jobs.views.present import present_facts, present_wait
from headway.store.transaction import WriteTx

MOST_LISTED = 10_000
MOST_CLEARED = 1_000  # in one transaction
CLEARED = "cleared"


class Cleared(NamedTuple):
    """The result of a clear: jobs that are cancelled now, and running ones, which it leaves
    alone."""

    cleared: tuple[JobId, ...]
    running: tuple[JobId, ...]


def scheduled(context: Context) -> list[dict[str, Any]]:
    """The slung jobs that have not ended, by target. Subjects are read again, so that the answer is
    true also where no worker has probed."""
    with context.store.read() as tx:
        jobs = _slung(tx.workitems.open_with_subject(MOST_LISTED))
        places = tx.workitems.places_in_queue()
        capacity = present_facts(context, tx)
    questions = [each for job in jobs if (each := subject_question(job)) is not None]
    facts = capacity._replace(answers=answers_to(questions, context.config.conditions))
    found: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        entry = _entry(job, facts, places.get(job.id))
        found.setdefault(job.target or "", []).append(entry)
    return [{"target": name or None, "jobs": found[name]} for name in sorted(found)]


def _slung(jobs: Sequence[Job]) -> list[Job]:
    return [job for job in jobs if SLING in job.params]


def _entry(job: Job, facts: Facts, place: int | None) -> dict[str, Any]:
    waits = job.status in WAITING
    objection = subject_ready(job, facts) if waits else None
    wait = objection or (present_wait(job, facts) if waits else None)
    return {
        "subject": job.subject,
        "title": job.params[SLING].get("title"),
        "job": shown(job.id),
        "state": job.status.value,
        "blocked": objection is not None,
        "reason": wait.detail if wait is not None else None,
        "place": place if objection is None else None,
        "since": show_instant(job.created_at),
        "group": f"group-{job.group_id}" if job.group_id else None,
        "dispatch_failures": job.launch_failures,
        "last_failure": job.last_failure,
    }


def clear(context: Context, subject: str | None = None) -> Cleared:
    """Cancel what is slung and waits, all of it or what is about one subject."""
    done = Cleared((), ())
    for page in _pages(context) if subject is None else [[subject]]:
        now = _clear(context, page)
        done = Cleared(done.cleared + now.cleared, done.running + now.running)
    context.wake()
    return done


def _pages(context: Context) -> Iterator[list[str]]:
    """All subjects of open jobs, however many there are; each page is a transaction of its own, so
    that nobody else is held up for long."""
    last = 0
    while True:
        with context.store.read() as tx:
            jobs = tx.workitems.open_with_subject_after(last, MOST_CLEARED)
        if not jobs:
            return
        yield [job.subject for job in jobs if job.subject is not None]
        last = jobs[-1].id


def _clear(context: Context, subjects: Sequence[str]) -> Cleared:
    def transaction(tx: WriteTx) -> Cleared:
        jobs = _slung(sorted(tx.workitems.open_about(subjects).values(), key=lambda job: job.id))
        waiting = [job for job in jobs if job.status in WAITING]
        for job in waiting:
            after(job.status, Move.CANCEL)
            end_unstarted(tx, job, Status.CANCELLED, CLEARED, actor=context.actor)
        running = tuple(job.id for job in jobs if job.status not in WAITING)
        return Cleared(tuple(job.id for job in waiting), running)

    return context.store.transact(transaction)
