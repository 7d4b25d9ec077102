"""Start a run of a workflow: one transaction makes the run, its nodes, their jobs and edges.

A node becomes one chain, and at first exactly one job. Edges that accept success alone are ordinary
`after` edges; all edges stand in the job's parameters, frozen, where its gate reads them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.collector import paused_collector
from headway.base.crashpoints import reach
from headway.base.environment import keep_environment
from headway.base.errors import InvalidInputError, KeyReusedError, NotFoundError
from headway.core.approvals import ASKS, FOR_RUN, ApprovalRule
from headway.core.gates.routes import OF_NODE
from headway.core.model import (
    NOTHING,
    JobId,
    JobSpec,
    shown_run,
)
from headway.core.routes import successors
from headway.jobs.budgets import budget_of
from headway.jobs.insert import Origin, add_jobs
from headway.jobs.lookup import find_id
from headway.jobs.references import RUN_ID as A_RUN
from headway.jobs.references import runs_among
from headway.jobs.request import Request
from headway.jobs.request_values import read_flag, read_request, read_text, read_whole, several
from headway.jobs.routes import set_deadline
from headway.jobs.specification import check_name, check_values
from headway.jobs.submit import graph_limit, origin_of
from headway.store.new_jobs import Event
from headway.store.records import LoopRecord, NewNode, RunRecord
from headway.workflows.compiler import (
    RUN_ID,
    as_json,
    canonical,
    compile_draft,
    inputs_of,
    sinks_of,
)
from headway.workflows.documents import compiled_document
from headway.workflows.drawing.model import as_document, drawing_of
from headway.workflows.files import read_file, refuse_untrusted
from headway.workflows.mistakes import Mistake, WorkflowError
from headway.workflows.model import Manifest, WorkflowFile
from headway.workflows.nodes import RunPlace, loops_around, specifications
from headway.workflows.prompts import with_text
from headway.workflows.reader import OF_HEADWAY, Draft

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.store.transaction import WriteTx


def place_of(context: Context) -> RunPlace:
    return RunPlace(
        context.home,
        context.config,
        context.folder,
        context.environ,
        context.now(),
        graph_limit(context),
    )


class RunRequest(NamedTuple):
    """How a run is asked for, besides its workflow."""

    words: tuple[str, ...] = ()
    params: Mapping[str, Any] = NOTHING
    after: tuple[JobId, ...] = ()
    after_runs: tuple[int, ...] = ()
    key: str | None = None
    priority: int = 0
    require_approval: bool = False
    schedule_id: str | None = None  # what made it
    behind: tuple[int, ...] = ()  # runs that have to end before it begins, however they end
    subject: str | None = None  # the outside work item that it is about
    target: str | None = None  # of the jobs that name none: what it was slung to


def resolve_after(
    context: Context, references: Sequence[JobId | str]
) -> tuple[tuple[JobId, ...], tuple[int, ...]]:
    """The jobs, and the whole runs, that a run is to follow."""
    asked = Request(after=tuple(several("after", references)))
    given = read_request(asked, context.clock.now).after
    jobs = (
        find_id(context, each) if isinstance(each, str) else each
        for each in given
        if not (isinstance(each, str) and A_RUN.fullmatch(each.strip()))
    )
    return tuple(dict.fromkeys(jobs)), runs_among(given)


class StartedRun(NamedTuple):
    run: int
    created: bool
    jobs: tuple[JobId, ...] = ()


def compile_run(context: Context, file: WorkflowFile, request: RunRequest) -> Manifest:
    """The manifest; raises with all that is wrong. Nothing is written."""
    return compile_at(place_of(context), file, request)


def check_run(context: Context, manifest: Manifest) -> None:
    """Raises with all that a start would refuse of its jobs, such as a program that is not there.
    Nothing is written."""
    for _ in specifications(place_of(context), manifest):
        pass


@paused_collector()
def compile_at(place: RunPlace, file: WorkflowFile, request: RunRequest) -> Manifest:
    _check_options(request)
    draft = Draft(file.text, name=file.name, file=file.path)
    given = inputs_of(draft.workflow, request.words, request.params)
    load = partial(imported, place)
    return _with_prompts(place, compile_draft(draft, given, limit=place.limit, load=load))


def _check_options(request: RunRequest) -> None:
    """A run's options become those of its jobs, so they are what a job's may be."""
    read_whole("priority", request.priority)
    read_flag("require_approval", request.require_approval)
    for name, text in (("key", request.key), ("subject", request.subject)):
        if text is not None:
            check_name(name, read_text(name, text))
    check_values(Request(after=request.after, priority=request.priority))


def _with_prompts(place: RunPlace, manifest: Manifest) -> Manifest:
    """With the texts of prompt files, which count from the folder that holds the home."""
    nodes, wrong = [], []
    for node in manifest.nodes:
        try:
            nodes.append(with_text(node, os.path.dirname(place.home.path)))
        except InvalidInputError as error:
            wrong.append(Mistake(f"node '{node.id}': {error}"))
    if wrong:
        raise WorkflowError(manifest.workflow.file, wrong[:20], len(wrong))
    return manifest._replace(nodes=tuple(nodes))


def imported(place: RunPlace, name: str) -> WorkflowFile | None:
    """What a workflow imports; it must be trusted, whoever names it."""
    try:
        file = read_file(place.home, name, place.folder)
    except NotFoundError:
        return None
    refuse_untrusted(place.home, file)
    return file


def start(context: Context, manifest: Manifest, request: RunRequest) -> StartedRun:
    """Make the run and all of its jobs; durable when this returns. A key that was seen before names
    the run that has it."""
    return start_repeated(context, manifest, request, 1)[0]


@paused_collector()
def start_repeated(
    context: Context, manifest: Manifest, request: RunRequest, count: int
) -> list[StartedRun]:
    """So many runs in one transaction, each after the one before."""
    specs = list(specifications(place_of(context), manifest))
    digest = keep_environment(
        context.home, context.environ, umask=context.umask, working_directory=context.folder
    )
    origin = origin_of(context, digest)

    def add(tx: WriteTx) -> list[StartedRun]:
        started: list[StartedRun] = []
        for number in range(count):
            asked = _nth(request, number, started)
            started.append(add_run(tx, manifest, specs, asked, origin))
        return started

    started = context.store.transact(add)
    reach("workflow.started")
    context.wake()
    return started


def _nth(request: RunRequest, number: int, before: Sequence[StartedRun]) -> RunRequest:
    """The first is after what was asked for, each other one after the run before it."""
    if not number:
        return request
    key = None if request.key is None else f"{request.key}/{number + 1}"
    return request._replace(after=(), after_runs=(before[-1].run,), key=key)


def add_run(
    tx: WriteTx,
    manifest: Manifest,
    specs: Sequence[JobSpec],
    request: RunRequest,
    origin: Origin,
) -> StartedRun:
    """Make a run of these specifications within a transaction."""
    known = tx.workflows.by_key(request.key) if request.key is not None else None
    if known is not None:
        _refuse_other(known, manifest, request)
        return StartedRun(known.id, created=False)
    run = tx.workflows.take_id()
    actor = (origin.of_slots and request.schedule_id) or origin.actor
    made = add_jobs(tx, [_of_run(spec, run, manifest, request) for spec in specs], origin)
    nodes = [
        NewNode(
            node.id,
            node.node,
            each.job_id,
            within=loops_around(node.node, manifest),
            fan=node.each is not None,
        )
        for node, each in zip(manifest.nodes, made, strict=True)
    ]
    budget = budget_of(manifest.workflow.budget)
    record = RunRecord(
        run,
        manifest.workflow.name,
        manifest.workflow.version,
        manifest.policy_hash,
        manifest.params,
        tx.now(),
        actor,
        usd_budget=budget.usd,
        token_budget=budget.tokens,
        subject=request.subject,
        target=request.target,
    )
    tx.workflows.add(record, key=request.key, manifest=document(manifest), nodes=nodes)
    tx.workflows.add_loops(run, _loops(manifest))
    if manifest.workflow.timeout is not None:
        set_deadline(tx, run, manifest.workflow.timeout)
    data = {"run": shown_run(run), "workflow": record.name, "nodes": len(nodes)}
    tx.events.add([Event("workflow_started", None, data)], actor=actor)
    return StartedRun(run, created=True, jobs=tuple(each.job_id for each in made))


def _refuse_other(known: RunRecord, manifest: Manifest, request: RunRequest) -> None:
    """A key names one run; it is no other workflow's, of no other values and about nothing else."""
    asked = (manifest.workflow.name, manifest.policy_hash, as_json(manifest.params))
    same = asked == (known.name, known.policy_hash, known.params)
    if not same or request.subject != known.subject:
        raise KeyReusedError(
            f"key {request.key!r} belongs to {shown_run(known.id)}, which has another "
            "specification; use another key"
        )


