"""Slung work as it stands: what is scheduled for which target, and how to take it back."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from headway.client import Client, present_wait
from headway.consequences import end_unstarted
from headway.core.facts import Facts
from headway.core.model import Job, JobId, shown
from headway.core.states import WAITING, Move, Status, after
from headway.core.subjects import SLING, subject_question, subject_ready
from headway.probes import look_at
from headway.store.base import WriteTx
from headway.units import show_instant

MOST_LISTED = 10_000
MOST_CLEARED = 1_000  # in one transaction
CLEARED = "cleared"


class Cleared(NamedTuple):
    """What a clear did: jobs that are cancelled now, and running ones, which it leaves alone."""

    cleared: tuple[JobId, ...]
    running: tuple[JobId, ...]


def scheduled(client: Client) -> list[dict[str, Any]]:
    """What is slung and has not ended, by target. Subjects are looked at anew, so that it is true
    also where no worker has looked."""
    with client.store.read() as tx:
        jobs = _slung(tx.open_with_subject(MOST_LISTED))
        places = tx.places_in_queue()
        door = client.at_the_door(tx)
    questions = [each for job in jobs if (each := subject_question(job)) is not None]
    facts = door._replace(answers=look_at(questions, client.config.conditions))
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


def clear(client: Client, subject: str | None = None) -> Cleared:
    """Cancel what is slung and waits, all of it or what is about one subject."""
    done = Cleared((), ())
    for page in _pages(client) if subject is None else [[subject]]:
        now = _clear(client, page)
        done = Cleared(done.cleared + now.cleared, done.running + now.running)
    client.wake()
    return done


def _pages(client: Client) -> Iterator[list[str]]:
    """All subjects of open jobs, however many there are; each page is a transaction of its own, so
    that nobody else is held up for long."""
    last = 0
    while True:
        with client.store.read() as tx:
            jobs = tx.open_with_subject_after(last, MOST_CLEARED)
        if not jobs:
            return
        yield [job.subject for job in jobs if job.subject is not None]
        last = jobs[-1].id


def _clear(client: Client, subjects: Sequence[str]) -> Cleared:
    def tell(tx: WriteTx) -> Cleared:
        jobs = _slung(sorted(tx.open_about(subjects).values(), key=lambda job: job.id))
        waiting = [job for job in jobs if job.status in WAITING]
        for job in waiting:
            after(job.status, Move.CANCEL)
            end_unstarted(tx, job, Status.CANCELLED, CLEARED, actor=client.actor)
        running = tuple(job.id for job in jobs if job.status not in WAITING)
        return Cleared(tuple(job.id for job in waiting), running)

    return client.store.story(tell)
