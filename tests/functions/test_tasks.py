"""Functions as jobs, from the submit to the result: JSON in, JSON out, and what they may ask."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from shop import Shop

from harness import wait_for
from headway import TaskFailedError, current
from headway.base.clock import SystemClock
from headway.base.errors import InvalidInputError, NotFoundError
from headway.core.states import Status
from headway.functions.app import Handle
from headway.functions.pool.host import FunctionHost
from headway.jobs.views.why import why
from headway.testing.clock import FakeClock

MakeShop = Callable[..., Shop]

ECHO = """
@app.task
def echo(value=None):
    return value
"""

VALUES: list[Any] = [
    None,
    True,
    0,
    -(2**70),
    0.1,
    1e300,
    "",
    "\0 \ud800 \u2028 \U0001f600 \" ' \\ \n",
    [],
    {},
    {"a": [1, {"b": None}], "": ""},
    "x" * 300_000,
]


def test_a_value_comes_back_as_it_was(make_shop: MakeShop) -> None:
    shop = make_shop(ECHO)
    handles = [shop.echo.submit(value) for value in VALUES]
    shop.ended(*handles)
    assert [handle.result(timeout=5) for handle in handles] == VALUES
    assert [type(handle.result()) for handle in handles] == [type(value) for value in VALUES]


def test_the_stored_call_is_json_by_name(make_shop: MakeShop) -> None:
    shop = make_shop("@app.task\ndef f(a, *, b=2, **others): return [a, b, others]\n")
    handle = shop.f.submit(1, c={"d": 3})
    params = shop.bench.job(handle.job_id).params
    assert json.loads(json.dumps(params)) == {
        "task": "shop_tasks.f",
        "args": {"a": 1, "c": {"d": 3}},
    }
    shop.ended(handle)
    assert handle.result() == [1, 2, {"c": {"d": 3}}]
    assert shop.f(1) == [1, 2, {}], "called as ever"


RESULTS = """
@app.task
def tuple_(): return (1, 2)
@app.task
def object_(): return {"a": [object()]}
@app.task
def keys(): return {1: 2}
@app.task
def nan(): return float("nan")
@app.task
def large(): return "x" * (1 << 20)
@app.task
def number(): return 10 ** 5000
@app.task
def deep():
    value = []
    for _ in range(5000):
        value = [value]
    return value
@app.task
def cycle():
    value = []
    value.append(value)
    return value
"""


def test_a_result_that_cannot_be_kept_fails_the_job_and_says_why(make_shop: MakeShop) -> None:
    shop = make_shop(RESULTS)
    wanted = {
        "tuple_": "its result is a tuple, which JSON cannot carry",
        "object_": "its result ['a'][0] is an object, which JSON cannot carry",
        "keys": "its result has the key 1, which is not a str",
        "nan": "its result is nan, which JSON does not have",
        "large": "its result is larger than 1 MiB; write a file and return its path",
        "number": "its result is an int of more than 4000 digits",
        "deep": "nested more than 100 deep",
        "cycle": "nested more than 100 deep",
    }
    handles = {name: getattr(shop, name).submit() for name in wanted}
    jobs = dict(zip(wanted, shop.ended(*handles.values()), strict=True))
    for name, reason in wanted.items():
        assert jobs[name].status is Status.FAILED
        assert reason in (jobs[name].reason or ""), name
        with pytest.raises(TaskFailedError, match="job-"):
            handles[name].result()


ENDINGS = """
@app.task
def skip(): raise Skip("nothing new")
@app.task(retries=2, retry_base="10ms")
def flaky():
    if current().attempt < 3:
        raise ValueError("not yet")
    return current().attempt
@app.task(retries=1, retry_base="10ms")
def hopeless(): raise KeyError("x")
@app.task
def again():
    if current().attempt == 1:
        raise Retry("the server is busy", after="300ms")
    return current().attempt
@app.task
def later(): raise Retry(after="30s")
@app.task
def boom():
    print("before")
    def inner(): raise RuntimeError("it broke\\nbadly")
    inner()
@app.task
def leave(code=None): sys.exit(code)
@app.task
async def slow(seconds):
    await asyncio.sleep(seconds)
    print("awaited", current().id)
    return seconds
