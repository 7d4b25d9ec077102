"""What every store tells of its past, in a bounded number of rows."""

from recording import verbs
from stocked import SECOND, START, add
from test_store_workflow_verbs import add_run, record

from headway.core.groups import Group, GroupMode
from headway.core.model import JobId
from headway.core.states import Status
from headway.store.new_jobs import Event
from headway.store.records import NewNode
from headway.store.store import Store
from headway.store.tables.statistics import (
    AgentEnd,
    ChainMember,
    Life,
    NodeChain,
    QueueEvent,
    Spent,
)
from lives import lived


def at(seconds: int) -> int:
    return START + seconds * SECOND


def ended(store: Store, seconds: int, **fields: object) -> JobId:
    status = Status(str(fields.pop("status", "succeeded")))
    return lived(store, status, at(0), at(1), at(seconds), **fields)  # type: ignore[arg-type]


@verbs("statistics.ended", "statistics.count_ended")
def test_the_newest_that_ended_are_read_the_last_first(store: Store) -> None:
    for seconds in (5, 70, 65, 130):
        ended(store, seconds, slot=seconds, not_before=at(-1))
    lived(store, Status.CANCELLED, at(0), None, at(66))
    lived(store, Status.QUEUED, at(0))
    with store.read() as tx:
        found = tx.statistics.ended(at(60), most=10)
        assert [each.finished_at for each in found] == [at(130), at(70), at(66), at(65)]
        assert found[0] == Life("succeeded", at(0), at(-1), at(1), at(130), 130)
        assert found[2] == Life("cancelled", at(0), None, None, at(66), None)
        assert tx.statistics.ended(at(60), most=2) == found[:2]
        counted = {"until": at(130), "most": 10}
        assert tx.statistics.count_ended(at(0), 60 * SECOND, **counted) == {0: 1, 1: 3}
        counted = {"until": at(200), "most": 2}
        assert tx.statistics.count_ended(at(0), 60 * SECOND, **counted) == {1: 1, 2: 1}


@verbs("statistics.running", "statistics.waiting")
def test_what_runs_and_what_waits_is_counted(store: Store) -> None:
    lived(store, Status.RUNNING, at(0), at(7), slot=2)
    ended(store, 9)
    for seconds in (-500, 10, 70, 80):
        lived(store, Status.QUEUED, at(seconds))
    with store.read() as tx:
        assert tx.statistics.running(most=5) == [Life("running", at(0), None, at(7), None, 2)]
        assert tx.statistics.running(most=0) == []
        assert tx.statistics.waiting(at(0), 60 * SECOND, most=9) == {-1: 1, 0: 1, 1: 2}
        assert sum(tx.statistics.waiting(at(0), 60 * SECOND, most=3).values()) == 3


@verbs("statistics.newest_job", "statistics.jobs_named", "statistics.jobs_of_schedule")
def test_of_a_chain_only_the_last_job_counts(store: Store) -> None:
    with store.read() as tx:
        assert tx.statistics.newest_job() == 0
    said = {"name": "build", "schedule_id": "schedule-7"}
    one = ended(store, 5, status="failed", **said)
    two = ended(store, 6, chain=one, retry_of=one, **said)
    three = ended(store, 7, **said)
    other = ended(store, 8)
    with store.read() as tx:
        found = tx.statistics
        assert found.newest_job() == other
        assert [each.id for each in found.jobs_named("build", 9, low=0)] == [three, two]
        assert [each.id for each in found.jobs_named("build", 1, low=0)] == [three]
        assert [each.id for each in found.jobs_named("build", 9, low=three)] == [three]
        assert [each.id for each in found.jobs_of_schedule("schedule-7", 9)] == [three, two]
        assert [each.id for each in found.jobs_of_schedule("schedule-7", 1)] == [three]


