"""The note that a merge of a plan met a conflict: `merge.sentinel.write` and `.clear`."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from headway.core.artifacts import plan_branch, sentinel_path
from headway.integrations.git.ownership import write_document
from headway.workflows.operations.model import Done, FailedError, NodeTask
from headway.workflows.operations.repository import slug_of, text_of


def write_sentinel(task: NodeTask) -> Done:
    slug = _slug(task)
    source = text_of(task, "source") or plan_branch(slug)
    note_conflict(task, slug, source, text_of(task, "target"))
    return Done(f"merge conflict of {slug} noted")


def clear_sentinel(task: NodeTask) -> Done:
    slug = _slug(task)
    there = forget_conflict(task, slug)
    return Done(f"merge conflict of {slug} {'cleared' if there else 'was not noted'}")


def _slug(task: NodeTask) -> str:
    slug = slug_of(task)
    if slug is None:
        raise FailedError(f"{task.operation} requires slug")
    return slug


def note_conflict(
    task: NodeTask, slug: str, source: str, target: str | None, conflicts: Sequence[str] = ()
) -> None:
    """Whole or not at all; written again it says what is so now."""
    path = sentinel_path(task.home, slug)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    document = {
        "slug": slug,
        "source": source,
        "target": target,
        "conflicts": list(conflicts),
        "run": task.run,
        "node": task.node,
        "job": task.job,
    }
    write_document(path, document)


def note_agent(task: NodeTask, slug: str, word: str | None) -> None:
    """How the agent stands that resolves it for this operation; None: it did nothing that counts.
    Said of one pass: the next one may call another."""
    noted = {**(noted_conflict(task, slug) or {}), "agent": word and [task.key, word]}
    write_document(sentinel_path(task.home, slug), noted)


def noted_agent(task: NodeTask, slug: str) -> str | None:
    """What was said last in this pass."""
    match (noted_conflict(task, slug) or {}).get("agent"):
        case [task.key, str(word)]:
            return word
    return None


def forget_conflict(task: NodeTask, slug: str) -> bool:
    """Whether there was one."""
    with suppress(FileNotFoundError):
        os.unlink(sentinel_path(task.home, slug))
        return True
    return False


def noted_conflict(task: NodeTask, slug: str) -> Mapping[str, Any] | None:
    try:
        with open(sentinel_path(task.home, slug), encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