@app.task
async def async_boom():
    await asyncio.sleep(0)
    raise LookupError("lost")
@app.task
def interrupt(): raise KeyboardInterrupt
@app.task
def streams():
    sys.stderr = None
    raise OSError("no stderr")
"""


@pytest.mark.req("E6", "V96")
def test_each_way_to_end_is_told_truly(make_shop: MakeShop) -> None:
    shop = make_shop(ENDINGS)
    skip, boom = shop.skip.submit(), shop.boom.submit()
    flaky, hopeless = shop.flaky.submit(), shop.hopeless.submit()
    again, async_boom = shop.again.submit(), shop.async_boom.submit()
    left, zero, three = shop.leave.submit("x"), shop.leave.submit(), shop.leave.submit(3)
    slow, interrupt, streams = (
        shop.slow.submit(0.01),
        shop.interrupt.submit(),
        shop.streams.submit(),
    )
    shop.ended(
        *(skip, boom, flaky, hopeless, again, async_boom, left, zero, three),
        *(slow, interrupt, streams),
    )

    def told(handle: Any) -> tuple[str, int | None, str | None]:
        document = shop.bench.client.document(shop.bench.last(handle.job_id).id)
        return document["state"], document["run"]["exit_code"], document["reason"]

    assert told(skip) == ("skipped", 0, "nothing new")
    assert skip.result() is None
    assert told(boom) == ("failed", 1, "RuntimeError: it broke\nbadly")
    assert shop.log(boom) == "before\n"
    trace = shop.log(boom, "stderr")
    assert trace.startswith("Traceback") and 'shop_tasks.py", line' in trace
    assert trace.endswith("RuntimeError: it broke\nbadly\n") and "host.py" not in trace
    assert told(flaky) == ("succeeded", 0, None) and flaky.result() == 3
    assert [each["attempt"] for each in shop.bench.client.jobs.chain(flaky.job_id)] == [1, 2, 3]
    assert told(hopeless) == (
        "failed", 1, "KeyError: 'x'; attempt 2 of 2, no retry is left",
    )  # fmt: skip
    assert told(again) == ("succeeded", 0, None) and again.result() == 2
    first = shop.bench.job(again.job_id)
    assert (first.status, first.reason) == (Status.FAILED, "the server is busy")
    second = shop.bench.last(again.job_id)
    assert first.finished_at is not None and second.not_before is not None
    assert second.not_before - first.finished_at == 300_000
    assert told(async_boom) == ("failed", 1, "LookupError: lost")
    assert told(left) == ("failed", 1, "sys.exit('x')")
    assert told(zero) == ("succeeded", 0, None)
    assert told(three) == ("failed", 3, "sys.exit(3)")
    assert slow.result() == 0.01 and shop.log(slow) == f"awaited {slow.id}\n"
    assert told(interrupt) == ("failed", 1, "KeyboardInterrupt")
    assert told(streams) == ("failed", 1, "OSError: no stderr")
    assert "no stderr" in shop.log(streams, "stderr")
    with pytest.raises(TaskFailedError, match="RuntimeError: it broke"):
        boom.result()


@pytest.mark.req("E6")
def test_who_asks_to_be_called_later_is_the_next_job_of_the_chain(make_shop: MakeShop) -> None:
    shop = make_shop(ENDINGS)
    handle = shop.later.submit()
    shop.bench.until(lambda: shop.bench.status(handle.job_id) is Status.FAILED)
    following = shop.bench.last(handle.job_id)
    assert (following.attempt, following.status) == (2, Status.QUEUED)
    assert (following.not_before or 0) - (
        shop.bench.job(handle.job_id).finished_at or 0
    ) == 30_000_000
    assert following.retries_used == 0
    handle.cancel()


TALKERS = """
@app.task
def talk(letter, barrier):
    print(current().id, letter, flush=True)
    sys.stdout.buffer.write(b"\\xff" + letter.encode() + b"\\n")
    note(letter)
    until(barrier)
    for _ in range(200):
        print(letter * 50)
        time.sleep(0)
    current().log.warning("done %s", letter)
@app.task
async def async_talk(letter):
    print(letter, current().id)
    await asyncio.to_thread(print, "thread", letter)
