"""A workflow as text for a terminal, as a picture, and for Mermaid and Graphviz. Pure.

Drawn are the nodes as they are written: a matrix is one node with its count, an agent is one with
its prompt. An edge that accepts more or other than success is a *route*: it is dashed, and has its
outcomes on it. A loop leads back, with how often it may. The nodes of `finally` stand apart: each
follows all the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from headway.base.text import cells, plain, shortened
from headway.core.model import NOTHING
from headway.core.routes import ANY, EVERY_OUTCOME, Join, NodeOutcome, RouteEdge
from headway.jobs.views.graph.formats import COLOURS, dot_text, mermaid_text
from headway.jobs.views.graph.layout import BOX_HEIGHT, MARGIN, ROW_GAP, Point, lay_out
from headway.jobs.views.graph.layout import BOX_WIDTH as LAYER_WIDTH
from headway.jobs.views.graph.layout import LAYER_GAP as LAYER_SPACE
from headway.jobs.views.graph.svg import ARROW_HEAD, FAINT, FONT, GROUND, INK
from headway.workflows.compiler import count_instances, in_order
from headway.workflows.model import Routes, Workflow, WorkflowNode

FORMATS = ("text", "svg", "mermaid", "dot")


class DrawnNode(NamedTuple):
    """A node: what it does, how many jobs it is, and what else is worth a word."""

    name: str
    does: str
    fan: str  # "", or `x5` of a matrix, or `each`
    notes: tuple[str, ...]
    kind: str  # command, operation, agent, gate or terminal: its colour
    at_the_end: bool
    state: str = ""  # of a run: the kind by which a job is coloured

    @property
    def title(self) -> str:
        return f"{self.name} {self.fan}".strip()


class DrawnEdge(NamedTuple):
    """`outcomes` is empty where only success leads on."""

    source: str
    target: str
    outcomes: str


class DrawnLoop(NamedTuple):
    source: str
    head: str
    on: str
    times: int

    @property
    def words(self) -> str:
        return f"back x{self.times}"


class Drawing(NamedTuple):
    name: str
    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
    loops: tuple[DrawnLoop, ...]
    jobs: Mapping[str, str] = NOTHING  # of a run: node -> its job, where it has one alone


def drawing_of(workflow: Workflow, routes: Routes) -> Drawing:
    """What is drawn of a workflow that was checked; each node after all that leads to it."""
    order = [name for name in in_order(routes) if _shown(name, workflow) == name]
    nodes = tuple(_node(workflow.nodes[name], workflow) for name in order)
    edges = []
    for name in in_order(routes):
        if name in workflow.at_the_end:
            continue
        for edge in routes.rules[name].edges:
            source, target = _shown(edge.source, workflow), _shown(name, workflow)
            if source != target:
                edges.append(DrawnEdge(source, target, _outcomes(edge, workflow)))
    loops = tuple(
        DrawnLoop(
            _shown(each.source, workflow),
            _shown(each.head, workflow),
            _listed(each.on),
            each.times,
        )
        for each in routes.loops
    )
    return Drawing(workflow.name, nodes, tuple(edges), loops)


def as_document(drawing: Drawing) -> dict[str, Any]:
    """As a run's manifest keeps it: the file may be another one by then."""
    return {
        "nodes": [each._asdict() for each in drawing.nodes],
        "edges": [list(each) for each in drawing.edges],
        "loops": [list(each) for each in drawing.loops],
    }


class NodeStanding(NamedTuple):
    """How a node of a run stands: in words, as a kind of job, and its job if it has one alone."""

    words: str
    state: str
    job: str | None


