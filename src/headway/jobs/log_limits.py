"""How much output is kept: of one job by its settings, of all jobs together by a budget.

`supervise.logs` keeps to the limits of one job, and says what a full log means. Over the budget
nothing starts until logs are removed.
"""

from collections.abc import Mapping
from typing import Any

from headway.base.units import show_size
from headway.core.model import HostTrouble, WaitKind
from headway.jobs.settings import Config


def log_limits(config: Config, full: str | None = None) -> dict[str, Any]:
    """What a supervisor is given; `full` is what a job itself says of a full log."""
    return {
        "head_bytes": config.bytes("logs.head"),
        "tail_bytes": config.bytes("logs.tail"),
        "full": full or config["logs.full"],
    }


def over_budget(used: int, budget: int, now: int) -> HostTrouble | None:
    """Why nothing starts while all logs together take more than `logs.budget`."""
    if used <= budget:
        return None
    return HostTrouble(
        WaitKind.STORAGE,
        f"all logs together use {show_size(used)} of the {show_size(budget)} "
        "that logs.budget allows",
        0,
        now,
        probing=True,
        remedy="remove old jobs: headway jobs gc --days N; or raise logs.budget: "
        "headway config set logs.budget SIZE",
    )


def kept_log_bytes(outcome: Mapping[str, Any]) -> int:
    """How much a job's logs take, as its supervisor counted them at its end."""
    return sum(log["bytes"] - log["dropped"] for log in outcome["logs"].values())
