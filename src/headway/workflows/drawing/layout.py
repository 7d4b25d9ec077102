"""Where everything of a picture stands: boxes in rows from top to bottom, loops beside them. Pure.

The layers come from the layout of the job graph, turned by a quarter: its columns are rows here.
"""

from collections.abc import Mapping
from typing import NamedTuple

from headway.jobs.views.graph.layout import BOX_HEIGHT, MARGIN, ROW_GAP, Point, lay_out
from headway.jobs.views.graph.layout import BOX_WIDTH as LAYER_WIDTH
from headway.jobs.views.graph.layout import LAYER_GAP as LAYER_SPACE
from headway.workflows.drawing.model import Drawing, DrawnEdge

BOX_WIDTH = 210
LAYER_GAP = 46
COLUMN_GAP = 26
LOOP_GAP = 18
LOOP_ROOM = 96  # for the words beside a loop


class Sketch(NamedTuple):
    """Where everything stands, from top to bottom."""

    boxes: Mapping[str, Point]
    bends: Mapping[tuple[str, str], tuple[Point, ...]]
    layers: Mapping[str, int]
    width: float
    height: float


def sketch_of(drawing: Drawing) -> Sketch:
    """The layered layout of the job graph, turned: its layers are rows here."""
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


def stops_of(edge: DrawnEdge, sketch: Sketch) -> list[Point]:
    source, target = sketch.boxes[edge.source], sketch.boxes[edge.target]
    return [
        Point(source.x + BOX_WIDTH / 2, source.y + BOX_HEIGHT),
        *sketch.bends[edge.source, edge.target],
        Point(target.x + BOX_WIDTH / 2, target.y),
    ]


def loop_sides(drawing: Drawing, sketch: Sketch) -> list[float]:
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
