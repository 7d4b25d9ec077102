"""What a workflow names beside it: the runners of its agents, and files with prompts. A run that is
started would refuse what is wrong with these; who checks the file is told as well."""

import os
from collections.abc import Iterator

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.trust import is_trusted
from headway.integrations.agents.files import load_runner
from headway.jobs.agents import unkept_limits
from headway.workflows.labels import AGENT_INVOKE, PROMPT_RESOLVE, RESOLUTION
from headway.workflows.mistakes import Mistakes
from headway.workflows.model import Workflow, WorkflowNode
from headway.workflows.prompts import read_prompt_file
from headway.workflows.references import OPEN


def check_named_files(workflow: Workflow, home: Home, problems: Mistakes) -> None:
    """Runners of a home that is not trusted count as little as its workflows."""
    trusted = is_trusted(home.path)
    for node in workflow.nodes.values():
        if trusted:
            for words in _wrong_runner(node, home):
                problems.add(words, ("nodes", node.id, "args"))
        wrong = _wrong_prompt(node, os.path.dirname(home.path))
        if wrong is not None:
            written = node.id.removesuffix(".prompt")
            key = "args" if written == node.id else "prompt_file"
            problems.add(wrong, ("nodes", written, key))


def _wrong_runner(node: WorkflowNode, home: Home) -> Iterator[str]:
    name = node.args.get("runner")
    if (
        node.label.name not in (AGENT_INVOKE, RESOLUTION)
        or not isinstance(name, str)
        or OPEN in name
    ):
        return
    try:
        yield from unkept_limits(load_runner(name, home.path), node.args)
    except (InvalidInputError, NotFoundError) as error:
        yield str(error)


def _wrong_prompt(node: WorkflowNode, folder: str) -> str | None:
    path = str(node.args.get("prompt_file", ""))
    if node.label.name != PROMPT_RESOLVE or not path or OPEN in path:
        return None
    try:
        read_prompt_file(path, folder)
    except InvalidInputError as error:
        return str(error)
    return None
