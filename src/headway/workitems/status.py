"""Slung work as it stands: what is scheduled for which target, and how to take it back. A run of a
workflow stands there as one, by the job that is the furthest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headway.base.units import show_instant
from headway.core.facts import Facts
from headway.core.model import Job, JobId, shown, shown_run
from headway.core.states import WAITING, Move, Status, after
from headway.core.subjects import SLING, subject_question, subject_ready
from headway.integrations.probes import answers_to
from headway.jobs.context import Context
from headway.jobs.lifecycle import end_all_unstarted
from headway.jobs.views.present import present_facts, present_wait
from headway.store.records import RunRecord
from headway.store.transaction import ReadTx, WriteTx

MOST_LISTED = 10_000
MOST_CLEARED = 1_000  # in one transaction
CLEARED = "cleared"


class Cleared(NamedTuple):
    """The result of a clear: jobs and runs that are cancelled now, and those under way, which it
    leaves alone."""

    cleared: tuple[JobId, ...] = ()
    running: tuple[JobId, ...] = ()
    cleared_runs: tuple[int, ...] = ()
    running_runs: tuple[int, ...] = ()


def scheduled(context: Context) -> list[dict[str, Any]]:
    """The slung jobs and runs that have not ended, by target. Subjects are read again, so that the
    answer is true also where no worker has probed."""
    with context.store.read() as tx:
        jobs = _slung(tx.workitems.open_with_subject(MOST_LISTED))
        runs = _slung_runs(tx, tx.workitems.open_runs_with_subject(MOST_LISTED))
        places = tx.workitems.places_in_queue()
        capacity = present_facts(context, tx)
    foremost = [_foremost(each, places) for _, each in runs]
    questions = [each for job in (*jobs, *foremost) if (each := subject_question(job)) is not None]
    facts = capacity._replace(answers=answers_to(questions, context.config.conditions))
    found: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        entry = _entry(job, facts, places.get(job.id))
        found.setdefault(job.target or "", []).append(entry)
    for (run, _), job in zip(runs, foremost, strict=True):
        entry = _entry(job, facts, places.get(job.id))
        found.setdefault(run.target or "", []).append({**entry, "run": shown_run(run.id)})
    return [{"target": name or None, "jobs": found[name]} for name in sorted(found)]


def _slung(jobs: Sequence[Job]) -> list[Job]:
    return [job for job in jobs if SLING in job.params]


def _slung_runs(tx: ReadTx, runs: Iterable[RunRecord]) -> list[tuple[RunRecord, list[Job]]]:
    """Those that were slung, with their open jobs; one that is between two of its jobs is left
    out."""
    found = ((run, _slung(tx.workflows.active(run.id))) for run in runs)
    return [(run, jobs) for run, jobs in found if jobs]


def _foremost(jobs: Sequence[Job], places: Mapping[JobId, int]) -> Job:
    """The job that stands for its run: one that runs, else the next in the queue, else one that
    waits for the subject."""
    return min(
        jobs,
        key=lambda job: (
            job.status in WAITING,
            job.id not in places,
            subject_question(job) is None,
            job.order,
        ),
    )


def _entry(job: Job, facts: Facts, place: int | None) -> dict[str, Any]:
    waits = job.status in WAITING
    objection = subject_ready(job, facts) if waits else None
    wait = objection or (present_wait(job, facts) if waits else None)
    return {
        "subject": job.subject,
        "title": job.params[SLING].get("title"),
        "job": shown(job.id),
        "run": None,
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
    done = Cleared()
    for page in _pages(context) if subject is None else [[subject]]:
        now = _clear(context, page)
        done = Cleared._make(before + more for before, more in zip(done, now, strict=True))
    context.wake()
    return done


def _pages(context: Context) -> Iterator[list[str]]:
    """All subjects of open jobs and runs, however many there are; each page is a transaction of its
    own, so that nobody else is held up for long."""
    with context.store.read() as tx:
        runs = tx.workitems.open_runs_with_subject(MOST_LISTED)
    subjects = [run.subject for run in runs if run.subject is not None]
    for start in range(0, len(subjects), MOST_CLEARED):
        yield subjects[start : start + MOST_CLEARED]
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
        _cancel(tx, waiting, actor=context.actor)
        running = tuple(job.id for job in jobs if job.status not in WAITING)
        runs = sorted(tx.workitems.open_runs_about(subjects).values(), key=lambda run: run.id)
        cleared_runs, running_runs = [], []
        for run, of_run in _slung_runs(tx, runs):
            if any(node.status not in WAITING for node in tx.workflows.nodes(run.id)):
                running_runs.append(run.id)
                continue
            _cancel(tx, of_run, actor=context.actor)
            cleared_runs.append(run.id)
        cleared = tuple(job.id for job in waiting)
        return Cleared(cleared, running, tuple(cleared_runs), tuple(running_runs))

    return context.store.transact(transaction)


def _cancel(tx: WriteTx, jobs: Sequence[Job], *, actor: str) -> None:
    for job in jobs:
        after(job.status, Move.CANCEL)
    end_all_unstarted(tx, jobs, Status.CANCELLED, CLEARED, actor=actor)
