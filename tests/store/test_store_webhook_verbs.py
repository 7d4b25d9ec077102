"""Endpoints, the URLs of jobs and deliveries, on both stores."""

from typing import Any

from recording import verbs
from stocked import START, add

from headway.core.states import Status
from headway.core.webhooks import (
    ENDS,
    JOBS,
    Delivery,
    DeliveryState,
    Endpoint,
    EndpointState,
)
from headway.store.new_jobs import Event
from headway.store.records import JobUrl, NewDelivery, Try
from headway.store.rows import COLUMNS
from headway.store.store import Store
from headway.store.tables.webhooks import endpoint_of, receiver_of
from headway.store.transaction import WriteTx
from headway.testing.clock import FakeClock

SECOND = 1_000_000
PENDING, DELIVERED, FAILED = DeliveryState


def endpoint(tx: WriteTx, name: str = "ci", **changes: Any) -> Endpoint:
    made = Endpoint(
        id=tx.webhooks.take_id(),
        name=name,
        url=f"https://{name}.example/",
        types=("job.*", "group.ended"),
        schedule="quick",
        state=EndpointState.ACTIVE,
        reason=None,
        since=7,
        fingerprint="sha256:1",
        old_fingerprint="sha256:0",
        overlap_until=9,
        holders=frozenset({"a", "b"}),
        failures=1,
        failing_since=2,
        held_until=3,
        created_at=tx.now(),
        created_by="ada",
        changed_at=tx.now(),
    )._replace(**changes)
    tx.webhooks.add(made)
    return made


def new(number: int, to: int = 1, **changes: Any) -> NewDelivery:
    return NewDelivery(
        id=f"e-{number}-{to}",
        endpoint=to,
        receiver=receiver_of(to),
        url=None,
        type="job.completed",
        seq=number,
        job_id=number,
        chain=number,
        body=f'{{"n":{number}}}',
    )._replace(**changes)


def states(store: Store) -> dict[str, str]:
    with store.read() as tx:
        found = [row for each in DeliveryState for row in tx.webhooks.newest(each, 0, 1_000)]
    return {each.id: each.state.value for each in found}


def test_the_columns_are_the_fields() -> None:
    assert COLUMNS["ENDPOINT"].split(", ") == list(Endpoint._fields)
    assert [*COLUMNS["DELIVERY"].split(", "), "body"] == list(Delivery._fields)


