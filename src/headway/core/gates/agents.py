"""The gate of agents: their runner is not parked, and the budget of their run is not used up."""

from headway.core import wait_words as say
from headway.core.agents import (
    budget_topic,
    reserver_of,
    runner_of,
    runner_topic,
    used_up,
)
from headway.core.facts import Facts
from headway.core.model import Block, Job, Objection, Wait, WaitKind


def allowed(job: Job, facts: Facts) -> Objection | None:
    """Its runner may start work, and its run may still spend. Other jobs than agents may always."""
    runner = runner_of(job)
    if runner is None:
        return None
    return _spendable(job, facts) or _parked(runner, facts)


def _parked(runner: str, facts: Facts) -> Objection | None:
    parked = facts.parked.get(runner)
    if parked is None or not parked.holds(facts.now):
        return None
    words = say.parked_runner(parked)
    topics = (runner_topic(runner),)
    return Wait(WaitKind.RATE, words.detail, topics=topics, until=parked.until, remedy=words.remedy)


def _spendable(job: Job, facts: Facts) -> Objection | None:
    run = job.workflow_run or 0
    view = facts.budgets.get(run)
    if view is None:
        return None
    if (limit := used_up(view)) is not None:
        words = say.used_up_budget(run, view.spent, limit)
        return Block(WaitKind.CAPACITY, words.detail, remedy=words.remedy)
    reserver = reserver_of(job, view)
    if reserver is None:
        return None
    words = say.reserved_budget(run, reserver)
    topics = (budget_topic(run),)
    return Wait(WaitKind.CAPACITY, words.detail, topics=topics, remedy=words.remedy)
