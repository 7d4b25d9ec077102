"""What every store does with runs of workflows and their nodes."""

from recording import verbs
from stocked import SECOND, START, add

from headway.core.model import JobId
from headway.core.routes import NodeOutcome
from headway.core.states import Status
from headway.store.records import NewNode, RunRecord
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
    *("workflows.set_outcome", "workflows.active"),
)
def test_a_node_stands_as_the_last_job_of_its_chain(store: Store) -> None:
    jobs = add_jobs(store, 3)
    with store.write() as tx:
        run = add_run(tx, jobs)
        assert [job.id for job in tx.workflows.active(run)] == jobs
        job = tx.jobs.by_id(jobs)[jobs[0]]
        assert tx.jobs.end_waiting(job, Status.CANCELLED, "not needed", None)
        tx.workflows.set_outcome(jobs[0], NodeOutcome.CANCELLED)
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
        assert tx.workflows.outcomes(run)[0] == ("a", NodeOutcome.CANCELLED)
        assert tx.workflows.outcomes_of(jobs[:2]) == {jobs[0]: "cancelled", jobs[1]: None}
        assert [job.id for job in tx.workflows.active(run)] == jobs[1:]


@verbs("workflows.end", "workflows.stop", "workflows.reopen")
def test_a_run_ends_once_and_goes_on_when_a_node_is_rewound(store: Store) -> None:
    jobs = add_jobs(store, 2)
    with store.write() as tx:
        run = add_run(tx, jobs)
        assert tx.workflows.stop(run, "bob") and not tx.workflows.stop(run, "eve")
        assert tx.workflows.end(run, "cancelled") and not tx.workflows.end(run, "failed")
        assert not tx.workflows.stop(run, "eve"), "it has ended"
        found = tx.workflows.by_id([run])[run]
        assert (found.state, found.stopped_by, found.ended_at) == ("cancelled", "bob", tx.now())
        tx.workflows.set_outcome(jobs[0], NodeOutcome.FAILED)
        assert tx.workflows.reopen([jobs[0]]) == [], "none of them has a deadline"
        assert tx.workflows.by_id([run])[run] == record(run)
        assert tx.workflows.outcomes(run)[0] == ("a", None)


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
        assert tx.workflows.reopen([jobs[2]]) == [runs[2]]
