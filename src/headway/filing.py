"""Where a job that must wait is filed, and the event that tells it: the planner's words, and those
of a submit that knows already what its jobs wait for."""

from collections.abc import Mapping, MutableSequence

from headway.core.facts import Facts, Predecessor, waits_for_last
from headway.core.model import NOTHING, Job, JobId, Stage, Wait
from headway.core.plan import Hold, decide, move_for
from headway.core.states import Status, after
from headway.store.base import Event, Filing


def filing_of(job: Job, hold: Hold) -> Filing:
    return Filing(
        job=job,
        status=after(job.status, move_for(hold.shown)),
        stage=Stage.READY if hold.at_door else Stage.FILED,
        wait=hold.shown,
        topics=hold.topics(job),
        reserves=hold.reserves,
        wake_at=hold.until if not hold.at_door else None,
    )


def told(filing: Filing) -> Event:
    """That the job waits, and for what."""
    return waiting(filing.job.id, filing.status, filing.wait)


def waiting(job_id: JobId, status: Status, wait: Wait) -> Event:
    return Event(status.value, job_id, {"wait": wait.kind.value, "detail": wait.detail})


def file_new(
    jobs: MutableSequence[Job],
    first_id: JobId,
    now: int,
    turns: Mapping[JobId, JobId] = NOTHING,
) -> None:
    """File those that wait only for others which are added with them: what they wait for has not
    even begun. So nobody has to look at a whole graph before its first job starts. `turns` are
    those of jobs that join a group behind another of these.

    What else is to be asked about a job, and one that exists already may have ended, is for the
    planner.
    """
    predecessors: dict[JobId, tuple[Predecessor, ...]] = {}
    facts = Facts(now=now, predecessors=predecessors, turns=turns)
    last_id = jobs[-1].id
    for place, job in enumerate(jobs):
        predecessors.clear()
        if job.after:
            if not all(first_id <= each <= last_id for each in job.after):
                continue
            awaited = job.after[-1 if waits_for_last(job.after) else 0]
            predecessors[job.id] = (Predecessor(awaited, awaited, Status.QUEUED),)
        elif job.needs or job.id not in turns:
            continue
        decision = decide(job, facts)
        if isinstance(decision, Hold):
            wait = decision.shown
            jobs[place] = job._replace(
                status=after(job.status, move_for(wait)),
                stage=Stage.FILED,
                wait=wait,
                waited_on=(wait.kind.value,),
            )


def stands_already(filing: Filing) -> bool:
    """A job pulled from the head of the queue that goes back to where it stood."""
    job = filing.job
    return (
        job.stage is filing.stage is Stage.READY
        and job.status is filing.status
        and not filing.topics
    )


def says_something_new(filing: Filing) -> bool:
    before = filing.job.wait
    return before is None or (before.kind, before.detail) != (
        filing.wait.kind,
        filing.wait.detail,
    )
