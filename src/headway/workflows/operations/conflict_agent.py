"""Where an agent resolves the conflict of a merge: the one function that the gate calls.

The agent runs below the process of the node, which watches it as the wrapper of an agent job does.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from headway.base.errors import HeadwayError
from headway.integrations.agents.command_line import command_line
from headway.integrations.agents.files import read_runner
from headway.integrations.agents.model import ALWAYS_PASSED, Runner
from headway.integrations.agents.orders import PROMPT_FILE, orders
from headway.integrations.agents.streams import report_of
from headway.integrations.agents.verdict import summary_line
from headway.integrations.agents.wrapper import parks, watch
from headway.supervise.folder import Folder
from headway.workflows.operations.model import BlockedError, NodeTask, ParkedError
from headway.workflows.operations.prompts import text_of_parts

TOOLS = ("Read", "Grep", "Glob", "Edit", "Write")
TURNS = 50
GRACE_SECONDS = 5.0
BUDGETS = ("budget_usd", "max_tokens")
USUAL_PROMPT = """\
A merge of git has met conflicts in this checkout. Resolve them: let what both sides meant hold, and
take all conflict marks out. Change nothing else, and do not commit.
"""


def resolve_by_agent(task: NodeTask, checkout: str, conflicts: Sequence[str]) -> int:
    """Let the runner that `runner` names resolve these files in the checkout; 0 if it ended well.
    The caller looks itself at what is left unmerged, and commits."""
    try:
        runner = read_runner(task.args["runner_file"])
        asked = _asked(runner, task, _prompt(task, conflicts))
        file = os.path.join(task.folder, PROMPT_FILE)
        line = command_line(runner, asked, prompt_file=file)
    except HeadwayError as error:
        raise BlockedError(f"gate.conflict_resolution: {error}") from None
    wanted = {**orders(runner, asked), "argv": line, "grace_seconds": GRACE_SECONDS}
    with Folder(task.folder, kept=True) as folder, _at_work_in(checkout, runner):
        report = report_of(runner.parser)
        result, judged, ending = watch(folder, wanted, report)
    sys.stderr.write(f"{summary_line(result)}\n")
    if result["log_sha256"] is None:  # it was not even started
        raise BlockedError(f"gate.conflict_resolution: {judged.reason}")
    if met := parks(wanted, report, judged, ending):
        # The worktree may be another one then, so it begins a session of its own.
        raise ParkedError(f"gate.conflict_resolution: {judged.reason}", {**met, "session_id": None})
    return 0 if judged.ok else 1


def _prompt(task: NodeTask, conflicts: Sequence[str]) -> str:
    given = task.args.get("prompt")
    text = USUAL_PROMPT if given is None else text_of_parts(given, task)
    return "\n".join([text.rstrip("\n"), "", "The files:", *(f"- {path}" for path in conflicts)])


def _asked(runner: Runner, task: NodeTask, prompt: str) -> dict[str, Any]:
    usual: dict[str, Any] = {"max_turns": TURNS, "allowed_tools": list(TOOLS)}
    kept = {limit: value for limit, value in usual.items() if runner.keeps(limit)}
    given = {limit: task.args[limit] for limit in BUDGETS if limit in task.args}
    return {**kept, **runner.defaults, **given, "prompt": prompt, "runner": runner.name}


@contextmanager
def _at_work_in(checkout: str, runner: Runner) -> Iterator[None]:
    """There, and with just those variables that the runner's file lets through."""
    before, folder = dict(os.environ), os.getcwd()
    passed = (*ALWAYS_PASSED, *runner.env_pass)
    for name in before:
        if not any(fnmatchcase(name, each) for each in passed):
            del os.environ[name]
    os.environ.update(runner.env)
    os.chdir(checkout)
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)
