"""Where a job that must wait is filed, and the event that tells it: the planner's words, and those
of a submit that knows already what its jobs wait for."""

from collections.abc import Mapping, MutableSequence

from headway.core.facts import Facts, Predecessor, waits_for_last
from headway.core.model import NOTHING, Job, JobId, Stage, Wait
from headway.core.plan import Hold, decide, move_for
from headway.core.policies import ENTRY, limit_topic
from headway.core.states import ACTIVE, Status, after
from headway.store.base import Event, Filing


def filing_of(job: Job, hold: Hold) -> Filing:
    """An entry of the jobs file does not stand in the queue for slots, at which nobody looks while
    none is free: it is filed under the places for entries."""
    apart = (limit_topic(ENTRY, job),) if hold.at_door and job.is_entry else ()
    return Filing(
        job=job,
        status=after(job.status, move_for(hold.shown)),
        stage=Stage.READY if hold.at_door and not apart else Stage.FILED,
        wait=hold.shown,
        topics=tuple(dict.fromkeys((*hold.topics(job), *apart))),
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
    ends: Mapping[JobId, tuple[JobId, Status]] = NOTHING,
) -> None:
    """File those that wait for others, as far as that is certain: for jobs which are added with
    them, that have not even begun, or whose chains have not ended. So nobody has to look at a whole
    graph before its first job starts, nor at the next one of a chain before its turn. `turns` are
    those of jobs that join a group behind another of these, `ends` is how the chains of jobs stand
    that exist already.

    What else is to be asked about a job, and one that waits for a failure, is for the planner.
    """
    predecessors: dict[JobId, tuple[Predecessor, ...]] = {}
    facts = Facts(now=now, predecessors=predecessors, turns=turns)
    for place, job in enumerate(jobs):
        predecessors.clear()
        if job.after:
            awaited = _awaited(job, first_id, ends)
            if awaited is None:
                continue
            predecessors[job.id] = (awaited,)
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


def _awaited(
    job: Job, first_id: JobId, ends: Mapping[JobId, tuple[JobId, Status]]
) -> Predecessor | None:
    """The one for which it is to wait; None if there is none, or if one has failed. Of one that has
    the key of another of these it is not known how it stands."""
    unmet = []
    unknown = (0, None)
    for each in job.after:
        chain, status = (each, Status.QUEUED) if each >= first_id else ends.get(each, unknown)
        if status in ACTIVE:
            unmet.append(Predecessor(each, chain, status))
        elif status is not Status.SUCCEEDED:
            return None
    return unmet[-1 if waits_for_last(job.after) else 0] if unmet else None


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
