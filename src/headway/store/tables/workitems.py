"""Work items as jobs: targets, open jobs by their subjects, groups that track them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import DataError
from headway.core.model import Job, JobId
from headway.store.access import Table
from headway.store.rows import dump, load_workflow_run

if TYPE_CHECKING:
    from headway.core.targets import Target
    from headway.store.records import RunRecord

_DOCUMENT = (
    *("argv", "cwd", "env", "resources", "locks", "timeout", "retries", "helper"),
    *("workflow", "params"),  # rows of before have neither
)
_LISTS = ("argv", "resources", "locks", "helper")


class WorkItemsReader(Table):
    """Work items as a read transaction shows them."""

    def targets(self) -> dict[str, Target]:
        return {row[0]: _target(row) for row in self._db.all("targets")}

    def open_about(self, subjects: Sequence[str]) -> dict[str, Job]:
        """The job that is open for each of these subjects; there is one at most. Those of a run are
        left out: the run holds their subject."""
        rows = self._db.all("open_about", subjects=self._db.json(subjects))
        return {job.subject: job for job in self._readable(rows) if job.subject is not None}

    def open_runs_about(self, subjects: Sequence[str]) -> dict[str, RunRecord]:
        """The run that is open for each of these subjects; there is one at most."""
        rows = self._db.all("open_runs_about", subjects=self._db.json(subjects))
        return {run.subject: run for run in map(load_workflow_run, rows) if run.subject is not None}

    def open_runs_with_subject(self, limit: int) -> list[RunRecord]:
        """The open runs that are about any subject, the oldest first."""
        rows = self._db.all("open_runs_with_subject", limit=limit)
        return [load_workflow_run(row) for row in rows]

    def open_with_subject(self, limit: int) -> list[Job]:
        """The open jobs that hold a subject themselves, in dispatch order."""
        return self._readable(self._db.all("open_with_subject", limit=limit))

    def open_with_subject_after(self, after: JobId, limit: int) -> list[Job]:
        """The same by their ids, and only later ones: for those who go through all of them."""
        return self._readable(self._db.all("open_with_subject_after", after=after, limit=limit))

    def places_in_queue(self) -> dict[JobId, int]:
        """The place in the queue, from 1, of each ready job that is about a subject."""
        return dict(self._db.all("places_in_queue"))

    def groups_tracking(self, subjects: Sequence[str]) -> dict[str, int]:
        """The group that a sling made, that tracks each of these and has not ended; the newest if
        there are more."""
        found: dict[str, int] = {}
        rows = self._db.all("groups_tracking", subjects=self._db.json(subjects))
        for subject, group_id in rows:
            found[subject] = max(group_id, found.get(subject, 0))
        return found


class WorkItemsTable(WorkItemsReader):
    """Work items as a write transaction changes them."""

    def add_target(self, target: Target) -> bool:
        """False if there is one of that name."""
        document = {name: getattr(target, name) for name in _DOCUMENT}
        added = self._db.change(
            "add_target",
            name=target.name,
            prefix=target.prefix,
            document=dump({**document, "env": dict(target.env), "params": dict(target.params)}),
            at=target.created_at,
            by=target.created_by,
        )
        return added == 1

    def remove_target(self, name: str) -> bool:
        return self._db.change("remove_target", name=name) == 1


def _target(row: Sequence[Any]) -> Target:
    from headway.core.targets import Target

    name, prefix, document, created_at, created_by = row
    try:
        fields = json.loads(document)
        lists = {each: tuple(fields[each]) for each in _LISTS}
        return Target(
            name=name,
            prefix=prefix,
            created_at=created_at,
            created_by=created_by,
            **{**fields, **lists},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"the row of target {name} cannot be read: {error}") from error
