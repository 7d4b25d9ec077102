"""The check that a supervisor runs before it lets a job's command go, as one command line.

The answers that a job was claimed on may be a second old. So they are probed once more when it
starts, by a small process (`integrations/probes/__main__.py`), since supervisors import nothing.
"""

from collections.abc import Mapping
from typing import Any

from headway.core.gates.graph import checked_at_start
from headway.core.model import Job, Lock, PinnedHead
from headway.core.states import Status
from headway.integrations.git import command

CHANGED = 76  # the exit code that says so
SECONDS = 60.0  # each git of it is ended after 10 s


def check_before(job: Job) -> dict[str, Any] | None:
    """The helper to run before this job's command; None if there is nothing to check."""
    checked = checked_at_start(job)
    if checked is None:
        return None
    request = {
        "job": checked.id,
        "repo": checked.repo,
        "pin": checked.pinned_head,
        "preconditions": checked.preconditions,
        "locks": [lock.key for lock in checked.locks],
    }
    argv = command("check", request, module="headway.integrations.probes.__main__")
    return {"argv": argv, "timeout_seconds": SECONDS}


def job_of(request: Mapping[str, Any]) -> Job:
    """The job again, with the fields that its gates read."""
    return Job(
        id=request["job"],
        name="",
        type="",
        status=Status.RUNNING,
        priority=0,
        position=0,
        params={},
        created_at=0,
        chain=request["job"],
        repo=request["repo"],
        pinned_head=PinnedHead(*request["pin"]) if request["pin"] else None,
        preconditions=tuple(request["preconditions"]),
        locks=tuple(Lock(key) for key in request["locks"]),
    )
