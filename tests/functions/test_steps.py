"""Steps of functions: what a chain has recorded is not done again, whoever dies in between."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from shop import Shop
from started import Started

import headway
from headway.core.model import JobId
from headway.core.states import Status
from headway.functions.host.steps import Steps
from headway.supervise.rescue import end_claim
from headway.testing import drain, using

MakeShop = Callable[..., Shop]

TASKS = """
def fetch(name):
    note(f"fetch-{name}")
    return {"name": name, "rows": [1, 2]}
@app.task
def load(name):
    step = current().step
    got = step("fetch", fetch, name)
    assert got == {"name": name, "rows": [1, 2]}
    note(f"between-{current().attempt}")
    until("go")
    done = step("store", lambda: note("store") or len(got["rows"]))
    return {"rows": done, "attempt": current().attempt}
@app.task
def flaky(keys):
    for key in keys:
        current().step(key, note, key)
    if current().attempt < 3:
        raise OSError("not yet")
@app.task
def again():
    current().step("first", note, "first")
    if current().attempt < 3:
        raise Retry("later")
@app.task
async def slow():
    async def get(): note("get"); return 7
    value = await current().step("get", get)
    if current().attempt == 1:
        raise OSError("not yet")
    return value
@app.task
def odd(how):
    values = {"tuple": (1,), "large": "x" * (1 << 20), "key": 1}
    current().step("" if how == "key" else "x", values.get, how)
@app.task
def quick(number):
    return current().step("n", int, number)
"""


def stored(shop: Shop, chain: JobId, node_pass: int = 0) -> dict[str, str]:
    with shop.bench.store.read() as tx:
        return tx.steps.of(chain, node_pass)


@pytest.mark.parametrize("victim", ["host", "supervisor", "worker and host"])
def test_a_retried_call_does_not_repeat_a_step(make_shop: MakeShop, victim: str) -> None:
    shop = make_shop(TASKS)
    handle = shop.load.submit("a", retries=1, retry_base=0)
    shop.until_noted("between-1")
    pid = shop.supervisor_pid() if victim == "supervisor" else shop.host_pid()
    if victim == "worker and host":
        shop.bench.crash()
    os.kill(pid, signal.SIGKILL)
    if victim == "worker and host":
        shop.bench.engine.recover()
    shop.until_noted("between-2")
    shop.touch("go")
    (job,) = shop.ended(handle)
    assert job.status is Status.SUCCEEDED
    assert handle.result() == {"rows": 2, "attempt": 2}
    assert shop.ledger() == ["fetch-a", "between-1", "between-2", "store"]


def test_steps_are_stored_while_the_function_still_runs(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.load.submit("a")
    shop.bench.until(lambda: stored(shop, handle.job_id), "the first step in the store")
    assert stored(shop, handle.job_id) == {"fetch": '{"name":"a","rows":[1,2]}'}
    assert shop.bench.status(handle.job_id) is Status.RUNNING
    shop.touch("go")
    shop.ended(handle)
    assert stored(shop, handle.job_id).keys() == {"fetch", "store"}


def test_every_retry_of_a_chain_finds_them(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.flaky.submit(["a", "b"], retries=5, retry_base=0)
    (job,) = shop.ended(handle)
    assert (job.status, job.attempt) == (Status.SUCCEEDED, 3)
    assert shop.ledger() == ["a", "b"]
    asked = shop.again.submit()
    (job,) = shop.ended(asked)
    assert (job.status, job.attempt) == (Status.SUCCEEDED, 3)
    assert shop.ledger() == ["a", "b", "first"]


def test_an_async_function_awaits_its_steps(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.slow.submit(retries=1, retry_base=0)
    shop.ended(handle)
    assert handle.result() == 7 and shop.ledger() == ["get"]


def test_other_chains_have_steps_of_their_own(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=20)
    handles = [shop.quick.submit(number) for number in range(20)]
    shop.ended(*handles)
    assert [each.result() for each in handles] == list(range(20))


def test_a_person_who_retries_it_begins_anew(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.flaky.submit(["a"])
    (job,) = shop.ended(handle)
    assert job.status is Status.FAILED and stored(shop, handle.job_id)
    shop.bench.client.retry(handle.job_id)
    assert stored(shop, handle.job_id) == {}
    shop.ended(handle)
    assert shop.ledger() == ["a", "a"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("tuple", "step 'x': its value is a tuple, which JSON cannot carry; make it a list"),
        ("large", "step 'x': its value is larger than 1 MiB; write a file and return its path"),
        ("key", "step '': a key is a text of 1 to 200 printable characters"),
    ],
)
def test_what_cannot_be_recorded_fails_the_call(make_shop: MakeShop, how: str, words: str) -> None:
    shop = make_shop(TASKS)
    handle = shop.odd.submit(how)
    (job,) = shop.ended(handle)
    assert job.status is Status.FAILED and words in str(job.reason)
    assert stored(shop, handle.job_id) == {}


def test_there_are_not_too_many() -> None:
    recorded: list[str] = []
    steps = Steps("t" * 32, {str(number): "0" for number in range(999)}, recorded.append)
    assert steps.take("last", int, (), {}) == 0
    with pytest.raises(Exception, match="one call may have 1,000 steps"):
        steps.take("more", int, (), {})
    assert steps.take("17", int, ("5",), {}) == 0, "what is known is given all the same"
    assert len(recorded) == 1


def test_each_pass_of_a_node_has_its_own(make_shop: MakeShop) -> None:
    shop = make_shop(
        """
