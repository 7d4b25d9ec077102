"""Templates: stored specifications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.store.access import Table
from headway.store.records import Template
from headway.store.rows import dump, load


class TemplatesReader(Table):
    """Templates as a read transaction shows them."""

    def by_name(self, names: Sequence[str]) -> dict[str, Template]:
        rows = self._db.all("templates_by_name", names=self._db.json(names))
        return {row[0]: _template(row) for row in rows}

    def all(self) -> list[Template]:
        """By name, also those that are archived."""
        return [_template(row) for row in self._db.all("all_templates")]


class TemplatesTable(TemplatesReader):
    """Templates as a write transaction changes them."""

    def put(self, template: Template) -> None:
        """In the place of one of the same name, if there is one."""
        self._db.send(
            "put_template",
            name=template.name,
            document=dump(template.document),
            created_at=template.created_at,
            created_by=template.created_by,
        )

    def archive(self, name: str) -> bool:
        """False if there is none, or it is archived already."""
        return self._db.change("archive_template", name=name, at=self._db.now) == 1


def _template(row: tuple[Any, ...]) -> Template:
    name, document, created_at, created_by, archived_at = row
    loaded = load(document, f"template {name}")
    return Template(name, loaded, created_at, created_by, archived_at)
