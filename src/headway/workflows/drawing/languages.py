"""A drawing in the languages of Mermaid and Graphviz, and the colours of its nodes. Pure."""

from collections.abc import Iterator, Mapping

from headway.jobs.views.graph.formats import COLOURS, dot_text, mermaid_text
from headway.workflows.drawing.model import Drawing, DrawnNode

# Fill and border of each kind of node; in a run that of its state is taken.
_COLOURS = {
    "command": ("#eef2f7", "#7b8794"),
    "operation": ("#dbeafe", "#2563eb"),
    "agent": ("#ede4ff", "#7c3aed"),
    "gate": ("#fff4d6", "#b7791f"),
    "terminal": ("#e7e5e4", "#78716c"),
}


def colours_of(node: DrawnNode) -> tuple[str, str]:
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
    for kind, (fill, border) in {_class(node): colours_of(node) for node in drawing.nodes}.items():
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
    fill, border = colours_of(node)
    label = "\\n".join(map(dot_text, (node.title, node.does)))
    return f'{ids[node.name]} [label="{label}", fillcolor="{fill}", color="{border}"];'