@app.task
def work():
    current().step("made", note, f"made-{current().node_pass}")
    if current().attempt % 2:
        raise OSError("not yet")
    return {"made": current().node_pass}
@app.task
def check(made):
    if made < 2:
        raise ValueError("once more")
"""
    )
    run = Started(
        shop.bench,
        """
        [nodes.work]
        task = "shop_tasks.work"
        retries = 1
        retry_base = "0s"
        outputs = ["made"]
        [nodes.check]
        task = "shop_tasks.check"
        args.arguments.made = "${{ nodes.work.outputs.made }}"
        after = ["work"]
        loop = { to = "work", times = 2 }
        """,
    )
    assert run.ended()["state"] == "succeeded"
    assert shop.ledger() == ["made-1", "made-2"]


def test_what_was_recorded_before_a_reboot_counts(make_shop: MakeShop) -> None:  # fault A4
    shop = make_shop(TASKS)
    handle = shop.load.submit("a", retries=1, retry_base=0, retry_on=["unknown"])
    shop.until_noted("between-1")
    host = shop.host()
    shop.bench.crash()
    end_claim(host)
    with shop.bench.store.write() as tx:
        tx.steps.forget([handle.job_id])  # the worker may have been quicker
    shop.bench.engine.pool._boot_id = "the next boot"
    shop.bench.engine.recover()
    assert stored(shop, handle.job_id).keys() == {"fetch"}
    assert shop.bench.job(handle.job_id).reason == "Scheduler crash recovery: host_rebooted"
    shop.touch("go")
    shop.ended(handle)
    assert shop.ledger() == ["fetch-a", "between-1", "between-2", "store"]


def test_steps_go_with_their_jobs(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    handle = shop.quick.submit(1)
    shop.ended(handle)
    assert stored(shop, handle.job_id)
    with shop.bench.store.write() as tx:
        tx.retention.remove_jobs([handle.job_id])
    assert stored(shop, handle.job_id) == {}


def test_a_drain_keeps_them(tmp_path: Path) -> None:
    app, noted = headway.App(), list[str]()

    @app.task(retries=5)
    def work() -> int:
        headway.current().step("a", noted.append, "a")
        if headway.current().attempt < 3:
            raise OSError("not yet")
        return int(headway.current().step("b", len, noted))

    with using(app, home=tmp_path):
        handle = work.submit()
        drain(app)
        assert handle.result() == 1 and noted == ["a"]
