"""Outcomes of claims, and what they lead to, for tests."""

from typing import Any

from given import NOW, SECOND

from headway.core.model import Job
from headway.core.settle import (
    Ended,
    Ending,
    Outcome,
    settle,
)

END = NOW + 5 * SECOND
PARAMS = {"argv": ["x"], "skip_exit_codes": [75], "timeout_seconds": 1.5}
CANCELLING = {"cancel_requested_at": NOW, "cancel_requested_by": "ann"}


def outcome(ending: Ending, **fields: Any) -> Outcome:
    return Outcome(ending, END, **fields)


def failed(code: int = 7) -> Outcome:
    return outcome(Ending.EXITED, exit_code=code)


def ended(job: Job, what: Outcome, chance: float = 0.0) -> Ended:
    answer = settle(job, what, chance=chance)
    assert isinstance(answer, Ended)
    return answer


RAISED = outcome(
    Ending.RAISED,
    exit_code=1,
    error="ConnectionError: x",
    classes=("ConnectionError", "builtins.ConnectionError", "OSError", "builtins.OSError"),
)