def drawing_of_run(
    name: str, kept: Mapping[str, Any], standing: Mapping[str, NodeStanding]
) -> Drawing:
    """A run as it stands: each node says its state in place of what it does, and has the colour of
    a job in that state."""
    nodes = tuple(
        DrawnNode(
            **{
                **each,
                "notes": tuple(each["notes"]),
                "does": stands.words if stands else each["does"],
                "state": stands.state if stands else "",
            }
        )
        for each in kept["nodes"]
        for stands in [standing.get(each["name"])]
    )
    jobs = {node: each.job for node, each in standing.items() if each.job is not None}
    edges = tuple(DrawnEdge(*each) for each in kept["edges"])
    return Drawing(name, nodes, edges, tuple(DrawnLoop(*each) for each in kept["loops"]), jobs)


def draw(drawing: Drawing, form: str, *, width: int = 80) -> Iterator[str]:
    """Its lines, in one of FORMATS; `width` is that of a terminal."""
    match form:
        case "svg":
            return svg(drawing)
        case "mermaid":
            return mermaid(drawing)
        case "dot":
            return dot(drawing)
        case _:
            return text(drawing, width)


def _shown(name: str, workflow: Workflow) -> str:
    """The node that stands for this one: an agent for the node of its prompt."""
    agent = name.removesuffix(".prompt")
    return agent if agent in workflow.nodes else name


def _node(node: WorkflowNode, workflow: Workflow) -> DrawnNode:
    fan = f"x{count_instances(node)}" if node.matrix else "each" if node.each else ""
    prompt = workflow.nodes.get(f"{node.id}.prompt")
    return DrawnNode(
        node.id,
        node.label.operation,
        fan,
        tuple(_notes(node, prompt or node)),
        _kind(node),
        node.id in workflow.at_the_end,
    )


def _notes(node: WorkflowNode, first: WorkflowNode) -> Iterator[str]:
    if first.join is Join.ANY:
        yield "any of them"
    if node.approval:
        yield "approval"
    if node.tolerates:
        yield f"tolerates {_listed(node.tolerates)}"
    for condition in first.when:
        yield f"when {condition}"


def _kind(node: WorkflowNode) -> str:
    match node.label.operation:
        case "terminal":
            return "terminal"
        case "agent.invoke":
            return "agent"
        case "command.run" | "cicd.run" | "function.call":
            return "command"
        case _:
            return "gate" if node.label.is_control else "operation"


def _outcomes(edge: RouteEdge, workflow: Workflow) -> str:
    if edge.accepts == EVERY_OUTCOME:
        return ANY
    accepts = edge.accepts
    if NodeOutcome.SUCCEEDED in accepts:
        accepts -= workflow.nodes[edge.source].tolerates
    return "" if accepts == {NodeOutcome.SUCCEEDED} else _listed(accepts)


def _listed(outcomes: frozenset[NodeOutcome]) -> str:
    return ", ".join(each.value for each in NodeOutcome if each in outcomes)


# -- text --------------------------------------------------------------------------------------

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


# -- for other programs ------------------------------------------------------------------------

# Fill and border of each kind of node; in a run that of its state is taken.
_COLOURS = {
    "command": ("#eef2f7", "#7b8794"),
    "operation": ("#dbeafe", "#2563eb"),
    "agent": ("#ede4ff", "#7c3aed"),
    "gate": ("#fff4d6", "#b7791f"),
    "terminal": ("#e7e5e4", "#78716c"),
}


def _colours(node: DrawnNode) -> tuple[str, str]:
    return COLOURS[node.state] if node.state else _COLOURS[node.kind]


def mermaid(drawing: Drawing) -> Iterator[str]:
    yield "flowchart TD"
    ids = {node.name: f"n{number}" for number, node in enumerate(drawing.nodes)}
    last = [node for node in drawing.nodes if node.at_the_end]
    for node in drawing.nodes:
        if not node.at_the_end:
            yield f"  {_mermaid_node(node, ids)}"
    if last:
        yield '  subgraph at_the_end["finally"]'
        yield from (f"    {_mermaid_node(node, ids)}" for node in last)
        yield "  end"
    for edge in drawing.edges:
        if edge.outcomes:
            label = mermaid_text(edge.outcomes)
            yield f'  {ids[edge.source]} -. "{label}" .-> {ids[edge.target]}'
        else:
            yield f"  {ids[edge.source]} --> {ids[edge.target]}"
    for loop in drawing.loops:
        label = mermaid_text(f"{loop.words} on {loop.on}")
        yield f'  {ids[loop.source]} == "{label}" ==> {ids[loop.head]}'
    for kind, (fill, border) in {_class(node): _colours(node) for node in drawing.nodes}.items():
        yield f"  classDef {kind} fill:{fill},stroke:{border},color:#1f2937"


