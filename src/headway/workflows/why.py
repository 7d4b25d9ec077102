"""Why a run does not go on, or went wrong: its first cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.base.units import show_instant
from headway.core.model import JobId, WaitKind, shown, shown_run
from headway.core.states import Status
from headway.core.wait_words import more_budget
from headway.jobs.upstream import root_of_block
from headway.jobs.views.why import why
from headway.workflows.operations.model import retry_of_root
from headway.workflows.runs import causes, document, nodes_of, require_run

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.store.records import NodeRecord


def why_run(context: Context, run: int) -> dict[str, Any]:
    """The node that everything waits for, or the first that ended badly by itself, with what
    would help."""
    with context.store.read() as tx:
        record = require_run(tx, run)
        about = document(tx, record, nodes=False)
        nodes = nodes_of(tx, record)
        first = next(iter(causes(nodes, tx.workflows.manifest(run)["tolerates"])), None)
    found: dict[str, Any] = {
        "id": shown_run(run),
        "workflow": record.name,
        "state": about["state"],
        "reason": about["reason"],
        "ended": record.ended_at is not None,
        "running": [
            {"node": each.node, "job": shown(each.job_id), "since": show_instant(each.started_at)}
            for each in nodes
            if each.status is Status.RUNNING
        ],
        "node": None,
        "job": None,
        "detail": None,
        "remedy": None,
    }
    if record.ended_at is not None:
        return found | _of_end(context, run, first if about["state"] != "succeeded" else None)
    if found["running"]:
        return found
    return found | _of_wait(context, nodes)


def retry_before(context: Context, job_id: JobId) -> str | None:
    """The command that has to come before a retry of this job, which would be blocked again, and
    that runs it, too; None: nothing outside of its run is in its way."""
    with context.store.read() as tx:
        job = tx.jobs.by_id([job_id])[job_id]
        root = root_of_block(tx, job)
    if root is None or root.workflow_run == job.workflow_run:
        return None
    if root.workflow_run is not None:
        return f"headway workflows retry {shown_run(root.workflow_run)}"
    return f"headway jobs retry {shown(root.id)}"


def _of_end(context: Context, run: int, first: NodeRecord | None) -> dict[str, Any]:
    if first is None:
        return {}
    name = shown(first.job_id)
    again = (
        more_budget(run, first.reason)
        or retry_of_root(first.reason)
        or retry_before(context, first.job_id)
        or f"headway workflows retry {shown_run(run)}"
    )
    output = f"headway jobs tail {name} shows its output; " if first.started_at else ""
    return {
        "node": first.node,
        "job": name,
        "detail": f"{first.outcome}: {first.reason}" if first.reason else f"{first.outcome}",
        "remedy": f"{output}{again} runs it again, and all that follows",
    }


def _of_wait(context: Context, nodes: list[NodeRecord]) -> dict[str, Any]:
    """Of the nodes that wait, the first that waits for something else than another of them."""
    waiting = [each for each in nodes if each.outcome is None]
    own = [each for each in waiting if each.wait_kind != WaitKind.DEPENDENCIES]
    node = next(iter(own or waiting), None)
    if node is None:
        return {}
    details = why(context, node.job_id)
    first = next(iter(details["objections"]), None)
    found = {"node": node.node, "job": shown(node.job_id)}
    name = f"{node.node} ({found['job']})"
    if first is not None:
        return {**found, "detail": f"{name}: {first['detail']}", "remedy": first["remedy"]}
    if not details["worker"]:
        return {**found, "detail": "no worker is there", "remedy": "`headway work` is one"}
    return {**found, "detail": f"{name} starts with the next step"}
