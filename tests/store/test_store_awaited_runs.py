"""What every store knows of runs that are waited for as a whole."""

from recording import verbs
from stocked import add
from test_store_workflow_verbs import MANIFEST, record

from headway.core.routes import NodeOutcome
from headway.core.states import Status
from headway.store.records import NewNode
from headway.store.store import Store


@verbs("workflows.fans_behind", "workflows.last_end")
def test_the_fan_of_an_instance_and_the_last_end_of_nodes(store: Store) -> None:
    with store.write() as tx:
        fan, made, other = (add(tx).id for _ in range(3))
        run = tx.workflows.take_id()
        nodes = [
            NewNode("slow", "slow", fan, fan=True),
            NewNode("slow[0]", "slow", made),
            NewNode("a", "a", other),
        ]
        tx.workflows.add(record(run), key=None, manifest=MANIFEST, nodes=nodes)
        assert tx.workflows.last_end(run, ["slow", "a"]) is None
        job = tx.jobs.by_id([made])[made]
        assert tx.jobs.end_waiting(job, Status.CANCELLED, "not needed", None)
        tx.workflows.set_outcomes({made: NodeOutcome.CANCELLED})
        now = tx.now()
    with store.read() as tx:
        assert tx.workflows.fans_behind([made, other]) == [fan]
        assert tx.workflows.fans_behind([fan]) == []
        assert tx.workflows.last_end(run, ["slow"]) == now
        assert tx.workflows.last_end(run, ["a"]) is None


@verbs("waits.every_unmet")
def test_all_unmet_edges_of_a_job_are_read(store: Store) -> None:
    with store.write() as tx:
        before = [add(tx).id for _ in range(3)]
        job = add(tx, after=tuple(before))
        first = tx.jobs.by_id(before)[before[0]]
        assert tx.jobs.end_waiting(first, Status.CANCELLED, "not needed", None)
        tx.waits.chains_failed([first.chain])
    with store.read() as tx:
        found = tx.waits.every_unmet(job)
    assert [each.declared for each in found] == before
    assert found[0].status is Status.CANCELLED and found[1].status is Status.QUEUED
