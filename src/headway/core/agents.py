"""What coding agents may use: the budget of a workflow run, and runners that are parked. Pure.

Money is counted in millionths of a dollar. An agent that runs has reserved its own limit. One
without a limit has reserved all that its run has left.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.model import AGENT, NOTHING, Job, JobId, Wait

OF_NODE = "workflow"  # the key of a job's parameters that says what its node is
MILLION = 1_000_000
MINUTE = 60 * MILLION
SHORTEST_PARK, LONGEST_PARK = MINUTE, 24 * 60 * MINUTE
FIRST_GUESS, LONGEST_GUESS = 15 * MINUTE, 5 * 60 * MINUTE


class Amount(NamedTuple):
    """Money and tokens; None is without a bound, or not known."""

    usd: int | None = None
    tokens: int | None = None


class Reserved(NamedTuple):
    """An agent that runs, and the most that it may use."""

    job_id: JobId
    amount: Amount


class BudgetView(NamedTuple):
    """The budget of a run: what all agents together may use, have used, and may still use."""

    limit: Amount
    spent: Amount = Amount(0, 0)
    reserved: Sequence[Reserved] = ()


class ParkedRunner(NamedTuple):
    """A runner whose jobs wait: until then, or until a person resumes it. `guessed`: nobody said
    how long."""

    runner: str
    until: int | None
    reason: str
    at: int
    job_id: JobId
    guessed: bool = False

    def holds(self, now: int) -> bool:
        return self.until is None or self.until > now


def runner_topic(runner: str) -> str:
    """The topic under which a job waits for a runner that is parked."""
    return f"runner:{runner}"


def is_of_runner(wait: Wait) -> bool:
    """Whether it is a wait for a runner that is parked."""
    return any(each.startswith(runner_topic("")) for each in wait.topics)


def budget_topic(run: int) -> str:
    """The topic under which a job waits for the budget of its run."""
    return f"budget:{run}"


def asked_in(params: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What is asked of the agent that works for a job with these parameters: the job is one, or a
    gate that lets one resolve a conflict. None: no agent works for it."""
    if AGENT in params:
        agent: Mapping[str, Any] = params[AGENT]
        return agent
    args: Mapping[str, Any] = params.get(OF_NODE, NOTHING).get("args", NOTHING)
    return args if args.get("auto_resolve") is True else None


def with_asked(job: Job, more: Mapping[str, Any]) -> Job:
    """The job with more that is asked of its agent."""
    asked = {**(asked_in(job.params) or NOTHING), **more}
    if AGENT in job.params:
        return job._replace(params={**job.params, AGENT: asked})
    node = {**job.params[OF_NODE], "args": asked}
    return job._replace(params={**job.params, OF_NODE: node})


def runner_of(job: Job) -> str | None:
    """The runner of the agent that works for a job; None of other jobs."""
    return (asked_in(job.params) or NOTHING).get("runner")


def calls_agent(job: Job) -> bool:
    """Whether an agent works for it. What that did is never repeated while nobody knows what it
    was."""
    return job.type == AGENT or asked_in(job.params) is not None


def own_limit(job: Job) -> Amount:
    """What the agent of the job itself may use."""
    asked = asked_in(job.params) or NOTHING
    usd = asked.get("budget_usd")
    return Amount(None if usd is None else round(usd * MILLION), asked.get("max_tokens"))


def used_up(view: BudgetView) -> Amount | None:
    """The budget that is used up, with None in place of the other; None if none is."""
    if view.limit.usd is not None and (view.spent.usd or 0) >= view.limit.usd:
        return Amount(usd=view.limit.usd)
    if view.limit.tokens is not None and (view.spent.tokens or 0) >= view.limit.tokens:
        return Amount(tokens=view.limit.tokens)
    return None


def reserver_of(job: Job, view: BudgetView) -> JobId | None:
    """The agent for whose end a job has to wait, because it may use what is left; None: none. What
    is left is enough for a job that has no limit of its own, however little it is."""
    others = [each for each in view.reserved if each.job_id != job.id]
    own = own_limit(job)
    for limit, spent, wanted, unit in (
        (view.limit.usd, view.spent.usd, own.usd, "usd"),
        (view.limit.tokens, view.spent.tokens, own.tokens, "tokens"),
    ):
        if limit is None:
            continue
        held = [getattr(each.amount, unit) for each in others]
        left = limit - (spent or 0) - sum(amount or 0 for amount in held)
        if others and (None in held or left <= 0 or (wanted or 0) > left):
            return others[0].job_id
    return None


def granted(job: Job, view: BudgetView) -> Amount:
    """What a job that starts now may use: its own limit, or what its run has left unreserved."""
    own = own_limit(job)
    others = [each.amount for each in view.reserved if each.job_id != job.id]
    return Amount(
        _least(own.usd, view.limit.usd, view.spent.usd, [each.usd for each in others]),
        _least(own.tokens, view.limit.tokens, view.spent.tokens, [each.tokens for each in others]),
    )


def _least(
    own: int | None, limit: int | None, spent: int | None, held: Sequence[int | None]
) -> int | None:
    if limit is None:
        return own
    left = max(0, limit - (spent or 0) - sum(each or 0 for each in held))
    return left if own is None else min(own, left)


def reserve(job: Job, budgets: Mapping[int, BudgetView]) -> Mapping[int, BudgetView]:
    """The budgets once this job has started."""
    view = budgets.get(job.workflow_run or 0)
    if view is None or not calls_agent(job):
        return budgets
    reserved = (*view.reserved, Reserved(job.id, own_limit(job)))
    return {**budgets, job.workflow_run or 0: view._replace(reserved=reserved)}


def park_until(now: int, after: int | None, before: ParkedRunner | None) -> tuple[int, bool]:
    """Until when a runner is parked that met a limit, and whether that is a guess. `after` is what
    its program said; `before` is how it was parked last, without a success since."""
    if after is not None:
        return now + min(max(after, SHORTEST_PARK), LONGEST_PARK), False
    guess = FIRST_GUESS
    if before is not None and before.guessed and before.until is not None:
        guess = min(2 * (before.until - before.at), LONGEST_GUESS)
    return now + guess, True
