"""A schedule of very many jobs with equal ones in one box. Pure.

Two jobs are equal that have the same state and the same surroundings: what leads to the one is
equal to what leads to the other, and so is what follows. So thirty equal chains become one, and a
thousand jobs that wait alone become a box. The focus stays alone.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from headway.core.model import JobId
from headway.jobs.views.graph.formats import drawn_nodes, row_edges
from headway.jobs.views.graph.model import Edge, GraphSchedule, Node


def folded(schedule: GraphSchedule) -> GraphSchedule:
    """The same schedule with the first of each class of equal jobs, named with their count."""
    drawn = {node.id: node for node in drawn_nodes(schedule)}
    edges = [edge for edge in row_edges(schedule) if edge.end not in (edge.source,)]
    first = _firsts(drawn, edges, schedule.focus)
    counts: dict[JobId, int] = {}
    for each in drawn:
        counts[first[each]] = counts.get(first[each], 0) + 1
    kept = {each: _named(drawn[each], count) for each, count in counts.items()}
    joined: dict[JobId, dict[Edge, None]] = {each: {} for each in kept}
    for edge in edges:
        end = None if edge.end is None else first.get(edge.end)
        moved = edge._replace(source=first[edge.source], target=end, end=end)
        joined[moved.source][moved] = None
    return schedule._replace(
        rows=tuple(kept.values()),
        edges={each: tuple(found) for each, found in joined.items()},
        nodes=kept,
    )


def _named(node: Node, count: int) -> Node:
    return node if count == 1 else node._replace(name=f"{count:,} × {node.name}", slug=None)


def _firsts(
    drawn: Mapping[JobId, Node], edges: Sequence[Edge], focus: JobId | None
) -> dict[JobId, JobId]:
    """For each job the first of those that are equal to it."""
    before: dict[JobId, set[JobId]] = {each: set() for each in drawn}
    behind: dict[JobId, set[JobId]] = {each: set() for each in drawn}
    artifacts: dict[JobId, set[str]] = {each: set() for each in drawn}
    for edge in edges:
        if edge.artifact is not None:
            artifacts[edge.source].add(edge.artifact)
        if edge.end in drawn and edge.end is not None:
            before[edge.source].add(edge.end)
            behind[edge.end].add(edge.source)
    ordered = _ordered(before, behind)
    # Classes by what leads to a job; then, from the end, also by what follows.
    above = _classes(ordered, before, lambda each: _own(drawn[each], artifacts[each], focus))
    below = _classes(ordered[::-1], behind, lambda each: above[each])
    first: dict[int, JobId] = {}
    for each in drawn:
        first.setdefault(below[each], each)
    return {each: first[below[each]] for each in drawn}


def _own(node: Node, artifacts: Collection[str], focus: JobId | None) -> Hashable:
    return node.status, frozenset(artifacts), node.id if node.id == focus else None


def _classes(
    ordered: Sequence[JobId],
    near: Mapping[JobId, Collection[JobId]],
    own: Callable[[JobId], Hashable],
) -> dict[JobId, int]:
    """A number for each job, the same for those with the same `own` and the same classes near. Who
    is near has a number already, but in a circle, which nothing should be."""
    numbers: dict[Hashable, int] = {}
    found: dict[JobId, int] = {}
    for each in ordered:
        key = own(each), frozenset(found.get(other, -other) for other in near[each])
        found[each] = numbers.setdefault(key, len(numbers))
    return found


def _ordered(
    before: Mapping[JobId, Collection[JobId]], behind: Mapping[JobId, Collection[JobId]]
) -> list[JobId]:
    """What leads to a job stands before it; what is in a circle comes last."""
    left = {each: len(found) for each, found in before.items()}
    ordered = [each for each, count in left.items() if not count]
    for each in ordered:
        for other in behind[each]:
            left[other] -= 1
            if not left[other]:
                ordered.append(other)
    return [*ordered, *(each for each, count in left.items() if count > 0)]