def _mermaid_node(node: DrawnNode, ids: Mapping[str, str]) -> str:
    label = "<br/>".join(map(mermaid_text, (node.title, node.does)))
    return f'{ids[node.name]}["{label}"]:::{_class(node)}'


def _class(node: DrawnNode) -> str:
    return node.state or node.kind


def dot(drawing: Drawing) -> Iterator[str]:
    ids = {node.name: f"n{number}" for number, node in enumerate(drawing.nodes)}
    yield "digraph workflow {"
    yield '  node [shape=box, style="rounded,filled", fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif", fontsize=10];'
    for node in drawing.nodes:
        if not node.at_the_end:
            yield f"  {_dot_node(node, ids)}"
    last = [node for node in drawing.nodes if node.at_the_end]
    if last:
        yield '  subgraph cluster_at_the_end { label="finally"; style=dashed;'
        yield from (f"    {_dot_node(node, ids)}" for node in last)
        yield "  }"
    for edge in drawing.edges:
        how = f' [style=dashed, label="{dot_text(edge.outcomes)}"]' if edge.outcomes else ""
        yield f"  {ids[edge.source]} -> {ids[edge.target]}{how};"
    for loop in drawing.loops:
        label = dot_text(f"{loop.words} on {loop.on}")
        how = f'label="{label}", style=dotted, constraint=false'
        yield f"  {ids[loop.source]} -> {ids[loop.head]} [{how}];"
    yield "}"


def _dot_node(node: DrawnNode, ids: Mapping[str, str]) -> str:
    fill, border = _colours(node)
    label = "\\n".join(map(dot_text, (node.title, node.does)))
    return f'{ids[node.name]} [label="{label}", fillcolor="{fill}", color="{border}"];'


# -- the picture -------------------------------------------------------------------------------

BOX_WIDTH = 210
LAYER_GAP = 46
COLUMN_GAP = 26
HEAD = 48  # the height of the title
LOOP_GAP = 18
LOOP_ROOM = 96  # for the words beside a loop
LETTERS, SMALL_LETTERS = 25, 30  # that fit into a box
# As in the picture of a schedule, attributes say how everything looks.
_TITLE = f'font-size="16" font-weight="600" fill="{INK}"'
_EDGES = f'fill="none" stroke="{FAINT}" stroke-width="1.4"'
_ROUTE = 'stroke-dasharray="5 3"'
_LOOP = 'stroke-dasharray="1 3" stroke-linecap="round"'
_BOXES = f'font-size="11" fill="{FAINT}"'
_NAME = f'font-size="12.5" font-weight="600" fill="{INK}"'
_CAPTIONS = (
    f'font-size="10.5" fill="{INK}" stroke="{GROUND}" stroke-width="4" stroke-linejoin="round" '
    'paint-order="stroke"'
)


class Sketch(NamedTuple):
    """Where everything stands, from top to bottom."""

    boxes: Mapping[str, Point]
    bends: Mapping[tuple[str, str], tuple[Point, ...]]
    layers: Mapping[str, int]
    width: float
    height: float


