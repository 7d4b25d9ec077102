"""What the nodes of a workflow say about each other: edges, loops, artifacts, references. Pure.

`check_workflow` finds every mistake that can be seen before parameters are given. Where a node
names another that is not there, what would follow from it is left out: one mistake is told once.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from headway.base.errors import InvalidInputError
from headway.core.artifacts import ArtifactKind, parse_artifact
from headway.core.conditions import NotComparableError, as_text, holds
from headway.core.graph import find_cycle, show_cycle
from headway.core.routes import (
    EVERY_OUTCOME,
    OUTCOME_WORDS,
    LoopRule,
    NodeOutcome,
    NodeRule,
    RouteEdge,
    accepted_from,
    bodies,
    left_by,
)
from headway.jobs.specification import check_name
from headway.workflows.conditions import Condition, parse_condition
from headway.workflows.labels import (
    AGENT_INVOKE,
    FUNCTION_CALL,
    NO_MESSAGE,
    PROMPT_RESOLVE,
    PROMPT_TEXT,
    SHELL,
    STAGE_COMMIT,
    TERMINAL,
    WORKTREE_PREPARE,
)
from headway.workflows.matrices import (
    MOST_COMBINATIONS,
    count_combinations,
    fits_some,
    instance_id,
    instances,
    written_node,
)
from headway.workflows.mistakes import MOST_SHOWN, Mistakes, perhaps, short
from headway.workflows.model import NO_TREE, Routes, Workflow, WorkflowNode
from headway.workflows.reader import OF_HEADWAY
from headway.workflows.references import (
    KNOWN_WHEN_QUEUED,
    OF_RUN,
    OPEN,
    Kind,
    MalformedError,
    Reference,
    read_references,
    references_in,
    texts_in,
)
from headway.workflows.shell_scripts import REFUSED, runs_value

ANY_PROGRAM = "runner command runs any program; name one that has its own"
_RESOLVERS = (PROMPT_RESOLVE, SHELL + "prompt.resolve")
# Where gates read before the claim: only what is known then may stand there.
_BEFORE_THE_CLAIM = frozenset({"labels", "locks", "needs", "produces"})
_WITH_REFERENCES = frozenset({"args", "argv", "env", "when", "each", "cwd", *_BEFORE_THE_CLAIM})


def check_workflow(workflow: Workflow, problems: Mistakes) -> Routes | None:
    """Add all that is wrong with it to `problems`; its routes, if they are right."""
    checks = _Checks(workflow, problems)
    return checks.all()


def routes_of(workflow: Workflow) -> Routes:
    """The edges and loops of a workflow that was checked, or of what is right of it."""
    nodes = workflow.nodes
    said: dict[str, dict[str, tuple[frozenset[NodeOutcome], bool]]] = {name: {} for name in nodes}

    def add(target: str, source: str, accepts: frozenset[NodeOutcome], required: bool) -> None:
        if target in said and source in nodes and target != source:
            before = said[target].get(source, (frozenset(), False))
            said[target][source] = before[0] | accepts, before[1] or required

    for name, node in nodes.items():
        for after in node.after:
            add(name, after.node, after.accepts, True)
        for word, targets in node.on.items():
            for target in targets:
                add(entry_of(target, nodes), name, OUTCOME_WORDS[word], False)
    last = frozenset(workflow.at_the_end)
    # One tuple for all of `finally`: a copy for each would be as many edges as nodes times those.
    ends = tuple(RouteEdge(name, EVERY_OUTCOME, True) for name in nodes if name not in last)
    rules: dict[str, NodeRule] = {}
    plain = {name: NodeRule(tolerates=node.tolerates) for name, node in nodes.items()}
    for name, node in nodes.items():
        edges = []
        for source, (accepts, required) in said[name].items():
            wants = NodeOutcome.SUCCEEDED in accepts
            accepts = accepted_from(accepts, plain[source])
            edges.append(RouteEdge(source, accepts, required or wants))
        every = (*edges, *ends) if edges and name in last else ends if name in last else (*edges,)
        rules[name] = NodeRule(every, node.join, node.tolerates, name in last)
    loops = tuple(
        LoopRule(
            name, entry_of(node.loop.to, nodes), node.loop.on, node.loop.times, node.loop.delay
        )
        for name, node in nodes.items()
        if node.loop is not None and node.loop.to in nodes
    )
    # What runs at the end is in no loop.
    before = {name: NodeRule() if name in last else rule for name, rule in rules.items()}
    within = {head: frozenset(body) for head, body in bodies(before, loops).items()}
    return Routes(rules, loops, within)


def entry_of(name: str, nodes: Mapping[str, WorkflowNode]) -> str:
    """Where an edge to this node leads: that of an agent's short form leads to its prompt."""
    prompt = f"{name}.prompt"
    return prompt if prompt in nodes else name


