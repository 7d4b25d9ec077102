"""Look at runs of workflows, wait for them and stop them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import InvalidInputError, NotFoundError, TimedOutError
from headway.base.units import show_duration, show_instant
from headway.core.model import shown, shown_run
from headway.core.routes import RunState
from headway.jobs.lifecycle import cancel_active
from headway.jobs.routes import end_run
from headway.store.new_jobs import Event
from headway.store.records import NodeRecord, RunRecord

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.store.transaction import ReadTx, WriteTx

MOST_LISTED = 200
DAY = 24 * 3600 * 1_000_000
TIMEOUT = "timeout"  # stops a run in place of a person
_RUN = re.compile(r"(?:wf-)?([1-9][0-9]{0,17})")
EXIT_CODES = {
    RunState.SUCCEEDED: 0,
    RunState.FAILED: 1,
    RunState.BLOCKED: 10,
    RunState.CANCELLED: 143,
}


def run_id(text: str) -> int:
    """The number that `wf-7` names."""
    found = _RUN.fullmatch(text)
    if found is None:
        raise InvalidInputError(f"{text[:40]!r} is no run; write one like wf-7")
    return int(found[1])


def show_run(context: Context, run: int) -> dict[str, Any]:
    """The document of a run, with its nodes."""
    with context.store.read() as tx:
        return document(tx, require_run(tx, run))


def run_manifest(context: Context, run: int) -> dict[str, Any]:
    with context.store.read() as tx:
        require_run(tx, run)
        return tx.workflows.manifest(run)


def list_runs(context: Context, *, everything: bool = False) -> list[dict[str, Any]]:
    """Runs that have not ended and the last day's, the newest first."""
    with context.store.read() as tx:
        since = 0 if everything else tx.now() - DAY
        return [document(tx, each, nodes=False) for each in tx.workflows.since(since, MOST_LISTED)]


def require_run(tx: ReadTx, run: int) -> RunRecord:
    found = tx.workflows.by_id([run]).get(run)
    if found is None:
        raise NotFoundError(f"there is no {shown_run(run)}; `headway workflows runs` lists them")
    return found


def document(tx: ReadTx, record: RunRecord, *, nodes: bool = True) -> dict[str, Any]:
    found = tx.workflows.nodes(record.id)
    shown_nodes = [_node(each) for each in found]
    counts = Counter(each["state"] for each in shown_nodes)
    return {
        "id": shown_run(record.id),
        "workflow": record.name,
        "version": record.version,
        "state": record.state,
        "reason": _reason(record, found) if record.state != RunState.SUCCEEDED else None,
        "params": dict(record.params),
        "policy_snapshot_hash": record.policy_hash,
        "created_at": show_instant(record.created_at),
        "created_by": record.created_by,
        "deadline": show_instant(record.deadline),
        "stopped_at": show_instant(record.stopped_at),
        "stopped_by": record.stopped_by,
        "ended_at": show_instant(record.ended_at),
        "counts": dict(sorted(counts.items())),
        **({"nodes": shown_nodes} if nodes else {}),
    }


def _node(each: NodeRecord) -> dict[str, Any]:
    return {
        "id": each.node,
        "node": each.written,
        "job": shown(each.job_id),
        "state": each.status.value,
        "outcome": each.outcome.value if each.outcome is not None else None,
        "reason": each.reason,
        "wait": {"kind": each.wait_kind, "detail": each.wait_detail} if each.wait_kind else None,
        "started_at": show_instant(each.started_at),
        "finished_at": show_instant(each.finished_at),
    }


def _reason(record: RunRecord, nodes: Sequence[NodeRecord]) -> str | None:
    """The first cause of what went wrong: the first that ended badly by itself."""
    if record.stopped_by == TIMEOUT and record.deadline is not None:
        return f"timed out after {show_duration(record.deadline - record.created_at)}"
    bad = ("failed", "blocked", "cancelled")
    ended = [each for each in nodes if each.outcome in bad]
    first = min(ended, key=lambda each: each.finished_at or 0, default=None)
    if first is None:
        return None
    return f"{first.node} ({shown(first.job_id)}) {first.outcome}: {first.reason or ''}".rstrip(
        ": "
    )


def wait_for_run(
    context: Context,
    run: int,
    *,
    timeout: float | None = None,
    meanwhile: Callable[[dict[str, Any]], None] = lambda document: None,
) -> dict[str, Any]:
    """Wait until it has ended; its document. `meanwhile` is called with it now and then."""
    clock = context.clock
    give_up_at = None if timeout is None else clock.monotonic() + timeout
    while True:
        found = show_run(context, run)
        meanwhile(found)
        if found["ended_at"] is not None:
            return found
        if give_up_at is not None and clock.monotonic() >= give_up_at:
            raise TimedOutError(f"{shown_run(run)} is still running")
        clock.sleep(0.05)


def stop_run(context: Context, run: int, *, everything: bool = False) -> dict[str, Any]:
    """Cancel all of a run but its `finally`, with `everything` that, too. What runs is asked to
    end."""

    def stop(tx: WriteTx) -> None:
        record = require_run(tx, run)
        if record.ended_at is None:
            stop_within(tx, record, by=context.actor, actor=context.actor, everything=everything)

    context.store.transact(stop)
    context.wake()
    return show_run(context, run)


def stop_within(
    tx: WriteTx, record: RunRecord, *, by: str, actor: str, everything: bool = False
) -> None:
    """The same within a transaction; `by` is a person, or the run's own time."""
    tx.workflows.stop(record.id, by)
    last = () if everything else tx.workflows.manifest(record.id)["finally"]
    written = {each.job_id: each.written for each in tx.workflows.nodes(record.id)}
    jobs = [job for job in tx.workflows.active(record.id) if written.get(job.id) not in last]
    data = {"run": shown_run(record.id), "by": by}
    tx.events.add([Event("workflow_stopped", None, data)], actor=actor)
    cancel_active(tx, jobs, actor=shown_run(record.id) if by == TIMEOUT else actor)
    end_run(tx, record.id, actor=actor)
