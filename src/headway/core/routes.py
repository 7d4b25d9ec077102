"""Routes: which nodes of a workflow run start, wait, are skipped or blocked, and when a loop goes
back. Pure.

A *node* is one step as the file has it. Its *outcome* stands beside the status of its last job. An
*edge* leads from a source node to the node that waits for it, and accepts some outcomes. An edge is
taken, missed, or pending while its source has not ended.

A *loop* leads back from its source to a *head* before it. Its *body* is every node on a path from
the head to a source; all loops to one head share one body. An outcome that a loop takes *calls* it.
From then on no node of the body starts. When none runs any more the loop is taken: the whole body
is put back. A loop that may go back no more makes the outcome of its source `blocked`.

An edge that leaves a body stays pending until the loop is over: no node of the body is active, and
the loop is not called. Otherwise a failure that the loop repairs would block what follows for good.
It also waits for a loop that is not around its source, but around a node that calls one which is:
where ci goes back to code, and a merge to ci, a report on code waits for the merge.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

NodeId = str


class NodeOutcome(StrEnum):
    """What a node came to. `unreached`: it was blocked because of another node."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    UNREACHED = "unreached"


ANY = "ended"  # the word of files for every outcome, also `unreached`
EVERY_OUTCOME = frozenset(NodeOutcome)
# The words that files may use, each with the outcomes that it stands for.
OUTCOME_WORDS: Mapping[str, frozenset[NodeOutcome]] = {
    **{each.value: frozenset({each}) for each in NodeOutcome if each is not NodeOutcome.UNREACHED},
    ANY: EVERY_OUTCOME,
}
# In the order in which the instances of a node decide for it.
WITHOUT_SUCCESS = (
    NodeOutcome.FAILED,
    NodeOutcome.BLOCKED,
    NodeOutcome.CANCELLED,
    NodeOutcome.UNREACHED,
)


class Join(StrEnum):
    ALL = "all"
    ANY = "any"


class RouteEdge(NamedTuple):
    """What a node waits for. A `required` edge must be taken where all are joined; of the others,
    which are alternatives, one must be."""

    source: NodeId
    accepts: frozenset[NodeOutcome]
    required: bool = True

    @property
    def wants_success(self) -> bool:
        return NodeOutcome.SUCCEEDED in self.accepts


class LoopRule(NamedTuple):
    """The way back of one source, at most `times` in a run."""

    source: NodeId
    head: NodeId
    on: frozenset[NodeOutcome]
    times: int
    delay: int = 0


class NodeRule(NamedTuple):
    """What a workflow says of one node."""

    edges: tuple[RouteEdge, ...] = ()
    join: Join = Join.ALL
    tolerates: frozenset[NodeOutcome] = frozenset()
    at_the_end: bool = False  # of `finally`: it runs when all others have ended

    @property
    def edges_before(self) -> tuple[RouteEdge, ...]:
        """The edges of a node that others may wait for. What runs at the end waits for all others,
        and is in no circle."""
        return () if self.at_the_end else self.edges


# -- edges -------------------------------------------------------------------------------------


class Arrival(NamedTuple):
    """An edge, and the outcome that came along it; None while that is not decided."""

    edge: RouteEdge
    outcome: NodeOutcome | None

    @property
    def taken(self) -> bool:
        return self.outcome in self.edge.accepts

    @property
    def blocks(self) -> bool:
        """Success was wanted, and can no longer come."""
        return not self.taken and self.edge.wants_success and self.outcome in WITHOUT_SUCCESS


class Go(NamedTuple):
    """The node may start."""


class Pending(NamedTuple):
    """The node waits for this source."""

    source: NodeId


class Unreachable(NamedTuple):
    """The node is blocked, because of this source."""

    source: NodeId


class PassedBy(NamedTuple):
    """The node is skipped: what came from this source leads elsewhere."""

    source: NodeId


RouteJudgement = Go | Pending | Unreachable | PassedBy


def accepted_from(accepts: frozenset[NodeOutcome], source: NodeRule) -> frozenset[NodeOutcome]:
    """What an edge accepts that says so: who waits for success goes on after what its source
    tolerates."""
    return accepts | source.tolerates if NodeOutcome.SUCCEEDED in accepts else accepts


def judge(arrivals: Sequence[Arrival], join: Join) -> RouteJudgement:
    """What becomes of a node by what came along its edges.

    A blocking edge decides at once where all are joined. Otherwise nothing is decided before every
    edge is.
    """
    blocking = next((each for each in arrivals if each.blocks), None)
    if blocking is not None and join is Join.ALL:
        return Unreachable(blocking.edge.source)
    undecided = next((each for each in arrivals if each.outcome is None), None)
    if undecided is not None:
        return Pending(undecided.edge.source)
    missed = [each for each in arrivals if not each.taken]
    if _is_joined(arrivals, join):
        return Go()
    if blocking is not None:
        return Unreachable(blocking.edge.source)
    return PassedBy(missed[0].edge.source)


def _is_joined(arrivals: Sequence[Arrival], join: Join) -> bool:
    if join is Join.ANY:
        return not arrivals or any(each.taken for each in arrivals)
    alternatives = [each for each in arrivals if not each.edge.required]
    required = (each for each in arrivals if each.edge.required)
    return all(each.taken for each in required) and (
        not alternatives or any(each.taken for each in alternatives)
    )


class InstanceEnd(NamedTuple):
    """How one instance of a node stands; None: it is active. The `fan` of a node makes its other
    instances, and counts only if it made none."""

    outcome: NodeOutcome | None
    fan: bool = False


