"""Work items as a project's sources have them, and the one rule about jobs that are about them: at
most one is open for each, whatever its target."""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from headway.base.errors import ConflictError, NotFoundError, SourceError
from headway.base.home import Home
from headway.core.model import Job, JobId, shown
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


def refuse_second(tx: ReadTx, jobs: Iterable[Job], leaving: Collection[JobId] = ()) -> None:
    """Refuse jobs about subjects for which another is open; `leaving` are on their way out."""
    subjects = [job.subject for job in jobs if job.subject is not None]
    for subject, known in tx.workitems.open_about(subjects).items():
        if known.id not in leaving:
            raise ConflictError(
                f"{shown(known.id)} is about {subject} and has not ended; wait for it, or cancel it"
            )
    twice = _twice(subjects)
    if twice is not None:
        raise ConflictError(f"two of these jobs are about {twice}; each subject may have one")


def _twice(subjects: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for each in subjects:
        if each in seen:
            return each
        seen.add(each)
    return None
