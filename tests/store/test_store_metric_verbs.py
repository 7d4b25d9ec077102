"""What metrics and checks of readiness ask of a store."""

import pytest
from recording import verbs
from stocked import SECOND, START, add, parking
from test_store_webhook_verbs import new

from headway.base.errors import SchemaTooNewError
from headway.core.model import Stage, Wait, WaitKind
from headway.core.states import Status
from headway.core.webhooks import DeliveryState
from headway.store.records import EndedDeliveries, PendingDeliveries
from headway.store.store import Store
from headway.testing.clock import FakeClock


@verbs("jobs.count_waits", "jobs.oldest_ready")
def test_waits_are_counted_by_kind_and_the_oldest_ready_job_is_found(store: Store) -> None:
    capacity, time = Wait(WaitKind.CAPACITY, "one slot"), Wait(WaitKind.TIME, "not yet")
    with store.write() as tx:
        assert tx.jobs.count_waits() == {} and tx.jobs.oldest_ready() is None
        jobs = [add(tx, created_at=START + each) for each in (30, 10, 20, 0)]
        ready = {"status": Status.QUEUED, "stage": Stage.READY, "wait": capacity}
        tx.waits.park([parking(each, **ready) for each in jobs[:2]])
        tx.waits.park([parking(jobs[2], "time", status=Status.QUEUED, wait=time)])
    with store.read() as tx:
        assert tx.jobs.count_waits() == {WaitKind.CAPACITY: 2, WaitKind.TIME: 1}
        assert tx.jobs.oldest_ready() == START + 10, "not the one that nobody looked at"


@verbs("webhooks.pending", "webhooks.ended")
def test_deliveries_are_summed_by_endpoint(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        tx.webhooks.add_deliveries([new(1), new(2), new(3, 2)])
    clock.advance(10)
    with store.write() as tx:
        tx.webhooks.add_deliveries([new(4)])
        assert tx.webhooks.fail_all("endpoint-2", "gone") == 1
    with store.read() as tx:
        assert tx.webhooks.pending() == {1: PendingDeliveries(3, START, START)}
        ended = EndedDeliveries(2, DeliveryState.FAILED, 1, START + 10 * SECOND)
        assert tx.webhooks.ended(START, 0) == [ended]
        assert tx.webhooks.ended(START + 10 * SECOND, 0) == []
        assert tx.webhooks.ended(START, START + 1) == [], "made before"


@verbs("check_schema", "size")
def test_a_store_knows_its_size_and_whether_its_schema_is_known(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.size() > 4096
    store.check_schema()
    monkeypatch.setattr("headway.store.queries.schema_version", lambda: 1)
    with pytest.raises(SchemaTooNewError, match="this Headway knows 1"):
        store.check_schema()