def node_outcome(
    instances: Sequence[InstanceEnd], tolerates: Collection[NodeOutcome] = ()
) -> NodeOutcome | None:
    """What a node came to; None while an instance of it is active."""
    if any(each.outcome is None for each in instances) or not instances:
        return None
    made = [each.outcome for each in instances if each.outcome and not each.fan]
    return together(made or [each.outcome for each in instances if each.outcome], tolerates)


def together(
    outcomes: Iterable[NodeOutcome], tolerates: Collection[NodeOutcome] = ()
) -> NodeOutcome:
    """The one outcome of a node with several instances, all of which have ended. A single one has
    its own, whatever is tolerated: the edges after it judge that."""
    every = list(outcomes)
    found = set(every)
    if len(every) == 1:
        return every[0]
    for each in WITHOUT_SUCCESS:
        if each in found and each not in tolerates:
            return each
    return NodeOutcome.SKIPPED if found == {NodeOutcome.SKIPPED} else NodeOutcome.SUCCEEDED


# -- loops -------------------------------------------------------------------------------------


def bodies(
    rules: Mapping[NodeId, NodeRule], loops: Iterable[LoopRule]
) -> dict[NodeId, set[NodeId]]:
    """The body of each head: every node on a path from it to a source of its loops."""
    leads_to = successors(rules)
    comes_from = {node: {edge.source for edge in rule.edges} for node, rule in rules.items()}
    found: dict[NodeId, set[NodeId]] = {}
    for loop in loops:
        below = reached([loop.head], leads_to)
        above = reached([loop.source], comes_from)
        found.setdefault(loop.head, set()).update(below & above)
    return found


def successors(rules: Mapping[NodeId, NodeRule]) -> dict[NodeId, set[NodeId]]:
    """For each node those that wait for it."""
    found: dict[NodeId, set[NodeId]] = {node: set() for node in rules}
    for node, rule in rules.items():
        for edge in rule.edges:
            found[edge.source].add(node)
    return found


def reached(starts: Iterable[NodeId], leads_to: Mapping[NodeId, Iterable[NodeId]]) -> set[NodeId]:
    """These nodes and all that they lead to."""
    found = set(starts)
    ahead = list(found)
    while ahead:
        for node in leads_to[ahead.pop()]:
            if node not in found:
                found.add(node)
                ahead.append(node)
    return found


def left_by(
    source: NodeId,
    target: NodeId | None,
    bodies: Mapping[NodeId, Collection[NodeId]],
    loops: Collection[LoopRule],
) -> list[NodeId]:
    """The heads of the loops that an edge leaves: it is decided when they are over. None: it leads
    out of the run.

    These are the loops around its source, and those that may run a node again which calls one of
    these. A loop that puts the target back as well is none of them.
    """
    callers = {head: {each.source for each in loops if each.head == head} for head in bodies}
    without = {head: body for head, body in bodies.items() if target not in body}
    leads_to = {
        head: [other for other, body in without.items() if not callers[head].isdisjoint(body)]
        for head in without
    }
    found = reached([head for head, body in without.items() if source in body], leads_to)
    return [head for head in bodies if head in found]


class LoopCount(NamedTuple):
    """How a loop stands in one run, by its source. `ended` says why it goes back no more."""

    used: int = 0
    called: bool = False
    ended: str | None = None


def calls(loop: LoopRule, count: LoopCount, outcome: NodeOutcome) -> bool:
    """Whether an end of the loop's source with this outcome calls it."""
    return outcome in loop.on and count.ended is None and count.used < loop.times


def final_outcome(
    loop: LoopRule | None, count: LoopCount, outcome: NodeOutcome, *, stopped: bool = False
) -> NodeOutcome:
    """The outcome of a node by that of its last job: where its loop takes it and goes back no more,
    the node is blocked. A stopped run takes no loop, and the outcome stays."""
    if loop is None or outcome not in loop.on or stopped or calls(loop, count, outcome):
        return outcome
    return NodeOutcome.BLOCKED


def next_loop(
    called: Collection[NodeId],
    running: Collection[NodeId],
    bodies: Mapping[NodeId, Collection[NodeId]],
) -> NodeId | None:
    """The head of the loop that is taken now, if any: called, and none of its body runs. Of several
    it is the outermost, whose way back includes that of the others."""
    ready = [head for head in called if not any(node in running for node in bodies[head])]
    outer = (
        head
        for head in ready
        if not any(set(bodies[head]) < set(bodies[other]) for other in called if other != head)
    )
    return next(outer, None)


# -- the run -----------------------------------------------------------------------------------


class RunState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


def run_state(
    outcomes: Mapping[NodeId, NodeOutcome | None],
    rules: Mapping[NodeId, NodeRule],
    *,
    timed_out: bool = False,
    stopped: bool = False,
    called: bool = False,
) -> RunState:
    """The state of a run by the outcomes of its nodes; None: that one is active. Unreached and
    skipped nodes count nothing, their cause does."""
    if called or any(each is None for each in outcomes.values()):
        return RunState.RUNNING
    if timed_out:
        return RunState.FAILED
    if stopped:
        return RunState.CANCELLED
    found = {outcome for node, outcome in outcomes.items() if outcome not in rules[node].tolerates}
    for bad in (NodeOutcome.FAILED, NodeOutcome.BLOCKED, NodeOutcome.CANCELLED):
        if bad in found:
            return RunState(bad.value)
    return RunState.SUCCEEDED
