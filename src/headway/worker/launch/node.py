"""Gates and operations of workflows: what a supervisor and the process of the node need to know."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from headway.base.clock import SECOND
from headway.base.home import Home
from headway.base.source import SOURCE
from headway.core.gates.routes import OF_NODE
from headway.core.model import Claim, Job, shown, shown_run
from headway.integrations.agents.files import load_runner
from headway.jobs.settings import Config
from headway.worker.launch.command import specification_of
from headway.workflows.node_process import COMMAND
from headway.workflows.operations.model import operation_key

_MAIN = (
    f"import sys; sys.path.insert(0, {SOURCE!r}); "
    "from headway.workflows.node_process import main; main()"
)


def node_specification(
    job: Job, claim: Claim, home: Home, config: Config, worker: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of `claim.T`, with what that process reads of it under `node`."""
    python = (sys.executable, "-I", "-S", "-X", "utf8", "-c", _MAIN)
    argv = [*python, COMMAND, "--job-id", str(job.id)]
    spec = specification_of(argv, job, claim, home, config, worker)
    node, run = job.params[OF_NODE], shown_run(job.workflow_run or 0)
    name = job.node or ""
    task = {
        "run": run,
        "node": name,
        "node_pass": job.node_pass,
        "attempt": job.attempt,
        "job": shown(job.id),
        "label": node["label"],
        "operation": node["policy"],
        "key": operation_key(claim.host_id, run, name, job.node_pass),
        "args": _with_runner(node["args"], home, config),
        "command": job.params.get("argv") or _shell(job.params.get("shell")),
        "outputs": node["outputs"],
        "produces": [_without_run(each, run) for each in job.produces],
        "artifacts": node["artifacts"],
        "repository": node.get("repository"),
        "directory": spec["cwd"] or node.get("repository") or os.path.dirname(home.path),
        "root": node["tree"],
        "home": home.path,
        "folder": claim.folder,
        "state": node["state"],
        "began": node["began"] // SECOND,
        "worktrees": home.worktrees,
        "old_trees": node["old_trees"],
    }
    if spec["leftovers"] == "kill":
        spec["leftovers"] = "terminate"  # what its process leaves if that is killed may be a git
    return {**spec, "verdict": "always", "node": task}


def _with_runner(args: Mapping[str, Any], home: Home, config: Config) -> Mapping[str, Any]:
    """Which file describes the agent that a gate calls is decided here: only a worker knows which
    folders count as trusted."""
    if args.get("auto_resolve") is not True:
        return args
    runner = load_runner(str(args.get("runner") or config["agent.runner"]), home.path)
    return {**args, "runner_file": runner.path}


def _shell(line: str | None) -> list[str] | None:
    return None if line is None else ["/bin/sh", "-c", line]


def _without_run(artifact: str, run: str) -> str:
    """As its file has it: within the store an artifact of a run has the run behind it."""
    return artifact.removesuffix(f" {run}")
