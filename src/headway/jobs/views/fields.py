"""The fields of a job that lists can show: their names, and how each is written for people. Pure.

Most are those of the job document; a few are computed from it. The words of the job graph are known
beside the document's: `dependencies` are the artifacts that a job needs, `artifacts` those that it
produces.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.base.errors import InvalidInputError
from headway.base.units import show_duration
from headway.core.model import FIELDS as OF_JOBS

Document = Mapping[str, Any]

LIST_FIELDS = ("id", "name", "state", "result", "age")
QUEUE_FIELDS = ("place", "id", "name", "priority", "state", "result", "starts_in")
FORMATS = ("block", "table", "json")

_OF_DOCUMENT = tuple(field.shown for field in OF_JOBS if field.shown)


def _inside(outer: str, inner: str) -> Callable[[Document], Any]:
    return lambda document: (document[outer] or {}).get(inner)


def _command(document: Document) -> Any:
    params = document["params"]
    if params.get("argv"):
        from shlex import join  # the names of the fields are known without it

        return join(params["argv"])
    if params.get("agent"):
        return f"{params['agent'].get('runner')}: {params['agent'].get('prompt')}"
    return params.get("shell") or params.get("task")


def _duration(document: Document) -> str | None:
    took = _inside("run", "duration_ms")(document)
    return None if took is None else show_duration(took * 1000)


def _starts_in(document: Document) -> str | None:
    """An estimate, as only the queue gives it."""
    if "estimated_wait_seconds" not in document:
        return None
    seconds = document["estimated_wait_seconds"]
    if seconds is None:
        return "?"
    return show_duration(int(seconds) * 1_000_000) if seconds >= 1 else "now"


# Those that are made of others. `result` and `age` are the list's own: they depend on the present.
COMPUTED: Mapping[str, Callable[[Document], Any]] = {
    "dependencies": lambda document: document["needs"],
    "artifacts": lambda document: document["produces"],
    "approval_required": lambda document: bool((document["approval"] or {}).get("required")),
    "approval_state": _inside("approval", "state"),
    "approval_decided_by": _inside("approval", "decided_by"),
    "approval_reason": _inside("approval", "reason"),
    "workflow_run": _inside("workflow", "run_id"),
    "workflow_template": _inside("workflow", "template_id"),
    "workflow_node": _inside("workflow", "node_id"),
    "command": _command,
    "exit_code": _inside("run", "exit_code"),
    "duration": _duration,
    "worker": _inside("run", "worker_id"),
    "returned": _inside("run", "result"),
    "place": lambda document: document.get("place"),
    "starts_in": _starts_in,
}
OF_THE_PRESENT = ("result", "age")
FIELDS: tuple[str, ...] = (*_OF_DOCUMENT, *COMPUTED, *OF_THE_PRESENT)

# Short enough never to be cut.
NARROW = frozenset(
    {"id", "state", "status", "age", "priority", "position", "attempt", "max_attempts", "type"}
    | {"exit_code", "duration", "retry_of", "approval_required", "approval_state"}
    | {"place", "starts_in"}
)
_TITLES = {"id": "Job", "result": "Wait/Result"}


def parse_fields(text: str) -> tuple[str, ...]:
    """Names with commas between; each must be known, and none is given twice."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in FIELDS]
    if unknown:
        raise InvalidInputError(
            f"{', '.join(map(repr, unknown))} is no field of a job; {_meant(unknown)}"
        )
    return tuple(dict.fromkeys(names))


def _meant(unknown: Sequence[str]) -> str:
    """The nearest field of each, else all there are."""
    from difflib import get_close_matches

    near = [each for name in unknown for each in get_close_matches(name[:64], FIELDS, 1)]
    if len(near) < len(unknown):
        return f"there are {', '.join(FIELDS)}"
    return f"did you mean {', '.join(near)}?"


def title_of(name: str) -> str:
    return _TITLES.get(name) or name.replace("_", " ").capitalize()


def value_of(name: str, document: Document) -> Any:
    """The field's value as it stands in a JSON document."""
    return COMPUTED[name](document) if name in COMPUTED else document[name]


def written(name: str, value: Any) -> str | None:
    """The value for people, on one line; None if there is nothing to say."""
    if value is None or value == [] or value == {}:
        return None
    match name:
        case "locks":
            return ", ".join(_lock(lock) for lock in value)
        case "labels":
            return ", ".join(f"{key}={text}" for key, text in value.items())
        case "wait":
            return f"{value['kind']}: {value['detail']}"
        case "pinned_head":
            return f"{value['branch']} at {(value['oid'] or '?')[:12]}"
        case "approval":
            return _approval(value)
        case "worktree":
            trouble = f", {value['state']}: {value['error']}" if value["error"] else ""
            return f"{value['branch']} in {value['path']}{trouble}"
    return _plainly(value)


def _plainly(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _lock(lock: Mapping[str, str]) -> str:
    return lock["key"] + (":shared" if lock["mode"] == "shared" else "")


def _approval(approval: Mapping[str, Any]) -> str | None:
    if not approval.get("required", True):
        return None
    by = f" by {approval['decided_by']}" if approval.get("decided_by") else ""
    because = f": {approval['reason']}" if approval.get("reason") else ""
    return f"{approval['state']}{by}{because}"
