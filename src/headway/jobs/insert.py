"""Make jobs of checked specifications: ids, places in the order, queues, and keys seen before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.errors import KeyReusedError
from headway.core.model import (
    FIELDS,
    FUNCTION,
    FUNCTIONS,
    NOT_READY,
    NOTHING,
    POSITION_GAP,
    Approval,
    ApprovalState,
    Job,
    JobId,
    JobSpec,
    Stage,
    WaitKind,
    of_spec,
    shown,
)
from headway.core.states import Status
from headway.store.new_jobs import (
    Alike,
    Event,
    Model,
)

if TYPE_CHECKING:
    from headway.base.host import Host
    from headway.store.store import Store
    from headway.store.transaction import ReadTx, WriteTx


class Submitted(NamedTuple):
    job_id: JobId
    created: bool


class Waiting(Submitted):
    """It waits until another job ends; no worker has to check it before."""


class Origin(NamedTuple):
    """The submitter, with place and environment; `host` only in a store of several hosts. Jobs of
    slots are submitted by their schedule."""

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
        from headway.jobs.stored_templates import require_usable

        for name in sorted({spec.template_id for spec in specs if spec.template_id is not None}):
            require_usable(tx, name)
    if any(spec.after_runs for spec in specs):
        from headway.jobs.awaited_runs import with_sinks

        specs = [with_sinks(tx, spec) if spec.after_runs else spec for spec in specs]
    known = _known_keys(tx, specs)
    waited_for = sorted({each for spec in specs for each in spec.after if each > 0})
    next_id, position, ageing, ends = tx.jobs.next_places(waited_for)
    for each in waited_for:
        if each not in ends:
            from headway.jobs.lookup import unknown_job

            raise unknown_job(tx, each)
    ids = list(_ids(specs, known, next_id))
    gained = _gained(tx.now(), ageing) if ageing is not None else 0
    jobs, submitted = [], []
    for spec, job_id in zip(specs, ids, strict=True):
        after = spec.after and tuple(ids[~each] if each < 0 else each for each in spec.after)
        spec_digest = ""
        if spec.key is not None:
            from headway.jobs.digest import digest

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
        from headway.jobs.membership import enrol

        jobs = enrol(tx, jobs, asked, actor=origin.actor)
    waits = _add(tx, jobs, next_id, ends, origin)
    ranks = {job_id: spec.place for spec, job_id in zip(specs, ids, strict=True) if spec.place}
    if ranks:
        _put(tx, jobs, ranks)
    if waits and not (ranks or asked):
        return [Waiting(*each) if each.created else each for each in submitted]
    return submitted


def add_plain(store: Store, specs: Sequence[JobSpec], origin: Origin) -> list[Submitted] | None:
    """Store jobs that are all plain, and mostly alike, in one transaction; None: nothing was
    done."""
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
    """The common part of all jobs whose specifications differ from this one only in their
    parameters, or None if it is unknown before their transaction begins.

    It is known if such a job waits for nothing and concerns no other job. Then only its row and its
    event are written, and nothing is read. A specification with anything else is not plain.
    """
    rest = spec._replace(**_PLAIN)
    if rest != _NOTHING_ELSE or "worktree" in spec.params:
        return None
    job = _job(spec, 0, 0, 0, (), "", origin)
    return None if origin.host is not None and job.queue == origin.host.id else Model(job)


# What a plain specification may have.
_PLAIN: Mapping[str, Any] = {
    name: JobSpec._field_defaults.get(name)
    for name in of_spec(field for field in FIELDS if field.alike)
}
_NOTHING_ELSE = JobSpec(**_PLAIN)


def _gained(now: int, ageing: str) -> int:
    """The number to add to the priority of a job that is submitted now, to get its level."""
    from headway.jobs.levels import level_now

    return level_now(0, now, ageing)


def _put(tx: WriteTx, jobs: Sequence[Job], ranks: Mapping[JobId, int]) -> None:
    """Those that asked for a place take it, one after the other."""
    from headway.jobs.places import by_rank, put

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
        from headway.store.records import HostRecord

        tx.hosts.know(HostRecord(host.id, host.name, host.home))
    turns = _turns(tx, jobs) if any(job.group_id for job in jobs) else NOTHING
    if any(job.produces for job in jobs) or (turns and _looks_ahead(jobs)):
        from headway.jobs.cycles import refuse_cycles

        refuse_cycles(tx, jobs, turns)
    if any(job.subject for job in jobs):
        from headway.jobs.subjects import refuse_second

        refuse_second(tx, jobs)
    if turns or any(job.after for job in jobs):
        from headway.jobs.waits import file_new

        file_new(jobs, first_id, tx.now(), turns, ends)
    tx.jobs.add(jobs)
    tx.events.add(_events(jobs), actor=origin.actor)
    if any(job.produces for job in jobs):
        _wake_consumers(tx, jobs)
        return False
    return bool(jobs) and all(
        job.wait is not None and job.wait.kind is WaitKind.DEPENDENCIES for job in jobs
    )


def _wake_consumers(tx: WriteTx, jobs: Sequence[Job]) -> None:
    """Wake the jobs that wait for what these make: until now it may have had no maker."""
    from headway.core.artifacts import artifact_key, artifact_topic

    made = [artifact_key(text, job.repo) for job in jobs for text in job.produces]
    tx.waits.wake_topics(artifact_topic(each) for each in made)


def _turns(tx: ReadTx, jobs: Sequence[Job]) -> Mapping[JobId, JobId]:
    from headway.core.groups import turns_among

    return turns_among(
        jobs, tx.groups.by_id(sorted({job.group_id for job in jobs if job.group_id}))
    )


def _looks_ahead(jobs: Sequence[Job]) -> bool:
    """Whether one waits for another that stands behind it, and so may have its turn later."""
    return any(each > job.id for job in jobs for each in job.after)


def _events(jobs: Sequence[Job]) -> Iterator[Event]:
    for job in jobs:
        yield Event("submitted", job.id, {"name": job.name}, job.submitted_by)
        if job.wait is not None:
            from headway.jobs.waits import waiting

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
    actor = (origin.of_slots and spec.schedule_id) or origin.actor
    asked = Approval(ApprovalState.PENDING, now, actor) if spec.require_approval else None
    # A call that waits for nothing is ready at once, without being looked at.
    ready = spec.type == FUNCTION and not any(_hindering(spec))
    return Job(
        **dict(zip(_ASKED, _asked_of(spec), strict=True)),
        id=job_id,
        status=Status.QUEUED,
        position=position,
        created_at=now,
        chain=job_id,
        after=after,
        not_before=spec.at if spec.at is not None else now + spec.delay if spec.delay else None,
        env_digest=origin.env_digest,
        spec_digest=spec_digest,
        submitted_by=actor,
        stage=Stage.READY if ready else Stage.WOKEN,
        queue=_queue(spec, origin.host),
        approval=asked,
    )


def _values(names: Sequence[str]) -> Callable[[JobSpec], tuple[Any, ...]]:
    """What reads these fields of a specification."""
    return itemgetter(*map(JobSpec._fields.index, names))


_ASKED = of_spec(field for field in FIELDS if field.asked)
_asked_of = _values(_ASKED)
_hindering = _values(of_spec(field for field in FIELDS if field.hinders in NOT_READY))


def _with_worktree(job: Job, folder: str) -> Job:
    """All jobs of its chain have theirs in the same folder."""
    asked = job.params["worktree"]
    return job._replace(params={**job.params, "worktree": {**asked, "folder": folder}})


def _known_keys(tx: ReadTx, specs: Sequence[JobSpec]) -> dict[str, Job]:
    keys = {spec.key for spec in specs if spec.key is not None}
    found = ((key, tx.jobs.by_key(key)) for key in keys)
    return {key: job for key, job in found if job is not None}


def _seen_before(known: Job, key: str, spec_digest: str) -> Submitted:
    if known.spec_digest != spec_digest:
        raise KeyReusedError(
            f"key {key!r} belongs to {shown(known.id)}, which has another specification; "
            "use another key"
        )
    return Submitted(known.id, created=False)
