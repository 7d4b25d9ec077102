"""Compile a workflow with its parameters: every instance of every node, ready to become a job.
Pure.

What is known before a run starts is filled in here: parameters, and the values of a matrix. All
else (`run.id`, the outputs of other nodes, an item) stays as it is written until a job is made or
claimed.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway.base.errors import InvalidInputError
from headway.core.artifacts import is_artifact, parse_artifact
from headway.core.routes import NodeOutcome
from headway.jobs.graph_file import FORMS
from headway.workflows.checks import check_workflow, outside_paths, routes_of
from headway.workflows.imports import Load, with_imports
from headway.workflows.labels import APPROVAL, RESOLUTION, TERMINAL, WORKTREE_PREPARE
from headway.workflows.matrices import (
    NUMBER,
    count_combinations,
    instance_id,
    instances,
    show_values,
    written_node,
)
from headway.workflows.mistakes import Mistakes, listed, short, unseen_mistakes
from headway.workflows.model import (
    MISSING,
    NO_TREE,
    CompiledNode,
    EachKey,
    Manifest,
    Param,
    Routes,
    Source,
    Workflow,
    WorkflowNode,
)
from headway.workflows.products import made_by
from headway.workflows.reader import Draft, misfit_argument, misfit_of
from headway.workflows.references import (
    OPEN,
    UNKNOWN,
    Kind,
    LookUp,
    Reference,
    fill,
    fill_texts,
    references_in,
    texts_in,
)
from headway.workflows.shell_scripts import REFUSED, runs_value

RUN_ID = "wf-0.run-id.0"  # stands for the id of a run until it has one; no run is named so
ITEM = "0.each-item.0"  # stands for an element of `each` until there is one
PROMPT = "prompt_text"  # the argument that is a prompt
CLEANUP = "cap.env.builtin.worktree.cleanup"
_WITHOUT_FOLDER = frozenset({TERMINAL, APPROVAL, WORKTREE_PREPARE})  # what works in no folder


def check_text(
    text: Source, *, name: str, file: str, limit: int, load: Load | None = None
) -> tuple[Workflow, Mistakes]:
    """A workflow with all that is wrong with it, before it has parameters. `limit` is how many
    jobs one graph may have; `load` finds what it imports."""
    draft = Draft(text, name=name, file=file)
    return _checked(draft, limit, load)[0], draft.problems


def _checked(draft: Draft, limit: int, load: Load | None) -> tuple[Workflow, Routes | None]:
    """The whole workflow, with its routes if these are right; the rest is in the draft's
    problems."""
    problems = draft.problems
    workflow = with_imports(draft.workflow, problems, load)
    if len(workflow.nodes) > limit:
        problems.add(f"{len(workflow.nodes):,} nodes are more than scheduler.graph_limit")
        return workflow, None
    routes = check_workflow(workflow, problems)
    if routes is not None:
        roots_of(workflow, routes, problems)
        count = sum(count_instances(node) for node in workflow.nodes.values())
        if count > limit:
            problems.add(f"{count:,} nodes are more than scheduler.graph_limit")
    return workflow, routes


def count_instances(node: WorkflowNode) -> int:
    """How many jobs a node is when a run starts."""
    if node.exclude:
        return sum(1 for _ in instances(node.matrix, node.exclude))
    return count_combinations(node.matrix) or 1


def compile_text(
    text: Source,
    given: Mapping[str, Any],
    *,
    name: str,
    file: str,
    limit: int,
    load: Load | None = None,
) -> Manifest:
    """The manifest of a run; raises WorkflowError with all that is wrong."""
    draft = Draft(text, name=name, file=file)
    return compile_draft(draft, given, limit=limit, load=load)


def compile_draft(
    draft: Draft, given: Mapping[str, Any], *, limit: int, load: Load | None = None
) -> Manifest:
    """The same of a file that is read already."""
    problems = draft.problems
    workflow, routes = _checked(draft, limit, load)
    params = bind(workflow, given, problems)
    problems.raise_if_any()
    routes = routes or routes_of(workflow)
    nodes = tuple(_compiled(workflow, routes, params, problems))
    problems.raise_if_any()
    return Manifest(
        workflow,
        routes,
        params,
        policy_hash(workflow),
        nodes,
        tuple(notes_of(workflow, routes, nodes)),
    )


# -- parameters --------------------------------------------------------------------------------


def bind(workflow: Workflow, given: Mapping[str, Any], problems: Mistakes) -> dict[str, Any]:
    """The value of each parameter. Texts from a command line become what their types say."""
    refuse_unknown(workflow, given, problems)
    values: dict[str, Any] = {}
    for name, param in workflow.params.items():
        value = given.get(name, param.default)
        if param.given is not MISSING:  # its sources come before it
            try:
                value = fill(param.given, lambda each: values[each.name])
            except KeyError:
                continue  # they have no value, which is told
            if (wrong := misfit_of(param, value)) is not None:
                problems.add(f"parameter '{name}' is {short(value)}; {wrong}")
            values[name] = value
            continue
        if value is MISSING:
            problems.add(f"parameter '{name}' has no value; give --set {name}=VALUE")
            continue
        wanted = _as_type(param, value) if name in given else value
        wrong = misfit_of(param, wanted)
        if wrong is not None and name in given:
            problems.add(f"parameter '{name}' is {short(value)}; {wrong}")
        values[name] = wanted
    return values


def check_given(workflow: Workflow, given: Mapping[str, Any], problems: Mistakes) -> None:
    """Values for some of the parameters: each of these is there, and its value fits."""
    refuse_unknown(workflow, given, problems)
    free = free_params(workflow)
    for name, value in given.items():
        wrong = misfit_of(free[name], _as_type(free[name], value)) if name in free else None
        if wrong is not None:
            problems.add(f"parameter '{name}' is {short(value)}; {wrong}")


def free_params(workflow: Workflow) -> dict[str, Param]:
    """The parameters that may be given: all but those of imports."""
    return {name: param for name, param in workflow.params.items() if param.given is MISSING}


def refuse_unknown(workflow: Workflow, given: Iterable[str], problems: Mistakes) -> None:
    free = free_params(workflow)
    for name in given:
        if name not in free:
            there = ", ".join(free) or "none"
            problems.add(f"there is no parameter '{name}'; there are {there}")


def inputs_of(workflow: Workflow, words: Sequence[str], named: Mapping[str, Any]) -> dict[str, Any]:
    """What `headway run NAME WORD ... --set K=V` gives, by parameter."""
    if len(words) > len(workflow.inputs):
        if not workflow.inputs:
            raise InvalidInputError(f"{workflow.name} takes no inputs; give --set K=V")
        number, names = len(workflow.inputs), listed(workflow.inputs)
        takes = f"{number} {'input' if number == 1 else 'inputs'} ({names})"
        raise InvalidInputError(f"{workflow.name} takes {takes}; {len(words)} are given")
    by_place = dict(zip(workflow.inputs, words, strict=False))
    twice = [name for name in by_place if name in named]
    if twice:
        raise InvalidInputError(f"parameter '{twice[0]}' is given twice")
    return {**by_place, **named}


def _as_type(param: Param, value: Any) -> Any:
    """A text of a command line as the parameter's type, as far as it is one."""
    if not isinstance(value, str) or param.type in ("text", "slug", "path"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


# -- nodes -------------------------------------------------------------------------------------


def _compiled(
    workflow: Workflow, routes: Routes, params: Mapping[str, Any], problems: Mistakes
) -> Iterator[CompiledNode]:
    roots = roots_of(workflow, routes, problems)
    for node in workflow.nodes.values():
        for number, values in enumerate(instances(node.matrix, node.exclude)):
            root = instance_root(workflow, roots.get(node.id), values)
            own = _of_instance(node, values, number) if values else node
            yield _instance(workflow, own, values, params, root, problems)


def _of_instance(node: WorkflowNode, values: Mapping[str, Any], number: int) -> WorkflowNode:
    """With the names of the artifacts that are of this instance alone: by its values or, where
    these fit in no name, by its number."""

    def named(text: str) -> str:
        if NUMBER not in text:
            return text
        by_values = text.replace(NUMBER, show_values(values))
        return by_values if is_artifact(by_values) else text.replace(NUMBER, str(number))

    return node._replace(
        needs=tuple(map(named, node.needs)),
        produces={word: tuple(map(named, texts)) for word, texts in node.produces.items()},
    )


def _instance(
    workflow: Workflow,
    node: WorkflowNode,
    matrix: Mapping[str, Any],
    params: Mapping[str, Any],
    root: str | None,
    problems: Mistakes,
) -> CompiledNode:
    def look_up(each: Reference) -> Any:
        match each.kind:
            case Kind.PARAMS:
                return params[each.name]
            case Kind.MATRIX:
                return matrix[each.name]
            case Kind.ARGS:
                return args.get(each.name, UNKNOWN)
            case Kind.RUN if each.name == "id":
                return RUN_ID
            case Kind.RUN if each.name == "name":
                return workflow.name
            case Kind.ITEM:
                return ITEM
            case _:
                return UNKNOWN

    def look_up_first(each: Reference) -> Any:
        """For what is filled once more, at the claim. A value that has the form of a reference
        itself is left for then, so that what is given is never read as a reference."""
        value = UNKNOWN if each.kind in (Kind.RUN, Kind.ITEM) else look_up(each)
        has_form = value is not UNKNOWN and any(OPEN in text for text in texts_in(value))
        return UNKNOWN if has_form else value

    args: Mapping[str, Any] = {}
    args = fill({key: said for key, said in node.args.items() if key != PROMPT}, look_up_first)
    if PROMPT in node.args:  # it is filled in at the claim as a whole
        args = {**args, PROMPT: node.args[PROMPT]}
    compiled = CompiledNode(
        instance_id(node.id, matrix),
        node.id,
        matrix,
        args,
        tuple(fill_texts(node.argv, look_up_first)),
        node.shell,
        tuple(node.when),
        node.each and EachKey(fill(node.each.elements, look_up_first), node.each.most),
        tuple(fill_texts(node.needs, look_up)),
        made_by(
            node.label.operation,
            args,
            {word: tuple(fill_texts(texts, look_up)) for word, texts in node.produces.items()},
        ),
        {
            key: fill_texts(value, look_up_first if key in ("env", "cwd") else look_up)
            for key, value in node.job.items()
        },
        root,
        node.outputs,
        node.approval,
    )
    compiled = compiled._replace(values=_left_for_the_claim(compiled, look_up))
    _check_filled(node, compiled, look_up, problems)
    return compiled


def _left_for_the_claim(compiled: CompiledNode, look_up: LookUp) -> dict[str, Any]:
    """What the references that are left for the claim stand for, as far as that is known."""
    args = {key: said for key, said in compiled.args.items() if key != PROMPT}
    left = [args, compiled.argv, compiled.job.get("env", {}), compiled.job.get("cwd", "")]
    known = (Kind.PARAMS, Kind.MATRIX, Kind.ARGS)
    return {each.text: look_up(each) for each in references_in(left) if each.kind in known}


def _check_filled(
    node: WorkflowNode, compiled: CompiledNode, look_up: LookUp, problems: Mistakes
) -> None:
    """What had references is checked now that it has values. What is filled in at the claim is
    tried here, and not kept."""
    path = ("nodes", node.id.removesuffix(".prompt"))
    for key, value in compiled.job.items():
        make = FORMS[key].make
        if value == node.job[key] or make is None or OPEN in str(value):
            continue
        try:
            make(value)
        except InvalidInputError as error:
            problems.add(str(error), (*path, key))
    if runs_value(node.argv, fill_texts(node.argv, look_up)) and not runs_value(node.argv):
        problems.add(REFUSED, (*path, "argv"))
    for key in compiled.args.keys() & {*node.label.arguments}:
        wrong = misfit_argument(key, compiled.args[key])
        if wrong is not None and misfit_argument(key, node.args[key]) is None:
            problems.add(wrong, (*path, "args", key))
    for key, said in (("args", node.args), ("cwd", node.job.get("cwd"))):
        for outside in outside_paths(key, fill(said, look_up)):
            if outside not in outside_paths(key, said):
                problems.add(f"{outside} is outside of the repository", (*path, key))
    texts = [*compiled.needs, *(text for texts in compiled.produces.values() for text in texts)]
    for text in texts:
        try:
            parse_artifact(text)
        except InvalidInputError as error:
            problems.add(str(error), path)


# -- where a node works ------------------------------------------------------------------------


def roots_of(workflow: Workflow, routes: Routes, problems: Mistakes) -> dict[str, str]:
    """For each node the `worktree.prepare` node in whose checkout it works: the nearest before it
    along edges of success, else what its `root` says. A clean-up ends the passing on. An instance
    of such a node may stand in its place (`instance_root`)."""
    found: dict[str, str] = {}
    reaching: dict[str, set[str]] = {}
    for name in in_order(routes):
        node = workflow.nodes[name]
        trees: set[str] = set()
        for edge in routes.rules[name].edges_before:
            if not edge.wants_success:
                continue
            source = workflow.nodes[edge.source]
            if source.label.name == WORKTREE_PREPARE:
                trees.add(edge.source)
            elif source.label.name != CLEANUP:
                trees |= reaching[edge.source]
        if node.root is not None:
            trees = {node.root} - {NO_TREE}
        elif node.label.name == RESOLUTION and not trees:
            trees = _trees_of_source(workflow, routes, node, found)
        reaching[name] = trees
        root, wrong = _one_root(workflow, node, trees)
        if wrong is not None and f"{name}.prompt" not in workflow.nodes:  # it was told of that
            problems.add(wrong, ("nodes", name.removesuffix(".prompt")))
        if root is not None:
            found[name] = root
    return found


def _trees_of_source(
    workflow: Workflow, routes: Routes, node: WorkflowNode, found: Mapping[str, str]
) -> set[str]:
    """Where a conflict is resolved to which no success leads: in the worktree that has its branch,
    unless that is cleaned up by then. No other worktree could have it."""
    slug = node.args.get("slug")
    before = [
        each
        for each in workflow.nodes.values()
        if each.label.name in (WORKTREE_PREPARE, CLEANUP) and routes.comes_before(each.id, node.id)
    ]
    cleaned = {found.get(each.id) for each in before if each.label.name == CLEANUP}
    trees = {
        each.id
        for each in before
        if each.label.name == WORKTREE_PREPARE
        and each.id not in cleaned
        and not (each.matrix or each.each or node.args.get("source") or each.args.get("branch"))
        and slug in (each.args.get("slug"), each.args.get("plan"))
    }
    return trees if len(trees) == 1 else set()


def _one_root(
    workflow: Workflow, node: WorkflowNode, trees: Collection[str]
) -> tuple[str | None, str | None]:
    """The one of these trees that a node works in, and what is wrong if it could be another."""
    if len(trees) > 1:
        order = list(workflow.nodes)
        one, other, *_ = sorted(trees, key=lambda each: (order.index(written_node(each)), each))
        return one, f"two worktrees reach it, '{one}' and '{other}'; say root"
    tree = next(iter(trees), None)
    source = workflow.nodes.get(tree or "")
    if source is None or not (source.matrix or source.each):
        return tree, None
    if node.label.name in _WITHOUT_FOLDER:
        return None, None
    if source.each is not None:
        return tree, f"'{tree}' makes a worktree for each element; say root = \"{NO_TREE}\""
    return _root_of_matrix(workflow, node, source)


def _root_of_matrix(
    workflow: Workflow, node: WorkflowNode, tree: WorkflowNode
) -> tuple[str, str | None]:
    """The same for a tree with a matrix: each instance needs one with its combination."""
    made = [instance_id(tree.id, each) for each in instances(tree.matrix, tree.exclude)]
    if len(made) == 1:
        return made[0], None
    if node.matrix.keys() == tree.matrix.keys():
        own = instances(node.matrix, node.exclude)
        if {instance_root(workflow, tree.id, each) for each in own} <= {*made}:
            return tree.id, None
    two, same = f"'{made[0]}' and '{made[1]}'", f"or give it the matrix of '{tree.id}'"
    if node.root is not None:
        return tree.id, f"root '{tree.id}' makes two worktrees, {two}; name one of them, {same}"
    return tree.id, f"two worktrees reach it, {two}; say root, {same}"


def instance_root(workflow: Workflow, root: str | None, matrix: Mapping[str, Any]) -> str | None:
    """Of a root with a matrix, the instance that has these values."""
    source = workflow.nodes.get(root or "")
    if source is None or not source.matrix:
        return root
    return instance_id(source.id, {key: matrix[key] for key in source.matrix})


def in_order(routes: Routes) -> list[str]:
    """The nodes, each after all that leads to it; else in the order of the file."""
    before = {name: rule for name, rule in routes.rules.items() if not rule.at_the_end}
    missing = {name: len(rule.edges) for name, rule in before.items()}
    below: dict[str, list[str]] = {name: [] for name in before}
    for name, rule in before.items():
        for edge in rule.edges:
            below[edge.source].append(name)
    done = [name for name, count in missing.items() if not count]
    for name in done:  # grows while it is walked through
        for other in below[name]:
            missing[other] -= 1
            if not missing[other]:
                done.append(other)
    last = (name for name in routes.rules if name not in before)
    return [*done, *sorted(last, key=lambda name: not name.endswith(".prompt"))]


def sinks_of(workflow: Workflow, routes: Routes) -> list[str]:
    """The nodes whose success ends the workflow, in its order."""
    last = set(routes.sinks())
    return [name for name in workflow.nodes if name in last]


# -- words and the hash ------------------------------------------------------------------------


def notes_of(
    workflow: Workflow, routes: Routes, nodes: Sequence[CompiledNode] | None = None
) -> Iterator[str]:
    """Remarks that are no errors, about the workflow as it is written or as it is compiled."""
    for name, text in needs_without_producer(workflow, nodes):
        yield f"node '{name}': needs {text}, which no node here produces"
    for name, tree in _lost_trees(workflow, routes).items():
        yield (
            f"node '{name}': works in the repository itself: a worktree is passed on along "
            "on.succeeded only" + (f'; say root = "{tree}"' if tree else "")
        )


def needs_without_producer(
    workflow: Workflow, nodes: Sequence[CompiledNode] | None = None
) -> Iterator[tuple[str, str]]:
    """Each node with an artifact that it needs and none makes, once."""
    if nodes is None:
        wants = [(node.id, node.needs) for node in workflow.nodes.values()]
        made = {text for node in workflow.nodes.values() for text in node.all_produced}
    else:
        wants = [(node.node, node.needs) for node in nodes]
        made = {text for node in nodes for texts in node.produces.values() for text in texts}
    every = ((name, text) for name, needs in wants for text in needs if text not in made)
    yield from dict.fromkeys(every)


def _lost_trees(workflow: Workflow, routes: Routes) -> dict[str, str | None]:
    """Nodes after a worktree that have none, because an edge before them is not of success; each
    with that worktree. Clean-ups that have none, wherever they stand: there is nothing else that
    they do."""
    found: dict[str, str | None] = {}
    roots = roots_of(workflow, routes, unseen_mistakes())
    for name, rule in routes.rules.items():
        node = workflow.nodes[name]
        if name in roots or node.root is not None:
            continue
        if node.label.name == CLEANUP:
            found[name] = next(_trees_before(workflow, routes, name), None)
        if node.label.name == CLEANUP or rule.at_the_end:
            continue
        if node.label.name in (TERMINAL, WORKTREE_PREPARE):
            continue
        passed = [
            roots.get(edge.source) or edge.source
            for edge in rule.edges
            if not edge.wants_success
            and (edge.source in roots or workflow.nodes[edge.source].label.name == WORKTREE_PREPARE)
        ]
        if passed and not node.label.is_control:
            found[name] = passed[0]
    return found


def _trees_before(workflow: Workflow, routes: Routes, name: str) -> Iterator[str]:
    """The nodes that make one worktree each, or one for each combination, before this one."""
    for each in workflow.nodes.values():
        makes = each.label.name == WORKTREE_PREPARE and each.each is None
        if makes and routes.comes_before(each.id, name):
            yield each.id


def policy_hash(workflow: Workflow) -> str:
    """The same for two files that would make the same runs of the same parameters."""
    document = json.dumps(canonical(workflow), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(document.encode()).hexdigest()


def canonical(workflow: Workflow) -> dict[str, Any]:
    """The workflow as JSON, before parameters; without its file and descriptions."""
    kept = workflow._asdict()
    del kept["file"], kept["description"]
    order = list(workflow.nodes)  # that of dispatch
    return {**{key: as_json(value) for key, value in kept.items()}, "order": order}


_PLAIN = frozenset({str, int, float, bool, type(None)})


def as_json(value: Any) -> Any:
    """A value of the model as JSON has it: a label by its name, without words for people."""
    if type(value) in _PLAIN:  # first, as most values are
        return value
    if value is MISSING:
        return {"must": "be given"}
    if hasattr(value, "_asdict"):
        fields = value._asdict()
        if "operation" in fields and "executor" in fields:
            return value.name
        fields.pop("help", None)
        return {key: as_json(each) for key, each in fields.items()}
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(str(each) for each in value)
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    if isinstance(value, NodeOutcome):
        return value.value
    return value if isinstance(value, str | int | float | bool | None) else str(value)
