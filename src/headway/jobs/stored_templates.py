"""The templates that are stored: which of them there are, and which make jobs."""

from typing import Any

from headway.base.errors import ConflictError, NotFoundError
from headway.base.units import show_instant
from headway.jobs.context import Context
from headway.store.records import Template
from headway.store.transaction import ReadTx


def templates(context: Context, *, archived: bool = False) -> list[dict[str, Any]]:
    """Those that make jobs, by name; with `archived` also those that do no more."""
    with context.store.read() as tx:
        return template_documents(tx, archived=archived)


def template(context: Context, name: str) -> dict[str, Any]:
    with context.store.read() as tx:
        return template_document(require_template(tx, name))


def require_template(tx: ReadTx, name: str) -> Template:
    found = tx.templates.by_name([name]).get(name)
    if found is None:
        raise NotFoundError(f"there is no template {name!r}; `headway templates list` shows them")
    return found


def require_usable(tx: ReadTx, name: str) -> Template:
    found = require_template(tx, name)
    if found.archived_at is not None:
        raise ConflictError(
            f"template {name!r} is archived and makes no jobs; "
            f"`headway templates add {name} --replace ...` makes it anew"
        )
    return found


def template_documents(tx: ReadTx, *, archived: bool = False) -> list[dict[str, Any]]:
    """Those that make jobs, by name; with `archived` also those that do no more."""
    found = tx.templates.all()
    return [template_document(each) for each in found if archived or each.archived_at is None]


def template_document(template: Template) -> dict[str, Any]:
    """As people and programs see it: of variables the names, not the values."""
    job = dict(template.document["job"])
    if "env" in job:
        job["env"] = sorted(job["env"])
    return {
        "name": template.name,
        "params": dict(template.document["params"]),
        "job": job,
        "created_at": show_instant(template.created_at),
        "created_by": template.created_by,
        "archived_at": show_instant(template.archived_at),
    }
