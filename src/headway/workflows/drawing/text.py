"""A drawing as a tree of lines for a terminal. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from headway.base.text import cells, plain, shortened
from headway.workflows.drawing.model import Drawing, DrawnEdge, DrawnNode

WIDEST_TREE = 40


class TextLine(NamedTuple):
    """A node at its place in the tree; `below` stands under it, before more of its words."""

    lead: str
    below: str
    node: DrawnNode
    notes: tuple[str, ...]
    begins: bool = False  # it follows no other alone


def text(drawing: Drawing, width: int) -> Iterator[str]:
    """A tree that branches only where the workflow does: a line follows the one above it. A node
    behind several others begins anew, and says what it is after."""
    lines = list(_TextTree(drawing).lines())
    room = min(WIDEST_TREE, max((_tree_width(each) for each in lines), default=0), width // 2)
    does = max((cells(each.node.does) for each in lines), default=0)
    at_the_end = False
    for number, line in enumerate(lines):
        if line.begins and number and not at_the_end:
            yield ""
        if line.node.at_the_end:
            if not at_the_end:
                yield "finally"
            at_the_end = True
            line = line._replace(lead="  ", below="  ")
        tree = shortened(f"{line.lead}{plain(line.node.title)}", room)
        said = tree + " " * (room - cells(tree)) + "  " + line.node.does.ljust(does)
        rest = [shortened(plain(note), width - cells(line.below) - 4) for note in line.notes]
        while rest and cells(said) + 2 + cells(rest[0]) <= width:
            said += f"  {rest.pop(0)}"
        yield said.rstrip()
        for note in rest:
            yield f"{line.below}    {note}"


def _tree_width(line: TextLine) -> int:
    return cells(line.lead) + cells(line.node.title) + 2 * line.node.at_the_end


class _TextTree:
    def __init__(self, drawing: Drawing) -> None:
        self._nodes = {node.name: node for node in drawing.nodes}
        self._before: dict[str, list[DrawnEdge]] = {name: [] for name in self._nodes}
        self._loops = drawing.loops
        for edge in drawing.edges:
            self._before[edge.target].append(edge)
        self._below: dict[str, list[str]] = {name: [] for name in self._nodes}
        for name, edges in self._before.items():
            if len(edges) == 1:
                self._below[edges[0].source].append(name)

    def lines(self) -> Iterator[TextLine]:
        last = [name for name, node in self._nodes.items() if node.at_the_end]
        for name in self._nodes:
            if len(self._before[name]) != 1 and name not in last:
                yield from self._branch(name)
        for name in last:
            yield TextLine("", "", self._nodes[name], self._notes(name), begins=True)

    def _branch(self, root: str) -> Iterator[TextLine]:
        """Depth first without recursion: a chain may be long. One that goes on alone goes straight
        down; the last of several ends their line."""
        ahead = [(root, "", "")]
        while ahead:
            name, lead, below = ahead.pop()
            children = self._below[name]
            inner = f"{below}|" if children else below
            notes = self._notes(name)
            yield TextLine(lead, inner, self._nodes[name], notes, begins=name == root)
            if len(children) == 1 and not self._forks(name):
                ahead.append((children[0], below, below))
                continue
            for number, child in reversed(list(enumerate(children, 1))):
                end = number == len(children)
                mark, rail = ("`- ", "   ") if end else ("|- ", "|  ")
                ahead.append((child, below + mark, below + rail))

    def _forks(self, name: str) -> bool:
        """Whether what follows is no plain success: then it stands aside."""
        return any(edge.outcomes for edge in self._before[self._below[name][0]])

    def _notes(self, name: str) -> tuple[str, ...]:
        edges = self._before[name]
        if len(edges) == 1:
            after = [f"on {edges[0].outcomes}"] if edges[0].outcomes else []
        else:
            sources = [
                edge.source + (f" ({edge.outcomes})" if edge.outcomes else "") for edge in edges
            ]
            after = [f"after {', '.join(sources)}"] if sources else []
        backs = [
            f"{each.words} to {each.head} on {each.on}"
            for each in self._loops
            if each.source == name
        ]
        return (*after, *backs, *self._nodes[name].notes)
