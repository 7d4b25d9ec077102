"""Headway: a durable job scheduler that needs no service."""

__version__ = "0.1.0"
__all__ = [
    "App",
    "Client",
    "HeadwayError",
    "InvalidInputError",
    "JobContext",
    "Retry",
    "Skip",
    "TaskFailedError",
    "TimedOutError",
    "condition",
    "connect",
    "current",
    "job",
    "poll",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headway.app import App, TaskFailedError
    from headway.client import Client, connect
    from headway.errors import HeadwayError, InvalidInputError, TimedOutError
    from headway.functions.current import Retry, Skip, current
    from headway.jobsfile.registry import JobContext, condition, job, poll

_HOMES = {
    "App": "headway.app",
    "TaskFailedError": "headway.app",
    "Client": "headway.client",
    "connect": "headway.client",
    "HeadwayError": "headway.errors",
    "InvalidInputError": "headway.errors",
    "TimedOutError": "headway.errors",
    "Retry": "headway.functions.current",
    "Skip": "headway.functions.current",
    "current": "headway.functions.current",
    "JobContext": "headway.jobsfile.registry",
    "condition": "headway.jobsfile.registry",
    "job": "headway.jobsfile.registry",
    "poll": "headway.jobsfile.registry",
}


def __getattr__(name: str) -> "Any":
    """Import what is asked for when it is asked for: a command needs little of it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
