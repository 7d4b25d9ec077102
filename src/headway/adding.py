"""Make jobs of checked specifications: ids, places in the order, queues, and keys seen before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.core.model import (
    FUNCTION,
    FUNCTIONS,
    NOTHING,
    POSITION_GAP,
    Approval,
    ApprovalState,
    Job,
    JobId,
    JobSpec,
    Stage,
    WaitKind,
    shown,
)
from headway.core.states import Status
from headway.errors import ConflictError
from headway.store.seam_adding import Alike, Event, Model

if TYPE_CHECKING:
    from headway.host import Host
    from headway.store.base import ReadTx, Store, WriteTx


class Submitted(NamedTuple):
    job_id: JobId
    created: bool


class Waiting(Submitted):
    """Until another job ends; no worker has to look at it before."""


class Origin(NamedTuple):
    """Who submits, where, and with which environment; `host` only in a store of several. Of jobs
    that slots make it is each one's schedule that submits."""

    actor: str
    worktrees: str  # where jobs of this home have theirs
    host: Host | None = None
    env_digest: str | None = None
    of_slots: bool = False


def add_jobs(tx: WriteTx, specs: Sequence[JobSpec], origin: Origin) -> list[Submitted]:
    """Store those that are new; a key that was seen before names the job that has it.

    A reference below zero is the place of another specification among these.
    """
    if any(spec.template_id is not None for spec in specs):
        from headway.templates import require_usable

        for name in sorted({spec.template_id for spec in specs if spec.template_id is not None}):
            require_usable(tx, name)
    known = _known_keys(tx, specs)
    waited_for = sorted({each for spec in specs for each in spec.after if each > 0})
    next_id, position, ageing, ends = tx.next_places(waited_for)
    for each in waited_for:
        if each not in ends:
            from headway.collecting import unknown_job

            raise unknown_job(tx, each)
    ids = list(_ids(specs, known, next_id))
    gained = _gained(tx.now(), ageing) if ageing is not None else 0
    jobs, submitted = [], []
    for spec, job_id in zip(specs, ids, strict=True):
        after = spec.after and tuple(ids[~each] if each < 0 else each for each in spec.after)
        spec_digest = ""
        if spec.key is not None:
            from headway.digesting import digest

            spec_digest = digest(spec._replace(after=after))
            if spec.key in known:
                submitted.append(_seen_before(known[spec.key], spec.key, spec_digest))
                continue
        stands = position + POSITION_GAP * (job_id - next_id)
        job = _job(spec, job_id, stands, tx.now(), after, spec_digest, origin)
        if gained:
            job = job._replace(level=spec.priority + gained)
        if "worktree" in spec.params:
            job = _with_worktree(job, origin.worktrees)
        jobs.append(job)
        submitted.append(Submitted(job_id, created=True))
        if spec.key is not None:
            known[spec.key] = job
    asked = {job_id: spec for spec, job_id in zip(specs, ids, strict=True) if spec.group}
    if asked:
        from headway.joining import enrol

        jobs = enrol(tx, jobs, asked, actor=origin.actor)
    waits = _add(tx, jobs, next_id, ends, origin)
    ranks = {job_id: spec.place for spec, job_id in zip(specs, ids, strict=True) if spec.place}
    if ranks:
        _put(tx, jobs, ranks)
    if waits and not (ranks or asked):
        return [Waiting(*each) if each.created else each for each in submitted]
    return submitted


def submit_jobs(tx: WriteTx, specs: Sequence[JobSpec], origin: Origin) -> list[Submitted]:
    """The same by one who does nothing else in this transaction: if all that was added waits, there
    is nothing in it that a worker has to look at."""
    submitted = add_jobs(tx, specs, origin)
    created = [each for each in submitted if each.created]
    if created and all(isinstance(each, Waiting) for each in created):
        tx.wakes_nobody()
    return submitted


