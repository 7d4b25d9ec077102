"""The verbose view: each job with what it depends on, and what that depends on. Pure.

A job that several others depend on is unfolded once, where it is met first; elsewhere it is marked.
So the text has at most one line for each row and each edge, whatever the shape of the graph.
"""

import heapq
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from headway.core.model import JobId, shown
from headway.jobs.views.graph.model import Edge, GraphSchedule, Node

HEADER = "Schedule (DAG, verbose)"
INDENT = "  "


class Line(NamedTuple):
    depth: int
    text: str


def dag(schedule: GraphSchedule, *, max_depth: int) -> Iterator[str]:
    """The lines below the header. Each row is unfolded somewhere, at most `max_depth` deep."""
    unfolded: dict[JobId, None] = {}  # in the order in which that happened
    for root in _roots(schedule, unfolded):
        yield _about(schedule.nodes[root])
        for line in _below(schedule, root, unfolded, max_depth):
            yield INDENT * line.depth + line.text


def _roots(schedule: GraphSchedule, unfolded: Mapping[JobId, None]) -> Iterator[JobId]:
    """Where to begin: at the focus, then at jobs that no job still to be unfolded depends on.

    Those are the last ones of the graph, so that most others are met below them.
    """
    place = {node.id: place for place, node in enumerate(schedule.rows)}
    inside = {row: {end for end in _ends(schedule, row) if end in place} for row in place}
    awaited = dict.fromkeys(place, 0)  # by so many rows that are not yet unfolded
    for ends in inside.values():
        for end in ends:
            awaited[end] += 1
    ready = [place[row] for row in place if not awaited[row] or row == schedule.focus]
    heapq.heapify(ready)
    seen = 0
    while ready:
        root = schedule.rows[heapq.heappop(ready)].id
        if root not in unfolded:
            yield root
        for row in islice(unfolded, seen, None):
            for end in inside.get(row, ()):
                awaited[end] -= 1
                if not awaited[end]:
                    heapq.heappush(ready, place[end])
        seen = len(unfolded)


def _ends(schedule: GraphSchedule, job: JobId) -> Iterator[JobId]:
    return (edge.end for edge in schedule.edges.get(job, ()) if edge.end is not None)


def _below(
    schedule: GraphSchedule, root: JobId, unfolded: dict[JobId, None], max_depth: int
) -> Iterator[Line]:
    """The jobs that the root depends on, each with those that it depends on in turn.

    With a stack of its own: chains are longer than the interpreter's.
    """
    unfolded[root] = None
    stack = [(1, edge) for edge in reversed(schedule.edges.get(root, ()))]
    while stack:
        depth, edge = stack.pop()
        below = schedule.edges.get(edge.end, ()) if edge.end is not None else ()
        mark = ""
        if below and edge.end in unfolded:
            mark = "  (above)"
        elif below and depth >= max_depth:
            mark = "  ..."
        elif edge.end is not None:
            unfolded[edge.end] = None
            stack += [(depth + 1, each) for each in reversed(below)]
        yield Line(depth, _edge(edge) + mark)


def _about(node: Node) -> str:
    slug = f" [{node.slug}]" if node.slug else ""
    wait = f" ({node.wait})" if node.wait else ""
    return f"{shown(node.id)} {node.status}{slug} {node.name}{wait}"


def _edge(edge: Edge) -> str:
    named = edge.target if edge.end is None else edge.end  # the last job of the chain decides
    target = shown(named) if named is not None else ""
    ended = f"{target} {edge.status or 'gone'}"
    if edge.artifact is None:
        return f"after:success -> {ended}"
    made = f" -> {ended}" if target else " (nobody produces it)"
    return f"{edge.artifact} [{edge.state}]{made}"