class _Checks:
    def __init__(self, workflow: Workflow, problems: Mistakes) -> None:
        self._workflow = workflow
        self._nodes = workflow.nodes
        self._problems = problems
        self._makers = _makers(workflow)
        self._named = _named(workflow)
        self._knows_order = True  # all that nodes are after, or lead to, is there

    def all(self) -> Routes | None:
        before = self._problems.count
        self._names()
        named = self._problems.count
        self._knows_order = named == before
        self._ends()
        right = self._problems.count == named
        routes = routes_of(self._workflow if right else self._workflow._replace(at_the_end=()))
        if not self._circle(routes) and self._problems.count == before:
            self._loops(routes)
        for node in self._nodes.values():
            self._matrix(node)
            self._artifacts(node)
            self._prompts(node, routes)
            self._arguments(node)
            self._values(node, routes)
        for name in self._workflow.inputs:
            if name not in self._workflow.params:
                meant = perhaps(name, list(self._workflow.params))
                self._problems.add(f"inputs '{name}' names no parameter{meant}", ("inputs",))
        return routes if self._problems.count == before else None

    def _say(self, node: WorkflowNode, words: str, *key: str) -> None:
        written = node.id.removesuffix(".prompt")
        self._problems.add(words, ("nodes", written, *key))

    # -- names ---------------------------------------------------------------------------------

    def _names(self) -> None:
        for node in self._nodes.values():
            for after in node.after:
                if after.node not in self._nodes:
                    meant = perhaps(after.node, list(self._nodes))
                    self._say(node, f"after '{after.node}' names no node{meant}", "after")
                elif self._nodes[after.node].label.name == TERMINAL:
                    self._say(node, f"after '{after.node}', which is a terminal", "after")
            for word, targets in node.on.items():
                for target in targets:
                    if target not in self._nodes:
                        meant = perhaps(target, list(self._nodes))
                        self._say(node, f"on.{word} '{target}' names no node{meant}", "on", word)
            if node.loop is not None and node.loop.to not in self._nodes:
                meant = perhaps(node.loop.to, list(self._nodes))
                self._say(node, f"loop.to '{node.loop.to}' names no node{meant}", "loop")
            if node.root not in (None, NO_TREE) and not self._is_tree(node.root or ""):
                self._say(node, f"root '{node.root}' is no worktree.prepare node", "root")

    def _is_tree(self, name: str) -> bool:
        """A node that makes a worktree, or one instance of such a node."""
        tree = self._nodes.get(written_node(name))
        if tree is None or tree.label.name != WORKTREE_PREPARE:
            return False
        made = (instance_id(tree.id, each) for each in instances(tree.matrix, tree.exclude))
        return name == tree.id or name in made

    def _ends(self) -> None:
        for node in self._nodes.values():
            if node.label.name != TERMINAL:
                continue
            for word, targets in node.on.items():
                if targets:
                    words = f"a terminal leads nowhere; take on.{word} out"
                    self._say(node, words, "on", word)
            if node.loop is not None:
                self._say(node, "a terminal leads nowhere; take loop out", "loop")
        for name in self._workflow.at_the_end:
            last = self._nodes.get(name)
            if last is None:
                meant = perhaps(name, list(self._nodes))
                self._problems.add(f"finally '{name}' names no node{meant}", ("finally",))
            elif self._has_edges(last):
                self._problems.add(f"finally '{name}' is led to, or leads on", ("finally",))

    def _has_edges(self, node: WorkflowNode) -> bool:
        """But for the one from the node of its prompt, which runs at the end with it."""
        prompt = f"{node.id}.prompt"
        is_named = bool(self._named.get(node.id, set()) - {prompt})
        if prompt in self._nodes:
            return node.leads_on or is_named
        if node.id.endswith(".prompt") and node.id.removesuffix(".prompt") in self._nodes:
            return bool(node.after)
        return bool(node.after) or node.leads_on or is_named

    # -- circles and loops ---------------------------------------------------------------------

    def _circle(self, routes: Routes) -> bool:
        """Whether there is a circle; all are told of that share no node."""
        names = list(routes.rules)
        at = {name: place for place, name in enumerate(names)}
        waits = [[at[edge.source] for edge in routes.rules[name].edges_before] for name in names]
        rings = [[name] for name, node in self._nodes.items() if self._leads_to_itself(node)]
        while len(rings) < MOST_SHOWN and (found := find_cycle(waits)) is not None:
            rings.append([names[place] for place in reversed(found)])
            for place in found:
                waits[place] = []
        for ring in rings:
            self._refuse_circle(ring)
        return bool(rings)

    def _leads_to_itself(self, node: WorkflowNode) -> bool:
        by_on = any(node.id in targets for targets in node.on.values())
        return by_on or any(after.node == node.id for after in node.after)

    def _refuse_circle(self, names: Sequence[str]) -> None:
        """From the first node of the file to the last, and back."""
        order = list(self._nodes)
        ring = list(dict.fromkeys(names))
        first = min(range(len(ring)), key=lambda place: order.index(ring[place]))
        ring = [*ring[first:], *ring[:first]]
        back = f"'{ring[-1]}'" + f' loop = {{ to = "{ring[0]}", times = N }}'
        words = f"a circle: {show_cycle(ring)}; to go back, give {back}"
        self._problems.add_of_file(words, ("nodes", ring[-1].removesuffix(".prompt")))

    def _loops(self, routes: Routes) -> None:
        for loop in routes.loops:
            node = self._nodes[loop.source]
            to = node.loop.to if node.loop is not None else loop.head
            if loop.head != loop.source and not routes.comes_before(loop.head, loop.source):
                self._say(node, f"loop.to '{to}' does not come before it", "loop")
                return
            for word, targets in node.on.items():
                taken = OUTCOME_WORDS[word] <= loop.on and word != "blocked"
                for target in targets if taken else ():
                    self._say(
                        node,
                        f"on.{word} never leads to '{target}', because the loop takes it; "
                        "lead there from on.blocked",
                        *("on", word),
                    )
        self._needs_of_loops(routes)
        self._loops_that_wait(routes)

    def _needs_of_loops(self, routes: Routes) -> None:
        """What a loop makes is there when the loop is over, so only what follows it may need it."""
        for node in self._nodes.values():
            for text in node.needs:
                for head, body in routes.bodies.items():
                    inside = [each for each in self._makers.get(text, ()) if each in body]
                    if not inside or node.id in body:
                        continue
                    if not any(routes.comes_before(each, node.id) for each in body):
                        words = f"needs {text}, which the loop of '{head}' makes"
                        self._say(node, f"{words}; put it after the loop", "needs")

    def _loops_that_wait(self, routes: Routes) -> None:
        names = list(routes.rules)
        at = {name: place for place, name in enumerate(names)}
        waits: list[list[int]] = []
        for name in names:
            edges = routes.rules[name].edges_before
            sources = {edge.source for edge in edges}
            for edge in edges:
                for head in left_by(edge.source, name, routes.bodies, routes.loops):
                    sources |= routes.bodies[head]
            waits.append(sorted(at[each] for each in sources))
        found = find_cycle(waits)
        if found is None:
            return
        ring = {names[place] for place in found}
        heads = [head for head, body in routes.bodies.items() if body & ring][:2]
        one, other = heads[0], heads[-1]
        words = f"the loops of '{one}' and '{other}' wait for each other"
        self._problems.add_of_file(words, ("nodes", one.removesuffix(".prompt")))

    # -- artifacts -----------------------------------------------------------------------------

    def _artifacts(self, node: WorkflowNode) -> None:
        for key, texts in (("needs", node.needs), ("produces", node.all_produced)):
            for text in texts:
                if key == "needs" and text in self._nodes:
                    about = f"needs is about artifacts, and '{text}' is a node"
                    self._say(node, f'{about}; write after = ["{text}"]', key)
                    continue
                if OPEN not in text:
                    try:
                        parse_artifact(text)
                    except InvalidInputError as error:
                        self._say(node, str(error), key)
                        continue
                kind = custom_type(text)
                if kind is None or kind in OF_HEADWAY or OPEN in kind:
                    continue
                if kind not in self._workflow.artifacts:
                    undeclared = f"of the type '{kind}', which [artifacts] does not declare"
                    self._say(node, f"{text} is {undeclared}", key)

    def _prompts(self, node: WorkflowNode, routes: Routes) -> None:
        if node.label.name in _RESOLVERS:
            made = [text for text in node.all_produced if text.startswith(PROMPT_TEXT)]
            if len(made) != 1 or len(node.all_produced) != 1:
                one = "prompt.resolve must produce exactly one custom:prompt_text:KEY"
                count = len(node.all_produced) if made else 0
                self._say(node, f"{one}, and produces {count}", "produces")
        if node.label.name == AGENT_INVOKE:
            needed = [text for text in node.needs if text.startswith(PROMPT_TEXT)]
            if len(needed) != 1:
                one = "agent.invoke must need exactly one custom:prompt_text:KEY"
                self._say(node, f"{one}, and needs {len(needed)}", "needs")
            for text in needed:
                makers = self._makers.get(text, ())
                if not any(routes.comes_before(each, node.id) for each in makers):
                    self._say(node, f"{text} is produced by no node before it", "needs")

    def _arguments(self, node: WorkflowNode) -> None:
        if node.label.name == AGENT_INVOKE and node.args.get("runner") == "command":
            self._say(node, ANY_PROGRAM, "args")
        if node.label.name == STAGE_COMMIT and not node.needs and not node.args.get("message"):
            self._say(node, NO_MESSAGE, "args")

    # -- values --------------------------------------------------------------------------------

    def _matrix(self, node: WorkflowNode) -> None:
        count = count_combinations(node.matrix)
        if count > MOST_COMBINATIONS:
            words = f"matrix has {count:,} combinations, more than {MOST_COMBINATIONS}"
            self._say(node, words, "matrix")
            return
        for key, values in node.matrix.items():
            texts = [as_text(each) for each in values]
            for text in dict.fromkeys(texts):
                if texts.count(text) > 1:  # two instances would have one name
                    self._say(node, f"matrix.{key} has {short(text)} twice", "matrix")
        for each in node.exclude:
            if not fits_some(each, node.matrix):
                self._say(node, f"exclude {short(each)} fits none", "exclude")
        if node.matrix and not any(instances(node.matrix, node.exclude)):
            self._say(node, "exclude leaves nothing of the matrix", "exclude")
        self._names_of_instances(node)

    def _names_of_instances(self, node: WorkflowNode) -> None:
        """The values of a matrix stand in the names of its jobs."""
        if f"{node.id}.prompt" in self._nodes:
            return  # it has the same matrix, and is told of that
        try:
            for each in instances(node.matrix, node.exclude):
                check_name("matrix: the name", instance_id(node.id, each))
        except InvalidInputError as error:
            self._say(node, str(error), "matrix")

    def _values(self, node: WorkflowNode, routes: Routes) -> None:
        if node.shell is not None and OPEN in node.shell:
            self._say(node, REFUSED, "shell")
        if runs_value(node.argv):
            self._say(node, REFUSED, "argv")
        for key, value in node.values():
            if key not in _WITH_REFERENCES:
                if any(OPEN in text for text in texts_in(value)):
                    self._say(node, f"{key} takes no ${{{{ }}}}", key)
                continue
            for path in outside_paths(key, value):
                self._say(node, f"{path} is outside of the repository", key)
            for words in self._wrong_references(node, key, value, routes):
                self._say(node, words, key)
        for text in node.when:
            parsed = parse_condition(text)
            if parsed is None:
                meant = "; did you mean '=='?" if " = " in text else ""
                self._say(node, f"when '{text[:60]}' is not LEFT OP RIGHT{meant}", "when")
            elif not _may_hold(parsed):
                self._say(node, f"when '{text[:60]}' compares no numbers", "when")
        if node.each is not None and not _is_one_reference(node.each.elements):
            self._say(node, "each.in is no reference to a list", "each")

    def _wrong_references(
        self, node: WorkflowNode, key: str, value: Any, routes: Routes
    ) -> Iterator[str]:
        if key == "args" and node.label.name == FUNCTION_CALL:
            for each in read_references(node.args.get("task", "")):
                if isinstance(each, Reference) and each.kind not in (Kind.PARAMS, Kind.MATRIX):
                    yield f"task: {each.text} is not known when it is queued"
        for each in read_references(value):
            if isinstance(each, MalformedError):
                yield f"{each.reason}{self._meant(node, each)}"
                continue
            words = self._wrong_reference(node, key, each, routes)
            if words is not None:
                yield f"{each.text}: {words}"
            elif key in _BEFORE_THE_CLAIM and (
                each.kind not in KNOWN_WHEN_QUEUED or each.text == "run.state"
            ):
                yield f"{key}: {each.text} is not known when it is queued"

    def _wrong_reference(
        self, node: WorkflowNode, key: str, each: Reference, routes: Routes
    ) -> str | None:
        in_prompt = node.label.name == PROMPT_RESOLVE
        match each.kind:
            case Kind.PARAMS if each.name not in (known := list(self._workflow.params)):
                return f"there is no parameter '{each.name}'{perhaps(each.name, known)}"
            case Kind.MATRIX if each.name not in node.matrix:
                return f"unknown{perhaps(each.text, [f'matrix.{key}' for key in node.matrix])}"
            case Kind.ARGS if each.name not in node.args:
                return "unknown"
            case Kind.ITEM if node.each is None or key == "each":  # the list itself has none
                return "unknown"
            case Kind.FILE if not in_prompt:
                return "unknown"
            case Kind.FILE if _leads_out(each.name):
                return f"{each.name} is outside of the repository"
            case Kind.NODES | Kind.LAST if each.name not in self._nodes:
                meant = perhaps(each.name, list(self._nodes))
                return f"'{each.name}' does not come before it{meant}"
            case Kind.NODES if self._knows_order and not routes.comes_before(each.name, node.id):
                return f"'{each.name}' does not come before it"
            case Kind.NODES | Kind.LAST if each.output is not None:
                known = _outputs_of(self._nodes[each.name])
                if each.output not in known:
                    return (
                        f"'{each.name}' has no output '{each.output}'{perhaps(each.output, known)}"
                    )
        return None

    def _meant(self, node: WorkflowNode, wrong: MalformedError) -> str:
        """The reference that is nearest to one of no known form."""
        of_nodes = [
            f"nodes.{name}.{field}"
            for name, each in self._nodes.items()
            for field in ("outcome", *(f"outputs.{output}" for output in _outputs_of(each)))
        ]
        known = [*OF_RUN, Kind.ITEM, *(f"params.{name}" for name in self._workflow.params)]
        known += [f"matrix.{key}" for key in node.matrix] + of_nodes
        return perhaps(wrong.name, known) if wrong.name else ""


