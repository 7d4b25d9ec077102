"""What the end of a node means for its workflow run: its outcome and its outputs are kept, the
nodes that wait for it are woken, and the end of the last one is the run's.

One transaction does all of it, that of the end itself. So after a crash a run stands where its last
commit left it. `core.routes` has the rules.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from headway.core.facts import NodeEnd, RunView
from headway.core.gates.routes import OF_NODE
from headway.core.model import NOTHING, Job, JobId, chain_topic, shown_run
from headway.core.routes import NodeOutcome, NodeRule, RunState, run_state, together
from headway.core.states import Status
from headway.store.new_jobs import Event
from headway.store.records import Marker, RunRecord
from headway.store.transaction import ReadTx, WriteTx

OUTPUT_VERSION = 1
NEXT_DEADLINE = "next_run_deadline"  # the mark of that; 0: no run has one
BLOCKED = "blocked"  # the class of a failure that a person has to look at

_OUTCOMES: Mapping[Status, NodeOutcome] = {
    Status.SUCCEEDED: NodeOutcome.SUCCEEDED,
    Status.FAILED: NodeOutcome.FAILED,
    Status.SKIPPED: NodeOutcome.SKIPPED,
    Status.CANCELLED: NodeOutcome.CANCELLED,
    Status.BLOCKED_BY_APPROVAL: NodeOutcome.BLOCKED,
    Status.BLOCKED_BY_DEPENDENCY: NodeOutcome.BLOCKED,
}


def outcome_of(
    status: Status, *, classes: Sequence[str] = (), unreached: bool = False
) -> NodeOutcome:
    """The outcome of a node whose chain ended in this status."""
    if unreached and status is Status.BLOCKED_BY_DEPENDENCY:
        return NodeOutcome.UNREACHED
    if status is Status.FAILED and BLOCKED in classes:
        return NodeOutcome.BLOCKED
    return _OUTCOMES[status]


def output_key(node: str, run: int) -> str:
    """The artifact that has what a node came to."""
    return f"custom:operation_output:{node} {shown_run(run)}"


def end_nodes(
    tx: WriteTx,
    jobs: Sequence[Job],
    status: Status,
    *,
    report: Mapping[str, Any] = NOTHING,
    unreached: bool = False,
    actor: str,
) -> None:
    """The chains of these nodes have ended."""
    outcome = outcome_of(status, classes=report.get("classes", ()), unreached=unreached)
    markers = []
    for job in jobs:
        tx.workflows.set_outcome(job.chain, outcome)
        markers += [_output(tx, job, outcome, report), *_products(tx, job, outcome)]
    tx.graph.publish(markers)
    tx.waits.wake_topics(chain_topic(job.chain) for job in jobs)
    for run in sorted({job.workflow_run or 0 for job in jobs}):
        end_run(tx, run, actor=actor)


def _output(tx: WriteTx, job: Job, outcome: NodeOutcome, report: Mapping[str, Any]) -> Marker:
    data = {
        "version": OUTPUT_VERSION,
        "run": shown_run(job.workflow_run or 0),
        "node": job.node,
        "attempt": job.attempt,
        "pass": job.node_pass,
        "outcome": outcome.value,
        "exit_code": report.get("exit_code"),
        "summary": report.get("summary"),
        "outputs": dict(report.get("outputs", {})),
        "started_at": job.started_at,
        "finished_at": tx.now(),
    }
    return Marker(output_key(job.node or "", job.workflow_run or 0), job.id, tx.now(), data)


def _products(tx: WriteTx, job: Job, outcome: NodeOutcome) -> list[Marker]:
    """What it makes by ending so. A success publishes what it announced by itself."""
    made = job.params[OF_NODE].get("products", {}).get(outcome.value, ())
    return [Marker(key, job.id, tx.now()) for key in made]


def end_run(tx: WriteTx, run: int, *, actor: str) -> None:
    """Write the run's end, once, if nothing of it is active any more."""
    found = tx.workflows.outcomes(run)
    if any(outcome is None for _, outcome in found):
        return
    record = tx.workflows.by_id([run]).get(run)
    if record is None or record.ended_at is not None:
        return
    state = state_of(tx, record)
    if tx.workflows.end(run, state.value):
        data = {"run": shown_run(run), "workflow": record.name, "state": state.value}
        tx.events.add([Event("workflow_ended", None, data)], actor=actor)


def set_deadline(tx: WriteTx, run: int, timeout: int) -> None:
    """The run is to be stopped when so much time from now is over. A mark has the next deadline of
    all runs, so that no step has to ask for it."""
    deadline = tx.now() + timeout
    tx.workflows.set_deadline(run, deadline)
    known = tx.settings.marks()[NEXT_DEADLINE]
    if not known or deadline < known:
        tx.settings.set_mark(NEXT_DEADLINE, deadline)


