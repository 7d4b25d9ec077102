"""The budgets of workflow runs: what their agents have used, and may still use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import ConflictError, InvalidInputError
from headway.core.agents import (
    MILLION,
    Amount,
    BudgetView,
    Reserved,
    budget_topic,
    calls_agent,
    granted,
    own_limit,
    used_up,
    with_asked,
)
from headway.core.model import AGENT, NOTHING, Claim, Job
from headway.core.wait_words import used_up_budget
from headway.integrations.agents.results import read_result
from headway.supervise.evidence import Evidence

if TYPE_CHECKING:
    from headway.integrations.agents.model import Runner
    from headway.store.records import RunRecord
    from headway.store.transaction import ReadTx, WriteTx


def budget_of(said: Mapping[str, float | None]) -> Amount:
    """What `[budget]` of a workflow says."""
    usd, tokens = said.get("usd"), said.get("tokens")
    return Amount(
        None if usd is None else round(usd * MILLION), None if tokens is None else int(tokens)
    )


def refuse_unshown(runner: Runner, budget: Mapping[str, float]) -> None:
    """Raises InvalidInputError if nobody could know what this runner uses of the budget."""
    if "usd" in budget and not runner.shows("usd"):
        raise InvalidInputError(
            f"runner {runner.name} does not show what it costs; give its file [prices], "
            "or take budget.usd out"
        )
    if "tokens" in budget and not runner.shows("tokens"):
        raise InvalidInputError(
            f"runner {runner.name} does not show the tokens it uses; take budget.tokens out"
        )


def budget_views(tx: ReadTx, jobs: Iterable[Job]) -> Mapping[int, BudgetView]:
    """The budgets of the runs that have one and whose agents these are."""
    runs = {job.workflow_run for job in jobs if job.workflow_run is not None}
    if not runs:
        return NOTHING
    found = {}
    for run, record in tx.workflows.by_id(sorted(runs)).items():
        if record.usd_budget is not None or record.token_budget is not None:
            running = tx.workflows.running_agents(run)
            found[run] = _view(record, running)
    return found


def _view(record: RunRecord, running: Sequence[Job]) -> BudgetView:
    return BudgetView(
        Amount(record.usd_budget, record.token_budget),
        Amount(record.usd_spent, record.tokens_spent),
        [Reserved(job.id, own_limit(job)) for job in running],
    )


def with_grant(tx: ReadTx, job: Job, beside: Sequence[Job]) -> Job:
    """The agent with what it may use at most, now that it starts. `beside` are those that start
    with it."""
    view = budget_views(tx, [job]).get(job.workflow_run or 0)
    if view is None:
        return job
    others = [each for each in beside if each.workflow_run == job.workflow_run]
    others = [each for each in others if calls_agent(each)]
    held = [Reserved(each.id, own_limit(each)) for each in others]
    amount = granted(job, view._replace(reserved=[*view.reserved, *held]))
    limits = {
        "budget_usd": None if amount.usd is None else amount.usd / MILLION,
        "max_tokens": amount.tokens,
    }
    return with_asked(job, {key: most for key, most in limits.items() if most is not None})


def spend(tx: WriteTx, job: Job, claim: Claim, *, exited: bool) -> None:
    """An agent of a run has ended: count what it used. Where nobody knows that, what it might use
    at most counts. `exited`: the process that writes the result came to its own end."""
    run = job.workflow_run or 0
    result = read_result(claim.folder)
    is_called = job.type == AGENT or not exited  # a gate may have found nothing to resolve
    if result is not None or is_called:
        used = _used(result, claim)
        tx.workflows.spend(run, usd=used.usd or 0, tokens=used.tokens or 0)
    tx.waits.wake_topics([budget_topic(run)])


def _used(result: Mapping[str, Any] | None, claim: Claim) -> Amount:
    if result is None:
        return _most(claim)
    usd, tokens = result.get("cost_usd"), result.get("tokens")
    # A model that never answered has cost nothing, whatever is not known.
    most = _most(claim) if result.get("turns") or result.get("final_text") else Amount()
    return Amount(
        round(usd * MILLION) if isinstance(usd, int | float) else most.usd,
        tokens if isinstance(tokens, int) else most.tokens,
    )


def _most(claim: Claim) -> Amount:
    """What it might use at most, as its claim says."""
    try:
        spec = Evidence(claim.folder, claim.token).read_spec()
        asked = spec["agent"] if "agent" in spec else spec["node"]["args"]
        usd, tokens = asked.get("allowed_usd", asked.get("budget_usd")), asked.get("max_tokens")
    except (OSError, ValueError, KeyError):
        return Amount()
    return Amount(None if usd is None else round(usd * MILLION), tokens)


def set_budget(tx: WriteTx, run: int, *, usd: float | None, tokens: int | None) -> None:
    """A person gives the run another budget; what was used stays."""
    tx.workflows.set_budget(run, usd=None if usd is None else round(usd * MILLION), tokens=tokens)
    tx.waits.wake_topics([budget_topic(run)])


def refuse_used_up(record: RunRecord, limit: Amount) -> None:
    """Raises ConflictError if no agent of the run could start with this budget."""
    spent = Amount(record.usd_spent, record.tokens_spent)
    if (less := used_up(BudgetView(limit, spent, ()))) is not None:
        raise ConflictError(f"{used_up_budget(record.id, spent, less).detail}; give more")


def budget_document(record: RunRecord) -> dict[str, Any]:
    """The keys `budget` and `spent` of a run's document."""
    limited = record.usd_budget is not None or record.token_budget is not None
    usd = None if record.usd_budget is None else record.usd_budget / MILLION
    return {
        "budget": {"usd": usd, "tokens": record.token_budget} if limited else None,
        "spent": {"usd": record.usd_spent / MILLION, "tokens": record.tokens_spent},
    }
