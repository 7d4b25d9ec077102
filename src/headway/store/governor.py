"""The verbs about slung work: targets, open jobs by their subjects, tracking groups."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.core.model import Job, JobId
from headway.errors import DataError
from headway.store.changing import Changing
from headway.store.graphreading import GraphReadTx
from headway.store.rows import dump

if TYPE_CHECKING:
    from headway.core.targets import Target

_DOCUMENT = ("argv", "cwd", "env", "resources", "locks", "timeout", "retries", "helper")
_LISTS = ("argv", "resources", "locks", "helper")


class GovernorReadTx(GraphReadTx):
    def targets(self) -> dict[str, Target]:
        return {row[0]: _target(row) for row in self._all("targets")}

    def open_about(self, subjects: Sequence[str]) -> dict[str, Job]:
        rows = self._all("open_about", subjects=self._database.json(subjects))
        return {job.subject: job for job in self._readable(rows) if job.subject is not None}

    def open_with_subject(self, limit: int) -> list[Job]:
        return self._readable(self._all("open_with_subject", limit=limit))

    def open_with_subject_after(self, after: JobId, limit: int) -> list[Job]:
        return self._readable(self._all("open_with_subject_after", after=after, limit=limit))

    def places_in_queue(self) -> dict[JobId, int]:
        return dict(self._all("places_in_queue"))

    def groups_tracking(self, subjects: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        rows = self._all("groups_tracking", subjects=self._database.json(subjects))
        for subject, group_id in rows:
            found[subject] = max(group_id, found.get(subject, 0))
        return found


class GovernorWriteTx(Changing, GovernorReadTx):
    def add_target(self, target: Target) -> bool:
        document = {name: getattr(target, name) for name in _DOCUMENT}
        added = self._run(
            "add_target",
            name=target.name,
            prefix=target.prefix,
            document=dump({**document, "env": dict(target.env)}),
            at=target.created_at,
            by=target.created_by,
        )
        return added == 1

    def remove_target(self, name: str) -> bool:
        return self._run("remove_target", name=name) == 1


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
