"""What the job of a node is: a compiled node becomes a specification, by the code that checks every
other job. Its edges, its conditions and whatever else its gates read stand in its parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.units import parse_duration
from headway.core.agents import asked_in
from headway.core.approvals import ASKS
from headway.core.gates.routes import OF_NODE
from headway.core.graph import place
from headway.core.model import (
    AGENT,
    FUNCTION,
    GATE,
    OPERATION,
    JobSpec,
)
from headway.core.retry_causes import HOST, OF_OPERATIONS
from headway.core.routes import NodeOutcome, RouteEdge, left_by
from headway.integrations.agents.files import load_runner
from headway.integrations.git.questions import commit_of, repository_of
from headway.jobs.agents import unkept_limits
from headway.jobs.budgets import refuse_unshown
from headway.jobs.graph_file import misfits, request_of
from headway.jobs.specification import function_spec, specify
from headway.workflows.checks import ANY_PROGRAM
from headway.workflows.compiler import (
    PROMPT,
    RUN_ID,
)
from headway.workflows.conditions import Condition, parse_condition
from headway.workflows.fans import fan_of
from headway.workflows.labels import (
    AGENT_INVOKE,
    APPROVAL,
    BUILTIN,
    FUNCTION_CALL,
    PROMPT_TEXT,
    RESOLUTION,
    WORKTREE_PREPARE,
    Label,
)
from headway.workflows.locks import default_locks
from headway.workflows.mistakes import MOST_SHOWN, Mistake, WorkflowError, short
from headway.workflows.model import CompiledNode, Manifest, Workflow
from headway.workflows.operations import OPERATIONS
from headway.workflows.products import announced
from headway.workflows.prompts import kept_prompt, parts_of
from headway.workflows.references import (
    OPEN,
    UNKNOWN,
    Kind,
    Reference,
    fill,
    parse_reference,
    pieces,
    references_in,
)

if TYPE_CHECKING:
    from headway.base.home import Home
    from headway.jobs.request import Request
    from headway.jobs.settings import Config

_SUCCESS = frozenset({NodeOutcome.SUCCEEDED})
# What repeats itself after a crash, or when the host could not: it finds what it did before.
_REPEATED = frozenset({"control.gate.stop_condition", "control.gate.cicd"})
REPEATS = 3
_OF_AGENT = ("runner", "budget_usd", "max_tokens")  # what a gate may ask of an agent


class RunPlace(NamedTuple):
    """Where a run is made, and with what: the submitter's place, or that of a schedule. Programs
    are looked for where `check` says so; else when a job starts."""

    home: Home
    config: Config
    folder: str
    environ: Mapping[str, str]
    now: int
    limit: int
    check: bool = True
    remedy: str = "it is looked for when the run starts"  # of a program that is not there


def specifications(where: RunPlace, manifest: Manifest) -> Iterator[JobSpec]:
    """The jobs of a run, checked, without what is known only when it has a number. Raises at the
    end with all that is wrong."""
    at: dict[str, list[int]] = {}
    for number, node in enumerate(manifest.nodes):
        at.setdefault(node.node, []).append(number)
    found: dict[str, bool] = {}
    repository = repository_of(where.folder)
    wrong: list[tuple[CompiledNode, str]] = []
    for node in manifest.nodes:
        rule = manifest.routes.rules[node.node]
        after = [
            place(number)
            for edge in rule.edges
            if edge.accepts == _SUCCESS
            for number in at[edge.source]
        ]
        try:
            spec = _specified(where, manifest, node, found, repository)
        except (InvalidInputError, NotFoundError) as error:
            wrong.append((node, str(error)))
            continue
        yield spec._replace(after=tuple(after))
    if wrong:
        reported = [*_reported_once(wrong, {name: len(each) for name, each in at.items()})]
        raise WorkflowError(manifest.workflow.file, reported[:MOST_SHOWN], len(reported))


def _reported_once(
    wrong: Sequence[tuple[CompiledNode, str]], instances: Mapping[str, int]
) -> Iterator[Mistake]:
    """What is wrong with all instances of a node alike is wrong with the node."""
    alike = Counter((node.node, words) for node, words in wrong)
    named = (
        (node.node if alike[node.node, words] == instances[node.node] else node.id, words)
        for node, words in wrong
    )
    for name, words in dict.fromkeys(named):
        yield Mistake(f"node '{name}': {words}")


def _specified(
    where: RunPlace,
    manifest: Manifest,
    node: CompiledNode,
    found: dict[str, bool],
    repository: str | None,
) -> JobSpec:
    """By the code that checks every other job."""
    label = manifest.workflow.nodes[node.node].label
    causes = _causes(label, node)
    problems: list[str] = []
    entry = _entry(where, label, node, causes, repository)
    request = request_of(entry, where.now, problems)
    if request is None:
        raise InvalidInputError("; ".join(problems))
    if label.name == FUNCTION_CALL:
        spec = _call(where, request, node)
    else:
        spec = specify(
            request,
            environ=where.environ,
            working_directory=where.folder,
            found=found,
            remedy=where.remedy,
            place=(where.home, where.config),
        )
    params = dict(spec.params)
    params[OF_NODE] = _of_node(where, manifest, node, label, repository)
    asked = asked_in(params)
    if asked is not None:
        refuse_unshown(load_runner(asked["runner"], where.home.path), manifest.workflow.budget)
    if not _has_command(node) and AGENT not in params:
        params.pop("argv", None)
    if causes:
        spec = spec._replace(retry=spec.retry._replace(on=tuple(causes)))
    elif _repeats(label, node):
        retry = spec.retry._replace(max_attempts=REPEATS, on=OF_OPERATIONS)
        spec = spec._replace(retry=retry)
    spec = spec._replace(params=params, type=_type_of(label), node=node.id, node_pass=1)
    if node.each is None:
        return spec
    return fan_of(spec, _side(node.each.elements, node, manifest.params), node.each.most)


def _has_command(node: CompiledNode) -> bool:
    return bool(node.argv) or node.shell is not None


def _entry(
    where: RunPlace,
    label: Label,
    node: CompiledNode,
    causes: Sequence[str],
    repository: str | None,
) -> dict[str, Any]:
    """The node in the words of a graph file."""
    entry: dict[str, Any] = {"name": node.id, **node.job}
    if label.name == AGENT_INVOKE:
        entry |= _agent(node)
    elif _has_command(node):
        entry |= {"argv": list(node.argv)} if node.argv else {"shell": node.shell}
    else:
        entry["argv"] = ["true"]  # checked like all others, and then taken out
    entry["needs"] = list(node.needs)
    entry["produces"] = list(announced(node.produces))
    if node.approval or label.name == APPROVAL:
        entry["require_approval"] = True
    if "locks" not in node.job and repository is not None:
        locks = default_locks(label, node.args, root=node.root, run=RUN_ID, repository=repository)
        entry["locks"] = [f"{each.key}:{each.mode}" for each in locks]
    if not where.check or (node.argv and OPEN in node.argv[0]):
        entry["no_check"] = True
    if causes:  # what no other job can say
        entry["retry_on"] = [each for each in causes if each != HOST]
    return entry


def _causes(label: Label, node: CompiledNode) -> list[str]:
    """The causes for a retry that the file names, if trouble of the host is among them. Only what
    Headway itself does knows that one."""
    said = node.job.get("retry_on") or ()
    return [*said] if HOST in said and _type_of(label) != "command" else []


def _repeats(label: Label, node: CompiledNode) -> bool:
    """Whether it is tried again by itself although its file says nothing of that. An agent is not;
    a gate that calls one knows whether it did."""
    if {"retries", "retry_on"} & {*node.job}:
        return False
    if label.name.startswith(BUILTIN):
        return label.name != FUNCTION_CALL
    return (label.is_control and label.operation in OPERATIONS) or label.name in _REPEATED


def _with_base(args: Mapping[str, Any], repository: str | None, folder: str) -> dict[str, Any]:
    """The commit that a worktree is to begin at, as it is now; one that another node sets is known
    later."""
    base = args.get("base") or "HEAD"
    if repository is None:
        raise InvalidInputError(
            f"worktree.prepare works in a git repository, and {folder} is in none"
        )
    if OPEN in str(base):
        return dict(args)
    try:
        return {**args, "base": commit_of(repository, str(base))}
    except NotFoundError as error:
        raise InvalidInputError(f"base: {error}") from None


def _call(where: RunPlace, request: Request, node: CompiledNode) -> JobSpec:
    """Its arguments as they are written; the claim fills them."""
    task, arguments = node.args["task"], node.args.get("arguments", {})
    if not isinstance(task, str) or not task:
        raise InvalidInputError(f"task is {short(task)}; give a text")
    written = arguments if isinstance(arguments, Mapping) else {}
    return function_spec(request, task, written, folder=where.folder)


def _agent(node: CompiledNode) -> dict[str, Any]:
    """What an agent is asked, in the words of a graph file. Its prompt is put in at the claim."""
    args = _known_args(node.args, node)
    if args.get("runner") == "command":
        raise InvalidInputError(ANY_PROGRAM)
    (prompt,) = (text for text in node.needs if text.startswith(PROMPT_TEXT))
    return {**args, "prompt": prompt}


def _with_agent(node: CompiledNode, where: RunPlace) -> dict[str, Any]:
    """The arguments of a gate that may let an agent resolve a conflict, with all that is asked of
    that agent."""
    args, own = dict(node.args), {"auto_resolve": node.args.get("auto_resolve")}
    own = fill(own, lambda each: node.values.get(each.text, UNKNOWN))
    for each in references_in(own):
        raise InvalidInputError(f"auto_resolve: {each.text} is not known when it is queued")
    if own["auto_resolve"] is not True:
        return args
    asked = _known_args({key: args[key] for key in _OF_AGENT if key in args}, node)
    runner = load_runner(asked.get("runner") or where.config["agent.runner"], where.home.path)
    usual = {key: runner.defaults[key] for key in _OF_AGENT if key in runner.defaults}
    asked = {**usual, **asked, "runner": runner.name}
    for words in unkept_limits(runner, asked):
        raise InvalidInputError(words)
    return {**args, **own, **asked}


def _known_args(args: Mapping[str, Any], node: CompiledNode) -> dict[str, Any]:
    """What is asked of an agent, which must be known when its job is queued."""
    known = _known(args, node)
    for words in misfits(known):
        raise InvalidInputError(words)
    return known


def _known(args: Mapping[str, Any], node: CompiledNode) -> dict[str, Any]:
    """Arguments with all that they refer to, which must be known when the job is queued."""
    for each in references_in(args):
        if each.text not in node.values:
            raise InvalidInputError(f"args: {each.text} is not known when it is queued")
    return {key: fill(said, lambda each: node.values[each.text]) for key, said in args.items()}


def _type_of(label: Label) -> str:
    """The type of a node's job."""
    if label.name == FUNCTION_CALL:
        return FUNCTION
    if label.is_control:
        return GATE
    if label.name == AGENT_INVOKE:
        return AGENT
    return OPERATION if label.operation in OPERATIONS else "command"