def svg(drawing: Drawing) -> Iterator[str]:
    """Texts are escaped and cut to their boxes; the whole of them is in the tooltip."""
    sketch = _sketch(drawing)
    right = _loop_sides(drawing, sketch)
    last = [node for node in drawing.nodes if node.at_the_end]
    width = max([sketch.width, 420.0, *(side + LOOP_ROOM for side in right)])
    width = max(width, 2 * MARGIN + len(last) * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP)
    end = sketch.height + HEAD
    height = end + (LAYER_GAP + BOX_HEIGHT + MARGIN if last else 0)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Workflow" {FONT}>'
    )
    yield ARROW_HEAD
    yield f'<rect class="ground" width="100%" height="100%" fill="{GROUND}"/>'
    title = _text(shortened(drawing.name, 60))
    yield f'<text class="title" x="{MARGIN}" y="32" {_TITLE}>{title}</text>'
    yield f'<g transform="translate(0 {HEAD - 8})"><g class="edges" {_EDGES}>'
    for edge in drawing.edges:
        yield _edge_path(edge, sketch)
    for number, loop in enumerate(drawing.loops):
        yield _loop_path(loop, sketch, right[number], number)
    yield f'</g><g class="boxes" {_BOXES}>'
    for node in drawing.nodes:
        if not node.at_the_end:
            yield from _box(node, sketch.boxes[node.name], drawing.jobs.get(node.name))
    yield f'</g><g class="captions" {_CAPTIONS}>'
    for edge in drawing.edges:
        yield from _edge_words(edge, sketch)
    for number, loop in enumerate(drawing.loops):
        yield from _loop_words(loop, sketch, right[number])
    yield "</g></g>"
    if last:
        yield f'<g class="boxes" {_BOXES}>'
        yield from _last_row(drawing, last, end, width)
        yield "</g>"
    yield "</svg>"


def _last_row(
    drawing: Drawing, last: Sequence[DrawnNode], top: float, width: float
) -> Iterator[str]:
    yield (
        f'<path class="edge route" {_EDGES} {_ROUTE} d="M{MARGIN} {top:.1f}H{width - MARGIN:.1f}"/>'
        f'<text class="small" x="{MARGIN}" y="{top + 20:.1f}">finally</text>'
    )
    for number, node in enumerate(last):
        at = Point(MARGIN + number * (BOX_WIDTH + COLUMN_GAP), top + LAYER_GAP - 12)
        yield from _box(node, at, drawing.jobs.get(node.name))


def _sketch(drawing: Drawing) -> Sketch:
    """The layered layout of schedules, turned: its layers are rows here."""
    names = [node.name for node in drawing.nodes if not node.at_the_end]
    at = {name: number for number, name in enumerate(names)}
    pairs = [(at[edge.source], at[edge.target]) for edge in drawing.edges]
    layout = lay_out(range(len(names)), pairs)
    wider = (BOX_WIDTH + COLUMN_GAP) / (BOX_HEIGHT + ROW_GAP)
    linked = {each for pair in pairs for each in pair}

    def row(x: float) -> int:
        return round((x - MARGIN) / (LAYER_WIDTH + LAYER_SPACE))

    def turned(x: float, y: float, high: float) -> Point:
        """Of a middle: the middle."""
        top = MARGIN + row(x) * (BOX_HEIGHT + LAYER_GAP)
        middle = MARGIN + BOX_WIDTH / 2 + (y + high / 2 - MARGIN - BOX_HEIGHT / 2) * wider
        return Point(middle, top + BOX_HEIGHT / 2)

    boxes: dict[str, Point] = {}
    layers: dict[str, int] = {}
    for name, number in at.items():
        if number in linked:
            place = layout.boxes[number]
            middle = turned(place.x, place.y, BOX_HEIGHT)
            boxes[name] = Point(middle.x - BOX_WIDTH / 2, middle.y - BOX_HEIGHT / 2)
            layers[name] = row(place.x)
    bends = {
        (names[source], names[target]): tuple(
            turned(each.x - LAYER_WIDTH / 2, each.y, 0) for each in points
        )
        for (source, target), points in layout.bends.items()
    }
    _straighten(drawing, boxes)
    _move_right(boxes, bends)
    bottom = max((place.y + BOX_HEIGHT for place in boxes.values()), default=0.0)
    lonely = [name for name in names if name not in boxes]
    for number, name in enumerate(lonely):
        top = bottom + LAYER_GAP if bottom else MARGIN
        boxes[name] = Point(
            MARGIN + number % 4 * (BOX_WIDTH + COLUMN_GAP),
            top + number // 4 * (BOX_HEIGHT + LAYER_GAP / 2),
        )
        layers[name] = -1
    points = [*boxes.values()]
    return Sketch(
        boxes,
        bends,
        layers,
        max((place.x + BOX_WIDTH for place in points), default=0.0) + MARGIN,
        max((place.y + BOX_HEIGHT for place in points), default=0.0) + MARGIN,
    )


