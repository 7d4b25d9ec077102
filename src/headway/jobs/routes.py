"""What the end of a node means for its workflow run: its outcome and its outputs are kept, the
nodes that wait for it are woken, and the end of the last one is the run's.

One transaction does all of it, that of the end itself. So after a crash a run stands where its last
commit left it. `core.routes` has the rules.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway.core.approvals import approval_rule
from headway.core.artifacts import ArtifactKind, artifact_key, artifact_topic
from headway.core.facts import NodeEnd, RunView
from headway.core.gates.routes import OF_NODE, is_fan, is_repeatable
from headway.core.model import NOTHING, Job, JobId, chain_topic, run_topic, shown_run
from headway.core.outputs import product_data
from headway.core.routes import (
    InstanceEnd,
    NodeOutcome,
    NodeRule,
    RunState,
    node_outcome,
    run_state,
)
from headway.core.settle import ChainEnd
from headway.core.states import Status
from headway.jobs.loop_state import RunLoops
from headway.jobs.worktrees import note_cleaned
from headway.store.new_jobs import Event
from headway.store.records import Marker, RunRecord
from headway.store.transaction import ReadTx, WriteTx

OUTPUT_VERSION = 1
NEXT_DEADLINE = "next_run_deadline"  # the mark of that; 0: no run has one
# The mark of runs whose loops a step has to turn: 0, there is none; `ENDS_CAME`, the next step has
# to, at once; `BODIES_RUN`, a body of each still runs, and its end brings the step.
UNSETTLED_RUNS = "unsettled_runs"
ENDS_CAME, BODIES_RUN = 1, 2
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


def end_nodes(tx: WriteTx, ends: Sequence[ChainEnd], *, actor: str) -> None:
    """The chains of these nodes have ended."""
    _end_loops(tx, [each.job for each in ends if each.report.get("unknown")])
    outcomes = [_outcome_of(each) for each in ends]
    markers = []
    for (job, _, report, _), outcome in zip(ends, outcomes, strict=True):
        markers += [_output(tx, job, outcome, report), *_products(tx, job, outcome, report)]
        note_cleaned(tx, job, report.get("outputs", NOTHING), actor=actor)
    jobs = [each.job for each in ends]
    tx.workflows.set_outcomes(
        {
            job.chain: outcome
            for job, outcome in zip(jobs, outcomes, strict=True)
            if outcome is not NodeOutcome.SUCCEEDED or not is_fan(job)
        }
    )
    tx.graph.publish(markers)
    tx.waits.wake_topics(chain_topic(job.chain) for job in jobs)
    unsettled = {job.workflow_run or 0 for job in jobs if is_repeatable(job) or is_fan(job)}
    for run in sorted(unsettled):
        tx.workflows.set_unsettled(run, True)
        tx.settings.set_mark(UNSETTLED_RUNS, ENDS_CAME)
    end_runs(tx, sorted({job.workflow_run or 0 for job in jobs}), actor=actor)


def _outcome_of(end: ChainEnd) -> NodeOutcome:
    if end.report.get("unknown"):  # nobody knows what an agent did: a person has to look
        return NodeOutcome.BLOCKED
    classes = end.report.get("classes", ())
    return outcome_of(end.ended.status, classes=classes, unreached=end.unreached)


def _end_loops(tx: WriteTx, jobs: Sequence[Job]) -> None:
    """The loops of these agents go back no more."""
    for job in jobs:
        written = (job.node or "").partition("[")[0]
        for loop in tx.workflows.loops(job.workflow_run or 0):
            if loop.rule.source == written:
                why = "its loop ends, because nobody knows what the agent did"
                count = loop.so_far._replace(ended=why)
                tx.workflows.set_count(job.workflow_run or 0, written, count)


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
        "tail": report.get("tail"),
        "started_at": job.started_at,
        "finished_at": tx.now(),
    }
    return Marker(output_key(job.node or "", job.workflow_run or 0), job.id, tx.now(), data)


def _products(
    tx: WriteTx, job: Job, outcome: NodeOutcome, report: Mapping[str, Any]
) -> list[Marker]:
    """The artifacts that it makes by ending so. A success publishes what it announced by itself.
    Artifacts that are not custom are probed in place, by whoever waits for them."""
    made = job.params[OF_NODE].get("products", {}).get(outcome.value, ())
    tx.waits.wake_topics(artifact_topic(artifact_key(text, job.repo)) for text in made)
    custom, data = f"{ArtifactKind.CUSTOM}:", product_data(report)
    return [Marker(key, job.id, tx.now(), data) for key in made if key.startswith(custom)]


def end_runs(tx: WriteTx, runs: Sequence[int], *, actor: str) -> None:
    """Write the ends, once, of those of these runs of which nothing is active any more."""
    for record in tx.workflows.at_rest(runs):
        state = state_of(tx, record)
        tx.workflows.end(record.id, state.value)
        data = {"run": shown_run(record.id), "workflow": record.name, "state": state.value}
        tx.events.add([Event("workflow_ended", None, data)], actor=actor)
        tx.waits.wake_topics([run_topic(record.id)])


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
    runs = tx.workflows.reopen(chains)
    for run in runs:
        timeout = tx.workflows.manifest(run)["workflow"]["timeout"]
        if timeout is not None:
            set_deadline(tx, run, timeout)
        again = {each.written for each in tx.workflows.body_nodes(run) if each.chain in chains}
        if again:
            tx.workflows.reopen_loops(run, sorted(again))


def state_of(tx: ReadTx, record: RunRecord, *, besides: Collection[str] = ()) -> RunState:
    """How a run stands; `besides` are nodes that are left out."""
    instances: dict[str, list[InstanceEnd]] = {}
    for node, end in tx.workflows.outcomes(record.id):
        if node not in besides:
            instances.setdefault(node, []).append(end)
    tolerated = tx.workflows.manifest(record.id)["tolerates"]
    rules = {
        node: NodeRule(tolerates=frozenset(map(NodeOutcome, tolerated.get(node, ()))))
        for node in instances
    }
    outcomes = {
        node: node_outcome(found, rules[node].tolerates) for node, found in instances.items()
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
        among = [each for each in nodes if each.chain in chains]
        below = {name for each in among for name in leads_to.get(each.written, ())}
        below |= {each.written for each in among if each.fan}  # it makes its instances anew
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
        # By now: a loop that is used up blocks what has failed.
        self._outcomes = {each.job_id: each.outcome.value for each in self.ends if each.outcome}

    def of_node(self, node: str, field: str, output: str | None) -> Any:
        """A field or an output of a node; of one with several instances a list. None: it has not
        set that."""
        found = [
            self._of_job(each.job_id, field, output)
            for each in self.ends
            if each.node == node and not each.fan
        ]
        several = node in self._job.params[OF_NODE]["several"]
        return found if several else next(iter(found), None)

    def of_last(self, node: str, field: str, output: str | None) -> Any:
        """What a node left when it last ended in this run, even if it is to run again. A node of
        several instances has a list, but one tail: the tails of all instances that failed."""
        found = self._last_left(node)
        if node not in self._job.params[OF_NODE]["several"]:
            return self._field(*found[0], field, output) if found else None
        if field != "tail":
            return [self._field(*each, field, output) for each in found]
        bad = (left for _, left in found if left["outcome"] == NodeOutcome.FAILED)
        return "\n".join(str(each["tail"]) for each in bad if each.get("tail"))

    def _last_left(self, node: str) -> list[tuple[JobId, Mapping[str, Any]]]:
        """What the instances of its last pass left, in their order. They may be dismissed by now. A
        fan that has made its instances is none of them."""
        names = dict.fromkeys(self._tx.workflows.instances(self._run, [node]).get(node, ()))
        keys = {name: output_key(name, self._run) for name in names}
        newest = {
            each.artifact: (each.job_id, each.data)
            for each in (self._tx.graph.markers([*keys.values()]) if keys else ())
            if each.data
        }
        left = {name: newest[key] for name, key in keys.items() if key in newest}
        last = max((data["pass"] for _, data in left.values()), default=0)
        several = node in self._job.params[OF_NODE]["several"]
        return [
            (job_id, data)
            for name, (job_id, data) in left.items()
            if data["pass"] == last
            and not (several and name == node and data["outcome"] == NodeOutcome.SUCCEEDED)
        ]

    def of_run(self, field: str) -> str:
        """`id`, `name`, or the state that all nodes but those of `finally` came to."""
        if field == "id":
            return shown_run(self._run)
        node = self._job.params[OF_NODE]
        if field == "name":
            return str(node["workflow"])
        record = self._tx.workflows.by_id([self._run])[self._run]
        return state_of(self._tx, record, besides=node["at_the_end"]).value

    def of_side(self, side: Mapping[str, Any]) -> Any:
        """The value of one side of a condition, or of the list of a fan."""
        if "node" in side:
            return self.of_node(side["node"], side["field"], side["output"])
        return self.of_run(side["run"]) if "run" in side else side["value"]

    def _of_job(self, job_id: JobId, field: str, output: str | None) -> Any:
        return self._field(job_id, self._left.get(job_id, NOTHING), field, output)

    def _field(self, job_id: JobId, left: Mapping[str, Any], field: str, output: str | None) -> Any:
        if output is not None:
            return left.get("outputs", {}).get(output)
        if field == "outcome":
            return self._outcomes.get(job_id, left.get(field))
        return left.get(field)


def run_views(tx: ReadTx, jobs: Iterable[Job]) -> dict[JobId, RunView]:
    """What the gates of nodes have to know, for those of these that are nodes of a run."""
    runs: dict[int, list[Job]] = {}
    for job in jobs:
        if job.workflow_run is not None:
            runs.setdefault(job.workflow_run, []).append(job)
    return {job.id: view for run, nodes in runs.items() for job, view in _views_of(tx, run, nodes)}


def _views_of(tx: ReadTx, run: int, jobs: Sequence[Job]) -> Iterator[tuple[Job, RunView]]:
    """Those of one run: what they all wait for is read at once."""
    sources = {job.id: [edge["source"] for edge in job.params[OF_NODE]["edges"]] for job in jobs}
    wanted = {name for names in sources.values() for name in names}
    ends: dict[str, list[NodeEnd]] = {name: [] for name in wanted}
    for end in tx.workflows.node_ends(run, wanted) if wanted else ():
        ends[end.node].append(end)
    for job in jobs:
        own = tuple(end for name in sources[job.id] for end in ends[name])
        compared = _compared(tx, job) if job.params[OF_NODE]["when"] else ()
        view = RunView(own, compared, run, behind=_run_before(tx, job))
        if own and approval_rule(job).expires is not None:
            view = view._replace(turn_at=tx.workflows.last_end(run, sources[job.id]))
        yield job, _with_loops(tx, job, view)


def _run_before(tx: ReadTx, job: Job) -> int | None:
    """The newest of the runs that its own stands in line behind and that have not ended."""
    behind = job.params[OF_NODE].get("behind", ())
    found = tx.workflows.by_id(behind) if behind else {}
    return max((run for run, each in found.items() if each.ended_at is None), default=None)


def _with_loops(tx: ReadTx, job: Job, view: RunView) -> RunView:
    """The same, with the loops that keep it from being decided."""
    node = job.params[OF_NODE]
    around = node.get("within", ())
    left = {head for edge in node["edges"] for head in edge.get("leaves", ())}
    if not around and not left:
        return view
    loops = RunLoops(tx, view.run)
    repeating = {head: loops.waited_for(head) for head in left if not loops.is_over(head)}
    called = loops.called()
    held = next((head for head in around if head in called), None)
    return view._replace(
        repeating=repeating, called=None if held is None else loops.waited_for(held)
    )


def _compared(tx: ReadTx, job: Job) -> tuple[tuple[Any, Any], ...]:
    conditions = job.params[OF_NODE]["when"]
    sides = [each[side] for each in conditions for side in ("left", "right")]
    values = NodeValues(tx, job, [side["node"] for side in sides if "node" in side])
    return tuple(
        (values.of_side(each["left"]), values.of_side(each["right"])) for each in conditions
    )
