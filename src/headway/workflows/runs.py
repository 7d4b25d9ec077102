"""Look at runs of workflows, wait for them and stop them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.current import RunningFunction
from headway.base.errors import InvalidInputError, NotFoundError, TimedOutError
from headway.base.units import show_duration, show_instant
from headway.core.model import NOTHING, WaitKind, shown, shown_run
from headway.core.routes import NodeOutcome, RunState
from headway.core.states import Status
from headway.jobs.budgets import budget_document
from headway.jobs.lifecycle import cancel_active
from headway.jobs.lookup import find_job
from headway.jobs.references import parse_job_id
from headway.jobs.routes import end_runs
from headway.jobs.wait import LOOK_FOR_WORKER, Renewal, refuse_endless_wait, surrounding
from headway.store.new_jobs import Event
from headway.store.records import NodeRecord, RunRecord

if TYPE_CHECKING:
    from headway.core.model import Job
    from headway.jobs.context import Context
    from headway.store.transaction import ReadTx, WriteTx
    from headway.workflows.drawing.model import Drawing, NodeStanding

MOST_LISTED = 200
DAY = 24 * 3600 * 1_000_000
BAD = (NodeOutcome.FAILED, NodeOutcome.BLOCKED, NodeOutcome.CANCELLED)
SEEN_FIRST = ("failed", "blocked", "running", "waiting", "queued", "succeeded", "ended")
POLL = 0.05
TIMEOUT = "timeout"  # stops a run in place of a person
_RUN = re.compile(r"(?:wf-)?([1-9][0-9]{0,17})")
EXIT_CODES = {
    RunState.SUCCEEDED: 0,
    RunState.FAILED: 1,
    RunState.BLOCKED: 10,
    RunState.CANCELLED: 143,
}
TIMED_OUT = 124
# As the API has it; a run that is blocked has executed something, and did not come to its end.
STATUS = {
    RunState.RUNNING: "RUNNING",
    RunState.SUCCEEDED: "COMPLETED",
    RunState.FAILED: "FAILED",
    RunState.BLOCKED: "FAILED",
    RunState.CANCELLED: "CANCELLED",
}


def run_id(text: str) -> int:
    """The number that `wf-7` names."""
    found = _RUN.fullmatch(text)
    if found is None:
        raise InvalidInputError(f"{text[:40]!r} is no run; write one like wf-7")
    return int(found[1])


def exit_code(document: Mapping[str, Any]) -> int:
    """The exit code of a command that has waited for the end of a run."""
    if document["stopped_by"] == TIMEOUT:
        return TIMED_OUT
    return EXIT_CODES[RunState(document["state"])]


def show_run(context: Context, run: int) -> dict[str, Any]:
    """The document of a run, with its nodes."""
    with context.store.read() as tx:
        return document(tx, require_run(tx, run))


def run_manifest(context: Context, run: int) -> dict[str, Any]:
    with context.store.read() as tx:
        require_run(tx, run)
        return tx.workflows.manifest(run)


def run_drawing(context: Context, run: int) -> Drawing:
    """A run as it stands, drawn as its workflow was when it started."""
    from headway.workflows.drawing.model import drawing_of_run

    with context.store.read() as tx:
        record = require_run(tx, run)
        kept = tx.workflows.manifest(run)["drawing"]
        nodes = nodes_of(tx, record)
    instances: dict[str, list[NodeRecord]] = {}
    for each in nodes:
        instances.setdefault(each.written, []).append(each)
    standing = {name: _stand(some) for name, some in instances.items()}
    return drawing_of_run(f"{shown_run(run)} {record.name}", kept, standing)


def _stand(instances: Sequence[NodeRecord]) -> NodeStanding:
    """`failed, pass 2`; of several instances how many are so. The state is the one of them that
    one wants to see first."""
    from headway.jobs.views.graph.formats import kind_of
    from headway.workflows.drawing.model import NodeStanding

    made = [each for each in instances if not each.fan] or instances
    counts = Counter((each.outcome or each.status).value for each in made)
    words = [f"{count} {word}" if len(made) > 1 else word for word, count in counts.items()]
    last = max(each.passes for each in made)
    state = min((kind_of(each.status) for each in made), key=SEEN_FIRST.index)
    said = ", ".join([*words, *([f"pass {last}"] if last > 1 else [])])
    return NodeStanding(said, state, shown(made[0].job_id) if len(instances) == 1 else None)


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
    found = nodes_of(tx, record)
    shown_nodes = [_node(each) for each in found]
    counts = Counter(each["state"] for each in shown_nodes)
    went_wrong = record.stopped_by is not None or any(each.outcome in BAD for each in found)
    manifest = tx.workflows.manifest(record.id) if went_wrong else NOTHING
    reason = _reason(record, found, manifest) if went_wrong else None
    return {
        "id": shown_run(record.id),
        "workflow": record.name,
        "version": record.version,
        "state": record.state,
        "status": STATUS[RunState(record.state)],
        "reason": reason if record.state != RunState.SUCCEEDED else None,
        "params": dict(record.params),
        "subject": record.subject,
        "target": record.target,
        "policy_snapshot_hash": record.policy_hash,
        "created_at": show_instant(record.created_at),
        "created_by": record.created_by,
        "deadline": show_instant(record.deadline),
        "stopped_at": show_instant(record.stopped_at),
        "stopped_by": record.stopped_by,
        "ended_at": show_instant(record.ended_at),
        **budget_document(record),
        "counts": dict(sorted(counts.items())),
        **({"nodes": shown_nodes} if nodes else {}),
    }


def nodes_of(tx: ReadTx, record: RunRecord) -> list[NodeRecord]:
    """The nodes of a run; one that its loop does not repeat any more says so."""
    ended = {each.rule.source: each.so_far.ended for each in tx.workflows.loops(record.id)}
    return [
        each._replace(reason="; ".join(filter(None, (each.reason, ended.get(each.written)))))
        if each.outcome is NodeOutcome.BLOCKED and ended.get(each.written)
        else each
        for each in tx.workflows.nodes(record.id)
    ]


def _node(each: NodeRecord) -> dict[str, Any]:
    return {
        "id": each.node,
        "node": each.written,
        "fan": each.fan,
        "job": shown(each.job_id),
        "state": each.status.value,
        "outcome": each.outcome.value if each.outcome is not None else None,
        "pass": each.passes,
        "reason": each.reason,
        "wait": {"kind": each.wait_kind, "detail": each.wait_detail} if each.wait_kind else None,
        "started_at": show_instant(each.started_at),
        "finished_at": show_instant(each.finished_at),
    }


def causes(nodes: Sequence[NodeRecord], tolerated: Mapping[str, Sequence[str]]) -> list[NodeRecord]:
    """The nodes that ended badly by themselves, the first to end first. What is tolerated went
    well."""
    bad = [
        each
        for each in nodes
        if each.outcome in BAD and each.outcome not in tolerated.get(each.written, ())
    ]
    return sorted(bad, key=lambda each: (each.finished_at or 0, each.job_id))


def _reason(
    record: RunRecord, nodes: Sequence[NodeRecord], manifest: Mapping[str, Any]
) -> str | None:
    """The first cause of what went wrong: the first that ended badly by itself. If what its outcome
    leads to ended badly in its own way, as the gate that was to resolve its conflict, that is told
    too."""
    if record.stopped_by == TIMEOUT:
        return f"timed out after {show_duration(manifest['workflow']['timeout'] or 0)}"
    if record.stopped_by is not None:
        return f"stopped by {record.stopped_by}"
    found = causes(nodes, manifest["tolerates"])
    if not found:
        return None
    first = found[0]
    followers = manifest["leads_to"].get(first.written, ())
    then = [
        each
        for each in found[1:]
        if each.written in followers
        and (each.outcome, each.reason) != (first.outcome, first.reason)
    ]
    return "; then ".join(_ended_words(each) for each in (first, *then[-1:]))


def _ended_words(node: NodeRecord) -> str:
    return f"{node.node} ({shown(node.job_id)}) {node.outcome}: {node.reason or ''}".rstrip(": ")


def wait_for_run(
    context: Context,
    run: int,
    *,
    timeout: float | None = None,
    meanwhile: Callable[[dict[str, Any]], None] = lambda document: None,
    inside: RunningFunction | None = None,
) -> dict[str, Any]:
    """Wait until it has ended; its document. `meanwhile` is called with the document whenever
    something has changed. A job that waits lends its slot meanwhile; `inside` is the function that
    waits, if one does."""
    clock = context.clock
    give_up_at = None if timeout is None else clock.monotonic() + timeout
    look_at = clock.monotonic() + LOOK_FOR_WORKER
    seen = context.changes()
    with _Loan(context, inside) as loan:
        found = show_run(context, run)
        meanwhile(found)
        while found["ended_at"] is None:
            now = clock.monotonic()
            if give_up_at is None:
                refuse_endless_wait(context)
            elif now >= give_up_at:
                raise TimedOutError(f"{shown_run(run)} is still running")
            if now >= look_at:  # a worker that died since is replaced
                look_at = now + LOOK_FOR_WORKER
                if not context.worker_is_there():
                    context.wake()
            loan.give(found)
            clock.sleep(POLL)
            changes = context.changes()
            if changes != seen:
                seen = changes
                found = show_run(context, run)
            meanwhile(found)
    return found


class _Loan:
    """What the surrounding job holds is lent to the node that can most likely use it."""

    def __init__(self, context: Context, inside: RunningFunction | None) -> None:
        self._context = context
        self._function = inside
        self._lends = surrounding(context, inside) is not None
        self._renewal: Renewal | None = None
        self._job: str | None = None

    def __enter__(self) -> _Loan:
        if self._function is not None:
            self._function.waits(True)
        return self

    def give(self, document: Mapping[str, Any]) -> None:
        if not self._lends:
            return
        active = [each for each in document["nodes"] if each["outcome"] is None]
        job = min(active, key=_readiness)["job"] if active else None
        if job is not None and job != self._job:
            self._end()
            self._job = job
            awaited = find_job(self._context, parse_job_id(job))
            self._renewal = Renewal(self._context, awaited, self._function)
        if self._renewal is not None:
            self._renewal()

    def _end(self) -> None:
        if self._renewal is not None:
            self._renewal.end()

    def __exit__(self, *error: object) -> None:
        self._end()
        if self._function is not None:
            self._function.waits(False)


def _readiness(node: Mapping[str, Any]) -> int:
    """First what runs, then what lacks a slot alone; last what waits for other nodes."""
    if node["state"] == Status.RUNNING:
        return 0
    kind = (node["wait"] or {}).get("kind")
    return {WaitKind.CAPACITY: 1, None: 1, WaitKind.DEPENDENCIES: 3}.get(kind, 2)


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
    jobs = tx.workflows.active(record.id) if everything else _before_the_last(tx, record)
    tx.workflows.stop(record.id, by)
    tx.workflows.stop_loops(record.id)
    data = {"run": shown_run(record.id), "by": by}
    tx.events.add([Event("workflow_stopped", None, data)], actor=actor)
    cancel_active(tx, jobs, actor=shown_run(record.id) if by == TIMEOUT else actor)
    end_runs(tx, [record.id], actor=actor)


def end_time(tx: WriteTx, record: RunRecord, *, actor: str) -> None:
    """The time of a run is over: it is stopped. `finally` has only its own timeouts: where nothing
    else is left, the others were in time, and the run goes on to its end."""
    if record.unsettled or _before_the_last(tx, record):
        stop_within(tx, record, by=TIMEOUT, actor=actor)
    else:
        tx.workflows.set_deadline(record.id, None)


def _before_the_last(tx: ReadTx, record: RunRecord) -> list[Job]:
    """The active jobs of a run but those of `finally`."""
    last = tx.workflows.manifest(record.id)["finally"]
    written = {each.job_id: each.written for each in tx.workflows.nodes(record.id)}
    return [job for job in tx.workflows.active(record.id) if written.get(job.id) not in last]
