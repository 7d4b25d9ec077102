"""What an agent has cost so far, and whether that is more than it may. Pure.

A program's own figure counts first. Where its stream has only tokens, prices of the runner's file
make an estimate of them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headway.integrations.agents.streams.base import AgentReport

MILLION = 1_000_000
USED_UP = "it used up its budget"


def cost_of(report: AgentReport, wanted: dict[str, Any]) -> tuple[float | None, str]:
    """What it cost so far, and who says so: `reported`, `estimated` or `unknown`."""
    if report.cost_usd is not None:
        return report.cost_usd, "reported"
    prices = price_of(report.model or wanted["model"], wanted.get("prices") or {})
    if prices is None or report.usage is None:
        return None, "unknown"
    cached, output = report.usage["cached"], report.usage["output"]
    plain = max(0, (report.tokens or 0) - cached - output)
    cost = (
        plain * prices["input"]
        + cached * prices.get("cached", prices["input"])
        + output * prices["output"]
    )
    return round(cost / MILLION, 6), "estimated"


def price_of(model: str | None, prices: dict[str, dict[str, float]]) -> dict[str, float] | None:
    """The row of a model: its own, else the first whose `*` and `?` fit."""
    if model in prices:
        return prices[model]
    fits = (row for name, row in prices.items() if fnmatchcase(model or "", name))
    return next(fits, None)


def overspent(report: AgentReport, wanted: dict[str, Any]) -> str | None:
    """How it has used up its budget, in words; None if it has not."""
    most, tokens = wanted.get("budget_usd"), wanted.get("max_tokens")
    if most is not None:
        cost, _ = cost_of(report, wanted)
        if cost is not None and cost > most:
            return in_dollars(cost, most)
    if tokens is not None and (report.tokens or 0) > tokens:
        return f"{USED_UP}: {report.tokens:,} of {tokens:,} tokens"
    return None


def in_dollars(cost: float, most: float) -> str:
    return f"{USED_UP}: ${cost:.2f} of ${most:.2f}"
