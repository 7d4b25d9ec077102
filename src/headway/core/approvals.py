"""What a workflow's approval gate asks for: how many persons, which, and for how long. Pure.

`run --require-approval` asks once for the whole run: what is decided on one of its first nodes
counts for the others, and in every pass.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.core.model import ApprovalState, Job

ASKS = "asks"  # the key, of what a job is of its workflow, that has this
FOR_RUN = "for_run"  # of these: whether it is asked for the run as a whole


class ApprovalRule(NamedTuple):
    """Without a workflow any one person may agree, at any time."""

    required: int = 1
    question: str | None = None
    expires: int | None = None  # microseconds from when its turn came
    approvers: tuple[str, ...] = ()


PLAIN = ApprovalRule()


def approval_rule(job: Job) -> ApprovalRule:
    node: Mapping[str, Any] = job.params.get("workflow") or {}
    said = node.get(ASKS)
    if not said:
        return PLAIN
    return ApprovalRule(
        said["required"], said["question"], said["expires"], tuple(said["approvers"])
    )


def asks_for_run(job: Job) -> bool:
    """Whether its approval is that of its run."""
    node: Mapping[str, Any] = job.params.get("workflow") or {}
    return job.approval is not None and bool((node.get(ASKS) or {}).get(FOR_RUN))


def agreed_for_run(job: Job) -> bool:
    return (
        asks_for_run(job)
        and job.approval is not None
        and (job.approval.state is ApprovalState.APPROVED)
    )


def missing(job: Job) -> int:
    """How many persons have yet to agree."""
    so_far = job.approval.approved_by if job.approval is not None else ()
    return max(0, approval_rule(job).required - len(so_far))
