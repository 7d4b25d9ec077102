"""Graphs of things that wait for each other: what can never happen, and the cycle that is why.

A node is a number. What it waits for is a list of requirements: another node, or several of which
any one is enough, as an artifact that more than one job makes. Nothing here calls itself, so a
chain may be as long as memory allows.

Jobs that are submitted together name each other before they have ids: by their place in the
submission, which is told from an id by being below zero.
"""

from collections.abc import Iterable, Sequence

Requirement = int | tuple[int, ...]
MOST_NAMED = 10  # of a long cycle, so many stand at each end


def place(index: int) -> int:
    """How a job is referred to that stands at this place of the same submission."""
    return ~index


def index_of(reference: int) -> int | None:
    """The place that is meant; None for the id of a job that exists already."""
    return ~reference if reference < 0 else None


def never_done(waits_for: Sequence[Sequence[Requirement]]) -> list[int]:
    """The nodes that wait for themselves, directly or through others, or for such a node.

    Kahn's ordering, from the front: what waits for nothing is done, then what waited only for that.
    """
    waiters: dict[int, list[int]] = {}  # by node, the requirements that its end meets
    owners: list[int] = []  # by requirement, who has it
    missing = [0] * len(waits_for)
    for node, requirements in enumerate(waits_for):
        missing[node] = len(requirements)
        for requirement in requirements:
            for other in (requirement,) if isinstance(requirement, int) else requirement:
                waiters.setdefault(other, []).append(len(owners))
            owners.append(node)
    met = bytearray(len(owners))
    done = [node for node, count in enumerate(missing) if not count]
    for node in done:  # grows while it is walked through
        for requirement in waiters.get(node, ()):
            if met[requirement]:
                continue
            met[requirement] = 1
            owner = owners[requirement]
            missing[owner] -= 1
            if not missing[owner]:
                done.append(owner)
    return [node for node, count in enumerate(missing) if count]


def find_cycle(waits_for: Sequence[Sequence[Requirement]]) -> list[int] | None:
    """Nodes of which each waits for the next and the last for the first; None if there are none."""
    stuck = never_done(waits_for)
    if not stuck:
        return None
    among = set(stuck)
    path: dict[int, int] = {}
    node = stuck[0]
    while node not in path:  # each that is stuck waits for another that is
        path[node] = len(path)
        node = next(other for other in _unmet(waits_for[node], among))
    return list(path)[path[node] :]


def _unmet(requirements: Iterable[Requirement], stuck: set[int]) -> Iterable[int]:
    for requirement in requirements:
        others = (requirement,) if isinstance(requirement, int) else requirement
        if others and all(other in stuck for other in others):
            yield others[0]


def only_backwards(waits_for: Sequence[Sequence[int]]) -> bool:
    """Whether each waits only for those before it, as when a graph is written down in order: then
    there is no cycle."""
    return all(other < node for node, others in enumerate(waits_for) for other in others)


def show_cycle(names: Sequence[str]) -> str:
    """`a -> b -> a`: each waits for the next."""
    if len(names) > 2 * MOST_NAMED:
        left_out = len(names) - 2 * MOST_NAMED
        names = [*names[:MOST_NAMED], f"... {left_out} more ...", *names[-MOST_NAMED:]]
    return " -> ".join((*names, names[0]))
