"""A function that waits for another job lends its slot and its thread, and takes them back."""

from collections.abc import Callable

import pytest
from shop import Shop

from headway.core.states import Status

MakeShop = Callable[..., Shop]

TASKS = """
@app.task
def leaf(number):
    note(f"leaf-{number}")
    return number * 2
@app.task
def outer(number):
    note(f"outer-{number}")
    return leaf.submit(number).result(timeout=20) + 1
@app.task
def deep(depth):
    return 0 if depth == 0 else deep.submit(depth - 1).result(timeout=20) + 1
@app.task
def command():
    from headway.jobs.request import Request
    job = app.client.submit(Request(argv=("sh", "-c", "exit 0")))
    app.handle(job.job_id).result(timeout=20)
    return "waited"
@app.task
def impatient():
    try:
        return leaf.submit(1, delay="1h").result(timeout=0.2)
    except headway.TimedOutError as error:
        return str(error)
@app.task(locks=["repo"])
def keeper():
    leaf.submit(1, locks=["repo"]).result(timeout=20)
@app.task
def failing():
    return broken.submit().result(timeout=20)
@app.task
def broken(): raise ValueError("inside")
running = 0
@app.task
def counted():
    global running
    running += 1
    most = running
    time.sleep(0.02)
    most = max(most, running)
    running -= 1
    return most
"""


def test_waiting_for_another_does_not_wait_for_itself(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=1)
    handles = [shop.outer.submit(number) for number in range(3)]
    shop.ended(*handles)
    assert [handle.result() for handle in handles] == [1, 3, 5]
    assert len(shop.ledger()) == len(set(shop.ledger())) == 6
    with shop.bench.store.read() as tx:
        assert tx.claims.lendings() == []


def test_waiting_in_waiting(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=1)
    handle = shop.deep.submit(4)
    shop.ended(handle)
    assert handle.result() == 4


def test_waiting_for_a_command(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=1)
    handle = shop.command.submit()
    shop.ended(handle)
    assert handle.result() == "waited"


def test_who_waits_no_longer_takes_its_place_again(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=1)
    handle = shop.impatient.submit()
    shop.ended(handle)
    assert "is still queued" in handle.result()
    shop.bench.client.cancel([2])


def test_a_thread_that_stood_in_leaves_when_it_is_not_needed(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=10)
    shop.ended(shop.outer.submit(1))
    handles = [shop.counted.submit() for _ in range(8)]
    shop.ended(*handles)
    assert [handle.result() for handle in handles] == [1] * 8, "one thread, one function at a time"


def test_a_lock_that_the_waiter_holds_makes_its_waiting_fail(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=1)
    handle = shop.keeper.submit()
    (job,) = shop.ended(handle)
    assert job.status is Status.FAILED
    assert job.reason is not None and "WaitDeadlockError" in job.reason
    assert "job-2 needs lock repo, which job-1 holds while it waits for it" in job.reason
    (leaf,) = shop.bench.until_ended(2)
    assert leaf.status is Status.SUCCEEDED, "it runs when the lock is free"


def test_the_failure_of_the_awaited_is_told_to_who_waits(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=1)
    handle = shop.failing.submit()
    (job,) = shop.ended(handle)
    assert "TaskFailedError: job-2 (broken) failed: ValueError: inside" in (job.reason or "")


@pytest.mark.parametrize("store_url", [None], ids=["sqlite"])
def test_waiting_from_outside_lends_nothing(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.leaf.submit(1)
    with pytest.raises(Exception, match="is still queued"):
        handle.result(timeout=0.05)
    with shop.bench.store.read() as tx:
        assert tx.claims.lendings() == []