def reopen_runs(tx: WriteTx, chains: Sequence[JobId]) -> None:
    """Nodes are to run again, and so their runs go on, with their whole time."""
    for run in tx.workflows.reopen(chains):
        set_deadline(tx, run, tx.workflows.manifest(run)["workflow"]["timeout"])


def state_of(tx: ReadTx, record: RunRecord, *, besides: Collection[str] = ()) -> RunState:
    """How a run stands; `besides` are nodes that are left out."""
    instances: dict[str, list[NodeOutcome | None]] = {}
    for node, outcome in tx.workflows.outcomes(record.id):
        if node not in besides:
            instances.setdefault(node, []).append(outcome)
    tolerated = tx.workflows.manifest(record.id)["tolerates"]
    rules = {
        node: NodeRule(tolerates=frozenset(map(NodeOutcome, tolerated.get(node, ()))))
        for node in instances
    }
    outcomes = {
        node: None
        if None in found
        else together((each for each in found if each is not None), rules[node].tolerates)
        for node, found in instances.items()
    }
    late = record.deadline is not None and record.stopped_by == "timeout"
    stopped = record.stopped_at is not None
    return run_state(outcomes, rules, timed_out=late, stopped=stopped)


def chains_after(tx: ReadTx, jobs: Iterable[Job]) -> set[JobId]:
    """The chains of the nodes that these lead to in their workflow runs, whatever the outcome."""
    runs: dict[int, set[JobId]] = {}
    for job in jobs:
        if job.workflow_run is not None:
            runs.setdefault(job.workflow_run, set()).add(job.chain)
    found: set[JobId] = set()
    for run, chains in runs.items():
        leads_to = tx.workflows.manifest(run)["leads_to"]
        nodes = tx.workflows.nodes(run)
        below = {
            name
            for each in nodes
            if each.chain in chains
            for name in leads_to.get(each.written, ())
        }
        found |= {each.chain for each in nodes if each.written in below}
    return found


# -- what nodes have left ----------------------------------------------------------------------


class NodeValues:
    """What nodes of a run came to and have set, read at once."""

    def __init__(self, tx: ReadTx, job: Job, nodes: Iterable[str]) -> None:
        self._tx = tx
        self._job = job
        self._run = job.workflow_run or 0
        wanted = {*nodes}
        self.ends: list[NodeEnd] = tx.workflows.node_ends(self._run, wanted) if wanted else []
        ids = [each.job_id for each in self.ends]
        prefix, suffix = output_key("", self._run).split(" ")
        self._left: dict[int, Mapping[str, Any]] = {
            each.job_id: each.data
            for each in (tx.graph.markers_by(ids) if ids else ())
            if each.artifact.startswith(prefix) and each.artifact.endswith(suffix) and each.data
        }

    def of_node(self, node: str, field: str, output: str | None) -> Any:
        """A field or an output of a node; of one with several instances a list. None: it has not
        set that."""
        found = [
            self._of_job(each.job_id, field, output) for each in self.ends if each.node == node
        ]
        several = node in self._job.params[OF_NODE]["several"]
        return found if several else next(iter(found), None)

    def of_run(self, field: str) -> str:
        """`id`, `name`, or the state that all nodes but those of `finally` came to."""
        if field == "id":
            return shown_run(self._run)
        node = self._job.params[OF_NODE]
        if field == "name":
            return str(node["workflow"])
        record = self._tx.workflows.by_id([self._run])[self._run]
        return state_of(self._tx, record, besides=node["at_the_end"]).value

    def _of_job(self, job_id: JobId, field: str, output: str | None) -> Any:
        left = self._left.get(job_id, NOTHING)
        return left.get("outputs", {}).get(output) if output is not None else left.get(field)


def run_views(tx: ReadTx, jobs: Iterable[Job]) -> dict[JobId, RunView]:
    """What the gates of nodes have to know, for those of these that are nodes of a run."""
    found = {}
    for job in jobs:
        if job.workflow_run is not None:
            node = job.params[OF_NODE]
            sources = [each["source"] for each in node["edges"]]
            ends = tx.workflows.node_ends(job.workflow_run, sources) if sources else []
            compared = _compared(tx, job) if node["when"] else ()
            found[job.id] = RunView(tuple(ends), compared)
    return found


def _compared(tx: ReadTx, job: Job) -> tuple[tuple[Any, Any], ...]:
    conditions = job.params[OF_NODE]["when"]
    sides = [each[side] for each in conditions for side in ("left", "right")]
    values = NodeValues(tx, job, [side["node"] for side in sides if "node" in side])

    def value(side: Mapping[str, Any]) -> Any:
        if "node" in side:
            return values.of_node(side["node"], side["field"], side["output"])
        return values.of_run(side["run"]) if "run" in side else side["value"]

    return tuple((value(each["left"]), value(each["right"])) for each in conditions)