@verbs("statistics.newest_run", "statistics.runs_of_workflow", "statistics.runs_of_schedule")
def test_the_runs_of_a_workflow_are_the_newest_first(store: Store) -> None:
    with store.write() as tx:
        assert tx.statistics.newest_run() == 0
        jobs = [add(tx, schedule_id=of).id for of in ("schedule-7", "schedule-7", "schedule-8")]
        runs = [add_run(tx, [each]) for each in jobs]
    with store.read() as tx:
        found = tx.statistics
        assert found.newest_run() == runs[2]
        assert [each.id for each in found.runs_of_workflow("flow", 9, low=0)] == runs[::-1]
        assert [each.id for each in found.runs_of_workflow("flow", 1, low=0)] == runs[2:]
        assert [each.id for each in found.runs_of_workflow("flow", 9, low=runs[2])] == runs[2:]
        assert found.runs_of_workflow("other", 9, low=0) == []
        of_schedule = found.runs_of_schedule("schedule-7", 9, most=100)
        assert [each.id for each in of_schedule] == [runs[1], runs[0]]
        of_schedule = found.runs_of_schedule("schedule-7", 9, most=1)
        assert [each.id for each in of_schedule] == [runs[1]]


@verbs("statistics.agents_ended", "statistics.spent")
def test_agents_of_runs_count_with_their_runs(store: Store) -> None:
    alone = ended(store, 5, type="agent")
    ended(store, 6, type="agent", workflow_run=1)
    ended(store, 7)
    lived(store, Status.CANCELLED, at(0), None, at(8), type="agent")
    with store.write() as tx:
        jobs = [add(tx).id for _ in range(3)]
        over, going, idle = (add_run(tx, [each]) for each in jobs)
        tx.workflows.spend(over, usd=2_000_000, tokens=10)
        tx.workflows.spend(going, usd=0, tokens=5)
        tx.workflows.end(over, "succeeded")
        tx.workflows.end(idle, "succeeded")
    with store.read() as tx:
        assert tx.statistics.agents_ended(at(0), most=9) == [AgentEnd(alone, at(5))]
        assert tx.statistics.agents_ended(at(6), most=9) == []
        assert tx.statistics.agents_ended(at(0), most=2) == []
        found = tx.statistics.spent(START, 9)
        assert found == [Spent(START, 2_000_000, 10), Spent(None, 0, 5)]
        assert tx.statistics.spent(START, 1) == found[:1]
        assert tx.statistics.spent(START + 1, 9) == found[1:]


@verbs("statistics.chains_of_run", "statistics.chains_of_group", "statistics.of_chains")
def test_a_timeline_knows_all_jobs_of_its_chains(store: Store) -> None:
    with store.write() as tx:
        first = add(tx)
        run = tx.workflows.take_id()
        nodes = [NewNode("b[n=1]", "b", first.id)]
        tx.workflows.add(record(run), key=None, manifest={}, nodes=nodes)
        group = Group(tx.groups.take_id(), GroupMode.SEQUENTIAL, "stop", START, "ann").id
        members = [add(tx, group_id=group, sequence_number=each).id for each in (2, 1)]
    retried = ended(store, 5, name="again", chain=first.id, retry_of=first.id)
    with store.read() as tx:
        assert tx.statistics.chains_of_run(run, 5) == [NodeChain(first.id, "b[n=1]", "b", 1)]
        assert tx.statistics.chains_of_run(run, 0) == []
        assert tx.statistics.chains_of_group(group, 5) == members[::-1]
        assert tx.statistics.chains_of_group(group, 1) == members[1:]
        found = tx.statistics.of_chains([first.id, members[0]], 5)
        assert [each.id for each in found] == [first.id, retried, members[0]]
        assert found[1] == ChainMember(retried, first.id, "again", "succeeded", at(0), at(1), at(5))
        assert tx.statistics.of_chains([first.id], 1) == found[:1]


@verbs("statistics.queue_events")
def test_the_events_of_the_queue_are_read_by_job(store: Store) -> None:
    with store.write() as tx:
        one, two = add(tx).id, add(tx).id
        said = {"wait": "locks", "detail": "lock repo"}
        made = [("waiting_on_locks", two, said), ("running", one, {}), ("edited", one, {})]
        tx.events.add([Event(kind, job, data) for kind, job, data in made], actor="ann")
        tx.events.add([Event("unclaimed", two, {"cause": "gone"})], actor="ann")
    with store.read() as tx:
        found = tx.statistics.queue_events([one, two], 9)
        assert [each._replace(at=0) for each in found] == [
            QueueEvent(one, 0, "running", "", ""),
            QueueEvent(two, 0, "waiting_on_locks", "locks", "lock repo"),
            QueueEvent(two, 0, "unclaimed", "", ""),
        ]
        assert tx.statistics.queue_events([two], 1) == found[1:2]
