"""What every store does with the verbs about where jobs stand."""

from itertools import product

from recording import verbs
from stocked import START, add, finish_of, parking, start

from headway.core.model import FUNCTIONS, Lock, Stage
from headway.core.order import AFTER_ALL, BEFORE_ALL, Levelled, Neighbours, Standing, just_before
from headway.store.store import Store


@verbs("queue_order.neighbours")
def test_neighbours_are_found_by_position_age_and_id(store: Store) -> None:
    with store.write() as tx:
        one = add(tx, position=100)
        two = add(tx, position=200, created_at=START + 1)
        three = add(tx, position=200)
        four = add(tx, position=200)
        add(tx, position=150, priority=5)
        stand = {each.id: Standing(each.id, *each.order[1:3]) for each in (one, two, three, four)}
        in_order = [stand[each.id] for each in (one, three, four, two)]
        assert tx.queue_order.neighbours(0, BEFORE_ALL, 0, 9) == Neighbours((), tuple(in_order))
        assert tx.queue_order.neighbours(0, AFTER_ALL, 0, 9) == Neighbours(
            tuple(in_order[::-1]), ()
        )
        place = four.order[1:]
        after_four = Neighbours((stand[four.id], stand[three.id]), (stand[two.id],))
        assert tx.queue_order.neighbours(0, place, 0, 2) == after_four
        before_four = tx.queue_order.neighbours(0, just_before(place), 0, 1)
        assert before_four == Neighbours((stand[three.id],), (stand[four.id],))
        assert tx.queue_order.neighbours(0, place, four.id, 1).before == (stand[three.id],)
        assert tx.queue_order.neighbours(7, place, 0, 9) == Neighbours()


@verbs(
    "queue_order.neighbours",
    "queue_order.nth_of_level",
    "queue_order.waiting",
    "queue_order.ids",
    "queue_order.in_dispatch_order",
)
def test_only_what_waits_has_a_place(store: Store) -> None:
    with store.write() as tx:
        running, ended, first, second = (add(tx) for _ in range(4))
        urgent = add(tx, priority=3, position=-100)
        start(tx, running, 1)
        tx.claims.finish([finish_of(start(tx, ended, 2))])
        assert [each.id for each in tx.queue_order.waiting(9)] == [urgent.id, first.id, second.id]
        assert [each.id for each in tx.queue_order.waiting(2)] == [urgent.id, first.id]
        assert tx.queue_order.ids(9) == [urgent.id, first.id, second.id]
        assert tx.queue_order.ids(2) == [urgent.id, first.id]
        assert tx.queue_order.nth_of_level(0, 0, 0) == Standing(first.id, *first.order[1:3])
        assert tx.queue_order.nth_of_level(0, 0, first.id) == Standing(
            second.id, *second.order[1:3]
        )
        assert tx.queue_order.nth_of_level(0, 2, 0) is None
        around = tx.queue_order.neighbours(0, BEFORE_ALL, 0, 9)
        assert [each.id for each in around.after] == [first.id, second.id]
        order = [each.id for each in tx.queue_order.in_dispatch_order()]
        assert order == [urgent.id, running.id, first.id, second.id]


@verbs(
    "queue_order.neighbours",
    "queue_order.nth_of_level",
    "queue_order.waiting",
    "jobs.anything_active",
    "jobs.active",
)
def test_functions_and_commands_stand_in_one_line_in_every_stage(store: Store) -> None:
    """They are found by different indexes."""
    stages = (Stage.WOKEN, Stage.READY, Stage.PARKED)
    queues = ("", FUNCTIONS, "host:a")
    with store.write() as tx:
        assert not tx.jobs.anything_active()
        jobs = [
            add(tx, position=position, queue=queue, stage=stage)
            for position, (stage, queue) in enumerate(product(stages, queues), 1)
        ]
        ids = [each.id for each in jobs]
        assert [each.id for each in tx.queue_order.waiting(20)] == ids
        assert [each.id for each in tx.queue_order.waiting(4)] == ids[:4]
        assert sorted(each.id for each in tx.jobs.active()) == ids
        for place, job in enumerate(jobs):
            around = tx.queue_order.neighbours(0, job.order[1:], job.id, 3)
            before, after = ids[max(0, place - 3) : place], ids[place + 1 : place + 4]
            assert [each.id for each in around.before] == before[::-1]
            assert [each.id for each in around.after] == after
            nth = tx.queue_order.nth_of_level(0, place, 0)
            assert nth is not None and nth.id == job.id
        assert tx.queue_order.nth_of_level(0, len(jobs), 0) is None
        assert tx.jobs.anything_active()


@verbs("queue_order.in_dispatch_order", "jobs.add_retries")
def test_a_chain_is_as_old_as_its_first_job(store: Store) -> None:
    with store.write() as tx:
        first = add(tx, created_at=START - 7)
        claim = start(tx, first)
        tx.claims.finish([finish_of(claim)])
        again = first._replace(
            id=tx.jobs.take_ids(1), retry_of=first.id, created_at=START, level=-4
        )
        tx.jobs.add_retries([again])
        born = START - 7
        assert tx.queue_order.in_dispatch_order() == [
            Levelled(again.id, 0, born, -4, first.position)
        ]


@verbs("queue_order.place", "claims.lock_views", "queue_order.locks_waited_for")
def test_a_place_is_changed_wherever_it_is_kept(store: Store) -> None:
    with store.write() as tx:
        one, two = (add(tx, locks=(Lock("k"),)) for _ in range(2))
        ended = add(tx)
        assert tx.queue_order.locks_waited_for() == []
        tx.waits.park([parking(each, "lock:k", reserves=True) for each in (one, two)])
        tx.claims.finish([finish_of(start(tx, ended))])
        tx.queue_order.place([(one.id, 0, 900), (two.id, 2, -5), (ended.id, 4, 4)])
        tx.queue_order.place([])
    with store.read() as tx:
        jobs = tx.jobs.by_id([one.id, two.id, ended.id])
        assert (jobs[one.id].level, jobs[one.id].position) == (None, 900)
        assert (jobs[two.id].dispatch_level, jobs[two.id].position) == (2, -5)
        assert jobs[ended.id].position == ended.position
        (reserver,) = tx.claims.lock_views(["k"])["k"].reservers
        assert reserver.order == jobs[two.id].order
        assert tx.queue_order.locks_waited_for() == ["lock:k"]