def document(manifest: Manifest) -> dict[str, Any]:
    """What is kept of a run's workflow: all of each node, as compiled."""
    nodes = [compiled_document(node) for node in manifest.nodes]
    tolerated = {name: sorted(node.tolerates) for name, node in manifest.workflow.nodes.items()}
    leads_to = _followers(manifest)
    return {
        "workflow": canonical(manifest.workflow),
        "leads_to": {name: sorted(below) for name, below in leads_to.items() if below},
        "nodes": nodes,
        "tolerates": {name: words for name, words in tolerated.items() if words},
        "finally": list(manifest.workflow.at_the_end),
        "sinks": sinks_of(manifest.workflow, manifest.routes),
        "drawing": as_document(drawing_of(manifest.workflow, manifest.routes)),
    }


def _followers(manifest: Manifest) -> dict[str, set[str]]:
    """For each node those that a rewind of it reaches at once: nodes that wait for it, and nodes
    that wait for the end of a loop around it. Without the latter, a retry of one node of a loop
    would leave what stands behind the loop as it is."""
    leads_to = successors(manifest.routes.rules)
    behind = {
        head: {below for name in body for below in leads_to[name]} - body
        for head, body in manifest.routes.bodies.items()
    }
    return {
        name: below.union(*(behind[head] for head in loops_around(name, manifest)))
        for name, below in leads_to.items()
    }


