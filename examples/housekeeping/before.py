"""How the housekeeping was done before there was a jobs file; kept to compare.

A new job meant another interval, another block and another line in `needs_remote`. All of it ran
in one process, one after the other, and what one of them broke or blocked was broken for all.
"""

from collections.abc import Callable, Mapping
from typing import Any

HOUSEKEEPING_JOB_INTERVALS = {
    "check_finished_agents": 10,
    "register_orchestrator": 300,
    "requeue_expired_leases": 60,
    "process_hooks": 60,
    "check_project_completion": 60,
    "queue_health": 1800,
    "agent_evaluation": 60,
}


def is_job_due(state: dict[str, float], name: str, now: float) -> bool:
    return name not in state or now - state[name] >= HOUSEKEEPING_JOB_INTERVALS[name]


def run_scheduler(
    state: dict[str, float],
    now: float,
    functions: Mapping[str, Callable[[Any], None]],
    fetch_poll_data: Callable[[], Any],
) -> None:
    """One tick: seven times the same block."""
    if is_job_due(state, "check_finished_agents", now):
        try:
            functions["check_finished_agents"](None)
        except Exception as error:
            print(f"check_finished_agents failed: {error}")
        state["check_finished_agents"] = now

    needs_remote = (
        is_job_due(state, "register_orchestrator", now)
        or is_job_due(state, "requeue_expired_leases", now)
        or is_job_due(state, "process_hooks", now)
        or is_job_due(state, "check_project_completion", now)
        or is_job_due(state, "queue_health", now)
        or is_job_due(state, "agent_evaluation", now)
    )
    if not needs_remote:
        return
    poll_data = fetch_poll_data()

    if is_job_due(state, "register_orchestrator", now):
        try:
            functions["register_orchestrator"](poll_data)
        except Exception as error:
            print(f"register_orchestrator failed: {error}")
        state["register_orchestrator"] = now

    if is_job_due(state, "requeue_expired_leases", now):
        try:
            functions["requeue_expired_leases"](poll_data)
        except Exception as error:
            print(f"requeue_expired_leases failed: {error}")
        state["requeue_expired_leases"] = now

    if is_job_due(state, "process_hooks", now):
        try:
            functions["process_hooks"](poll_data)
        except Exception as error:
            print(f"process_hooks failed: {error}")
        state["process_hooks"] = now

    if is_job_due(state, "check_project_completion", now):
        try:
            functions["check_project_completion"](poll_data)
        except Exception as error:
            print(f"check_project_completion failed: {error}")
        state["check_project_completion"] = now

    if is_job_due(state, "queue_health", now):
        try:
            functions["queue_health"](poll_data)
        except Exception as error:
            print(f"queue_health failed: {error}")
        state["queue_health"] = now

    if is_job_due(state, "agent_evaluation", now):
        try:
            functions["agent_evaluation"](poll_data)
        except Exception as error:
            print(f"agent_evaluation failed: {error}")
        state["agent_evaluation"] = now
