"""A drawing as a picture in SVG. Pure."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from headway.base.text import plain, shortened
from headway.jobs.views.graph.layout import BOX_HEIGHT, MARGIN, Point
from headway.jobs.views.graph.svg import ARROW_HEAD, FAINT, FONT, GROUND, INK
from headway.workflows.drawing.languages import colours_of
from headway.workflows.drawing.layout import (
    BOX_WIDTH,
    COLUMN_GAP,
    LAYER_GAP,
    LOOP_ROOM,
    Sketch,
    loop_sides,
    sketch_of,
    stops_of,
)
from headway.workflows.drawing.model import Drawing, DrawnEdge, DrawnLoop, DrawnNode

HEAD = 48  # the height of the title
LETTERS, SMALL_LETTERS = 25, 30  # that fit into a box
# As in the picture of the job graph, attributes say how everything looks.
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


def svg(drawing: Drawing) -> Iterator[str]:
    """Texts are escaped and cut to their boxes; the whole of them is in the tooltip."""
    sketch = sketch_of(drawing)
    right = loop_sides(drawing, sketch)
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


def _edge_path(edge: DrawnEdge, sketch: Sketch) -> str:
    """Straight down past a row of boxes, curved between rows."""
    stops = stops_of(edge, sketch)
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
        *_, before, end = stops_of(edge, sketch)
        from_right = before.x > end.x + 1
        x, anchor = (end.x - 8, "end") if from_right else (end.x + 8, "start")
        place = f'x="{x:.1f}" y="{end.y - 8:.1f}" text-anchor="{anchor}"'
        words = _text(shortened(edge.outcomes, 26))
        yield f'<text class="caption" {place}>{words}</text>'


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
    fill, border = colours_of(node)
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
