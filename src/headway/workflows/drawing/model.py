"""What is drawn of a workflow or of a run: nodes, edges and loops, each with its words. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from headway.core.model import NOTHING
from headway.core.routes import ANY, EVERY_OUTCOME, Join, NodeOutcome, RouteEdge
from headway.workflows.compiler import count_instances, in_order
from headway.workflows.model import Routes, Workflow, WorkflowNode


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