def _of_node(
    where: RunPlace,
    manifest: Manifest,
    node: CompiledNode,
    label: Label,
    repository: str | None,
) -> dict[str, Any]:
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
        "edges": [_edge(edge, node.node, manifest) for edge in rule.edges],
        "join": rule.join.value,
        "within": list(loops_around(node.node, manifest)),
        "loop": _loop(node.node, manifest),
        "args": _args(where, node, label, repository),
        **({ASKS: _asks(node, workflow)} if label.name == APPROVAL else {}),
        **({"prompt": kept_prompt(node, manifest.params)} if PROMPT in node.args else {}),
        "root": node.root,
        "when": [_condition(text, node, manifest.params) for text in node.when],
        "outputs": list(node.outputs),
        "products": others,
        "values": dict(node.values),
        "several": sorted(_several(workflow, node)),
        "at_the_end": list(workflow.at_the_end),
        "repository": repository,
        "cwd": node.job.get("cwd"),
    }


def _args(
    where: RunPlace, node: CompiledNode, label: Label, repository: str | None
) -> dict[str, Any]:
    """The node's arguments, with what only the place of the run can add."""
    if label.name == RESOLUTION:
        return _with_agent(node, where)
    if label.name == WORKTREE_PREPARE:
        return _with_base(node.args, repository, where.folder)
    return dict(node.args)