def _straighten(drawing: Drawing, boxes: dict[str, Point]) -> None:
    """A box that is alone in its row, with one behind it, stands above that one."""
    rows: dict[float, int] = {}
    for place in boxes.values():
        rows[place.y] = rows.get(place.y, 0) + 1
    behind: dict[str, list[str]] = {name: [] for name in boxes}
    long = set()  # rows that an edge passes by
    for edge in drawing.edges:
        behind[edge.source].append(edge.target)
        span = (boxes[edge.source].y, boxes[edge.target].y)
        long |= {y for y in rows if span[0] < y < span[1]}
    for name, place in sorted(boxes.items(), key=lambda each: -each[1].y):
        if rows[place.y] == 1 and place.y not in long and len(behind[name]) == 1:
            boxes[name] = Point(boxes[behind[name][0]].x, place.y)


def _move_right(boxes: dict[str, Point], bends: dict[tuple[str, str], tuple[Point, ...]]) -> None:
    """So that nothing stands left of the margin: a bend may be beside the first box."""
    left = min(
        [
            *(place.x for place in boxes.values()),
            *(each.x - COLUMN_GAP for points in bends.values() for each in points),
        ],
        default=0.0,
    )
    for name, place in boxes.items():
        boxes[name] = Point(place.x - left + MARGIN, place.y)
    for pair, points in bends.items():
        bends[pair] = tuple(Point(each.x - left + MARGIN, each.y) for each in points)


def _stops(edge: DrawnEdge, sketch: Sketch) -> list[Point]:
    source, target = sketch.boxes[edge.source], sketch.boxes[edge.target]
    return [
        Point(source.x + BOX_WIDTH / 2, source.y + BOX_HEIGHT),
        *sketch.bends[edge.source, edge.target],
        Point(target.x + BOX_WIDTH / 2, target.y),
    ]


def _edge_path(edge: DrawnEdge, sketch: Sketch) -> str:
    """Straight down past a row of boxes, curved between rows."""
    stops = _stops(edge, sketch)
    path = f"M{stops[0].x:.1f} {stops[0].y:.1f}"
    at = stops[0]
    for number, stop in enumerate(stops[1:], 2):
        is_bend = number < len(stops)
        top = stop.y - BOX_HEIGHT / 2 if is_bend else stop.y
        half = (at.y + top) / 2
        path += f"C{at.x:.1f} {half:.1f} {stop.x:.1f} {half:.1f} {stop.x:.1f} {top:.1f}"
        at = Point(stop.x, top)
        if is_bend:
            at = Point(stop.x, stop.y + BOX_HEIGHT / 2)
            path += f"V{at.y:.1f}"
    kind = f'class="edge route" {_ROUTE}' if edge.outcomes else 'class="edge"'
    return f'<path {kind} marker-end="url(#head)" d="{path}"/>'


def _edge_words(edge: DrawnEdge, sketch: Sketch) -> Iterator[str]:
    """Just above the box that the edge leads to, on the side from which it does not come."""
    if edge.outcomes:
        *_, before, end = _stops(edge, sketch)
        from_right = before.x > end.x + 1
        x, anchor = (end.x - 8, "end") if from_right else (end.x + 8, "start")
        place = f'x="{x:.1f}" y="{end.y - 8:.1f}" text-anchor="{anchor}"'
        words = _text(shortened(edge.outcomes, 26))
        yield f'<text class="caption" {place}>{words}</text>'