"""


def test_what_two_functions_print_at_once_is_in_the_log_of_each(make_shop: MakeShop) -> None:
    shop = make_shop(TALKERS, threads=2, max_active=2)
    one, two = shop.talk.submit("a", "go"), shop.talk.submit("b", "go")
    shop.until_noted("a", "b")
    shop.touch("go")
    shop.ended(one, two)
    for handle, letter in ((one, "a"), (two, "b")):
        path = shop.bench.home.job(handle.job_id) + "/stdout.log"
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
        assert lines[0].decode() == f"{handle.id} {letter}"
        assert lines[1] == b"\xff" + letter.encode()
        assert lines[2:] == [letter.encode() * 50] * 200 + [b""]
        assert shop.log(handle, "stderr").endswith(f"WARNING done {letter}\n")
        sizes = shop.bench.client.document(handle.job_id)["run"]
        assert sizes["dropped_bytes"] == 0


def test_each_async_function_is_its_own_job(make_shop: MakeShop) -> None:
    shop = make_shop(TALKERS)
    handles = [shop.async_talk.submit(letter) for letter in "abc"]
    shop.ended(*handles)
    for handle, letter in zip(handles, "abc", strict=True):
        assert shop.log(handle) == f"{letter} {handle.id}\nthread {letter}\n"


PROGRESS = """
@app.task
def report():
    current().progress(0.25, "a quarter")
    note("told")
    until("go")
    current().progress(1)
