"""The gate of agents, by tables: parked runners, and budgets that are reserved or used up."""

from typing import Any

import pytest
from given import NOW, SECOND, facts, job

from headway.core.agents import (
    Amount,
    BudgetView,
    ParkedRunner,
    Reserved,
    granted,
    own_limit,
    reserve,
)
from headway.core.gates.agents import allowed
from headway.core.model import Block, Job, Wait, WaitKind
from headway.core.plan import Hold, Start, plan

DOLLAR = 1_000_000
NOTHING_YET = Amount(0, 0)


def agent(job_id: int = 1, run: int | None = 7, **limits: Any) -> Job:
    return job(job_id, params={"agent": {"runner": "claude", **limits}}, workflow_run=run)


def parked(until: int | None) -> dict[str, ParkedRunner]:
    return {"claude": ParkedRunner("claude", until, "too much", NOW - SECOND, 3)}


@pytest.mark.parametrize(
    ("until", "waits_until"),
    [(NOW + SECOND, NOW + SECOND), (None, None), (NOW, False), (NOW - SECOND, False)],
)
def test_an_agent_waits_while_its_runner_is_parked(
    until: int | None, waits_until: int | bool | None
) -> None:
    objection = allowed(agent(run=None), facts(parked=parked(until)))
    if waits_until is False:
        assert objection is None
        return
    assert isinstance(objection, Wait)
    assert (objection.kind, objection.until) == (WaitKind.RATE, waits_until)
    assert Hold((objection,)).until == waits_until
    assert "headway runners resume claude" in objection.remedy


def gate(auto_resolve: bool = True, **limits: Any) -> Job:
    """A gate that may let an agent resolve a conflict."""
    args = {"runner": "claude", "auto_resolve": auto_resolve, **limits}
    return job(1, params={"workflow": {"args": args}}, workflow_run=7)


def test_a_gate_that_calls_an_agent_waits_and_counts_as_one() -> None:
    spent = {7: BudgetView(Amount(DOLLAR), Amount(DOLLAR, 0))}
    assert isinstance(allowed(gate(), facts(parked=parked(None))), Wait)
    assert isinstance(allowed(gate(), facts(budgets=spent)), Block)
    assert allowed(gate(auto_resolve=False), facts(parked=parked(None), budgets=spent)) is None
    assert own_limit(gate(budget_usd=0.5, max_tokens=9)) == Amount(DOLLAR // 2, 9)
    others = {7: BudgetView(Amount(DOLLAR))}
    (held,) = reserve(gate(budget_usd=0.5), others)[7].reserved
    assert held == Reserved(1, Amount(DOLLAR // 2))


def test_other_jobs_pass() -> None:
    world = facts(parked=parked(None), budgets={7: BudgetView(Amount(0))})
    assert allowed(job(1), world) is None
    other = job(1, params={"agent": {"runner": "codex"}})
    assert allowed(other, world) is None


def view(
    limit: Amount, spent: Amount = NOTHING_YET, *reserved: tuple[int, Amount]
) -> dict[int, BudgetView]:
    return {7: BudgetView(limit, spent, [Reserved(*each) for each in reserved])}


@pytest.mark.parametrize(
    ("limits", "budget", "said"),
    [
        ({}, view(Amount(12 * DOLLAR)), None),
        ({}, view(Amount(12 * DOLLAR), Amount(DOLLAR, 5)), None),
        (
            {},
            view(Amount(12 * DOLLAR), Amount(12_100_000, 5)),
            "the budget of wf-7 is used up: $12.10 of $12.00",
        ),
        (
            {},
            view(Amount(12 * DOLLAR), Amount(12 * DOLLAR, 5)),
            "the budget of wf-7 is used up: $12.00 of $12.00",
        ),
        (
            {},
            view(Amount(None, 1000), Amount(0, 1200)),
            "the budget of wf-7 is used up: 1,200 of 1,000 tokens",
        ),
        # One without a limit may use all that is left.
        ({}, view(Amount(4 * DOLLAR), Amount(0, 0), (9, Amount())), "reserved by job-9"),
        ({}, view(Amount(4 * DOLLAR), Amount(0, 0), (9, Amount(DOLLAR))), None),
        ({"budget_usd": 3}, view(Amount(4 * DOLLAR), Amount(0, 0), (9, Amount(DOLLAR))), None),
        (
            {"budget_usd": 3.01},
            view(Amount(4 * DOLLAR), Amount(0, 0), (9, Amount(DOLLAR))),
            "reserved by job-9",
        ),
        ({}, view(Amount(DOLLAR), Amount(0, 0), (9, Amount(DOLLAR))), "reserved by job-9"),
        # Alone it starts with what is left, though its own limit is more.
        ({"budget_usd": 3}, view(Amount(4 * DOLLAR), Amount(2 * DOLLAR, 0)), None),
        ({"max_tokens": 9}, view(Amount(None, 10), Amount(0, 2), (9, Amount(None, 1))), "by job-9"),
        # Its own place counts for nobody but the others.
        ({}, view(Amount(DOLLAR), Amount(0, 0), (1, Amount())), None),
    ],
)
def test_a_budget_is_spent_reserved_or_left(
    limits: dict[str, Any], budget: dict[int, BudgetView], said: str | None
) -> None:
    objection = allowed(agent(**limits), facts(budgets=budget))
    if said is None:
        assert objection is None
        return
    assert objection is not None and objection.detail.endswith(said)
    assert isinstance(objection, Block) == ("used up" in said)
    assert objection.kind is WaitKind.CAPACITY


@pytest.mark.parametrize(
    ("limits", "budget", "amount"),
    [
        ({}, view(Amount(4 * DOLLAR)), Amount(4 * DOLLAR, None)),
        ({"budget_usd": 1.5}, view(Amount(4 * DOLLAR)), Amount(1_500_000, None)),
        ({"budget_usd": 3}, view(Amount(4 * DOLLAR), Amount(2 * DOLLAR, 0)), Amount(2 * DOLLAR)),
        ({}, view(Amount(4 * DOLLAR), Amount(DOLLAR, 0), (9, Amount(DOLLAR))), Amount(2 * DOLLAR)),
        ({"max_tokens": 7}, view(Amount(4 * DOLLAR)), Amount(4 * DOLLAR, 7)),
    ],
)
def test_an_agent_may_use_its_own_limit_or_what_is_left(
    limits: dict[str, Any], budget: dict[int, BudgetView], amount: Amount
) -> None:
    assert granted(agent(**limits), budget[7]) == amount


def test_agents_that_start_together_share_one_budget() -> None:
    first, second, third = agent(1, budget_usd=2), agent(2), agent(3)
    found = plan([first, second, third], facts(budgets=view(Amount(4 * DOLLAR))))
    assert [type(each.decision) for each in found] == [Start, Start, Hold]
    assert own_limit(first) == Amount(2 * DOLLAR, None)
