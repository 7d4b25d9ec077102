"""Work items as a project's sources have them, and the one rule about jobs and runs that are about
them: at most one is open for each, whatever its target."""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from headway.base.errors import ConflictError, NotFoundError, SourceError
from headway.base.home import Home
from headway.core.model import Job, JobId, shown, shown_run
from headway.core.subjects import Item
from headway.integrations.trackers import Source, SourcePlace, open_source, places
from headway.jobs.settings import Config
from headway.store.transaction import ReadTx


class FoundItem(NamedTuple):
    item: Item
    place: SourcePlace


class Finder:
    """Asks the sources of a project in their order; the first that has an item describes it. Each
    source is read once, so that all answers are of one moment."""

    def __init__(self, home: Home, config: Config) -> None:
        project = os.path.dirname(home.path)
        given = {"beads": config["sources.beads"], "tasks": config["sources.tasks"]}
        self._sources: list[tuple[SourcePlace, Source]] = [
            (place, open_source(place)) for place in places(project, **given)
        ]
        self._wanted = [os.path.join(project, path) for path in given.values()]
        self.troubles: dict[str, None] = {}
        self._broken: list[SourceError] = []

    def find(self, subjects: Collection[str]) -> dict[str, FoundItem]:
        found: dict[str, FoundItem] = {}
        for place, source in self._sources:
            missing = [each for each in dict.fromkeys(subjects) if each not in found]
            if not missing:
                break
            try:
                seen = source.look(missing)
            except SourceError as error:
                self._broken.append(error)
                self.troubles[str(error)] = None
                continue
            self.troubles |= dict.fromkeys(seen.troubles)
            found |= {name: FoundItem(item, place) for name, item in seen.items.items()}
        return found

    def unknown(self, subject: str) -> NotFoundError | SourceError:
        """The error about one that no source has."""
        if self._broken:
            return SourceError(f"{self._broken[0]}, and no other source has {subject}")
        if not self._sources:
            return NotFoundError(
                f"there is no source of subjects: neither {' nor '.join(self._wanted)} exists"
            )
        where = " or ".join(place.shown for place, _ in self._sources)
        also = f"; {next(iter(self.troubles))}" if self.troubles else ""
        return NotFoundError(f"there is no subject {subject} in {where}{also}")


class SubjectHolder(NamedTuple):
    """What is open about a subject: a job, or a run of a workflow with all its jobs."""

    target: str | None
    job_id: JobId | None = None
    run: int | None = None
    workflow: str | None = None  # of the run

    @property
    def shown(self) -> str:
        return shown_run(self.run) if self.run is not None else shown(self.job_id or 0)


def subject_holders(tx: ReadTx, subjects: Sequence[str]) -> dict[str, SubjectHolder]:
    """What is open about each of these subjects."""
    jobs = tx.workitems.open_about(subjects)
    runs = tx.workitems.open_runs_about(subjects)
    return {
        **{name: SubjectHolder(job.target, job_id=job.id) for name, job in jobs.items()},
        **{name: SubjectHolder(run.target, None, run.id, run.name) for name, run in runs.items()},
    }


def refuse_second(tx: ReadTx, jobs: Iterable[Job]) -> None:
    """Refuse jobs about subjects that something else is open about. The jobs of one run share its
    subject: while the run is open, it holds it for those that are added to it, or retried."""
    makers: dict[str, set[str]] = {}
    for job in jobs:
        if job.subject is not None:
            run = job.workflow_run
            maker = shown(job.id) if run is None else shown_run(run)
            makers.setdefault(job.subject, set()).add(maker)
    for subject, known in subject_holders(tx, list(makers)).items():
        if makers[subject] != {known.shown}:
            how = "cancel" if known.run is None else "stop"
            raise ConflictError(
                f"{known.shown} is about {subject} and has not ended; wait for it, or {how} it"
            )
    for subject, made_by in makers.items():
        if len(made_by) > 1:
            raise ConflictError(f"two of these jobs are about {subject}; each subject may have one")
