"""What every store does with the verbs about direct calls, and how capacity counts them."""

import pytest
from recording import verbs
from stocked import BUDGET, HOST, SECOND, START, add, reservation, start

from headway.core.facts import Capacity
from headway.jobs.facts import count_capacity
from headway.store.records import Lending
from headway.store.store import Store
from headway.store.transaction import ReadTx
from headway.testing.clock import FakeClock


def counted(tx: ReadTx) -> Capacity:
    return count_capacity(tx, HOST.id, log_budget=BUDGET)


@verbs(
    "reservations.take_id",
    "reservations.add",
    "reservations.all",
    "reservations.by_token",
    "reservations.grant",
)
def test_a_reservation_is_kept_as_it_was_made_and_granted_once(
    store: Store, clock: FakeClock
) -> None:
    with store.write() as tx:
        assert [tx.reservations.take_id(), tx.reservations.take_id()] == [1, 2]
        second = reservation(2, inside=7, occupies=("type:review", "resource:gpu"))
        tx.reservations.add(second)
        tx.reservations.add(reservation(1))
    clock.advance(3)
    with store.write() as tx:
        assert tx.reservations.all() == [reservation(1), second], "in the order of their numbers"
        assert tx.reservations.by_token(second.token) == second
        assert tx.reservations.by_token("another") is None
        assert tx.reservations.grant(second.token, 7)
        assert not tx.reservations.grant(second.token, 7), "it has its slot already"
        assert not tx.reservations.grant("another", None)
    with store.read() as tx:
        granted = tx.reservations.all()[1]
    assert granted == second._replace(granted_at=START + 3 * SECOND)
    assert granted.name == "direct-2" and not granted.waits


@verbs("reservations.renew", "reservations.expire")
def test_a_reservation_that_is_not_renewed_expires(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        for number in (1, 2, 3):
            tx.reservations.add(reservation(number))
        assert tx.reservations.renew(reservation(2).token, START + 11 * SECOND)
        assert not tx.reservations.renew("another", START + 11 * SECOND)
        tx.reservations.grant(reservation(3).token, None)
        tx.claims.lend("t", Lending(reservation(3).occupant, 1, START + 60 * SECOND))
        every = [each.token for each in tx.reservations.all()]
        assert tx.reservations.expire(every) == []
    clock.advance(10)
    with store.write() as tx:
        assert tx.reservations.expire([]) == [] == tx.reservations.expire(["another"])
        assert [each.id for each in tx.reservations.expire(every[1:])] == [3]
        assert [each.id for each in tx.reservations.all()] == [1, 2]
        assert [each.id for each in tx.reservations.expire(every)] == [1]
        assert tx.claims.lendings() == [], "what it lent is gone with it"


@verbs("reservations.release")
def test_a_released_reservation_is_gone_with_what_it_lent(store: Store) -> None:
    with store.write() as tx:
        tx.reservations.add(reservation(1))
        tx.claims.lend("t", Lending(reservation(1).occupant, 1, START + 60 * SECOND))
        assert tx.reservations.release(reservation(1))
        assert tx.reservations.all() == [] and tx.claims.lendings() == []
        assert not tx.reservations.release(reservation(1))


def test_capacity_knows_the_first_that_waits_and_counts_those_with_a_slot(store: Store) -> None:
    with store.write() as tx:
        for number in (1, 2, 3):
            tx.reservations.add(reservation(number))
        tx.reservations.grant(reservation(1).token, None)
        told = counted(tx)
    assert told.running == 1
    assert told.reserved is not None and told.reserved.id == 2
    assert [each.id for each in told.granted] == [1]


@pytest.mark.parametrize("lives", [True, False])
def test_one_in_the_slot_of_its_job_counts_only_once_that_is_gone(
    store: Store, lives: bool
) -> None:
    with store.write() as tx:
        maker = add(tx)
        if lives:
            start(tx, maker)
        tx.reservations.add(reservation(1, inside=maker.id))
        assert (maker.id in counted(tx).unlent) is lives
        tx.reservations.grant(reservation(1).token, maker.id)
        told = counted(tx)
    assert told.running == 1
    assert maker.id not in told.unlent, "a slot is lent once"


def test_a_direct_call_that_waits_for_a_job_lends_its_slot_to_it(store: Store) -> None:
    with store.write() as tx:
        awaited = add(tx)
        tx.reservations.add(reservation(1))
        tx.claims.lend("t", Lending(-1, awaited.chain, START + 60 * SECOND))
        assert counted(tx).lenders == {}, "before it has a slot there is nothing to lend"
        tx.reservations.grant(reservation(1).token, None)
        assert counted(tx).lenders == {awaited.chain: (-1,)}
        start(tx, awaited, borrowed_from=-1)
        told = counted(tx)
    assert (told.running, told.lenders) == (1, {})
