"""Workflows for tests: their texts, what is wrong with them, what they are compiled to."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from headway.workflows.compiler import check_text, compile_text
from headway.workflows.mistakes import WorkflowError
from headway.workflows.model import CompiledNode, Manifest, Workflow

FILE = "w.toml"
LIMIT = 100_000


def wrong_with(text: str, limit: int = LIMIT) -> list[str]:
    """The words of all mistakes that are found before there are parameters."""
    try:
        _, problems = check_text(text, name="w", file=FILE, limit=limit)
    except WorkflowError as error:
        return [each.words for each in error.mistakes]
    return [each.words for each in problems.mistakes]


def checked(text: str) -> Workflow:
    workflow, problems = check_text(text, name="w", file=FILE, limit=LIMIT)
    assert [each.placed for each in problems.mistakes] == []
    return workflow


def compiled(text: str, params: Mapping[str, Any] | None = None, **more: Any) -> Manifest:
    given = {**(params or {}), **more}
    return compile_text(text, given, name="w", file=FILE, limit=LIMIT)


def refused(text: str, **params: Any) -> list[str]:
    """What is wrong with a run of these parameters."""
    with pytest.raises(WorkflowError) as refusal:
        compiled(text, params)
    return [each.words for each in refusal.value.mistakes]


def node_of(manifest: Manifest, name: str) -> CompiledNode:
    (found,) = [each for each in manifest.nodes if each.id == name]
    return found


def nodes(**tables: str) -> str:
    """A file of nodes, each with the lines of its table."""
    return "".join(
        f"[nodes.{name}]\n{re.sub('^ +', '', text, flags=re.M)}\n" for name, text in tables.items()
    )
