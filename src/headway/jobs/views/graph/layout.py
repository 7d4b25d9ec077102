"""Where the boxes of a picture stand: a small layered layout, from left to right. Pure.

Each job stands one layer right of the last job it depends on. An edge over several layers gets a
bend in each layer between, which takes part in the ordering, so that lines go around boxes. Within
layers the order is improved by a few sweeps towards the average of the neighbours. Jobs without any
edge stand in a grid below the graph.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

BOX_WIDTH = 190
BOX_HEIGHT = 54
BEND_HEIGHT = 16
LAYER_GAP = 90
CAPTIONED_GAP = 190  # where edges have something written on them
ROW_GAP = 18
MARGIN = 24
SWEEPS = 6
MOST_BENDS = 20_000  # beyond that, long edges go straight
GRID_COLUMNS = 5

Key = tuple[int, int]  # (node, 0), or (edge, layer) with the edge counted from -1 downwards
Link = tuple[Key, Key]
Pair = tuple[int, int]


class Point(NamedTuple):
    x: float
    y: float


class Layout(NamedTuple):
    boxes: Mapping[int, Point]  # the upper left corner of each node
    bends: Mapping[Pair, tuple[Point, ...]]  # between the ends of each edge
    width: float
    height: float


def lay_out(nodes: Sequence[int], pairs: Iterable[Pair], *, gap: int = LAYER_GAP) -> Layout:
    """Places for nodes that are given in order, with pairs of (needed, who needs it)."""
    pairs = list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))
    linked = {each for pair in pairs for each in pair}
    layer = _layers([node for node in nodes if node in linked], pairs)
    layers, links, bends = _with_bends(layer, pairs)
    _reorder(layers, links)
    places = _places(layers, links, gap)
    boxes = {key[0]: place for key, place in places.items() if key[0] >= 0}
    boxes |= _grid([node for node in nodes if node not in linked], len(layers), _bottom(places))
    return Layout(
        boxes,
        {pair: tuple(_middle(places[key]) for key in keys) for pair, keys in bends.items()},
        max((place.x for place in boxes.values()), default=0) + BOX_WIDTH + MARGIN,
        max((place.y for place in boxes.values()), default=0) + BOX_HEIGHT + MARGIN,
    )


def _grid(nodes: Sequence[int], columns: int, bottom: float) -> dict[int, Point]:
    """Nodes without edges, in rows below the graph."""
    columns = max(columns, GRID_COLUMNS)
    top = bottom + LAYER_GAP / 2 if bottom else MARGIN
    return {
        node: Point(
            MARGIN + number % columns * (BOX_WIDTH + ROW_GAP),
            top + number // columns * (BOX_HEIGHT + ROW_GAP),
        )
        for number, node in enumerate(nodes)
    }


def _layers(nodes: Sequence[int], pairs: Sequence[Pair]) -> dict[int, int]:
    """The longest way to each node; whatever should lie on a circle stays in the first layer."""
    needed = dict.fromkeys(nodes, 0)
    needs: dict[int, list[int]] = {node: [] for node in nodes}
    for source, target in pairs:
        needs[source].append(target)
        needed[target] += 1
    layer = dict.fromkeys(nodes, 0)
    ready = [node for node in nodes if not needed[node]]
    for node in ready:
        for target in needs[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            needed[target] -= 1
            if not needed[target]:
                ready.append(target)
    return layer


def _with_bends(
    layer: Mapping[int, int], pairs: Sequence[Pair]
) -> tuple[list[list[Key]], list[Link], dict[Pair, list[Key]]]:
    """The layers with nodes and bends, the links between neighbouring layers, the bends by edge."""
    layers: list[list[Key]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node, number in layer.items():
        layers[number].append((node, 0))
    links: list[Link] = []
    bends: dict[Pair, list[Key]] = {}
    spared = MOST_BENDS
    for number, (source, target) in enumerate(pairs, 1):
        between = range(layer[source] + 1, layer[target])
        spared -= len(between)
        keys: list[Key] = [(-number, each) for each in between] if spared >= 0 else []
        for key in keys:
            layers[key[1]].append(key)
        bends[source, target] = keys
        stops: list[Key] = [(source, 0), *keys, (target, 0)]
        links += pairwise(stops)
    return layers, links, bends


def _neighbours(links: Iterable[Link]) -> tuple[dict[Key, list[Key]], ...]:
    before: dict[Key, list[Key]] = {}
    behind: dict[Key, list[Key]] = {}
    for source, target in links:
        before.setdefault(target, []).append(source)
        behind.setdefault(source, []).append(target)
    return before, behind


def _reorder(layers: list[list[Key]], links: Sequence[Link]) -> None:
    """Sweep to and fro: each layer is sorted by the average place of its neighbours."""
    rank: dict[Key, float] = {key: at for layer in layers for at, key in enumerate(layer)}
    for sweep in range(SWEEPS):
        before, behind = _neighbours(links)
        beside = behind if sweep % 2 else before
        for layer in reversed(layers) if sweep % 2 else layers:
            layer.sort(key=lambda key: _average(rank, beside.get(key, ()), rank[key]))
            rank.update((key, at) for at, key in enumerate(layer))


def _places(layers: Sequence[Sequence[Key]], links: Sequence[Link], gap: int) -> dict[Key, Point]:
    """Draw everything towards its neighbours, as far as the order and the gaps allow."""
    before, behind = _neighbours(links)
    centre: dict[Key, float] = {}
    for layer in layers:
        centre.update(zip(layer, _stacked([0.0] * len(layer), layer), strict=True))
    for sweep in range(SWEEPS):
        for layer in reversed(layers) if sweep % 2 else layers:
            wished = [
                _average(centre, [*before.get(key, ()), *behind.get(key, ())], centre[key])
                for key in layer
            ]
            down = _stacked(wished, layer)
            up = [-each for each in _stacked([-each for each in wished[::-1]], layer[::-1])][::-1]
            # The average of two that keep the gaps keeps them, too.
            for key, lowest, highest in zip(layer, down, up, strict=True):
                centre[key] = (lowest + highest) / 2
    top = min((centre[key] - _height(key) / 2 for key in centre), default=0.0)
    return {
        key: Point(
            MARGIN + number * (BOX_WIDTH + gap),
            centre[key] - _height(key) / 2 - top + MARGIN,
        )
        for number, layer in enumerate(layers)
        for key in layer
    }


def _stacked(wished: Sequence[float], layer: Sequence[Key]) -> list[float]:
    """The centres, each as high as wished but below the one before it."""
    placed: list[float] = []
    for at, key in enumerate(layer):
        least = wished[at]
        if placed:
            gap = (_height(layer[at - 1]) + _height(key)) / 2 + ROW_GAP
            least = max(least, placed[-1] + gap)
        placed.append(least)
    return placed


def _average(of: Mapping[Key, float], keys: Sequence[Key], otherwise: float) -> float:
    return sum(of[key] for key in keys) / len(keys) if keys else otherwise


def _height(key: Key) -> int:
    return BOX_HEIGHT if key[0] >= 0 else BEND_HEIGHT


def _bottom(places: Mapping[Key, Point]) -> float:
    return max((place.y + _height(key) for key, place in places.items()), default=0.0)


def _middle(place: Point) -> Point:
    return Point(place.x + BOX_WIDTH / 2, place.y + BEND_HEIGHT / 2)
