"""The verbs about templates, and about what could not be launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.model import HostTrouble, Job, JobId, WaitKind
from headway.store.changing import Changing
from headway.store.graphreading import GraphReadTx
from headway.store.rows import dump, load, load_job
from headway.store.seam_templates import OpenBreaker, Template


class TemplateReadTx(GraphReadTx):
    def templates(self, names: Sequence[str]) -> dict[str, Template]:
        rows = self._all("templates_by_name", names=self._database.json(names))
        return {row[0]: _template(row) for row in rows}

    def all_templates(self) -> list[Template]:
        """By name, also those that are archived."""
        return [_template(row) for row in self._all("all_templates")]

    def open_breakers(self) -> list[OpenBreaker]:
        """Of every host, the oldest first."""
        return [
            OpenBreaker(host_id, HostTrouble(WaitKind(kind), cause, failures, probe_at), opened_at)
            for host_id, kind, cause, failures, probe_at, opened_at in self._all("open_breakers")
        ]

    def struck_jobs(self, limit: int) -> tuple[int, list[Job]]:
        """Those that wait after a failed launch: how many, and the first of them."""
        return self._counted("count_struck", "struck_jobs", limit)

    def circuit_broken(self, since: int, limit: int) -> tuple[int, list[Job]]:
        """Those that ended since then because they could not be launched, the latest first."""
        return self._counted("count_circuit_broken", "circuit_broken", limit, since=since)

    def _counted(self, count: str, some: str, limit: int, **asked: Any) -> tuple[int, list[Job]]:
        row = self._one(count, **asked)
        number = row[0] if row else 0
        rows = self._all(some, limit=limit, **asked) if number else []
        return number, [load_job(each) for each in rows]


class TemplateWriteTx(TemplateReadTx, Changing):
    def put_template(self, template: Template) -> None:
        """In the place of one of the same name, if there is one."""
        self._tell(
            "put_template",
            name=template.name,
            document=dump(template.document),
            created_at=template.created_at,
            created_by=template.created_by,
        )

    def archive_template(self, name: str) -> bool:
        """False if there is none, or it is archived already."""
        return self._run("archive_template", name=name, at=self._now) == 1

    def strike_out(self, job_id: JobId, token: str, failures: int, cause: str) -> None:
        """Count the failed launch that ends a running job; nothing, if its claim has ended."""
        self._tell("strike_out", job_id=job_id, token=token, failures=failures, cause=cause)

    def cool_down(self, job_id: JobId, kind: WaitKind, cause: str) -> None:
        self._tell("cool_down", job_id=job_id, launch_wait=kind.value, last_failure=cause)


def _template(row: tuple[Any, ...]) -> Template:
    name, document, created_at, created_by, archived_at = row
    loaded = load(document, f"template {name}")
    return Template(name, loaded, created_at, created_by, archived_at)
