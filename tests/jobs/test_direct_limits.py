"""Direct calls and limits: what they take, wait for, borrow, and leave to the queue meanwhile."""

from collections.abc import Callable

import pytest
from test_direct import asked, busy, standing

from harness import Bench
from headway.base.clock import SECOND
from headway.base.errors import TimedOutError
from headway.core.capacity import direct_lender, direct_objection
from headway.core.states import Status
from headway.jobs.views.present import present_capacity
from headway.jobs.views.status import scheduler_status
from headway.jobs.views.why import why
from headway.store.records import Lending


def limited(bench: Bench, **limits: int) -> None:
    """`resource_gpu=1` is one at a time of resource gpu."""
    for name, most in limits.items():
        bench.client.set_setting(f"scheduler.limits.{name.replace('_', '.')}", most)


@pytest.mark.req("C12")
def test_it_takes_of_the_limits_what_it_names(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=3)
    limited(bench, resource_gpu=1, type_review=1)
    with bench.client.reserve(resources=["gpu"], type="review", target="prod"):
        (told,) = scheduler_status(bench.client.context)["reservations"]
        assert told["occupies"] == ["type:review", "resource:gpu", "target:prod"]
        held_up, free = bench.submit("true", resources=("gpu",)), bench.submit("true")
        bench.until_ended(free)
        assert bench.status(held_up) is Status.QUEUED
        (objection,) = why(bench.client.context, held_up)["objections"]
        assert objection["detail"] == "resource gpu is in use"
    bench.until_ended(held_up)


def test_it_waits_for_a_limit_as_for_a_slot(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=3)
    limited(bench, resource_gpu=1)
    user, gate = busy(bench, resources=("gpu",))
    late = pytest.raises(TimedOutError, match="resource gpu is in use")
    with late, bench.client.reserve(resources=["gpu"], timeout=0.05):
        raise AssertionError
    gate.touch()
    bench.until_ended(user)
    with bench.client.reserve(resources=["gpu"], timeout=30):
        pass


@pytest.mark.req("E11")
@pytest.mark.req("C12")
def test_while_it_waits_for_a_limit_others_have_all_but_one_of_the_slots(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=4)
    limited(bench, resource_gpu=1)
    user, gate = busy(bench, resources=("gpu",))
    asking = asked(bench, occupies=("resource:gpu",), expires_at=1 << 60)
    wants_it = bench.submit("sleep", "60", resources=("gpu",), priority=5)
    others = [bench.submit("sleep", "60") for _ in range(3)]
    bench.turn()
    states = [bench.status(each) for each in others]
    assert states == [Status.RUNNING, Status.RUNNING, Status.QUEUED], "one slot is kept"
    (objection,) = why(bench.client.context, others[2])["objections"]
    assert objection["detail"] == "direct-1 of ann goes first"
    bench.client.cancel([others[2]])
    gate.touch()
    bench.until_ended(user)
    bench.turn()
    assert bench.status(wants_it) is Status.QUEUED, "it goes before every queued job"
    with bench.store.write() as tx:
        assert (
            direct_objection(asking, present_capacity(bench.client.context, tx), tx.now()) is None
        )
        tx.reservations.release(asking)
    bench.until(lambda: bench.status(wants_it) is Status.RUNNING)


def test_inside_a_job_it_borrows_what_that_job_holds_of_the_limits(bench: Bench) -> None:
    limited(bench, resource_gpu=1)
    maker, _ = busy(bench, resources=("gpu",))
    asking = asked(bench, inside=maker, occupies=("resource:gpu",))
    with bench.store.write() as tx:
        capacity = present_capacity(bench.client.context, tx)
        assert direct_objection(asking, capacity, tx.now()) is None
        assert direct_lender(asking, capacity) == maker
        tx.reservations.grant(asking.token, maker)
        capacity = present_capacity(bench.client.context, tx)
    assert (capacity.running, capacity.usage["resource:gpu"]) == (1, 1)
    other = asked(bench, 2, inside=maker, occupies=("resource:gpu",))
    with bench.store.read() as tx:
        objection = direct_objection(other, present_capacity(bench.client.context, tx), tx.now())
    assert objection is not None and objection.detail == "the one slot is in use"


def test_a_claim_whose_lender_waits_no_more_counts_beside_its_direct_call(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=3)
    lender, _ = busy(bench)
    bench.client.set_setting("scheduler.max_active", 1)
    borrower = bench.submit("sleep", "60")
    with bench.store.write() as tx:
        tx.claims.lend("t", Lending(lender, borrower, tx.now() + 3600 * SECOND))
    bench.until(lambda: bench.status(borrower) is Status.RUNNING)
    with bench.store.write() as tx:
        tx.claims.end_lending("t")
    asking = asked(bench, inside=lender)
    with bench.store.write() as tx:
        assert present_capacity(bench.client.context, tx).running == 2
        objection = direct_objection(asking, present_capacity(bench.client.context, tx), tx.now())
        assert objection is not None, "more run than may"
        tx.reservations.grant(asking.token, lender)
        assert present_capacity(bench.client.context, tx).running == 2


def test_within_another_it_waits_for_what_that_one_does_not_hold(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=2)
    limited(bench, resource_gpu=1)
    user, gate = busy(bench, resources=("gpu",))
    with bench.client.reserve():
        late = pytest.raises(TimedOutError, match="direct-2 got no slot in time: all 2 slots")
        with late, bench.client.reserve(resources=["gpu"], timeout=0.05):
            raise AssertionError
        gate.touch()
        bench.until_ended(user)
        with bench.client.reserve(resources=["gpu"], timeout=30):
            assert standing(bench)[1].inside == -1