@verbs(
    *("webhooks.take_id", "webhooks.add", "webhooks.endpoints", "webhooks.endpoint"),
    *("webhooks.named", "webhooks.change", "webhooks.remove"),
)
def test_an_endpoint_is_added_changed_and_removed(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        first, second = endpoint(tx), endpoint(tx, "two")
    with store.read() as tx:
        assert list(tx.webhooks.endpoints()) == [JOBS, 1, 2]
        assert tx.webhooks.endpoint(1) == first == tx.webhooks.named("ci")
        assert tx.webhooks.endpoint(9) is None and tx.webhooks.named("none") is None
        assert tx.webhooks.endpoints()[JOBS].fingerprint == ""
    clock.advance(5)
    changed = second._replace(
        state=EndpointState.PAUSED,
        reason="why",
        since=8,
        fingerprint="sha256:2",
        old_fingerprint=None,
        overlap_until=None,
        holders=frozenset(),
        failures=0,
        failing_since=None,
        held_until=None,
    )
    with store.write() as tx:
        tx.webhooks.change(changed)
        tx.webhooks.add_deliveries([new(1, 1), new(1, 2)])
        tx.webhooks.remove(1)
    with store.read() as tx:
        assert tx.webhooks.endpoint(2) == changed._replace(changed_at=START + 5 * SECOND)
        assert list(tx.webhooks.endpoints()) == [JOBS, 2]
    assert states(store) == {"e-1-2": "pending"}


@verbs("webhooks.cursor", "webhooks.begin", "webhooks.end", "webhooks.move_cursor")
def test_the_cursor_begins_with_the_first_that_listens_and_ends_with_the_last(
    store: Store,
) -> None:
    with store.write() as tx:
        assert tx.webhooks.cursor() == -1 == tx.settings.marks()["webhook_cursor"]
        tx.events.add([Event("paused"), Event("resumed")], actor="ada")
        last = tx.events.last()
        made = endpoint(tx)
        tx.events.add([Event("paused")], actor="ada")
        endpoint(tx, "two")
        tx.webhooks.begin()
        assert tx.webhooks.cursor() == last, "the second changes nothing"
        assert tx.settings.marks()["webhook_cursor"] == last
    with store.write() as tx:
        assert tx.webhooks.move_cursor(last, last + 1)
        assert not tx.webhooks.move_cursor(last, last + 1)
        assert tx.webhooks.cursor() == last + 1
        tx.webhooks.remove(2)
        assert not tx.webhooks.end()
        tx.webhooks.change(made._replace(state=EndpointState.DISABLED))
        tx.webhooks.add_deliveries([new(1)])
        assert not tx.webhooks.end(), "something is still to be sent"
        tx.webhooks.remove(made.id)
        assert tx.webhooks.end() and not tx.webhooks.end()
        assert tx.webhooks.cursor() == -1


@verbs("webhooks.any_urls", "webhooks.urls_of", "webhooks.close_urls", "webhooks.beyond_cursor")
def test_the_urls_of_a_chain_are_there_until_its_end_is_behind_the_cursor(store: Store) -> None:
    urls = ("https://b.example/", "https://a.example/")
    with store.write() as tx:
        assert not tx.webhooks.any_urls() and tx.webhooks.cursor() == -1
        job, plain = add(tx, webhooks=urls), add(tx)
        tx.events.add([Event("submitted", job.id)], actor="ada")
        assert tx.webhooks.any_urls() and tx.webhooks.cursor() == 0
        assert tx.webhooks.urls_of([job.chain, plain.chain]) == {
            job.chain: [JobUrl(each, ENDS) for each in sorted(urls)]
        }
        tx.webhooks.close_urls([job.chain], tx.events.last())
        assert tx.webhooks.any_urls(), "it has not ended"
        tx.jobs.end_waiting(job, Status.CANCELLED, "why", None)
        tx.events.add([Event("cancelled", job.id)], actor="ada")
        end = tx.events.last()
        chains = [job.chain, plain.chain]
        assert tx.webhooks.beyond_cursor(chains, end - 1, 0) == {job.chain: job.id}
        assert tx.webhooks.beyond_cursor(chains, end - 1, tx.now()) == {}
        assert tx.webhooks.beyond_cursor(chains, end, 0) == {}
        tx.webhooks.close_urls([job.chain], end - 1)
        assert tx.webhooks.any_urls(), "its end is yet to be made a delivery of"
        tx.webhooks.close_urls([job.chain], end)
        assert not tx.webhooks.any_urls()
        known = tx.jobs.by_id([job.id])[job.id]
        retry = known._replace(
            id=tx.jobs.take_ids(1), retry_of=job.id, status=Status.QUEUED, finished_at=None
        )
        tx.jobs.add_retries([retry])
        assert set(tx.webhooks.urls_of([job.chain])) == {job.chain}, "a retry has them again"


@verbs(
    *("webhooks.add_deliveries", "webhooks.receivers", "webhooks.lease", "webhooks.give_back"),
    *("webhooks.record_delivered", "webhooks.record_failure", "webhooks.delivery"),
)
def test_a_delivery_is_leased_sent_and_written_down_under_its_lease(
    store: Store, clock: FakeClock
) -> None:
    mine = new(4, JOBS, receiver="https://x.example", url="https://x.example/p")
    with store.write() as tx:
        tx.webhooks.add_deliveries([new(1), new(2), new(3), mine])
        tx.webhooks.add_deliveries([new(1, body="another")])
        one = tx.webhooks.delivery("e-1-1")
        assert one is not None and one.body == '{"n":1}', "one that is there stays as it is"
        assert tx.webhooks.delivery("e-9-1") is None
        assert tx.webhooks.receivers() == {"endpoint-1": START, "https://x.example": START}
        assert [endpoint_of(each) for each in sorted(tx.webhooks.receivers())] == [1, JOBS]
    until = START + 60 * SECOND
    with store.write() as tx:
        first = tx.webhooks.lease("endpoint-1", lease="a", until=until, limit=2)
        second = tx.webhooks.lease("endpoint-1", lease="b", until=until, limit=5)
        (own,) = tx.webhooks.lease("https://x.example", lease="c", until=until, limit=5)
        assert (len(first), len(second), own.url) == (2, 1, mine.url)
        assert own.body == mine.body and own.lease == "c"
        assert tx.webhooks.lease("endpoint-1", lease="d", until=until, limit=5) == []
        assert tx.webhooks.receivers()["endpoint-1"] == until
        tx.webhooks.give_back([(second[0].id, "b"), (own.id, "not its own")])
    with store.write() as tx:
        assert tx.webhooks.lease("https://x.example", lease="d", until=until, limit=5) == []
        (again,) = tx.webhooks.lease("endpoint-1", lease="d", until=until, limit=5)
        assert again.id == second[0].id
        good = Try(first[0].id, "a", 204, None)
        tx.webhooks.record_delivered([good, good._replace(id=first[1].id, lease="stale")])
        bad = Try(first[1].id, "a", 500, "no")
        assert tx.webhooks.record_failure(bad, START + 90 * SECOND)
        assert not tx.webhooks.record_failure(bad, None), "its lease is over"
        assert tx.webhooks.record_failure(Try(again.id, "d", None, "late"), None)
        kept = [tx.webhooks.delivery(each.id) for each in (*first, again)]
        assert [
            (each.state, each.tries, each.status_code, each.error) for each in kept if each
        ] == [
            (DELIVERED, 1, 204, None),
            (PENDING, 1, 500, "no"),
            (FAILED, 1, None, "late"),
        ]
        assert [each.ended_at for each in kept if each] == [START, None, START]
        assert tx.webhooks.receivers()["endpoint-1"] == START + 90 * SECOND
    clock.advance(61)
    with store.write() as tx:
        taken = tx.webhooks.lease("https://x.example", lease="e", until=until, limit=5)
        assert [each.id for each in taken] == [own.id], "its lease has ended"


@verbs(
    *("webhooks.fail_all", "webhooks.fail_old", "webhooks.forget", "webhooks.replay"),
    "webhooks.replay_failed",
)
def test_deliveries_fail_are_sent_again_and_are_forgotten(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        tx.webhooks.add_deliveries([new(1), new(2), new(3, 2), new(5)])
        assert tx.webhooks.fail_all("endpoint-1", "gone") == 3
        assert not tx.webhooks.replay("e-3-2"), "it is pending"
        assert tx.webhooks.replay("e-1-1")
    clock.advance(100)
    with store.write() as tx:
        tx.webhooks.add_deliveries([new(4, 2)])
        assert tx.webhooks.replay("e-5-1"), "it waits from now on"
        old = tx.webhooks.fail_old(START + 50 * SECOND, "too long")
        assert sorted((each.id, each.endpoint, each.error) for each in old) == [
            ("e-1-1", 1, "too long"),
            ("e-3-2", 2, "too long"),
        ]
        assert tx.webhooks.fail_old(START + 50 * SECOND, "too long") == []
    assert states(store) == {
        "e-1-1": "failed",
        "e-2-1": "failed",
        "e-3-2": "failed",
        "e-4-2": "pending",
        "e-5-1": "pending",
    }
    with store.write() as tx:
        assert tx.webhooks.replay_failed(START + 1) == 0
        assert tx.webhooks.forget(FAILED, START + 50 * SECOND, 10) == 1, "by when it ended"
        assert tx.webhooks.forget(FAILED, START + 200 * SECOND, 1) == 1
        assert tx.webhooks.forget(DELIVERED, START + 200 * SECOND, 10) == 0
        assert tx.webhooks.replay_failed(START) == 1
    assert set(states(store).values()) == {"pending"}


@verbs("webhooks.newest", "webhooks.of_chain", "webhooks.counts")
def test_deliveries_are_found_the_newest_first(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        tx.webhooks.add_deliveries([new(1), new(1, 2)])
    clock.advance(10)
    with store.write() as tx:
        tx.webhooks.add_deliveries([new(2), new(3, chain=1, job_id=3)])
    with store.read() as tx:
        found = [each.id for each in tx.webhooks.newest(PENDING, 0, 3)]
        assert found == ["e-3-1", "e-2-1", "e-1-2"]
        assert len(tx.webhooks.newest(PENDING, START + 1, 9)) == 2
        assert tx.webhooks.newest(FAILED, 0, 9) == []
        assert [each.id for each in tx.webhooks.of_chain(1, 0)] == ["e-3-1", "e-1-2", "e-1-1"]
        assert [each.id for each in tx.webhooks.of_chain(1, START + 1)] == ["e-3-1"]
        assert tx.webhooks.counts() == {1: {PENDING: 3}, 2: {PENDING: 1}}
