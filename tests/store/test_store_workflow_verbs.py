"""What every store does with runs of workflows and their nodes."""

from recording import verbs
from stocked import SECOND, START, add

from headway.core.model import JobId
from headway.core.routes import InstanceEnd, LoopCount, LoopRule, NodeOutcome
from headway.core.states import Status
from headway.store.records import LoopRecord, NewNode, RunRecord
from headway.store.store import Store
from headway.store.transaction import WriteTx


def add_jobs(store: Store, count: int) -> list[JobId]:
    with store.write() as tx:
        return [add(tx).id for _ in range(count)]


MANIFEST = {"nodes": [], "leads_to": {"a": ["b"]}}


def record(run: int, **fields: object) -> RunRecord:
    return RunRecord(run, "flow", "1", "f" * 64, {"x": 1}, START, "ann")._replace(**fields)  # type: ignore[arg-type]


def add_run(tx: WriteTx, jobs: list[JobId], *, key: str | None = None) -> int:
    """A run with the nodes `a` and `b`, of which `b` has the other jobs as its instances."""
    run = tx.workflows.take_id()
    nodes = [NewNode("a", "a", jobs[0])]
    nodes += [NewNode(f"b[n={at}]", "b", each) for at, each in enumerate(jobs[1:])]
    tx.workflows.add(record(run), key=key, manifest=MANIFEST, nodes=nodes)
    return run


@verbs(
    *("workflows.take_id", "workflows.add", "workflows.by_id", "workflows.by_key"),
    *("workflows.manifest", "workflows.since"),
)
def test_a_run_is_kept_with_its_manifest(store: Store) -> None:
    first, second = add_jobs(store, 2)
    with store.write() as tx:
        one = add_run(tx, [first], key="once")
        other = add_run(tx, [second])
    with store.read() as tx:
        assert other == one + 1
        assert tx.workflows.by_id([one, 99]) == {one: record(one)}
        assert tx.workflows.by_key("once") == record(one) and tx.workflows.by_key("no") is None
        assert tx.workflows.manifest(one) == MANIFEST and tx.workflows.manifest(99) == {}
        assert [each.id for each in tx.workflows.since(0, 10)] == [other, one]
        assert [each.id for each in tx.workflows.since(0, 1)] == [other]


@verbs(
    *("workflows.nodes", "workflows.node_ends", "workflows.outcomes", "workflows.outcomes_of"),
    *("workflows.set_outcomes", "workflows.active", "workflows.at_rest"),
)
def test_a_node_stands_as_the_last_job_of_its_chain(store: Store) -> None:
    jobs = add_jobs(store, 3)
    with store.write() as tx:
        run = add_run(tx, jobs)
        assert [job.id for job in tx.workflows.active(run)] == jobs
        job = tx.jobs.by_id(jobs)[jobs[0]]
        assert tx.jobs.end_waiting(job, Status.CANCELLED, "not needed", None)
        tx.workflows.set_outcomes({jobs[0]: NodeOutcome.CANCELLED})
    with store.read() as tx:
        first, *others = tx.workflows.nodes(run)
        assert (first.node, first.job_id, first.status) == ("a", jobs[0], Status.CANCELLED)
        assert first.outcome is NodeOutcome.CANCELLED and first.reason == "not needed"
        assert [each.node for each in others] == ["b[n=0]", "b[n=1]"]
        ends = tx.workflows.node_ends(run, ["b"])
        assert [(each.node, each.chain, each.outcome) for each in ends] == [
            ("b", jobs[1], None),
            ("b", jobs[2], None),
        ]
        by_node = dict(tx.workflows.outcomes(run))
        assert by_node["a"] == InstanceEnd(NodeOutcome.CANCELLED) and by_node["b"].outcome is None
        assert tx.workflows.at_rest([run]) == []
        assert tx.workflows.outcomes_of(jobs[:2]) == {jobs[0]: "cancelled", jobs[1]: None}
        assert [job.id for job in tx.workflows.active(run)] == jobs[1:]


@verbs("workflows.end", "workflows.stop", "workflows.reopen")
def test_a_run_ends_once_and_goes_on_when_a_node_is_rewound(store: Store) -> None:
    jobs = add_jobs(store, 2)
    with store.write() as tx:
        run = add_run(tx, jobs)
        assert tx.workflows.stop(run, "bob") and not tx.workflows.stop(run, "eve")
        tx.workflows.set_outcomes(dict.fromkeys(jobs, NodeOutcome.CANCELLED))
        assert [each.id for each in tx.workflows.at_rest([run])] == [run]
        assert tx.workflows.end(run, "cancelled") and not tx.workflows.end(run, "failed")
        assert tx.workflows.at_rest([run]) == [], "it has ended"
        assert not tx.workflows.stop(run, "eve"), "it has ended"
        found = tx.workflows.by_id([run])[run]
        assert (found.state, found.stopped_by, found.ended_at) == ("cancelled", "bob", tx.now())
        tx.workflows.set_outcomes({jobs[0]: NodeOutcome.FAILED})
        assert tx.workflows.reopen([jobs[0]]) == {run: None}, "it has no deadline"
        assert tx.workflows.by_id([run])[run] == record(run)
        ends = {end.outcome for _, end in tx.workflows.outcomes(run)}
        assert ends == {None, NodeOutcome.CANCELLED}
        assert [each.passes for each in tx.workflows.nodes(run)] == [2, 1]