def _of_run(spec: JobSpec, run: int, manifest: Manifest, request: RunRequest) -> JobSpec:
    """Complete a specification with what is known only when its run has a number. Nodes that no
    edge leads to wait for what the run is after."""
    node, name = spec.params[OF_NODE], shown_run(run)
    products = {
        word: [_scoped(text, run, manifest) for text in texts]
        for word, texts in node["products"].items()
    }
    own = {**node, "products": products}
    if "each" in node:
        instance = _instance_of_run(node["each"]["instance"], run, manifest)
        own["each"] = {**node["each"], "instance": instance}
    if question := node.get(ASKS, NOTHING).get("question"):
        own[ASKS] = {**node[ASKS], "question": question.replace(RUN_ID, name)}
    if request.require_approval and not node["edges"] and not spec.require_approval:
        question = f"Start {name} of {manifest.workflow.name}?"
        own[ASKS] = {**ApprovalRule(question=question)._asdict(), FOR_RUN: True}
    if request.behind and not node["edges"]:
        own["behind"] = list(request.behind)
    params = {**spec.params, OF_NODE: own}
    return spec._replace(
        labels={key: text.replace(RUN_ID, name) for key, text in spec.labels.items()},
        locks=tuple(lock._replace(key=lock.key.replace(RUN_ID, name)) for lock in spec.locks),
        needs=tuple(_scoped(text, run, manifest) for text in spec.needs),
        produces=tuple(_scoped(text, run, manifest) for text in spec.produces),
        params=params,
        workflow_run=run,
        priority=spec.priority or request.priority,
        schedule_id=request.schedule_id,
        subject=request.subject,
        target=spec.target or request.target,
        **({} if node["edges"] else _at_its_beginning(spec, request)),
    )


def _at_its_beginning(spec: JobSpec, request: RunRequest) -> dict[str, Any]:
    """What only a node has that no edge leads to: it begins the run."""
    return {
        "after": (*spec.after, *request.after),
        "after_runs": request.after_runs,
        "require_approval": spec.require_approval or request.require_approval,
    }


def _instance_of_run(said: Mapping[str, Any], run: int, manifest: Manifest) -> dict[str, Any]:
    """The same for the instances that a fan is to make."""
    name = shown_run(run)

    def scoped(texts: Iterable[str]) -> list[str]:
        return [_scoped(text, run, manifest) for text in texts]

    return {
        **said,
        "labels": {key: text.replace(RUN_ID, name) for key, text in said["labels"].items()},
        "locks": [[key.replace(RUN_ID, name), mode] for key, mode in said["locks"]],
        "needs": scoped(said["needs"]),
        "produces": scoped(said["produces"]),
        "products": {word: scoped(texts) for word, texts in said["products"].items()},
    }


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


def _loops(manifest: Manifest) -> list[LoopRecord]:
    rules = manifest.routes.rules
    return [
        LoopRecord(loop, tolerates=rules[loop.source].tolerates) for loop in manifest.routes.loops
    ]