def add_plain(store: Store, specs: Sequence[JobSpec], origin: Origin) -> list[Submitted] | None:
    """Store those that are all plain, and mostly alike, as a story; None: nothing was done."""
    kinds: list[Alike] = []
    known: JobSpec | None = None
    for place, spec in enumerate(specs):
        rest = spec._replace(params=NOTHING)
        if rest != known:
            model = model_of(spec, origin)
            if model is None or not worth_it(len(kinds), place):
                return None
            known = rest
            kinds.append(Alike(model, {}))
        elif "worktree" in spec.params:
            return None
        kinds[-1].params[place] = spec.params
    if len({each.model.job.priority for each in kinds}) != 1:
        return None
    first = store.add_alike(kinds)
    if first is None:
        return None
    return [Submitted(first + place, created=True) for place in range(len(specs))]


def worth_it(kinds: int, jobs: int) -> bool:
    """Whether so many kinds are few for so many jobs: each is a statement of its own."""
    return kinds * 4 <= jobs + 8


def model_of(spec: JobSpec, origin: Origin) -> Model | None:
    """What all jobs have in common whose specifications differ from this only in their parameters,
    or None if that cannot be said before their transaction begins.

    It can if such a job waits for nothing and concerns no other one, so that nothing is to be asked
    or to be written but its row and its event. Whatever else a specification may have is not plain.
    """
    rest = spec._replace(**_PLAIN, type="")
    if rest != _NOTHING_ELSE or "worktree" in spec.params:
        return None
    job = _job(spec, 0, 0, 0, (), "", origin)
    return None if origin.host is not None and job.queue == origin.host.id else Model(job)


# What a plain specification may have.
_PLAIN: Mapping[str, Any] = {
    "params": NOTHING,
    "name": "",
    "slug": None,
    "labels": NOTHING,
    "priority": 0,
    "retry": None,
    "on_finish": (),
}
_NOTHING_ELSE = JobSpec(type="", **_PLAIN)


def _gained(now: int, ageing: str) -> int:
    """What the priority of a job that is submitted now has to be added to, to get its level."""
    from headway.ageing import level_now

    return level_now(0, now, ageing)


def _put(tx: WriteTx, jobs: Sequence[Job], ranks: Mapping[JobId, int]) -> None:
    """Those that asked for a place take it, one after the other."""
    from headway.placing import by_rank, put

    for job in jobs:
        if job.id in ranks:
            put(tx, job, job.dispatch_level, by_rank(tx, job, ranks[job.id]))


def _add(
    tx: WriteTx,
    jobs: list[Job],
    first_id: JobId,
    ends: Mapping[JobId, tuple[JobId, Status]],
    origin: Origin,
) -> bool:
    """Whether all of them wait for the end of others."""
    host = origin.host
    if host is not None and any(job.queue == host.id for job in jobs):
        from headway.store.base import HostRecord

        tx.know_host(HostRecord(host.id, host.name, host.home))
    turns = _turns(tx, jobs) if any(job.group_id for job in jobs) else NOTHING
    if any(job.produces for job in jobs) or (turns and _looks_ahead(jobs)):
        from headway.cycles import refuse_cycles

        refuse_cycles(tx, jobs, turns)
    if any(job.subject for job in jobs):
        from headway.subjects import refuse_second

        refuse_second(tx, jobs)
    if turns or any(job.after for job in jobs):
        from headway.filing import file_new

        file_new(jobs, first_id, tx.now(), turns, ends)
    tx.add_jobs(jobs)
    tx.add_events(_events(jobs), actor=origin.actor)
    if any(job.produces for job in jobs):
        _wake_consumers(tx, jobs)
        return False
    return bool(jobs) and all(
        job.wait is not None and job.wait.kind is WaitKind.DEPENDENCIES for job in jobs
    )


def _wake_consumers(tx: WriteTx, jobs: Sequence[Job]) -> None:
    """Who waits for what these make may have waited for nobody until now."""
    from headway.core.artifacts import artifact_key, artifact_topic

    made = [artifact_key(text, job.repo) for job in jobs for text in job.produces]
    tx.wake_topics(artifact_topic(each) for each in made)


