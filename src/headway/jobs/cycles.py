"""Refuse jobs that could only wait for each other, over `after`, artifacts and turns in groups.

Only a job that makes something can close such a circle. Jobs wait for a new one only because of
what it makes, or within its own submission; a job that joins a group stands at its end. So most
submits do not come here. Most of those that do end after one question: does any job want what they
make? Stored jobs that become a group are another case.
"""

from collections.abc import Iterable, Mapping, Sequence

from headway.base.errors import InvalidInputError
from headway.core.artifacts import ArtifactKey, artifact_key
from headway.core.facts import ArtifactView
from headway.core.graph import Requirement, find_cycle, show_cycle
from headway.core.model import NOTHING, Job, JobId, shown
from headway.core.states import ACTIVE, Status
from headway.store.transaction import ReadTx


def refuse_cycles(tx: ReadTx, jobs: Sequence[Job], turns: Mapping[JobId, JobId] = NOTHING) -> None:
    """Raise if these jobs, which are not stored yet, would wait for themselves. `turns` says of
    those that join a group behind another of these whom they follow."""
    makers = _makers(jobs)
    wanted_inside = any(key in makers for job in jobs for key in _needs(job))
    wanted_outside = bool(makers) and any(tx.graph.consumers(makers).values())
    if not (wanted_inside or wanted_outside or turns):
        return
    if not any(job.after or job.needs or job.group_id for job in jobs):
        return
    if wanted_outside:
        first = [job for job in jobs if job.group_id is not None and job.id not in turns]
        turns = {**turns, **tx.groups.turns(first)}
    graph = _Graph(tx, jobs, makers, turns)
    if wanted_outside:
        graph.go_upstream()
    _refuse(tx, jobs, graph.cycle())


def refuse_cycles_of_group(tx: ReadTx, jobs: Sequence[Job], turns: Mapping[JobId, JobId]) -> None:
    """Raise if stored jobs would wait for themselves once each has its turn after another."""
    graph = _Graph(tx, jobs, {}, turns)
    graph.go_upstream()
    _refuse(tx, jobs, graph.cycle())


def _refuse(tx: ReadTx, jobs: Sequence[Job], cycle: list[JobId] | None) -> None:
    if cycle is None:
        return
    stored = tx.jobs.readable(cycle)
    new = {job.id: job.name for job in jobs}
    names = [
        new[each]
        if each in new
        else f"{shown(each)} ({stored[each].name})"
        if each in stored
        else shown(each)
        for each in cycle
    ]
    raise InvalidInputError(
        f"a cycle: {show_cycle(names)}; each waits for the next, by after, for an artifact or for "
        "its turn in a group. Take one of these dependencies out"
    )


class _Graph:
    """New jobs and those active ones that they wait for, with what each of them waits for."""

    def __init__(
        self,
        tx: ReadTx,
        jobs: Sequence[Job],
        makers: dict[ArtifactKey, list[JobId]],
        turns: Mapping[JobId, JobId],
    ) -> None:
        self._tx = tx
        self._makers = makers
        self._turns = dict(turns)
        self._views: dict[ArtifactKey, ArtifactView] = {}
        self._after: dict[JobId, Iterable[JobId]] = {
            job.id: (*job.after, turns[job.id]) if job.id in turns else job.after for job in jobs
        }
        self._needs: dict[JobId, list[ArtifactKey]] = {job.id: _needs(job) for job in jobs}
        self._look_at(key for keys in self._needs.values() for key in keys)
        self._jobs = jobs

    def go_upstream(self) -> None:
        """Add all that the new jobs wait for, and what that waits for, until nothing new is found.

        What is reached by `after` comes in one question, however long the chain is.
        """
        awaited = {each for others in self._after.values() for each in others}
        declared = sorted(awaited - self._after.keys())
        lasts = self._tx.graph.chain_lasts(declared) if declared else {}
        for job in self._jobs:
            self._after[job.id] = [lasts.get(each, each) for each in self._after[job.id]]
        ahead = {*lasts.values(), *self._active_makers(self._views)} - self._after.keys()
        while ahead:
            found = self._tx.graph.upstream(sorted(ahead))
            new = found.keys() - self._after.keys()
            self._after |= {job_id: found[job_id] for job_id in new}
            keys: set[ArtifactKey] = set()
            for key, job_id in self._tx.graph.needed_by(sorted(new)):
                self._needs.setdefault(job_id, []).append(key)
                keys.add(key)
            keys -= self._views.keys()
            self._look_at(keys)
            turns = self._tx.groups.turns_upstream(sorted(new)) if new else {}
            self._turns |= turns
            ahead = {*self._active_makers(keys), *turns, *turns.values()} - self._after.keys()

    def cycle(self) -> list[JobId] | None:
        ids = list(self._after)
        nodes = {job_id: node for node, job_id in enumerate(ids)}
        waits_for = [list(self._requirements(job_id, nodes)) for job_id in ids]
        cycle = find_cycle(waits_for)
        return None if cycle is None else [ids[node] for node in cycle]

    def _requirements(self, job_id: JobId, nodes: dict[JobId, int]) -> Iterable[Requirement]:
        for each in self._after[job_id]:
            if each in nodes:
                yield nodes[each]
        if self._turns.get(job_id) in nodes:
            yield nodes[self._turns[job_id]]
        for key in self._needs.get(job_id, ()):
            if self._is_there(key):
                continue
            makers = (*self._makers.get(key, ()), *self._active_makers([key]))
            inside = tuple(nodes[each] for each in makers if each in nodes)
            if inside and len(inside) == len(makers):
                yield inside

    def _look_at(self, keys: Iterable[ArtifactKey]) -> None:
        self._views |= self._tx.graph.artifact_views(keys)

    def _is_there(self, key: ArtifactKey) -> bool:
        view = self._views.get(key, ArtifactView())
        made = any(each.status is Status.SUCCEEDED for each in view.producers)
        return view.published or (made and not view.withdrawn)

    def _active_makers(self, keys: Iterable[ArtifactKey]) -> list[JobId]:
        views = (self._views.get(key, ArtifactView()) for key in keys)
        return [each.job_id for view in views for each in view.producers if each.status in ACTIVE]


def _needs(job: Job) -> list[ArtifactKey]:
    return [artifact_key(text, job.repo) for text in job.needs]


def _makers(jobs: Iterable[Job]) -> dict[ArtifactKey, list[JobId]]:
    makers: dict[ArtifactKey, list[JobId]] = {}
    for job in jobs:
        for text in job.produces:
            makers.setdefault(artifact_key(text, job.repo), []).append(job.id)
    return makers
