"""A schedule: the rows that are shown and the edges of their dependencies. Pure.

What is known comes in as a `Graph`: jobs, with the artifacts that they need, and the last job of
each chain that somebody depends on. Every format is written from the `GraphSchedule` that `arrange`
makes of it, so all of them agree.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headway.core.model import NOTHING, JobId
from headway.core.states import ACTIVE, TERMINAL, Status

BLOCKED = frozenset({Status.BLOCKED_BY_DEPENDENCY, Status.BLOCKED_BY_APPROVAL})
BUCKETS = ("queued", "waiting", "running", "blocked", "terminal")


class Need(NamedTuple):
    """An artifact that a job needs, by its text; each producer is the last job of its chain."""

    artifact: str
    producers: tuple[JobId, ...] = ()
    present: bool = False


class Node(NamedTuple):
    """One job as far as a schedule shows it; `wait` is the detail, as text."""

    id: JobId
    name: str
    status: Status
    created_at: int
    chain: JobId
    slug: str | None = None
    wait: str | None = None
    after: tuple[JobId, ...] = ()
    needs: tuple[Need, ...] = ()


class Graph(NamedTuple):
    nodes: Mapping[JobId, Node]
    ends: Mapping[JobId, JobId] = NOTHING  # a declared predecessor -> the last job of its chain


class Edge(NamedTuple):
    """`source` depends on `target`, as declared. `end` is the job that decides for the target's
    chain; None with an artifact that nobody produces."""

    source: JobId
    target: JobId | None
    end: JobId | None
    status: Status | None
    artifact: str | None = None
    present: bool = False

    @property
    def state(self) -> str:
        return "present" if self.present else "missing"


class GraphSchedule(NamedTuple):
    """`edges` has the dependencies of all nodes; those are the rows and what was asked for of the
    jobs that they depend on."""

    rows: tuple[Node, ...]
    edges: Mapping[JobId, tuple[Edge, ...]]
    nodes: Mapping[JobId, Node]
    focus: JobId | None = None
    hidden: int = 0  # rows that were cut off, as far as they were loaded
    unreadable: Mapping[JobId, str] = NOTHING  # jobs that could not be read, and why

    def first(self, count: int) -> "GraphSchedule":
        kept = self.rows[:count]
        return self._replace(rows=kept, hidden=self.hidden + len(self.rows) - len(kept))


def arrange(
    graph: Graph,
    *,
    everything: bool = False,
    focus: JobId | None = None,
    within: frozenset[JobId] | None = None,
    top: int | None = None,
) -> GraphSchedule:
    """The rows that are visible, by `created_at, id`, the focused one first; of these the first
    `top`. `within` leaves only these jobs, the neighbourhood of the focus."""
    edges = {node.id: edges_of(node, graph) for node in graph.nodes.values()}
    shown = set(graph.nodes) if everything else _visible(graph, edges)
    if within is not None:
        shown &= within
    if focus is not None:
        shown.add(focus)
    rows = sorted(
        (graph.nodes[each] for each in shown),
        key=lambda node: (node.id != focus, node.created_at, node.id),
    )
    schedule = GraphSchedule(tuple(rows), edges, graph.nodes, focus)
    return schedule if top is None else schedule.first(top)


def edges_of(node: Node, graph: Graph) -> tuple[Edge, ...]:
    """What this job depends on, in the order of the gates: jobs, then artifacts."""
    found = []
    for declared in node.after:
        end = graph.ends.get(declared)
        found.append(Edge(node.id, declared, end, _status(end, graph)))
    for need in node.needs:
        for producer in need.producers or (None,):
            status = _status(producer, graph)
            found.append(Edge(node.id, producer, producer, status, need.artifact, need.present))
    return tuple(found)


def _status(job: JobId | None, graph: Graph) -> Status | None:
    return graph.nodes[job].status if job is not None and job in graph.nodes else None


def _visible(graph: Graph, edges: Mapping[JobId, tuple[Edge, ...]]) -> set[JobId]:
    """Active and blocked jobs, and those that ended without success and hold one of them back."""
    shown = {node.id for node in graph.nodes.values() if node.status in ACTIVE | BLOCKED}
    held = [each for each in shown if graph.nodes[each].status is not Status.RUNNING]
    return shown | blockers(edge for each in held for edge in edges[each])


def blockers(edges: Iterable[Edge]) -> set[JobId]:
    """The ends of chains that will not bring what is waited for."""
    return {
        edge.end
        for edge in edges
        if edge.end is not None
        and not edge.present
        and edge.status in TERMINAL
        and edge.status is not Status.SUCCEEDED
    }


def bucket_of(status: Status) -> str:
    """The word under which a watch counts a status."""
    if status in BLOCKED:
        return "blocked"
    if status in TERMINAL:
        return "terminal"
    return "waiting" if status not in (Status.QUEUED, Status.RUNNING) else status.value


def count_rows(schedule: GraphSchedule) -> dict[str, int]:
    """How many rows are in each bucket."""
    counts = dict.fromkeys(BUCKETS, 0)
    for node in schedule.rows:
        counts[bucket_of(node.status)] += 1
    return counts
