"""Functions that are cancelled or run for too long: asked first, then ended with their host."""

import time
from collections.abc import Callable

import pytest
from shop import Shop

from headway.core.states import Status

MakeShop = Callable[..., Shop]

TASKS = """
@app.task
def polite():
    note("began")
    while not current().cancelled():
        time.sleep(0.005)
    note("heard")
    raise RuntimeError("stopped in the middle")
@app.task
def finishes():
    note("began")
    while not current().cancelled():
        time.sleep(0.005)
    return "done all the same"
@app.task
async def awaits():
    note("began")
    try:
        await asyncio.sleep(60)
    finally:
        note("cleaned")
@app.task(grace="300ms")
def stubborn(word="began"):
    note(word)
    until("never")
@app.task(timeout="400ms")
def spins(word="began"):
    note(word)
    while True: pass
@app.task(timeout="400ms")
def holds_the_interpreter():
    note("began")
    sum(range(10 ** 13))
@app.task(timeout="5m")
def quick(): note("quick")
@app.task
def work(word): note(word)
@app.task
def hold(word):
    note(word)
    until("go")
"""


@pytest.mark.parametrize(("name", "heard"), [("polite", "heard"), ("awaits", "cleaned")])
def test_a_function_that_listens_is_cancelled_in_its_host(
    make_shop: MakeShop, name: str, heard: str
) -> None:
    shop = make_shop(TASKS)
    handle = getattr(shop, name).submit()
    shop.until_noted("began")
    pid = shop.host_pid()
    handle.cancel()
    (job,) = shop.ended(handle)
    assert (job.status, job.reason) == (Status.CANCELLED, "cancelled by tester")
    assert shop.ledger() == ["began", heard]
    document = shop.bench.client.document(handle.job_id)
    assert document["run"]["exit_code"] == 143
    shop.ended(shop.work.submit("next"))
    assert shop.host_pid() == pid, "the host was spared"


def test_a_function_that_finishes_in_spite_of_a_cancel_has_finished(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.finishes.submit()
    shop.until_noted("began")
    handle.cancel()
    (job,) = shop.ended(handle)
    assert job.status is Status.SUCCEEDED
    assert handle.result() == "done all the same"


def test_a_stubborn_function_ends_with_its_host_after_the_grace(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, threads=2, max_active=10)
    handle, neighbour = shop.stubborn.submit(), shop.hold.submit("neighbour")
    shop.until_noted("began", "neighbour")
    pid = shop.host_pid()
    queued = shop.work.submit("queued")
    begin = time.monotonic()
    handle.cancel()
    job, other, _ = shop.ended(handle, neighbour, queued)
    assert time.monotonic() - begin >= 0.3
    assert (job.status, job.reason) == (Status.CANCELLED, "cancelled by tester")
    assert (other.status, other.reason) == (Status.FAILED, f"host_killed ({handle.id})")
    assert shop.host_pid() != pid
    assert shop.ledger().count("queued") == 1


def test_a_call_that_waits_in_a_host_is_cancelled_at_once_and_never_made(
    make_shop: MakeShop,
) -> None:
    shop = make_shop(TASKS, max_active=10)
    shop.let_wait()
    first = shop.hold.submit("first")
    shop.until_noted("first")
    queued, other = shop.work.submit("queued"), shop.work.submit("other")
    shop.bench.until(lambda: shop.bench.status(queued.job_id) is Status.RUNNING)
    queued.cancel()
    (job,) = shop.ended(queued)
    assert job.status is Status.CANCELLED
    assert shop.bench.status(first.job_id) is Status.RUNNING
    shop.touch("go")
    shop.ended(first, other)
    assert shop.ledger() == ["first", "other"]


def test_a_cancel_before_a_host_is_there_starts_nothing(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.work.submit("never")
    handle.cancel()
    shop.ended(handle, shop.work.submit("next"))
    assert handle.state == "cancelled"
    assert shop.ledger() == ["next"]


@pytest.mark.parametrize("name", ["spins", "holds_the_interpreter"])
def test_a_function_past_its_deadline_is_ended_with_its_host(
    make_shop: MakeShop, name: str
) -> None:
    shop = make_shop(TASKS, threads=2, max_active=10)
    quick, neighbour = shop.quick.submit(), shop.hold.submit("neighbour")
    shop.until_noted("quick", "neighbour")
    pid = shop.host_pid()
    late = getattr(shop, name).submit()
    job, other, done = shop.ended(late, neighbour, quick)
    assert (job.status, job.reason) == (Status.FAILED, "timed out after 0.4 s")
    assert shop.bench.client.document(late.job_id)["run"]["exit_code"] == 124
    assert (other.status, other.reason) == (Status.FAILED, f"host_killed ({late.id})")
    assert done.status is Status.SUCCEEDED
    after = shop.work.submit("after")
    shop.ended(after)
    assert shop.host_pid() != pid
    assert shop.ledger().count("neighbour") == 1, "it is not run again by itself"


def test_a_deadline_holds_without_a_worker(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    late = shop.spins.submit()
    shop.until_noted("began")
    shop.bench.crash()
    shop.bench.engine.recover()
    (job,) = shop.ended(late)
    assert (job.status, job.reason) == (Status.FAILED, "timed out after 0.4 s")


def test_a_cancel_of_a_function_of_an_earlier_worker_reaches_it(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.stubborn.submit()
    shop.until_noted("began")
    shop.bench.crash()
    shop.bench.engine.recover()
    handle.cancel()
    (job,) = shop.ended(handle)
    assert (job.status, job.reason) == (Status.CANCELLED, "cancelled by tester")