def _several(workflow: Workflow, node: CompiledNode) -> set[str]:
    """Of the nodes that it refers to, those with several instances: their values are lists."""
    args = {key: said for key, said in node.args.items() if key != PROMPT}
    said = [node.argv, args, node.when, node.job, node.each and node.each.elements]
    references = [*references_in(said), *parts_of(str(node.args.get(PROMPT, "")))]
    named = {
        each.name
        for each in references
        if isinstance(each, Reference) and each.kind in (Kind.NODES, Kind.LAST)
    }
    found = {name: workflow.nodes[name] for name in named if name in workflow.nodes}
    return {name for name, each in found.items() if each.matrix or each.each}


def _asks(node: CompiledNode, workflow: Workflow) -> dict[str, Any]:
    """Whom an approval gate asks, what, and for how long; the forms of these were checked. The
    question may name its run, whose id is put in when there is one."""
    of_run = {"run.id": RUN_ID, "run.name": workflow.name}
    args = _known(node.args, node._replace(values={**of_run, **node.values}))
    required, expires, given = args.get("required", 1), args.get("expires"), args.get("approvers")
    names = list(dict.fromkeys([given] if isinstance(given, str) else given or ()))
    if names and len(names) < required:
        raise InvalidInputError(f"required is {required}, and there are {len(names)} approvers")
    return {
        "required": required,
        "question": args.get("question"),
        "expires": None if expires is None else parse_duration(expires, "expires"),
        "approvers": names,
    }


def _loop(node: str, manifest: Manifest) -> dict[str, Any] | None:
    """The way back of a node, as documents show it."""
    rule = next((each for each in manifest.routes.loops if each.source == node), None)
    if rule is None:
        return None
    return {"to": rule.head, "on": sorted(rule.on), "times": rule.times, "delay": rule.delay}


def _edge(edge: RouteEdge, target: str, manifest: Manifest) -> dict[str, Any]:
    routes = manifest.routes
    return {
        "source": edge.source,
        "accepts": sorted(edge.accepts),
        "required": edge.required,
        "tolerates": sorted(routes.rules[edge.source].tolerates),
        "leaves": left_by(edge.source, target, routes.bodies, routes.loops),
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
        case Kind.ITEM:
            return {"item": True}
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


def loops_around(node: str, manifest: Manifest) -> tuple[str, ...]:
    """The heads of the loops whose bodies the node is in."""
    return tuple(head for head, body in manifest.routes.bodies.items() if node in body)
