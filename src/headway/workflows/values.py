"""What a node is given when it is claimed: the values of its references, what others made, and the
worktree that it works in."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.home import Home
from headway.core.agents import calls_agent
from headway.core.gates.routes import OF_NODE
from headway.core.model import AGENT, FUNCTION, GATE, OPERATION, Job, shown, shown_run
from headway.core.routes import RunState
from headway.core.worktrees import CLEANUP
from headway.jobs.budgets import with_grant
from headway.jobs.routes import NodeValues
from headway.jobs.specification import LARGEST_SPEC
from headway.store.transaction import ReadTx
from headway.workflows.fans import count_of
from headway.workflows.matrices import written_node
from headway.workflows.mistakes import short
from headway.workflows.node_process import LEADS_TO
from headway.workflows.prompts import filled_parts, nodes_in, other_args, prompt_in
from headway.workflows.references import (
    UNKNOWN,
    Kind,
    Reference,
    fill,
    fill_texts,
    references_in,
)
from headway.workflows.roots import NodeValueError, inside_tree, old_trees, owned_tree, tree_of

FILLED = ("argv", "env", "cwd")  # the parameters of a job in which references may stand


class MissingValueError(NodeValueError):
    """What a reference names was never set, because its node did not come to that."""


def filled(tx: ReadTx, job: Job, home: Home, beside: Sequence[Job] = ()) -> Job:
    """The job with every reference replaced, and with what its process is given of its run. Those
    `beside` it start with it. Raises NodeValueError."""
    node = job.params[OF_NODE]
    given = {key: job.params[key] for key in FILLED if key in job.params}
    prompt = node.get("prompt")
    args = node["args"] if prompt is None else other_args(node["args"])
    wanted = list(references_in([given, args]))
    nodes = [each.name for each in wanted if each.kind in (Kind.NODES, Kind.LAST)]
    nodes += nodes_in(prompt) if prompt is not None else ()
    values, known = NodeValues(tx, job, nodes), node["values"]

    def look_up(each: Reference) -> Any:
        match each.kind:
            case Kind.PARAMS | Kind.MATRIX | Kind.ARGS | Kind.ITEM:
                return known[each.text]
            case Kind.RUN:
                return values.of_run(each.name)
            case Kind.LAST:
                value = values.of_last(each.name, each.field, each.output)
                return "" if value is None else value
            case Kind.NODES:
                value = values.of_node(each.name, each.field, each.output)
                if value is None:
                    raise MissingValueError(_not_set(each, values))
                return value
            case _:
                return UNKNOWN

    params = {**job.params, **fill_texts(given, look_up)}
    tree = None if "each" in node else tree_of(tx, job, home)
    if tree is not None and node["policy"] != CLEANUP:  # which does not sit on what it removes
        params["cwd"] = inside_tree(tree["path"], node.get("cwd"), look_up)
    if job.type == FUNCTION:
        params["args"] = _arguments(fill(node["args"], look_up))
    if AGENT in params:
        params[AGENT] = _with_prompt(params[AGENT], _artifacts(tx, job))
        return with_grant(tx, job._replace(params=params), beside)
    if job.type not in (GATE, OPERATION):
        return job._replace(params=params)
    args = _with_manifest(tx, job, fill(args, look_up))
    if prompt is not None:
        there = tx.workflows.instances(job.workflow_run or 0, nodes) if nodes else ()
        args = {**args, "prompt": filled_parts(prompt, args, look_up, there)}
    document = {**node, "args": args, "tree": tree, **_about_run(tx, job, values)}
    job = job._replace(params={**params, OF_NODE: document})
    owned = owned_tree(job, home)
    if owned is not None:
        document["old_trees"] = old_trees(tx, job, owned.branch)
    return with_grant(tx, job, beside) if calls_agent(job) else job


def _about_run(tx: ReadTx, job: Job, values: NodeValues) -> dict[str, Any]:
    """What the process of a gate or an operation has to know of its run."""
    node, run = job.params[OF_NODE], job.workflow_run or 0
    about = {
        "artifacts": _artifacts(tx, job),
        "old_trees": [],
        # Others are in the midst of it, and to find that out costs a look at every node.
        "state": values.of_run("state") if _is_last(job) else RunState.RUNNING,
        "began": tx.workflows.by_id([run])[run].created_at,
    }
    if "each" in node:
        about["args"] = {"count": count_of(tx, job), "max": node["each"]["max"]}
    if node["policy"] == "terminal":
        about["args"] = {LEADS_TO: _followers(tx, job)}
    return about


def _followers(tx: ReadTx, job: Job) -> list[str]:
    """The nodes that its run's manifest lets follow, but for those of `finally`."""
    leads_to = tx.workflows.manifest(job.workflow_run or 0)["leads_to"]
    below = leads_to.get(written_node(job.node or ""), ())
    return [name for name in below if name not in job.params[OF_NODE]["at_the_end"]]


def _is_last(job: Job) -> bool:
    """Whether it runs when all others have ended."""
    return written_node(job.node or "") in job.params[OF_NODE]["at_the_end"]


def _with_manifest(tx: ReadTx, job: Job, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a pipeline of patches, with the manifest of the node it is from."""
    source = args.get("from")
    if job.params[OF_NODE]["policy"] != "patch.execute_pipeline" or source is None:
        return args
    values = NodeValues(tx, job, [source])
    manifest = values.of_node(source, "outputs", "manifest")
    if manifest is None:
        reference = Reference(f"from {source}", Kind.NODES, source)
        raise MissingValueError(_not_set(reference, values))
    return {**args, "manifest": manifest}


def _arguments(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a function is called with."""
    found = args.get("arguments", {})
    if not isinstance(found, dict):
        raise NodeValueError(f"arguments is {short(found)}; give a table")
    if len(json.dumps(found)) > LARGEST_SPEC:
        raise NodeValueError("the arguments are larger than 1 MiB; use a file")
    return found


def _with_prompt(agent: Mapping[str, Any], artifacts: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent is asked; the name of its prompt gives way to the text."""
    text = prompt_in(artifacts)
    if text is None:
        raise MissingValueError(f"{agent['prompt']} has no text")
    return {**agent, "prompt": text}


def _artifacts(tx: ReadTx, job: Job) -> dict[str, Any]:
    """The data of the custom artifacts that it needs, by their texts as the file has them."""
    run = f" {shown_run(job.workflow_run or 0)}"
    custom = [each for each in job.needs if each.startswith("custom:")]
    found = tx.graph.markers(custom) if custom else ()
    return {
        each.artifact.removesuffix(run): dict(each.data or {})
        for each in found  # of several the newest counts, which is the last
        if each.withdrawn_at is None
    }


def _not_set(each: Reference, values: NodeValues) -> str:
    end = next((end for end in values.ends if end.node == each.name), None)
    said = f"'{each.name}' ({shown(end.job_id)}) is {end.status}" if end else "unknown"
    return f"{each.text}: {said}"