def _named(workflow: Workflow) -> dict[str, set[str]]:
    """For each node those that name it in `after` or `on`."""
    found: dict[str, set[str]] = {}
    for node in workflow.nodes.values():
        others = [*(after.node for after in node.after), *chain.from_iterable(node.on.values())]
        for other in others:
            found.setdefault(other, set()).add(node.id)
    return found


def _makers(workflow: Workflow) -> dict[str, list[str]]:
    """The nodes that make each artifact, as it is written."""
    found: dict[str, list[str]] = {}
    for node in workflow.nodes.values():
        for text in node.all_produced:
            found.setdefault(text, []).append(node.id)
    return found


def _outputs_of(node: WorkflowNode) -> list[str]:
    """Operations have outputs of their own; a command has those that it declares."""
    return [*node.outputs, *OUTPUTS.get(node.label.operation, ())]


# What operations set without being asked.
OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "prompt.resolve": ("text",),
    "agent.invoke": ("text", "session_id", "turns", "tokens", "cost_usd"),
    "worktree.prepare": ("path", "branch", "base", "head"),
    "worktree.cleanup": ("saved",),
    "plan.persist": ("slug", "branch", "path", "commit"),
    "git.stage_commit": ("commit", "changed"),
    "git.integrate_plan_branch": ("commit", "conflicts"),
    "git.save_worktree_patch": ("patch", "bytes"),
    "patch.pipeline_prepare": ("manifest", "total"),
    "patch.pipeline_finalize": ("patch", "bytes"),
    "patch.execute_pipeline": ("applied", "tree"),
    "build.materialize_step": ("path",),
    "cicd.run": ("passed",),
}


