"""The schedule for programs: the JSON contract, Mermaid and DOT. Pure.

Names come from strangers. In a graph language every character that could end a label is written as
an entity or an escape, so that a name stays a name.
"""

from collections.abc import Iterator
from typing import Any

from headway.base.text import plain
from headway.base.units import show_instant
from headway.core.model import shown
from headway.core.states import Status
from headway.jobs.views.graph.model import Edge, GraphSchedule, Node, bucket_of

_HARMLESS = " _-.,:/()[]=+"
ORDERING = "created_at_then_job_id"

# Fill and border of each kind of job, on light ground.
COLOURS = {
    "queued": ("#eef2f7", "#7b8794"),
    "waiting": ("#fff4d6", "#b7791f"),
    "running": ("#dbeafe", "#2563eb"),
    "blocked": ("#fde2e1", "#b42318"),
    "succeeded": ("#dcf5e3", "#2f855a"),
    "failed": ("#fbc9c6", "#b42318"),
    "ended": ("#e7e5e4", "#78716c"),
}


def kind_of(status: Status) -> str:
    """The kind by which a job is coloured."""
    if status in (Status.SUCCEEDED, Status.FAILED):
        return status.value
    bucket = bucket_of(status)
    return "ended" if bucket == "terminal" else bucket


def document(schedule: GraphSchedule) -> dict[str, Any]:
    """The stable contract, without its version."""
    return {
        "ordering": ORDERING,
        "jobs": [_job(node, order) for order, node in enumerate(schedule.rows, 1)],
        "edges": [_edge(edge) for edge in row_edges(schedule)],
    }


def row_edges(schedule: GraphSchedule) -> Iterator[Edge]:
    for node in schedule.rows:
        yield from schedule.edges[node.id]


def _job(node: Node, order: int) -> dict[str, Any]:
    return {
        "order": order,
        "job_id": shown(node.id),
        "slug": node.slug,
        "name": node.name,
        "status": node.status.value,
        "wait": node.wait,
        "created_at": show_instant(node.created_at),
    }


def _edge(edge: Edge) -> dict[str, Any]:
    ends = {
        "from": shown(edge.source),
        "to": None if edge.target is None else shown(edge.target),
    }
    if edge.artifact is None:
        return {**ends, "after": {"policy": "success"}}
    return {**ends, "artifact": edge.artifact, "state": edge.state}


def drawn_nodes(schedule: GraphSchedule) -> list[Node]:
    """The rows, and the jobs that they depend on: an arrow must begin somewhere."""
    found = {node.id: node for node in schedule.rows}
    for edge in row_edges(schedule):
        if edge.end is not None and edge.end in schedule.nodes:
            found.setdefault(edge.end, schedule.nodes[edge.end])
    return sorted(found.values(), key=lambda node: (node.created_at, node.id))


def mermaid(schedule: GraphSchedule) -> Iterator[str]:
    """A flowchart in the direction of time: from what is needed to the job that needs it."""
    yield "flowchart LR"
    nodes = drawn_nodes(schedule)
    for node in nodes:
        title = " ".join(filter(None, [shown(node.id), node.slug]))
        label = "<br/>".join(map(mermaid_text, (title, node.name, node.status.value)))
        yield f'  job{node.id}["{label}"]:::{kind_of(node.status)}'
    for number, edge in enumerate(row_edges(schedule)):
        yield from _mermaid_edge(edge, number)
    for kind in dict.fromkeys(kind_of(node.status) for node in nodes):
        fill, border = COLOURS[kind]
        yield f"  classDef {kind} fill:{fill},stroke:{border},color:#1f2937"


def _mermaid_edge(edge: Edge, number: int) -> Iterator[str]:
    if edge.artifact is None:
        if edge.status is not None:
            yield f"  job{edge.end} --> job{edge.source}"
        return
    label = mermaid_text(f"{edge.artifact} [{edge.state}]")
    if edge.status is None:
        yield f'  artifact{number}(["{label}"]) -.-> job{edge.source}'
    else:
        yield f'  job{edge.end} -. "{label}" .-> job{edge.source}'


def mermaid_text(text: str) -> str:
    """Inside quotes Mermaid obeys HTML and `#NUMBER;`; neither may come of a name."""
    return "".join(
        char if char.isalnum() or char in _HARMLESS else f"#{ord(char)};" for char in plain(text)
    )


def dot(schedule: GraphSchedule) -> Iterator[str]:
    """For Graphviz, in the direction of time."""
    yield "digraph schedule {"
    yield "  rankdir=LR;"
    yield '  node [shape=box, style="rounded,filled", fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif", fontsize=10];'
    for node in drawn_nodes(schedule):
        fill, border = COLOURS[kind_of(node.status)]
        title = " ".join(filter(None, [shown(node.id), node.slug]))
        label = "\\n".join(map(dot_text, (title, node.name, node.status.value)))
        yield f'  job{node.id} [label="{label}", fillcolor="{fill}", color="{border}"];'
    for number, edge in enumerate(row_edges(schedule)):
        yield from _dot_edge(edge, number)
    yield "}"


def _dot_edge(edge: Edge, number: int) -> Iterator[str]:
    if edge.artifact is None:
        if edge.status is not None:
            yield f"  job{edge.end} -> job{edge.source};"
        return
    label = dot_text(f"{edge.artifact} [{edge.state}]")
    if edge.status is None:
        yield f'  artifact{number} [label="{label}", shape=ellipse, style=dashed];'
        yield f"  artifact{number} -> job{edge.source} [style=dashed];"
    else:
        yield f'  job{edge.end} -> job{edge.source} [style=dashed, label="{label}"];'


def dot_text(text: str) -> str:
    return plain(text).replace("\\", "\\\\").replace('"', '\\"')
