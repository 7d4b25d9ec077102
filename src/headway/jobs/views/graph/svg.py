"""The schedule as a picture of its own, without any program but a browser. Pure.

Text is escaped and cut to its box; the whole of it is in the tooltip. A page that shows it may give
it other colours, by the classes of its elements, and finds the job of a box in `data-job`.
"""

from collections.abc import Iterator
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

# Attributes say how everything looks: they give way to any rule of a page's style sheet. What is
# alike in a group is said once.
INK, FAINT, GROUND = "#1f2937", "#667085", "#ffffff"
FONT = 'font-family="ui-sans-serif, system-ui, sans-serif"'
_TITLE = f'font-size="15" font-weight="600" fill="{INK}"'
_EDGES = f'fill="none" stroke="{FAINT}" stroke-width="1.4"'
_ARTIFACT = 'stroke-dasharray="5 3"'
_BOXES = f'font-size="11" fill="{FAINT}"'
_NAME = f'font-size="12.5" font-weight="600" fill="{INK}"'
_CAPTION = (
    f'font-size="10" text-anchor="middle" fill="{FAINT}" stroke="{GROUND}" stroke-width="3" '
    'paint-order="stroke"'
)
ARROW_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
    f'markerHeight="7" orient="auto"><path class="head" fill="{FAINT}" stroke="none" '
    'd="M0 0L8 4L0 8z"/></marker></defs>'
)


def svg(schedule: GraphSchedule, *, title: str | None = None, scale: float = 1.0) -> Iterator[str]:
    """`scale`: how large it is shown; 0.5 is half of it."""
    nodes = drawn_nodes(schedule)
    edges = [edge for edge in row_edges(schedule) if edge.end not in (None, edge.source)]
    pairs = [(edge.end, edge.source) for edge in edges if edge.end is not None]
    gap = CAPTIONED_GAP if any(edge.artifact for edge in edges) else LAYER_GAP
    layout = lay_out([node.id for node in nodes], pairs, gap=gap)
    width, height = max(layout.width, 420), layout.height + HEAD
    heading = title or f"Schedule: {_counted(schedule)}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{width * scale:.0f}" height="{height * scale:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Schedule" {FONT}>'
    )
    yield ARROW_HEAD
    yield f'<rect class="ground" width="100%" height="100%" fill="{GROUND}"/>'
    yield f'<text class="title" x="24" y="30" {_TITLE}>{_text(heading)}</text>'
    yield f'<g transform="translate(0 {HEAD - 16})">'
    yield f'<g class="edges" {_EDGES}>'
    for edge in edges:
        yield _line(edge, layout)
    yield f'</g><g class="boxes" {_BOXES}>'
    lonely = _unproduced(schedule)
    for node in nodes:
        yield from _box(node, layout.boxes[node.id], schedule, lonely.get(node.id, 0))
    yield "</g>"
    for edge in edges:
        yield from _caption(edge, layout)
    yield from ("</g>", "</svg>")


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
    focus, border = (" focus", 3.5) if node.id == schedule.focus else ("", 1.4)
    title = "\n".join(filter(None, [_title(node), node.name, node.status.value, node.wait]))
    place = f'data-job="{shown(node.id)}" transform="translate({at.x:.1f} {at.y:.1f})"'
    yield f"<g {place}><title>{_text(title)}</title>"
    kind = kind_of(node.status)
    fill, stroke = COLOURS[kind]
    yield (
        f'<rect class="job {kind}{focus}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{border}"/>'
    )
    below = f"nobody produces {lonely} of its needs" if lonely else node.wait or node.status.value
    yield f'<text class="id" x="10" y="15">{_text(shortened(_title(node), SMALL_LETTERS))}</text>'
    name = _text(shortened(plain(node.name), LETTERS))
    yield f'<text class="name" x="10" y="31" {_NAME}>{name}</text>'
    yield f'<text class="id" x="10" y="46">{_text(shortened(plain(below), SMALL_LETTERS))}</text>'
    yield "</g>"


def _title(node: Node) -> str:
    return plain(f"{shown(node.id)}  {node.slug}" if node.slug else shown(node.id))


def _line(edge: Edge, layout: Layout) -> str:
    stops = _stops(edge, layout)
    path = "".join(f"M{at.x:.1f} {at.y:.1f}" for at in stops[:1])
    for one, other in pairwise(stops):
        half = (one.x + other.x) / 2
        path += f"C{half:.1f} {one.y:.1f} {half:.1f} {other.y:.1f} {other.x:.1f} {other.y:.1f}"
    kind = 'class="edge"' if edge.artifact is None else f'class="edge artifact" {_ARTIFACT}'
    return f'<path {kind} marker-end="url(#head)" d="{path}"/>'


def _caption(edge: Edge, layout: Layout) -> Iterator[str]:
    """The artifact, in the middle of the last stretch of its edge."""
    if edge.artifact is not None:
        one, other = _stops(edge, layout)[-2:]
        label = shortened(plain(f"{edge.artifact} [{edge.state}]"), CAPTION_LETTERS)
        place = f'x="{(one.x + other.x) / 2:.1f}" y="{(one.y + other.y) / 2 - 4:.1f}"'
        yield f'<text class="caption" {place} {_CAPTION}>{_text(label)}</text>'


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
