"""A workflow as its file has it, and what it is compiled to. Frozen, and without I/O."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from headway.core.model import NOTHING
from headway.core.routes import Join, LoopRule, NodeOutcome, NodeRule
from headway.workflows.labels import Label

MISSING = object()  # the default of a parameter that must be given
NO_TREE = "."  # the `root` of a node that works in no worktree


Source = str | Mapping[str, Any]  # a text of TOML, or what such a text is read as


class WorkflowFile(NamedTuple):
    """A workflow's name, the path of its file as messages show it, and its text. If a program has
    made it, `text` is the document that a file would be read as."""

    name: str
    path: str
    text: Source
    is_of_home: bool = False  # it lies in the folder of workflows, and was named by its name


class Param(NamedTuple):
    """A parameter: its type, and what a value may be."""

    name: str
    type: str = "text"
    default: Any = MISSING
    choices: tuple[Any, ...] = ()
    pattern: str | None = None
    help: str = ""
    given: Any = MISSING  # of an import: a value with parameters of the file that imports it


class After(NamedTuple):
    """A node that another waits for, and the outcomes of it that let that one go on."""

    node: str
    accepts: frozenset[NodeOutcome]


class LoopKey(NamedTuple):
    """The key `loop` of a node."""

    to: str
    on: frozenset[NodeOutcome]
    times: int
    delay: int = 0


class EachKey(NamedTuple):
    """The key `each` of a node: one job for each element of a list that a run comes to."""

    elements: str
    most: int


class WorkflowNode(NamedTuple):
    """One node as it is written. `job` has the keys that a graph file has, too, in its form."""

    id: str
    label: Label
    args: Mapping[str, Any] = NOTHING
    argv: tuple[Any, ...] = ()
    shell: str | None = None
    after: tuple[After, ...] = ()
    on: Mapping[str, tuple[str, ...]] = NOTHING  # by the word of the file
    join: Join = Join.ALL
    loop: LoopKey | None = None
    tolerates: frozenset[NodeOutcome] = frozenset()
    when: tuple[str, ...] = ()
    matrix: Mapping[str, tuple[Any, ...]] = NOTHING
    exclude: tuple[Mapping[str, Any], ...] = ()
    each: EachKey | None = None
    needs: tuple[str, ...] = ()
    produces: Mapping[str, tuple[str, ...]] = NOTHING  # by outcome
    outputs: tuple[str, ...] = ()
    root: str | None = None
    approval: bool = False
    job: Mapping[str, Any] = NOTHING

    @property
    def leads_on(self) -> bool:
        return bool(self.loop) or any(self.on.values())

    @property
    def all_produced(self) -> tuple[str, ...]:
        """What it makes, whatever its outcome."""
        return tuple(dict.fromkeys(text for texts in self.produces.values() for text in texts))

    def values(self) -> Iterator[tuple[str, Any]]:
        """The keys whose values may have references, each with its value."""
        yield "args", self.args
        yield "argv", list(self.argv)
        yield "when", list(self.when)
        if self.each is not None:
            yield "each", self.each.elements
        yield "needs", list(self.needs)
        yield "produces", {word: list(texts) for word, texts in self.produces.items()}
        yield from self.job.items()


class ArtifactContract(NamedTuple):
    """What `[artifacts]` says of a type of custom artifacts."""

    version: str = "1"
    scope: str = "run"


class ImportKey(NamedTuple):
    """One table of `[imports]`: another workflow whose nodes become `NAME.node`."""

    name: str
    workflow: str
    params: Mapping[str, Any] = NOTHING
    after: tuple[str, ...] = ()


class Workflow(NamedTuple):
    """A whole file, with all of its forms right. `rules` and `loops` are what its edges come to."""

    name: str
    file: str
    nodes: Mapping[str, WorkflowNode]
    version: str = "1"
    description: str = ""
    inputs: tuple[str, ...] = ()
    params: Mapping[str, Param] = NOTHING
    artifacts: Mapping[str, ArtifactContract] = NOTHING
    budget: Mapping[str, float] = NOTHING
    timeout: int | None = None
    at_the_end: tuple[str, ...] = ()  # the key `finally`
    imports: Mapping[str, ImportKey] = NOTHING  # none once their nodes are among its own


class Routes(NamedTuple):
    """The edges and loops of a workflow, by the nodes as they are written."""

    rules: Mapping[str, NodeRule]
    loops: tuple[LoopRule, ...]
    bodies: Mapping[str, frozenset[str]]

    def sinks(self) -> list[str]:
        """The nodes whose success ends the workflow: no edge that accepts success leaves them."""
        led_on = {
            edge.source
            for rule in self.rules.values()
            if not rule.at_the_end
            for edge in rule.edges
            if edge.wants_success
        }
        return [
            name for name, rule in self.rules.items() if name not in led_on and not rule.at_the_end
        ]

    def comes_before(self, source: str, node: str) -> bool:
        """Whether `source` has ended, in some pass, when `node` starts. Near ones are found soon,
        and nearly all references are to those."""
        seen = {node}
        ahead = deque(seen)
        while ahead:
            for edge in self.rules[ahead.popleft()].edges:
                if edge.source == source:
                    return True
                if edge.source not in seen:
                    seen.add(edge.source)
                    ahead.append(edge.source)
        return False


class CompiledNode(NamedTuple):
    """One job to be made: a node, or one instance of it. `node` is the node as it is written;
    `matrix` are the values of the instance."""

    id: str
    node: str
    matrix: Mapping[str, Any]
    args: Mapping[str, Any]
    argv: tuple[Any, ...]
    shell: str | None
    when: tuple[str, ...]
    each: EachKey | None
    needs: tuple[str, ...]
    produces: Mapping[str, tuple[str, ...]]
    job: Mapping[str, Any]
    root: str | None
    outputs: tuple[str, ...] = ()
    approval: bool = False
    values: Mapping[str, Any] = NOTHING  # of references of its command, by their texts


class Manifest(NamedTuple):
    """What one run is made of: a workflow with its parameters, every instance of every node."""

    workflow: Workflow
    routes: Routes
    params: Mapping[str, Any]
    policy_hash: str
    nodes: tuple[CompiledNode, ...]
    notes: tuple[str, ...] = ()  # what is worth saying, and no error
