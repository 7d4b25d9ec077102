"""The schedule as a picture of its own, without any program but a browser. Pure.

Colours follow the reader's light or dark scheme. Text is escaped and cut to its box; the whole of
it is in the tooltip.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from xml.sax.saxutils import escape

from headway.base.text import plain, shortened
from headway.core.model import shown
from headway.jobs.views.graph.formats import COLOURS, drawn_nodes, kind_of, row_edges
from headway.jobs.views.graph.layout import (
    BOX_HEIGHT,
    BOX_WIDTH,
    CAPTIONED_GAP,
    LAYER_GAP,
    Layout,
    Point,
    lay_out,
)
from headway.jobs.views.graph.model import Edge, GraphSchedule, Node

HEAD = 44  # the height of the title
LETTERS = 25  # that fit into a box
SMALL_LETTERS = 30
CAPTION_LETTERS = 32

# Fill and border on dark ground; on light ground they are those of the other formats.
_DARK = {
    "queued": ("#2b323c", "#8a97a6"),
    "waiting": ("#463a14", "#e0b04a"),
    "running": ("#1c3a6e", "#7fb0ff"),
    "blocked": ("#5a2320", "#ff8f87"),
    "succeeded": ("#1d4630", "#6fcf97"),
    "failed": ("#6b1f1b", "#ff8f87"),
    "ended": ("#34302d", "#a8a29e"),
}
_SHAPE = """\
text { font-family: ui-sans-serif, system-ui, sans-serif }
.title { font-size: 15px; font-weight: 600 }
.id { font-size: 11px }
.name { font-size: 12.5px; font-weight: 600 }
.caption { font-size: 10px; paint-order: stroke; stroke-width: 3px }
.edge { fill: none; stroke-width: 1.4 }
.artifact { stroke-dasharray: 5 3 }
rect.job { stroke-width: 1.4 }
rect.focus { stroke-width: 3.5 }"""


def svg(schedule: GraphSchedule) -> Iterator[str]:
    nodes = drawn_nodes(schedule)
    edges = [edge for edge in row_edges(schedule) if edge.end not in (None, edge.source)]
    pairs = [(edge.end, edge.source) for edge in edges if edge.end is not None]
    gap = CAPTIONED_GAP if any(edge.artifact for edge in edges) else LAYER_GAP
    layout = lay_out([node.id for node in nodes], pairs, gap=gap)
    width, height = max(layout.width, 420), layout.height + HEAD
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Schedule">'
    )
    yield f"<style>\n{_style()}\n</style>"
    yield (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    yield '<rect class="ground" width="100%" height="100%"/>'
    yield f'<text class="title" x="24" y="30">Schedule: {_counted(schedule)}</text>'
    yield f'<g transform="translate(0 {HEAD - 16})">'
    for edge in edges:
        yield from _line(edge, layout)
    lonely = _unproduced(schedule)
    for node in nodes:
        yield from _box(node, layout.boxes[node.id], schedule, lonely.get(node.id, 0))
    for edge in edges:
        yield from _caption(edge, layout)
    yield from ("</g>", "</svg>")


def _style() -> str:
    light = _scheme(COLOURS, ink="#1f2937", faint="#667085", ground="#ffffff")
    dark = _scheme(_DARK, ink="#e8eaed", faint="#9aa4b2", ground="#14171c")
    return f"{_SHAPE}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def _scheme(colours: Mapping[str, tuple[str, str]], *, ink: str, faint: str, ground: str) -> str:
    rules = [
        f".ground {{ fill: {ground} }}",
        f".title, .name {{ fill: {ink} }}",
        f".id, .head {{ fill: {faint} }}",
        f".edge {{ stroke: {faint} }}",
        f".caption {{ fill: {faint}; stroke: {ground} }}",
    ]
    for kind, (fill, border) in colours.items():
        rules.append(f"rect.{kind} {{ fill: {fill}; stroke: {border} }}")
    return "\n".join(rules)


def _counted(schedule: GraphSchedule) -> str:
    count = len(schedule.rows)
    more = ", and more that are not shown" if schedule.hidden else ""
    return f"{count} {'job' if count == 1 else 'jobs'}{more}"


def _unproduced(schedule: GraphSchedule) -> dict[int, int]:
    """How many missing artifacts each job needs that nobody produces."""
    found: dict[int, int] = {}
    for edge in row_edges(schedule):
        if edge.artifact is not None and edge.status is None and not edge.present:
            found[edge.source] = found.get(edge.source, 0) + 1
    return found


def _box(node: Node, at: Point, schedule: GraphSchedule, lonely: int) -> Iterator[str]:
    focus = " focus" if node.id == schedule.focus else ""
    title = "\n".join(filter(None, [_title(node), node.name, node.status.value, node.wait]))
    yield f'<g transform="translate({at.x:.1f} {at.y:.1f})"><title>{_text(title)}</title>'
    yield (
        f'<rect class="job {kind_of(node.status)}{focus}" width="{BOX_WIDTH}" '
        f'height="{BOX_HEIGHT}" rx="7"/>'
    )
    below = f"nobody produces {lonely} of its needs" if lonely else node.wait or node.status.value
    yield f'<text class="id" x="10" y="15">{_text(shortened(_title(node), SMALL_LETTERS))}</text>'
    yield f'<text class="name" x="10" y="31">{_text(shortened(plain(node.name), LETTERS))}</text>'
    yield f'<text class="id" x="10" y="46">{_text(shortened(plain(below), SMALL_LETTERS))}</text>'
    yield "</g>"


def _title(node: Node) -> str:
    return plain(f"{shown(node.id)}  {node.slug}" if node.slug else shown(node.id))


def _line(edge: Edge, layout: Layout) -> Iterator[str]:
    stops = _stops(edge, layout)
    path = "".join(f"M{at.x:.1f} {at.y:.1f}" for at in stops[:1])
    for one, other in pairwise(stops):
        half = (one.x + other.x) / 2
        path += f"C{half:.1f} {one.y:.1f} {half:.1f} {other.y:.1f} {other.x:.1f} {other.y:.1f}"
    kind = "edge" if edge.artifact is None else "edge artifact"
    yield f'<path class="{kind}" marker-end="url(#head)" d="{path}"/>'


def _caption(edge: Edge, layout: Layout) -> Iterator[str]:
    """The artifact, in the middle of the last stretch of its edge."""
    if edge.artifact is not None:
        one, other = _stops(edge, layout)[-2:]
        label = shortened(plain(f"{edge.artifact} [{edge.state}]"), CAPTION_LETTERS)
        place = f'x="{(one.x + other.x) / 2:.1f}" y="{(one.y + other.y) / 2 - 4:.1f}"'
        yield f'<text class="caption" {place} text-anchor="middle">{_text(label)}</text>'


def _stops(edge: Edge, layout: Layout) -> list[Point]:
    """From the right side of what is needed, over the bends, to the left side of what needs it."""
    needed, needing = layout.boxes[edge.end or 0], layout.boxes[edge.source]
    return [
        Point(needed.x + BOX_WIDTH, needed.y + BOX_HEIGHT / 2),
        *layout.bends[edge.end or 0, edge.source],
        Point(needing.x, needing.y + BOX_HEIGHT / 2),
    ]


def _text(text: str) -> str:
    return escape("\n".join(map(plain, text.split("\n"))))