def _loop_sides(drawing: Drawing, sketch: Sketch) -> list[float]:
    """How far right each loop goes: past all that stands in the rows that it spans, and past the
    loops before it that span one of them."""
    found: list[tuple[float, int, int]] = []
    for loop in drawing.loops:
        first, last = sketch.layers[loop.head], sketch.layers[loop.source]
        low = sketch.boxes[loop.head].y
        high = sketch.boxes[loop.source].y + BOX_HEIGHT
        side = max(
            [
                *(each.x + BOX_WIDTH for each in sketch.boxes.values() if low <= each.y <= high),
                *(
                    each.x
                    for points in sketch.bends.values()
                    for each in points
                    if low <= each.y <= high
                ),
            ]
        )
        side += LOOP_GAP
        for other, top, bottom in found:
            if top <= last and first <= bottom:
                side = max(side, other + LOOP_ROOM)
        found.append((side, first, last))
    return [side for side, _, _ in found]


def _loop_path(loop: DrawnLoop, sketch: Sketch, side: float, number: int) -> str:
    """Out of the lower right of its source, up beside everything, into the upper right of its
    head; between the rows, so that it crosses no box."""
    source, head = sketch.boxes[loop.source], sketch.boxes[loop.head]
    step = 10 + 4 * (number % 3)
    out, into = source.x + BOX_WIDTH - 22, head.x + BOX_WIDTH - 22
    low, high = source.y + BOX_HEIGHT + step, head.y - step - 4
    path = (
        f"M{out:.1f} {source.y + BOX_HEIGHT:.1f}V{low:.1f}H{side - 6:.1f}"
        f"q6 0 6 -6V{high + 6:.1f}q0 -6 -6 -6H{into:.1f}V{head.y:.1f}"
    )
    return f'<path class="loop" {_LOOP} marker-end="url(#head)" d="{path}"/>'


def _loop_words(loop: DrawnLoop, sketch: Sketch, side: float) -> Iterator[str]:
    middle = (sketch.boxes[loop.source].y + sketch.boxes[loop.head].y + BOX_HEIGHT) / 2
    for line, words in enumerate((loop.words, *f"on {loop.on}".split(", "))):
        place = f'x="{side + 6:.1f}" y="{middle + 13 * line:.1f}"'
        yield f'<text class="caption" {place}>{_text(shortened(words, 16))}</text>'


def _box(node: DrawnNode, at: Point, job: str | None) -> Iterator[str]:
    whole = "\n".join((node.title, node.does, *node.notes))
    names = f"data-node={quoteattr(node.name)}" + (f' data-job="{job}"' if job else "")
    yield f'<g {names} transform="translate({at.x:.1f} {at.y:.1f})"><title>{_text(whole)}</title>'
    fill, border = _colours(node)
    kinds = f"{node.kind} {node.state}".strip()
    yield (
        f'<rect class="node {kinds}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
        f'rx="{BOX_HEIGHT / 2 if node.kind == "terminal" else 7}" fill="{fill}" stroke="{border}" '
        'stroke-width="1.4"/>'
    )
    x = 20 if node.kind == "terminal" else 11
    lines = [("small", node.does, SMALL_LETTERS)]
    if node.notes:
        lines.append(("small", "; ".join(node.notes), SMALL_LETTERS))
    y = 17 if node.notes else 24
    title = shortened(plain(node.title), LETTERS)
    yield f'<text class="name" x="{x}" y="{y}" {_NAME}>{_text(title)}</text>'
    for number, (kind, words, most) in enumerate(lines, 1):
        place = f'x="{x}" y="{y + 15 * number}"'
        yield f'<text class="{kind}" {place}>{_text(shortened(plain(words), most))}</text>'
    yield "</g>"


def _text(words: str) -> str:
    return escape("\n".join(map(plain, words.split("\n"))))
