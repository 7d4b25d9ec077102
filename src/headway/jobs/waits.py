"""Where a waiting job is parked, and the event that records it.

The planner uses it, and a submit that already knows what its jobs wait for."""

from collections.abc import Mapping, MutableSequence

from headway.core.facts import Facts, Predecessor, waits_for_last
from headway.core.model import NOTHING, Job, JobId, Stage, Wait
from headway.core.plan import Hold, decide, move_for
from headway.core.policies import ENTRY, limit_topic
from headway.core.states import ACTIVE, Status, after
from headway.store.new_jobs import Event
from headway.store.records import Parking


def parking_of(job: Job, hold: Hold) -> Parking:
    """An entry of the jobs file is parked under the places for entries. It is not in the queue for
    slots, which no step reads while none is free."""
    apart = (limit_topic(ENTRY, job),) if hold.for_capacity and job.is_entry else ()
    return Parking(
        job=job,
        status=after(job.status, move_for(hold.shown)),
        stage=Stage.READY if hold.for_capacity and not apart else Stage.PARKED,
        wait=hold.shown,
        topics=tuple(dict.fromkeys((*hold.topics(job), *apart))),
        reserves=hold.reserves,
        wake_at=hold.until if not hold.for_capacity else None,
    )


def wait_event(parking: Parking) -> Event:
    """That the job waits, and for what."""
    return waiting(parking.job.id, parking.status, parking.wait)


def waiting(job_id: JobId, status: Status, wait: Wait) -> Event:
    return Event(status.value, job_id, {"wait": wait.kind.value, "detail": wait.detail})


def file_new(
    jobs: MutableSequence[Job],
    first_id: JobId,
    now: int,
    turns: Mapping[JobId, JobId] = NOTHING,
    ends: Mapping[JobId, tuple[JobId, Status]] = NOTHING,
) -> None:
    """Park new jobs that certainly wait: for jobs that are added with them and have not even begun,
    or for chains that have not ended. So no step has to check a whole graph before its first job
    starts, nor the next job of a chain before its turn. `turns` are those of jobs that join a group
    behind another of these. `ends` are the states of chains that exist already.

    All other gates, and a job that waits for a failure, are left to the planner.
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
                stage=Stage.PARKED,
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


def stands_already(parking: Parking) -> bool:
    """A job pulled from the head of the queue that goes back to where it stood."""
    job = parking.job
    return (
        job.stage is parking.stage is Stage.READY
        and job.status is parking.status
        and not parking.topics
    )


def says_something_new(parking: Parking) -> bool:
    before = parking.job.wait
    return before is None or (before.kind, before.detail) != (
        parking.wait.kind,
        parking.wait.detail,
    )