def _turns(tx: ReadTx, jobs: Sequence[Job]) -> Mapping[JobId, JobId]:
    from headway.core.groups import turns_among

    return turns_among(jobs, tx.groups(sorted({job.group_id for job in jobs if job.group_id})))


def _looks_ahead(jobs: Sequence[Job]) -> bool:
    """Whether one waits for another that stands behind it, and so may have its turn later."""
    return any(each > job.id for job in jobs for each in job.after)


def _events(jobs: Sequence[Job]) -> Iterator[Event]:
    for job in jobs:
        yield Event("submitted", job.id, {"name": job.name}, job.submitted_by)
        if job.wait is not None:
            from headway.filing import waiting

            yield waiting(job.id, job.status, job.wait)


def _ids(specs: Sequence[JobSpec], known: dict[str, Job], next_id: JobId) -> Iterator[JobId]:
    """For each the id that it gets, or has already."""
    given: dict[str, JobId] = {key: job.id for key, job in known.items()}
    for spec in specs:
        if spec.key is not None and spec.key in given:
            yield given[spec.key]
            continue
        if spec.key is not None:
            given[spec.key] = next_id
        yield next_id
        next_id += 1


def _queue(spec: JobSpec, host: Host | None) -> str:
    """In a store of several hosts a command is started where it was submitted: its program, its
    working directory and its environment are there."""
    if spec.type == FUNCTION:
        return FUNCTIONS
    return "" if host is None or spec.params.get("any_host") else host.id


def _job(
    spec: JobSpec,
    job_id: JobId,
    position: int,
    now: int,
    after: tuple[JobId, ...],
    spec_digest: str,
    origin: Origin,
) -> Job:
    plain = not (
        after
        or spec.locks
        or spec.delay
        or spec.at is not None
        or spec.needs
        or spec.repo
        or spec.require_approval
        or spec.resources
        or spec.rates
        or spec.group
        or spec.subject
        or spec.target
    )
    actor = (origin.of_slots and spec.schedule_id) or origin.actor
    asked = Approval(ApprovalState.PENDING, now, actor) if spec.require_approval else None
    return Job(
        id=job_id,
        name=spec.name,
        type=spec.type,
        status=Status.QUEUED,
        priority=spec.priority,
        position=position,
        params=spec.params,
        created_at=now,
        chain=job_id,
        slug=spec.slug,
        labels=spec.labels,
        after=after,
        locks=spec.locks,
        retry=spec.retry,
        not_before=spec.at if spec.at is not None else now + spec.delay if spec.delay else None,
        env_digest=origin.env_digest,
        key=spec.key,
        spec_digest=spec_digest,
        on_finish=spec.on_finish,
        submitted_by=actor,
        # A call that waits for nothing stands at the door at once, without being looked at.
        stage=Stage.READY if plain and spec.type == FUNCTION else Stage.WOKEN,
        queue=_queue(spec, origin.host),
        needs=spec.needs,
        produces=spec.produces,
        pinned_head=spec.pinned_head,
        preconditions=spec.preconditions,
        repo=spec.repo,
        approval=asked,
        subject=spec.subject,
        target=spec.target,
        template_id=spec.template_id,
        schedule_id=spec.schedule_id,
        resources=spec.resources,
        rates=spec.rates,
    )


def _with_worktree(job: Job, folder: str) -> Job:
    """All jobs of its chain have theirs in the same folder."""
    asked = job.params["worktree"]
    return job._replace(params={**job.params, "worktree": {**asked, "folder": folder}})


def _known_keys(tx: ReadTx, specs: Sequence[JobSpec]) -> dict[str, Job]:
    keys = {spec.key for spec in specs if spec.key is not None}
    found = ((key, tx.job_by_key(key)) for key in keys)
    return {key: job for key, job in found if job is not None}


def _seen_before(known: Job, key: str, spec_digest: str) -> Submitted:
    if known.spec_digest != spec_digest:
        raise ConflictError(
            f"key {key!r} belongs to {shown(known.id)}, which has another specification; "
            "use another key"
        )
    return Submitted(known.id, created=False)