_PATHS = frozenset({"prompt_file", "spec_file"})  # arguments that are paths


def outside_paths(key: str, value: Any) -> Iterator[str]:
    """Paths that lead out of the repository by themselves. Links, and whole paths, are looked at
    when the job runs."""
    paths: list[Any] = []
    if key == "cwd":
        paths = [value]
    elif key == "args":
        paths = [each for name, each in value.items() if name in _PATHS]
        files = value.get("files")
        paths += files if isinstance(files, list) else [files]
    for path in paths:
        if isinstance(path, str) and OPEN not in path and _leads_out(path):
            yield path


def _leads_out(path: str) -> bool:
    depth = 0
    for part in [] if path.startswith("/") else path.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(part, 1)
        if depth < 0:
            return True
    return False


def _may_hold(condition: Condition) -> bool:
    """Whether its sides can be compared, if what they refer to is a number."""
    sides = (
        0 if isinstance(side, str) and side.startswith(OPEN) else side
        for side in (condition.left, condition.right)
    )
    try:
        holds(condition.operator, *sides)
    except NotComparableError:
        return False
    return True


def _is_one_reference(text: str) -> bool:
    try:
        found = list(references_in(text))
    except MalformedError:
        return True  # told elsewhere
    return len(found) == 1 and text.strip().startswith(OPEN) and text.strip().endswith("}}")


def custom_type(text: str) -> str | None:
    """The type of a custom artifact; None for other kinds."""
    kind, _, rest = text.partition(":")
    return rest.partition(":")[0] if kind == ArtifactKind.CUSTOM else None
