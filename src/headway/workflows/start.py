"""Start a run of a workflow: one transaction makes the run, its nodes, their jobs and edges.

A node becomes one chain, and at first exactly one job. Edges that accept success alone are ordinary
`after` edges; all edges stand in the job's parameters, frozen, where its gate reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.crashpoints import reach
from headway.base.environment import keep_environment
from headway.base.errors import InvalidInputError, NotFoundError
from headway.core.gates.routes import OF_NODE
from headway.core.graph import place
from headway.core.model import GATE, NOTHING, JobId, JobSpec, shown_run
from headway.core.routes import NodeOutcome, RouteEdge, successors
from headway.integrations.git.questions import repository_of
from headway.jobs.graph_file import request_of
from headway.jobs.insert import add_jobs
from headway.jobs.routes import set_deadline
from headway.jobs.specification import specify
from headway.jobs.submit import graph_limit, origin_of
from headway.store.new_jobs import Event
from headway.store.records import NewNode, RunRecord
from headway.workflows.compiler import RUN_ID, canonical, compile_text, inputs_of
from headway.workflows.conditions import Condition, parse_condition
from headway.workflows.files import read_file, refuse_untrusted
from headway.workflows.labels import APPROVAL, COMMAND_RUN, SHELL, TERMINAL, Label
from headway.workflows.locks import default_locks
from headway.workflows.mistakes import Mistake, WorkflowError
from headway.workflows.model import CompiledNode, Manifest, WorkflowFile
from headway.workflows.reader import OF_HEADWAY, Draft
from headway.workflows.references import OPEN, Kind, parse_reference, pieces

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.store.transaction import WriteTx

_SUCCESS = frozenset({NodeOutcome.SUCCEEDED})
# What runs can do so far; a workflow with anything else is refused before anything is written.
RUNNABLE = frozenset(
    {COMMAND_RUN, SHELL + "cicd.run", TERMINAL, APPROVAL}
    | {"control.gate.stop_condition", "control.gate.cicd"}
)


class RunRequest(NamedTuple):
    """How a run is asked for, besides its workflow."""

    words: tuple[str, ...] = ()
    params: Mapping[str, Any] = NOTHING
    after: tuple[JobId, ...] = ()
    key: str | None = None
    priority: int = 0
    require_approval: bool = False


class StartedRun(NamedTuple):
    run: int
    created: bool
    jobs: tuple[JobId, ...] = ()


def compile_run(context: Context, file: WorkflowFile, request: RunRequest) -> Manifest:
    """The manifest; raises with all that is wrong. Nothing is written."""
    draft = Draft(file.text, name=file.name, file=file.path)
    given = inputs_of(draft.workflow, request.words, request.params)
    manifest = compile_text(
        file.text,
        given,
        name=file.name,
        file=file.path,
        limit=graph_limit(context),
        load=partial(_imported, context),
    )
    _refuse_unbuilt(manifest)
    return manifest


def _imported(context: Context, name: str) -> WorkflowFile | None:
    """What a workflow imports; it must be trusted, whoever names it."""
    try:
        file = read_file(context.home, name, context.folder)
    except NotFoundError:
        return None
    refuse_untrusted(context.home, file)
    return file


def _refuse_unbuilt(manifest: Manifest) -> None:
    """Say what cannot be run yet, before anything is written."""
    wrong = []
    for node in manifest.workflow.nodes.values():
        if node.label.name not in RUNNABLE:
            wrong.append(f"node '{node.id}': {node.label.name} cannot be run yet")
        wrong += [
            f"node '{node.id}': {key} cannot be run yet"
            for key, said in (("loop", node.loop), ("each", node.each))
            if said is not None
        ]
    if wrong:
        mistakes = [Mistake(words) for words in wrong[:20]]
        raise WorkflowError(manifest.workflow.file, mistakes, len(wrong))


def start(context: Context, manifest: Manifest, request: RunRequest) -> StartedRun:
    """Make the run and all of its jobs; durable when this returns. A key that was seen before names
    the run that has it."""
    specs = list(_specifications(context, manifest, request))
    digest = keep_environment(
        context.home, context.environ, umask=context.umask, working_directory=context.folder
    )
    origin = origin_of(context, digest)

    def add(tx: WriteTx) -> StartedRun:
        known = tx.workflows.by_key(request.key) if request.key is not None else None
        if known is not None:
            return StartedRun(known.id, created=False)
        run = tx.workflows.take_id()
        made = add_jobs(tx, [_of_run(spec, run, manifest) for spec in specs], origin)
        nodes = [
            NewNode(node.id, node.node, each.job_id)
            for node, each in zip(manifest.nodes, made, strict=True)
        ]
        record = RunRecord(
            run,
            manifest.workflow.name,
            manifest.workflow.version,
            manifest.policy_hash,
            manifest.params,
            tx.now(),
            context.actor,
        )
        tx.workflows.add(record, key=request.key, manifest=document(manifest), nodes=nodes)
        if manifest.workflow.timeout is not None:
            set_deadline(tx, run, manifest.workflow.timeout)
        data = {"run": shown_run(run), "workflow": record.name, "nodes": len(nodes)}
        tx.events.add([Event("workflow_started", None, data)], actor=context.actor)
        return StartedRun(run, created=True, jobs=tuple(each.job_id for each in made))

    started = context.store.transact(add)
    reach("workflow.started")
    context.wake()
    return started


def document(manifest: Manifest) -> dict[str, Any]:
    """What is kept of a run's workflow: all of each node, as compiled."""
    nodes = [{**node._asdict(), "each": None} for node in manifest.nodes]
    tolerated = {name: sorted(node.tolerates) for name, node in manifest.workflow.nodes.items()}
    leads_to = successors(manifest.routes.rules)
    return {
        "workflow": canonical(manifest.workflow),
        "leads_to": {name: sorted(below) for name, below in leads_to.items() if below},
        "nodes": nodes,
        "tolerates": {name: words for name, words in tolerated.items() if words},
        "finally": list(manifest.workflow.at_the_end),
    }


