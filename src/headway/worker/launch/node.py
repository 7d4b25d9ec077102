"""Gates of workflows: what a supervisor needs to know of the process that decides one."""

import sys
from collections.abc import Mapping
from typing import Any

from headway.base.home import Home
from headway.base.source import SOURCE
from headway.core.model import Claim, Job
from headway.jobs.settings import Config
from headway.worker.launch.command import specification_of

_MAIN = (
    f"import sys; sys.path.insert(0, {SOURCE!r}); "
    "from headway.workflows.node_process import main; main()"
)


def gate_specification(
    job: Job, claim: Claim, home: Home, config: Config, worker: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of `claim.T`, with what that process reads of it under `node`."""
    argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _MAIN, claim.folder]
    spec = specification_of(argv, job, claim, home, config, worker)
    command = job.params.get("argv") or _shell(job.params.get("shell"))
    policy = job.params["workflow"]["policy"]
    node = {"policy": policy, "command": command, "attempt": job.attempt}
    return {**spec, "verdict": True, "node": node}


def _shell(line: str | None) -> list[str] | None:
    return None if line is None else ["/bin/sh", "-c", line]