@app.task
def wrong(): current().progress(2)
"""


def test_progress_is_seen_while_it_runs(make_shop: MakeShop) -> None:
    shop = make_shop(PROGRESS)
    handle, wrong = shop.report.submit(), shop.wrong.submit()

    def progress() -> Any:
        with shop.bench.store.read() as tx:
            return tx.jobs.progress([handle.job_id]).get(handle.job_id)

    told = shop.bench.until(progress, "progress in the store")
    assert (told.fraction, told.text) == (0.25, "a quarter")
    assert shop.bench.status(handle.job_id) is Status.RUNNING
    shop.touch("go")
    jobs = shop.ended(handle, wrong)
    assert jobs[0].status is Status.SUCCEEDED
    assert "progress 2 is not a number from 0 to 1" in (jobs[1].reason or "")


def test_outside_of_a_task_there_is_no_current_job() -> None:
    with pytest.raises(NotFoundError, match="does not run as a job"):
        current()


def objection(shop: Shop, handle: Handle[Any]) -> tuple[str, str]:
    """Kind and detail of what a queued job is said to wait for."""
    first = why(shop.bench.client.context, handle.job_id)["objections"][0]
    return first["kind"], first["detail"]


def test_an_unknown_task_waits_with_a_reason_and_stops_nobody(make_shop: MakeShop) -> None:
    shop = make_shop(ECHO)
    lost = shop.echo.options(priority=9)
    lost.name = "shop_tasks.gone"
    unknown = lost.submit(1)
    known, command = shop.echo.submit(2), shop.bench.submit("true")
    shop.bench.until_ended(known.job_id, command)
    assert known.result() == 2 and shop.bench.status(command) is Status.SUCCEEDED
    job = shop.bench.job(unknown.job_id)
    assert job.status is Status.QUEUED and job.wait is not None
    assert (job.wait.kind, job.wait.detail) == ("task", "task shop_tasks.gone is unknown")
    assert objection(shop, unknown) == (job.wait.kind, job.wait.detail)
    unknown.cancel()


def test_a_call_is_made_as_soon_as_a_host_knows_its_task(make_shop: MakeShop) -> None:
    shop = make_shop(ECHO)
    early = shop.echo.options(priority=9)
    early.name = "shop_tasks.later"
    waiting = early.submit(1)
    shop.ended(shop.echo.submit(2))
    assert objection(shop, waiting) == ("task", "task shop_tasks.later is unknown")
    shop.write(ECHO + "@app.task\ndef later(value): return value\n")
    os.kill(shop.host_pid(), signal.SIGKILL)
    shop.ended(waiting)
    assert waiting.result() == 1


def test_without_a_module_functions_wait_and_commands_go_on(make_shop: MakeShop) -> None:
    shop = make_shop(ECHO, settings={"app.modules": ()})
    handle, command = shop.echo.submit(1), shop.bench.submit("true")
    shop.bench.until_ended(command)
    assert shop.bench.status(handle.job_id) is Status.QUEUED
    assert objection(shop, handle) == ("task", "no worker runs shop_tasks.echo")
    handle.cancel()


def test_a_module_is_imported_once_for_many_jobs(make_shop: MakeShop) -> None:
    shop = make_shop("if __spec__: open('imports', 'a').write('x')\n" + ECHO)
    handles = [shop.echo.submit(number) for number in range(20)]
    shop.ended(*handles)
    assert [handle.result() for handle in handles] == list(range(20))
    assert (shop.bench.folder / "imports").read_text() == "x"


def test_a_module_that_cannot_be_imported_holds_its_jobs_until_it_is_corrected(
    make_shop: MakeShop,
) -> None:
    shop = make_shop(ECHO)
    said: list[str] = []
    shop.bench.engine.pool.processes._say = said.append
    shop.write("import nowhere_to_be_found\n", raw=True)
    handle, command = shop.echo.submit("at last"), shop.bench.submit("true")

    shop.bench.until(lambda: "failed" in objection(shop, handle)[1], "the trouble to be known")
    error = "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    assert objection(shop, handle) == ("task", f"importing shop_tasks failed: {error}")
    shop.bench.until_ended(command)
    pool = shop.bench.engine.pool
    for _ in range(2):
        failures = pool.processes._failures
        pool.processes._next_start = 0.0
        shop.bench.until(lambda: pool.processes._failures > failures, "another try")  # noqa: B023
    assert len(said) == 1, said
    assert shop.bench.status(handle.job_id) is Status.QUEUED
    shop.write(ECHO)
    pool.processes._next_start = 0.0
    shop.ended(handle)
    assert handle.result() == "at last"


def test_why_a_module_cannot_be_imported_is_read_although_its_host_is_gone(
    make_shop: MakeShop,
) -> None:
    shop = make_shop(ECHO)
    shop.write("import nowhere_to_be_found\n", raw=True)
    handle = shop.echo.submit("at last")

    def the_host() -> FunctionHost | None:
        return next(iter(shop.bench.engine.pool.processes.hosts.values()), None)

    shop.bench.until(lambda: (host := the_host()) and host.pidfd, "its supervisor to be watched")
    host = the_host()
    assert host is not None and host.connection is None
    wait_for(lambda: host.how_it_ended()[0] is not None, what="the host to end")
    shop.bench.until(lambda: the_host() is not host, "its end to be seen")
    error = "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    assert objection(shop, handle) == ("task", f"importing shop_tasks failed: {error}")
    handle.cancel()


def test_a_module_that_kills_its_host_is_reported(make_shop: MakeShop) -> None:
    shop = make_shop(ECHO)
    shop.write("import os; os._exit(7)\n", raw=True)
    handle = shop.echo.submit()
    shop.bench.until(lambda: "died" in objection(shop, handle)[1], "the death to be known")
    assert objection(shop, handle) == (
        "task",
        "its host died while it imported shop_tasks: exit code 7",
    )
    handle.cancel()


OPTIONS = """
@app.task(priority=7, labels={"team": "docs"}, locks=["repo"], timeout="5s", name="build it")
def build(key=None): return key
@app.task
def wait(): until("go")
@app.task
def say(word): note(word)
"""


def test_options_of_a_task_are_options_of_its_jobs(make_shop: MakeShop) -> None:
    shop = make_shop(OPTIONS)
    job = shop.bench.job(shop.build.submit(key="an argument").job_id)
    assert (job.priority, job.name, dict(job.labels)) == (7, "build it", {"team": "docs"})
    assert (job.locks[0].key, job.params["timeout_seconds"]) == ("repo", 5.0)
    assert job.params["args"] == {"key": "an argument"}
    first, second = (shop.build.options(key="k").submit() for _ in range(2))
    assert first.job_id == second.job_id, "the same key is the same job"
    with pytest.raises(InvalidInputError, match="'colour' is not an option of a task"):
        shop.build.options(colour="red")
    with pytest.raises(InvalidInputError, match=r"after: .* is not a job"):
        shop.say.submit("x", after=[object()])


def test_order_locks_and_delay_hold_for_functions(make_shop: MakeShop) -> None:
    shop = make_shop(OPTIONS, max_active=1)
    gate = shop.wait.submit()
    last = shop.say.submit("last", priority=1)
    high = shop.say.submit("high", priority=9)
    after = shop.say.submit("after", after=[last], priority=10)
    late = shop.say.submit("late", delay="200ms", priority=10)
    shop.bench.until(lambda: shop.bench.status(gate.job_id) is Status.RUNNING)
    shop.touch("go")
    shop.ended(gate, last, high, after, late)
    noted = [word for word in shop.ledger() if word != "late"]
    assert noted == ["high", "last", "after"]
    job = shop.bench.job(late.job_id)
    assert (job.started_at or 0) >= job.created_at + 200_000


def test_all_or_none_of_many_calls(make_shop: MakeShop) -> None:
    shop = make_shop(OPTIONS)
    app = shop.module.app
    with pytest.raises(InvalidInputError, match="is not a call"):
        app.submit_many([shop.say.call("x"), "y"])
    handles = app.submit_many([shop.say.call(str(number)) for number in range(5)])
    assert [handle.job_id for handle in handles] == [1, 2, 3, 4, 5], "and none before"
    shop.ended(*handles)
    assert sorted(shop.ledger()) == ["0", "1", "2", "3", "4"]
    assert app.handle(handles[0].id).state == "succeeded" and handles[0].done()
    with pytest.raises(NotFoundError):
        app.handle("job-999")


def test_a_task_can_be_run_without_a_store() -> None:
    from headway import App

    app = App("postgresql://nowhere.invalid/x")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    assert asyncio.run(double(4)) == 8  # type: ignore[arg-type]
    assert app._context is None, "nothing was opened"


ODD = """
@app.task
def fail(): raise ValueError("a\\0b\\ud800")
@app.task
def skip(): raise Skip("a\\0b\\ud800")
@app.task
def report(): current().progress(0.5, "a\\0b\\ud800")
"""


def test_words_that_no_store_keeps_are_escaped(make_shop: MakeShop) -> None:
    shop = make_shop(ODD)
    fail, skip, report = shop.fail.submit(), shop.skip.submit(), shop.report.submit()
    jobs = shop.ended(fail, skip, report)
    words = "a\\x00b\\ud800"
    assert [job.reason for job in jobs] == [f"ValueError: {words}", words, None]


def test_a_function_whose_wake_up_was_missed_is_found(make_shop: Callable[..., Shop]) -> None:
    clock = FakeClock(SystemClock().now())
    shop = make_shop("@app.task\ndef quick(): note('called')\n", clock=clock)
    shop.bench.may_miss = True  # it is provoked
    first = shop.quick.submit()
    shop.ended(first)
    later = shop.quick.submit(delay="1h")
    shop.bench.step()
    database = shop.bench.store.database  # type: ignore[attr-defined]
    forget = f"update jobs set not_before = null, wake_at = null where id = {later.job_id}"
    database.execute(forget, {})
    clock.advance(21)
    shop.ended(later)
    assert "missed_wake_up" in shop.bench.kinds(later.job_id)


def test_calls_of_one_submission_name_each_other(make_shop: MakeShop) -> None:
    shop = make_shop(OPTIONS)
    first = shop.say.call("first")
    second = shop.say.options(after=[first]).call("second")
    same = shop.say.call("first")  # equal to the first, and not the same
    last = shop.say.options(after=[same, second]).call("last")
    handles = shop.module.app.submit_many([last, second, first, same])
    ids = [each.job_id for each in handles]
    jobs = [shop.bench.job(each) for each in ids]
    assert [job.after for job in jobs] == [(ids[3], ids[1]), (ids[2],), (), ()]
    shop.ended(*handles)
    with pytest.raises(InvalidInputError, match="is not submitted along with this one"):
        shop.module.app.submit_many([second])
    with pytest.raises(InvalidInputError, match="is not submitted along with this one"):
        shop.module.app.submit(second)
    circle: list[Any] = []
    again = shop.say.options(after=circle).call("x")
    circle.append(again)
    with pytest.raises(InvalidInputError, match=r"a cycle: say \(call 1\) -> say \(call 1\)"):
        shop.module.app.submit_many([again])
    with pytest.raises(InvalidInputError, match="is not a job"):
        shop.say.submit("x", after=[-1])