def _of_run(spec: JobSpec, run: int, manifest: Manifest) -> JobSpec:
    """The specification with what is known only when its run has a number."""
    node, name = spec.params[OF_NODE], shown_run(run)
    products = {
        word: [_scoped(text, run, manifest) for text in texts]
        for word, texts in node["products"].items()
    }
    params = {**spec.params, OF_NODE: {**node, "products": products}}
    return spec._replace(
        labels={key: text.replace(RUN_ID, name) for key, text in spec.labels.items()},
        locks=tuple(lock._replace(key=lock.key.replace(RUN_ID, name)) for lock in spec.locks),
        needs=tuple(_scoped(text, run, manifest) for text in spec.needs),
        produces=tuple(_scoped(text, run, manifest) for text in spec.produces),
        params=params,
        workflow_run=run,
    )


def _scoped(text: str, run: int, manifest: Manifest) -> str:
    """A custom artifact belongs to its run, unless its contract says that it is for all."""
    text = text.replace(RUN_ID, shown_run(run))
    kind, _, rest = text.partition(":")
    if kind != "custom":
        return text
    name = rest.partition(":")[0]
    contract = manifest.workflow.artifacts.get(name)
    everybodys = name not in OF_HEADWAY and contract is not None and contract.scope == "global"
    return text if everybodys else f"{text} {shown_run(run)}"


# -- one job -----------------------------------------------------------------------------------


def _specifications(context: Context, manifest: Manifest, request: RunRequest) -> Iterator[JobSpec]:
    at: dict[str, list[int]] = {}
    for number, node in enumerate(manifest.nodes):
        at.setdefault(node.node, []).append(number)
    found: dict[str, bool] = {}
    repository = repository_of(context.folder)
    wrong: list[Mistake] = []
    for node in manifest.nodes:
        rule = manifest.routes.rules[node.node]
        after = [
            place(number)
            for edge in rule.edges
            if edge.accepts == _SUCCESS
            for number in at[edge.source]
        ]
        is_root = not rule.edges
        try:
            spec = _specified(context, manifest, node, found, repository)
        except InvalidInputError as error:
            wrong.append(Mistake(f"node '{node.id}': {error}"))
            continue
        yield spec._replace(
            after=(*after, *(request.after if is_root else ())),
            priority=spec.priority or request.priority,
            require_approval=spec.require_approval or (is_root and request.require_approval),
        )
    if wrong:
        raise WorkflowError(manifest.workflow.file, wrong[:20], len(wrong))


