"""Headway: a durable job scheduler that needs no service."""

__version__ = "0.1.0"
__all__ = [
    "App",
    "AppWorkflow",
    "Client",
    "Handle",
    "HeadwayError",
    "InvalidInputError",
    "Item",
    "JobContext",
    "Plan",
    "Request",
    "Retry",
    "RunHandle",
    "Seen",
    "Skip",
    "TaskFailedError",
    "TimedOutError",
    "agent_request",
    "condition",
    "connect",
    "current",
    "job",
    "poll",
]

__path__ = [*__path__, f"{__path__[0]}/cli/aliases"]  # modules that have another name by now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headway.base.current import Retry, Skip
    from headway.base.errors import HeadwayError, InvalidInputError, TimedOutError
    from headway.client import Client, connect
    from headway.core.subjects import Item
    from headway.functions.app import App
    from headway.functions.app_workflow import AppWorkflow
    from headway.functions.current import current
    from headway.functions.handle import Handle, TaskFailedError
    from headway.functions.run_handle import RunHandle
    from headway.integrations.trackers.model import Seen
    from headway.jobs.agents import agent_request
    from headway.jobs.groups import Plan
    from headway.jobs.request import Request
    from headway.schedules.jobsfile.registry import JobContext, condition, job, poll

_HOMES = {
    "App": "headway.functions.app",
    "AppWorkflow": "headway.functions.app_workflow",
    "RunHandle": "headway.functions.run_handle",
    "TaskFailedError": "headway.functions.handle",
    "Client": "headway.client",
    "Handle": "headway.functions.handle",
    "Item": "headway.core.subjects",
    "Plan": "headway.jobs.groups",
    "Request": "headway.jobs.request",
    "Seen": "headway.integrations.trackers.model",
    "agent_request": "headway.jobs.agents",
    "connect": "headway.client",
    "HeadwayError": "headway.base.errors",
    "InvalidInputError": "headway.base.errors",
    "TimedOutError": "headway.base.errors",
    "Retry": "headway.base.current",
    "Skip": "headway.base.current",
    "current": "headway.functions.current",
    "JobContext": "headway.schedules.jobsfile.registry",
    "condition": "headway.schedules.jobsfile.registry",
    "job": "headway.schedules.jobsfile.registry",
    "poll": "headway.schedules.jobsfile.registry",
}


def __getattr__(name: str) -> "Any":
    """Import what is asked for when it is asked for: a command needs little of it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
