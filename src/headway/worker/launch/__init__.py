"""The launch of a job: its parameters become a specification to run. One module for each type of
job."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headway.core.model import GATE, OPERATION

if TYPE_CHECKING:
    from headway.base.home import Home
    from headway.core.model import Claim, Job
    from headway.jobs.settings import Config


def specification(
    job: "Job", claim: "Claim", home: "Home", config: "Config", worker: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of `claim.T` for a job that has a supervisor of its own.

    Raises DataError when its record cannot be used, and CannotLaunchError when something is missing
    here that it needs.
    """
    if "agent" in job.params:
        from headway.worker.launch.agent import agent_specification

        return agent_specification(job, claim, home, config, worker)
    if job.type in (GATE, OPERATION):
        from headway.worker.launch.node import node_specification

        return node_specification(job, claim, home, config, worker)
    from headway.worker.launch.command import command_specification

    return command_specification(job, claim, home, config, worker)
