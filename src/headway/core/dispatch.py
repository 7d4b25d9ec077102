"""The plan of one pass: which jobs it starts, which it leaves, and why. Pure.

Status, dry run and a pass by hand use the same plan."""

from collections.abc import Iterable
from typing import NamedTuple

from headway.core.facts import Facts
from headway.core.model import Block, Job, Question
from headway.core.plan import Batch, Hold, Planned, Start, plan


class Left(NamedTuple):
    """A job that the pass does not start."""

    job: Job
    reason: str


class DispatchPlan(NamedTuple):
    """`reason` says why not more is started: of nothing at all, or beyond the last."""

    to_dispatch: tuple[Job, ...]
    skipped: tuple[Left, ...]
    reason: str
    unseen: frozenset[Question] = frozenset()  # what must be probed to plan better


def plan_dispatch(jobs: Iterable[Job], facts: Facts, *, batch: int) -> DispatchPlan:
    """The first `batch` of those that may start now, in dispatch order: so it is the least of the
    free slots, the batch and how many are ready."""
    planned = plan(jobs, facts, batch=Batch(batch, batch))
    skipped = [
        Left(each.job, _why(each)) for each in planned if not isinstance(each.decision, Start)
    ]
    return DispatchPlan(
        to_dispatch=tuple(each.job for each in planned if isinstance(each.decision, Start)),
        skipped=tuple(skipped),
        reason=_reason(skipped, nothing=not planned),
        unseen=_unseen(planned, facts),
    )


def _why(planned: Planned) -> str:
    decision = planned.decision
    if isinstance(decision, Hold):
        return decision.shown.detail
    return decision.detail if isinstance(decision, Block) else ""


def _reason(skipped: list[Left], *, nothing: bool) -> str:
    if nothing:
        return "nothing is ready"
    return skipped[0].reason if skipped else "no other is ready"


def _unseen(planned: Iterable[Planned], facts: Facts) -> frozenset[Question]:
    holds = (each.decision for each in planned if isinstance(each.decision, Hold))
    asked = frozenset(ask for hold in holds for ask in hold.asks)
    return asked - facts.answers.keys()
