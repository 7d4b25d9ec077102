"""The gates of a job that is a node of a workflow run: what came along its edges, and `when`."""

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core import wait_words as say
from headway.core.agents import OF_NODE
from headway.core.conditions import NotComparableError, holds
from headway.core.facts import Facts, NodeEnd, RunView
from headway.core.model import Block, Job, Objection, Wait, WaitKind, chain_topic, run_topic
from headway.core.routes import (
    Arrival,
    Go,
    InstanceEnd,
    Join,
    NodeOutcome,
    PassedBy,
    Pending,
    RouteEdge,
    Unreachable,
    judge,
    node_outcome,
)
from headway.core.states import Status

__all__ = ["OF_NODE", "is_repeatable", "routed", "when_holds"]


def is_repeatable(job: Job) -> bool:
    """Whether it has a loop around it. Its end then counts for others when that is over."""
    return job.workflow_run is not None and bool(job.params[OF_NODE].get("within"))


def is_fan(job: Job) -> bool:
    """Whether it makes the instances of its node. Its success counts when these are made."""
    return job.workflow_run is not None and "each" in job.params[OF_NODE]


def routed(job: Job, facts: Facts) -> Objection | None:
    """Every edge of its node is decided, and they join so that it starts. A run that stands in line
    begins when those before it have ended."""
    view = facts.runs.get(job.id)
    if view is None:
        return None
    node = job.params[OF_NODE]
    if view.behind is not None:
        words = say.waits_on_run(view.behind)
        topics = (run_topic(view.behind),)
        return Wait(WaitKind.DEPENDENCIES, words.detail, topics=topics, remedy=words.remedy)
    if view.called is not None:
        return _repeated(view.called, view)
    arrivals = [_arrival(each, view) for each in node["edges"]]
    judged = judge(arrivals, Join(node["join"]))
    match judged:
        case Go():
            return None
        case Pending(source):
            return _waits(source, node["edges"], view)
        case Unreachable(source):
            end = _first_bad(source, view)
            words = say.failed_dependency(end.job_id, end.status)
            return Block(WaitKind.DEPENDENCIES, words.detail, remedy=words.remedy, unreached=True)
        case PassedBy(source):
            ends = _of(source, view)
            detail = say.passed_by(source, ends[0].job_id, _outcome(ends))
            return Block(WaitKind.DEPENDENCIES, detail, Status.SKIPPED)


def _arrival(said: Mapping[str, Any], view: RunView) -> Arrival:
    accepts = frozenset(NodeOutcome(word) for word in said["accepts"])
    tolerated = [NodeOutcome(word) for word in said["tolerates"]]
    edge = RouteEdge(said["source"], accepts, said["required"])
    if any(head in view.repeating for head in said.get("leaves", ())):
        return Arrival(edge, None)
    return Arrival(edge, _outcome(_of(edge.source, view), tolerated))


def _of(source: str, view: RunView) -> list[NodeEnd]:
    return [each for each in view.ends if each.node == source]


def _outcome(ends: Sequence[NodeEnd], tolerated: Sequence[NodeOutcome] = ()) -> NodeOutcome | None:
    """What the instances of a node came to together; None while one is active."""
    return node_outcome([InstanceEnd(each.outcome, each.fan) for each in ends], tolerated)


def _waits(source: str, edges: Sequence[Mapping[str, Any]], view: RunView) -> Wait:
    """For the instance that was made last: it most often ends last. Where none is active, for the
    loop that its end is in."""
    active = [each for each in _of(source, view) if each.outcome is None]
    if not active:
        leaves = next(each["leaves"] for each in edges if each["source"] == source)
        head = next(each for each in leaves if each in view.repeating)
        return _repeated(view.repeating[head], view)
    words = say.waits_on_job(active[-1].job_id)
    topics = (chain_topic(active[-1].chain),)
    return Wait(WaitKind.DEPENDENCIES, words.detail, topics=topics, remedy=words.remedy)


def _repeated(end: NodeEnd, view: RunView) -> Wait:
    words = say.may_repeat(end.job_id, view.run)
    topics = (chain_topic(end.chain),)
    return Wait(WaitKind.DEPENDENCIES, words.detail, topics=topics, remedy=words.remedy)


def _first_bad(source: str, view: RunView) -> NodeEnd:
    good = (NodeOutcome.SUCCEEDED, NodeOutcome.SKIPPED)
    ends = _of(source, view)
    return next((each for each in ends if each.outcome not in good), ends[0])


def when_holds(job: Job, facts: Facts) -> Objection | None:
    """All that its node's `when` says holds. It never waits: what it compares is there."""
    view = facts.runs.get(job.id)
    if view is None:
        return None
    for said, (left, right) in zip(job.params[OF_NODE]["when"], view.compared, strict=True):
        try:
            if not holds(said["operator"], left, right):
                detail = say.does_not_hold(said["text"], left)
                return Block(WaitKind.DEPENDENCIES, detail, Status.SKIPPED)
        except NotComparableError as error:
            return Block(WaitKind.DEPENDENCIES, say.not_comparable(said["text"], str(error)))
    return None