@verbs("workflows.set_deadline", "workflows.next_deadline", "workflows.past_deadline")
def test_the_next_deadline_is_that_of_a_run_that_goes_on(store: Store) -> None:
    jobs = add_jobs(store, 3)
    with store.write() as tx:
        runs = [add_run(tx, [each]) for each in jobs]
        assert tx.workflows.next_deadline() is None
        now = tx.now()
        for run, deadline in zip(runs, (now - SECOND, now - 1, now + SECOND), strict=True):
            tx.workflows.set_deadline(run, deadline)
        tx.workflows.end(runs[0], "succeeded")
        assert [each.id for each in tx.workflows.past_deadline()] == [runs[1]]
        assert tx.workflows.next_deadline() == now - 1
        tx.workflows.stop(runs[1], "timeout")
        assert tx.workflows.past_deadline() == []
        assert tx.workflows.next_deadline() == now + SECOND
        assert tx.workflows.reopen([jobs[2]]) == {runs[2]: now + SECOND}


@verbs(
    *("workflows.add_loops", "workflows.loops", "workflows.set_count", "workflows.stop_loops"),
    *("workflows.reopen_loops", "workflows.set_unsettled", "workflows.unsettled"),
)
def test_a_loop_keeps_its_count(store: Store) -> None:
    rule = LoopRule("b", "a", frozenset({NodeOutcome.FAILED}), 3, SECOND)
    loop = LoopRecord(rule, tolerates=frozenset({NodeOutcome.BLOCKED}))
    (job,) = add_jobs(store, 1)
    with store.write() as tx:
        run = add_run(tx, [job])
        tx.workflows.add_loops(run, [loop])
        assert tx.workflows.loops(run) == [loop] and tx.workflows.unsettled() == []
        tx.workflows.set_unsettled(run, True)
        assert [each.id for each in tx.workflows.unsettled()] == [run]
        tx.workflows.set_count(run, "b", LoopCount(2, called=True, ended="why"))
        assert tx.workflows.loops(run)[0].so_far == LoopCount(2, called=True, ended="why")
        tx.workflows.stop_loops(run)
        assert tx.workflows.loops(run)[0].so_far == LoopCount(2, ended="why")
        tx.workflows.reopen_loops(run, ["a"])
        assert tx.workflows.loops(run)[0].so_far.used == 2, "that is another node"
        tx.workflows.reopen_loops(run, ["b"])
        assert tx.workflows.loops(run) == [loop]
        tx.workflows.set_unsettled(run, False)
        assert tx.workflows.unsettled() == []


@verbs("workflows.body_nodes", "workflows.open_chains", "workflows.close_bodies")
def test_what_is_within_a_loop_is_open_until_that_is_over(store: Store) -> None:
    inside, outside = add_jobs(store, 2)
    with store.write() as tx:
        run = tx.workflows.take_id()
        nodes = [NewNode("a", "a", inside, within=("a",)), NewNode("b", "b", outside)]
        tx.workflows.add(record(run), key=None, manifest=MANIFEST, nodes=nodes)
        (body,) = tx.workflows.body_nodes(run)
        assert (body.written, body.chain, body.within, body.open) == ("a", inside, ("a",), True)
        assert tx.workflows.open_chains([inside, outside]) == {inside: run}
        tx.workflows.close_bodies([inside])
        assert tx.workflows.open_chains([inside, outside]) == {}
        tx.workflows.reopen([inside, outside])
        assert tx.workflows.open_chains([inside, outside]) == {inside: run}


@verbs(
    *("workflows.add_instances", "workflows.instances", "workflows.made_by_fans"),
    *("workflows.fans_behind", "workflows.fans_to_expand", "workflows.dismiss"),
)
def test_instances_belong_to_their_fan_until_they_are_dismissed(store: Store) -> None:
    fan, one, two = add_jobs(store, 3)
    with store.write() as tx:
        run = tx.workflows.take_id()
        first = [NewNode("a", "a", fan, fan=True)]
        tx.workflows.add(record(run), key=None, manifest=MANIFEST, nodes=first)
        made = [NewNode("a[0]", "a", one), NewNode("a[1]", "a", two)]
        tx.workflows.add_instances(run, made)
        assert [each.node for each in tx.workflows.nodes(run)] == ["a", "a[0]", "a[1]"]
        assert sorted(tx.workflows.made_by_fans([fan])) == [one, two]
        assert tx.workflows.made_by_fans([one]) == []
        assert tx.workflows.fans_behind([two]) == [fan]
        assert tx.workflows.fans_to_expand(run) == [], "it has not succeeded"
        tx.workflows.dismiss([one, two])
        assert [each.node for each in tx.workflows.nodes(run)] == ["a"]
        assert tx.workflows.made_by_fans([fan]) == []
        assert sorted(tx.workflows.instances(run, ["a"])["a"]) == ["a", "a[0]", "a[1]"]