def _specified(
    context: Context,
    manifest: Manifest,
    node: CompiledNode,
    found: dict[str, bool],
    repository: str | None,
) -> JobSpec:
    """By the code that checks every other job."""
    written = manifest.workflow.nodes[node.node]
    entry: dict[str, Any] = {"name": node.id, **node.job}
    has_command = bool(node.argv) or node.shell is not None
    if has_command:
        entry |= {"argv": list(node.argv)} if node.argv else {"shell": node.shell}
    else:
        entry["argv"] = ["true"]  # checked like all others, and then taken out
    entry["needs"] = list(node.needs)
    entry["produces"] = list(node.produces.get("succeeded", ()))
    if node.approval or written.label.name == APPROVAL:
        entry["require_approval"] = True
    if "locks" not in node.job and repository is not None:
        locks = default_locks(
            written.label,
            node.args,
            root=node.root,
            fans=node.each is not None,
            run=RUN_ID,
            repository=repository,
        )
        entry["locks"] = [f"{each.key}:{each.mode}" for each in locks]
    if node.argv and OPEN in node.argv[0]:
        entry["no_check"] = True
    problems: list[str] = []
    request = request_of(entry, context.now(), problems)
    if request is None:
        raise InvalidInputError("; ".join(problems))
    spec = specify(
        request,
        environ=context.environ,
        working_directory=context.folder,
        found=found,
        remedy="it is looked for when the run starts",
        place=(context.home, context.config),
    )
    params = dict(spec.params)
    if not has_command:
        del params["argv"]
    kind = GATE if written.label.is_control else "command"
    params[OF_NODE] = _of_node(manifest, node, written.label)
    return spec._replace(params=params, type=kind, node=node.id, node_pass=1)


def _of_node(manifest: Manifest, node: CompiledNode, label: Label) -> dict[str, Any]:
    """What the gates and the launch of a node's job read."""
    workflow, rule = manifest.workflow, manifest.routes.rules[node.node]
    others = {word: list(texts) for word, texts in node.produces.items() if word != "succeeded"}
    return {
        "workflow": workflow.name,
        "version": workflow.version,
        "policy_hash": manifest.policy_hash,
        "label": label.name,
        "class": label.executor.value if label.executor is not None else None,
        "policy": label.operation,
        "edges": [_edge(edge, manifest) for edge in rule.edges],
        "join": rule.join.value,
        "when": [_condition(text, node, manifest.params) for text in node.when],
        "outputs": list(node.outputs),
        "products": others,
        "values": dict(node.values),
        "several": [name for name, each in workflow.nodes.items() if each.matrix],
        "at_the_end": list(workflow.at_the_end),
    }


def _edge(edge: RouteEdge, manifest: Manifest) -> dict[str, Any]:
    return {
        "source": edge.source,
        "accepts": sorted(edge.accepts),
        "required": edge.required,
        "tolerates": sorted(manifest.routes.rules[edge.source].tolerates),
    }


def _condition(text: str, node: CompiledNode, params: Mapping[str, Any]) -> dict[str, Any]:
    found = parse_condition(text)
    if found is None:
        raise InvalidInputError(f"when '{text}' is not LEFT OP RIGHT")
    return {
        "text": _shown(found),
        "operator": found.operator,
        "left": _side(found.left, node, params),
        "right": _side(found.right, node, params),
    }


def _side(side: Any, node: CompiledNode, params: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(side, str) or not side.startswith(OPEN):
        return {"value": side}
    reference = parse_reference(side[len(OPEN) : -2])
    match reference.kind:
        case Kind.PARAMS:
            return {"value": params[reference.name]}
        case Kind.MATRIX:
            return {"value": node.matrix[reference.name]}
        case Kind.ARGS:
            return {"value": node.args[reference.name]}
        case Kind.RUN:
            return {"run": reference.name}
        case _:
            return {
                "node": reference.name,
                "field": reference.field,
                "output": reference.output,
            }


def _shown(condition: Condition) -> str:
    """As people read it: a reference by its last word."""
    from headway.core.conditions import as_text

    sides = []
    for side in (condition.left, condition.right):
        text = as_text(side)
        if text.startswith(OPEN):
            (reference,) = pieces(text)
            text = str(getattr(reference, "text", text)).rpartition(".")[2]
        sides.append(text)
    return f"{sides[0]} {condition.operator} {sides[1]}"
