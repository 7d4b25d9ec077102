"""Nodes with `each`: one job, the *fan*, finds the list; then a job for each element of it is made.

The fan is the node's job when a run starts. It carries what its instances will be, with a sign
where the element goes. Its success alone decides nothing: its outcome is written by the step that
makes the instances. When a fan runs again, the instances of before are dismissed (`jobs.repeat`).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.crashpoints import reach
from headway.base.errors import InvalidInputError
from headway.base.host import Host
from headway.core.artifacts import parse_artifact
from headway.core.conditions import as_text
from headway.core.gates.routes import OF_NODE
from headway.core.model import AGENT, OPERATION, Job, JobSpec, Lock, LockMode, Rate, shown_run
from headway.core.routes import NodeOutcome
from headway.core.subjects import SLING
from headway.jobs.insert import Origin, add_jobs
from headway.jobs.membership import join_group
from headway.jobs.routes import NodeValues
from headway.jobs.specification import check_name
from headway.store.new_jobs import Event
from headway.store.records import NewNode, RunRecord
from headway.store.transaction import ReadTx, WriteTx
from headway.workflows.compiler import ITEM
from headway.workflows.matrices import NUMBER

OPERATION_NAME = "fan"
# Of an instance, not of its fan.
_WORK = ("argv", "shell", "env", "cwd", AGENT)
_OF_INSTANCE = ("policy", "args", "outputs", "products")
_PROMPT = "prompt"  # the text of it, which has references


def fan_of(spec: JobSpec, elements: Mapping[str, Any], most: int) -> JobSpec:
    """The fan in the place of an instance that is specified so. A person approves once, for all."""
    node = spec.params[OF_NODE]
    instance = {
        "type": spec.type,
        "params": {key: spec.params[key] for key in _WORK if key in spec.params},
        **{key: node[key] for key in (*_OF_INSTANCE, _PROMPT) if key in node},
        "when": [each for each in node["when"] if _is_about_item(each)],
        "labels": dict(spec.labels),
        "locks": [[each.key, each.mode.value] for each in spec.locks],
        "needs": list(spec.needs),
        "produces": list(spec.produces),
        "resources": list(spec.resources),
        "rates": [list(each) for each in spec.rates],
    }
    own = {
        **{key: said for key, said in node.items() if key != _PROMPT},
        "policy": OPERATION_NAME,
        "args": {},
        "outputs": [],
        "products": {},
        "when": [each for each in node["when"] if not _is_about_item(each)],
        "each": {"elements": dict(elements), "max": most, "instance": instance},
    }
    params = {key: value for key, value in spec.params.items() if key not in _WORK}
    return spec._replace(
        params={**params, OF_NODE: own},
        type=OPERATION,
        labels={key: text for key, text in spec.labels.items() if ITEM not in text},
        locks=(),
        needs=tuple(each for each in spec.needs if ITEM not in each and NUMBER not in each),
        produces=(),
        resources=(),
        rates=(),
    )


def _is_about_item(condition: Mapping[str, Any]) -> bool:
    return any("item" in condition[side] for side in ("left", "right"))


def count_of(tx: ReadTx, job: Job) -> int | None:
    """How many elements the list of a fan has; None: it is no list."""
    found = _elements(tx, job)
    return len(found) if isinstance(found, list) else None


def _elements(tx: ReadTx, job: Job) -> Any:
    side = job.params[OF_NODE]["each"]["elements"]
    return NodeValues(tx, job, [side["node"]] if "node" in side else []).of_side(side)


def expand_fans(tx: WriteTx, record: RunRecord, *, host: Host, worktrees: str, actor: str) -> None:
    """Make the instances of all fans of a run that have succeeded here; of a stopped run none."""
    for job in tx.workflows.fans_to_expand(record.id):
        if job.queue not in ("", host.id):
            continue
        origin = Origin(
            job.submitted_by or actor,
            worktrees,
            host if job.queue else None,
            env_digest=job.env_digest,
        )
        outcome = NodeOutcome.SUCCEEDED
        if record.stopped_at is None:
            try:
                _expand(tx, job, origin, actor=actor)
            except InvalidInputError as error:
                outcome = NodeOutcome.FAILED
                data = {"run": shown_run(record.id), "node": job.node, "reason": str(error)}
                tx.events.add([Event("fan_failed", job.id, data)], actor=actor)
        tx.workflows.set_outcomes({job.chain: outcome})


def _expand(tx: WriteTx, job: Job, origin: Origin, *, actor: str) -> None:
    elements: Sequence[Any] = _elements(tx, job)
    specs = [_instance(job, at, each) for at, each in enumerate(elements)]
    if not specs:
        return
    made = add_jobs(tx, specs, origin)
    run, fan = job.workflow_run or 0, job.node or ""
    within = tuple(job.params[OF_NODE]["within"])
    nodes = [
        NewNode(spec.node or "", fan, each.job_id, within=within, passes=job.node_pass)
        for spec, each in zip(specs, made, strict=True)
    ]
    tx.workflows.add_instances(run, nodes)
    if job.group_id is not None and SLING in job.params:
        join_group(tx, tx.jobs.by_id([each.job_id for each in made]).values(), job.group_id)
    data = {"run": shown_run(run), "node": fan, "instances": len(nodes)}
    tx.events.add([Event("fanned_out", job.id, data)], actor=actor)
    reach("fan.expanded")


def _instance(fan: Job, at: int, element: Any) -> JobSpec:
    """The specification of one instance: that of its fan, with its command, and the element in the
    place of the sign."""
    node = fan.params[OF_NODE]
    instance = dict(node["each"]["instance"])
    prompt = instance.pop(_PROMPT, None)
    said = _put(_put(instance, NUMBER, str(at)), ITEM, as_text(element))
    run = f" {shown_run(fan.workflow_run or 0)}"
    for text in (*said["needs"], *said["produces"]):
        parse_artifact(text.removesuffix(run))
    for text in (*said["labels"].values(), *(key for key, _ in said["locks"])):
        check_name("item", text)
    own = {
        **{key: value for key, value in node.items() if key != "each"},
        **{key: said[key] for key in _OF_INSTANCE},
        "when": [_with_item(each, element) for each in node["each"]["instance"]["when"]],
        "values": {**node["values"], "item": element},
        "item": element,
    }
    if prompt is not None:
        own[_PROMPT] = {**prompt, "values": {**prompt["values"], "item": element}}
    same = {name: getattr(fan, name) for name in JobSpec._fields if name in fan._fields}
    return JobSpec(**same)._replace(
        params={**fan.params, **said["params"], OF_NODE: own},
        name=f"{fan.name}[{at}]",
        type=said["type"],
        after=(),
        key=None,
        labels=said["labels"],
        locks=tuple(Lock(key, LockMode(mode)) for key, mode in said["locks"]),
        needs=tuple(said["needs"]),
        produces=tuple(said["produces"]),
        resources=tuple(said["resources"]),
        rates=tuple(Rate(*each) for each in said["rates"]),
        node=f"{fan.node}[{at}]",
    )


def _put(said: Any, sign: str, text: str) -> Any:
    """The same with this in the place of a sign, in every text."""
    quoted = json.dumps(sign)[1:-1]
    return json.loads(json.dumps(said).replace(quoted, json.dumps(text)[1:-1]))


def _with_item(condition: Mapping[str, Any], element: Any) -> dict[str, Any]:
    sides = {
        side: {"value": element} if "item" in condition[side] else condition[side]
        for side in ("left", "right")
    }
    return {**condition, **sides}
