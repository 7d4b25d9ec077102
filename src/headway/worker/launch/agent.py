"""Agent jobs: what a supervisor, and the wrapper that it runs, need to know of one.

The runner's file is read when the job is started, not when it was submitted: it belongs to the
host, as a program does. An agent sees of its submitter's environment only what the file lets
through, and the prompt never stands on a command line of Headway's own.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from headway.base.environment import MINIMAL_PATH, kept_variables
from headway.base.errors import CannotLaunchError, DataError, InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.source import SOURCE
from headway.core.model import Claim, Job
from headway.integrations.agents.command_line import command_line
from headway.integrations.agents.files import load_runner
from headway.integrations.agents.model import ALWAYS_PASSED, RESUMED, Runner
from headway.integrations.agents.orders import PROMPT_FILE, orders
from headway.jobs.agents import refuse_missing
from headway.jobs.settings import Config
from headway.worker.launch.command import specification_of

RESULT_FILE = "agent.json"  # what the agent itself may write, for its wrapper to take in
_MAIN = (
    f"import sys; sys.path.insert(0, {SOURCE!r}); "
    "from headway.integrations.agents.wrapper import main; main()"
)


def agent_specification(
    job: Job, claim: Claim, home: Home, config: Config, worker: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of `claim.T`, with what the wrapper reads of it under `agent`."""
    agent = job.params["agent"]
    if not isinstance(agent.get("prompt"), str) or not isinstance(agent.get("runner"), str):
        raise DataError("it has no prompt, or no runner")
    try:
        runner = load_runner(agent["runner"], home.path)
        if agent.get("session_id") and runner.takes("session_id"):
            agent = {**agent, "prompt": RESUMED + agent["prompt"]}
        line = command_line(runner, agent, prompt_file=os.path.join(claim.folder, PROMPT_FILE))
    except (InvalidInputError, NotFoundError) as error:
        raise CannotLaunchError(str(error)) from None
    spec = specification_of(_wrapper(claim.folder), job, claim, home, config, worker)
    spec["cwd"] = spec["cwd"] or os.path.dirname(home.path)
    spec["stdin"] = None
    spec["leftovers"] = "kill"  # an agent's end is the end of all that it has begun
    submitted = (
        kept_variables(home, job.env_digest) if job.env_digest and spec["env_file"] else None
    )
    if submitted is not None:
        spec["unset"] = [*spec.get("unset", ()), *not_passed(runner, submitted)]
    if spec["env_file"] is None:
        spec["env"] = _without_submitter(runner, spec["env"])
    result = os.path.join(claim.folder, RESULT_FILE)
    spec["env"] = {**runner.env, **spec["env"], "HEADWAY_RESULT_FILE": result}
    _refuse_missing(runner, agent, spec, submitted or {})
    spec["verdict"] = True
    spec["agent"] = {**orders(runner, agent), "argv": line, "result_file": RESULT_FILE}
    spec["agent"]["outputs"] = job.workflow_run is not None
    spec["agent"]["grace_seconds"] = spec["grace_seconds"]
    if spec["timeout_seconds"] is not None:  # a job's own takes the place of the runner's
        spec["agent"]["wall_seconds"] = None
    if spec["idle_seconds"] is not None:  # its wrapper watches that
        spec["agent"]["idle_seconds"] = spec["idle_seconds"]
        spec["idle_seconds"] = None
    return spec


def not_passed(runner: Runner, names: Sequence[str] | Mapping[str, str]) -> list[str]:
    """Those of the submitter's variables that its agent does not see."""
    passed = (*ALWAYS_PASSED, *runner.env_pass)
    return [name for name in names if not any(fnmatchcase(name, each) for each in passed)]


def _wrapper(folder: str) -> list[str]:
    """Isolated and without `site`, as the processes that Headway starts beside jobs: neither the
    agent's environment nor its directory decides what is imported."""
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", _MAIN, folder]


def _without_submitter(runner: Runner, env: Mapping[str, str]) -> dict[str, str]:
    """Agents keep their logins at home; a job that nobody submitted has the worker's. A PATH that
    the runner's file sets goes before the minimal one."""
    names = ("HOME", "USER", "LANG", "TMPDIR")
    given = dict(env)
    if given.get("PATH") == MINIMAL_PATH and "PATH" in runner.env:
        del given["PATH"]
    return {**{name: os.environ[name] for name in names if name in os.environ}, **given}


def _refuse_missing(
    runner: Runner, agent: Mapping[str, Any], spec: Mapping[str, Any], submitted: Mapping[str, str]
) -> None:
    path = spec["env"].get("PATH") or submitted.get("PATH") or MINIMAL_PATH
    try:
        refuse_missing(runner, agent.get("argv", ()), spec["cwd"], path)
    except InvalidInputError as error:
        raise CannotLaunchError(str(error)) from None
