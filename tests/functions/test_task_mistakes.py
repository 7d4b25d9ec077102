"""Mistakes in declaring and submitting tasks: each is named, and nothing is stored."""

import enum
import functools
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import headway
from headway.base.errors import HeadwayError, InvalidInputError, TimedOutError
from headway.cli.jobs import wait
from headway.cli.jobs.tail import tail
from headway.cli.wait_lines import WaitLines
from headway.core.model import FUNCTION
from headway.functions.tasks import Task
from headway.jobs.views.awaited import AwaitedJobs
from headway.jobs.wait import Waiter
from headway.testing import make_test_home, using
from headway.testing.clock import FakeClock

HOUR = 3_600_000_000


@pytest.fixture
def app(tmp_path: Path) -> Iterator[headway.App]:
    made = headway.App()
    with using(made, home=tmp_path):
        yield made


@pytest.fixture
def build(app: headway.App) -> Task[..., Any]:
    @app.task
    def build(page: str, *, deep: bool = False) -> None: ...

    return build


def stored(app: headway.App) -> int:
    with app.client.context.store.read() as tx:
        return sum(tx.jobs.count_active().values())


WRONG_OPTIONS: list[tuple[str, Any, str]] = [
    ("priority", "high", "priority is 'high', not a whole number"),
    ("priority", 1.5, "priority is 1.5, not a whole number"),
    ("priority", True, "priority is True, not a whole number"),
    ("priority", 10**7, "priority 10000000 is not between"),
    ("position", "x", "position is 'x', not a whole number"),
    ("retries", "3", "retries is '3', not a whole number"),
    ("retries", -1, "retries -1 is not between 0 and 100"),
    ("retry_jitter", "x", "retry_jitter is 'x', not a number"),
    ("timeout", "5 min", "timeout '5 min' is not a duration; write it like 90s"),
    ("timeout", 0, "timeout must be longer than 0 s"),
    ("timeout", [1], "timeout is [1], not a duration; give seconds, a timedelta or a text"),
    ("timeout", True, "timeout is True, not a duration"),
    ("timeout", float("inf"), "timeout is inf, not a duration"),
    ("timeout", float("nan"), "timeout is nan, not a duration"),
    ("delay", -1, "delay is -1; it must be 0 s or more"),
    ("delay", timedelta(days=-1), "it must be 0 s or more"),
    ("retry_base", timedelta(days=99_999), "it must be 0 s or more, up to a hundred years"),
    ("at", 5, "at is 5, not a time; give a datetime or a text"),
    ("at", "tomorrow", "at 'tomorrow' is not a time"),
    ("locks", "repo", "locks is 'repo'; give a list"),
    ("locks", [1], "locks[0] is 1, not a text"),
    ("rates", [1], "rates[0] is 1, not a text"),
    ("labels", ["a"], "labels is ['a']; give a dict of texts"),
    ("labels", {"a": 1}, "labels['a'] is 1, not a text"),
    ("labels", {1: "a"}, "a name of labels is 1, not a text"),
    ("name", 5, "name is 5, not a text"),
    ("key", 5, "key is 5, not a text"),
    ("target", 5, "target is 5, not a text"),
    ("subject", 5, "subject is 5, not a text"),
    ("group", 1.5, "group is 1.5, not a text"),
    ("require_approval", "yes", "require_approval is 'yes', not True or False"),
    ("retry_on", ValueError, "retry_on is <class 'ValueError'>; give a list"),
]


@pytest.mark.parametrize(("name", "value", "told"), WRONG_OPTIONS)
def test_a_wrong_option_is_named_where_it_is_written(
    app: headway.App, build: Task[..., Any], name: str, value: Any, told: str
) -> None:
    with pytest.raises(InvalidInputError) as submitted:
        build.submit("docs", **{name: value})
    with pytest.raises(InvalidInputError) as declared:
        app.task(**{name: value})(lambda: None)
    assert told in str(submitted.value) and told in str(declared.value)
    assert stored(app) == 0


def test_the_words_of_others_are_answered_with_ours(build: Task[..., Any]) -> None:
    for word, told in (
        ("countdown", "here it is delay"),
        ("eta", "here it is at"),
        ("queue", "there is one queue"),
        ("retrys", "did you mean the option retries?"),
        ("depe", "did you mean deep?"),
    ):
        with pytest.raises(InvalidInputError, match="unexpected keyword argument") as caught:
            build.submit("docs", **{word: 1})
        assert str(caught.value).endswith(f"'{word}'; {told}") or told in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"use options\(priority=\.\.\.\)\.call"):
        build.call("docs", priority=3)
    with pytest.raises(InvalidInputError, match=r"'max_retries' is not an option.*it is retries"):
        build.options(max_retries=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match=r"no attribute 'delay'; use submit\(\.\.\.\)"):
        build.delay("docs")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'get'; use result\(\.\.\.\)"):
        build.submit("docs").get()  # type: ignore[attr-defined]
    assert not hasattr(build, "colour")


def test_none_is_as_if_it_were_not_given(app: headway.App, build: Task[..., Any]) -> None:
    options = dict.fromkeys(("after", "locks", "labels", "retries", "priority", "timeout", "at"))
    first = build.submit("docs", **options)
    job = app.client.job(first.job_id)
    assert (job.type, job.after, job.locks, job.priority) == (FUNCTION, (), (), 0)
    second = build.options(timeout="5s").submit("x", timeout=None)
    assert "timeout_seconds" not in app.client.job(second.job_id).params


def test_times_may_be_those_of_python(app: headway.App, build: Task[..., Any]) -> None:
    now = app.client.context.clock.now()
    handle = build.submit("docs", delay=timedelta(hours=1), timeout=timedelta(seconds=1.5))
    job = app.client.job(handle.job_id)
    assert job.not_before == now + HOUR and job.params["timeout_seconds"] == 1.5
    moment = datetime(2026, 5, 1, 12, tzinfo=UTC)
    at = app.client.job(build.submit("docs", at=moment).job_id).not_before
    assert at == int(moment.timestamp()) * 1_000_000
    day = date(2026, 5, 1)
    at = app.client.job(build.submit("docs", at=day).job_id).not_before
    assert at == int(datetime(2026, 5, 1).astimezone().timestamp()) * 1_000_000


def no_wraps(function: Callable[..., Any]) -> Callable[..., Any]:
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


class Shop:
    def sell(self, what: str) -> None: ...


def test_what_cannot_be_a_task_says_why(app: headway.App, build: Task[..., Any]) -> None:
    for given, told in (
        (build, "build is a task already"),
        ("build", "write @app.task(task_name='build')"),
        (3, "3 is not a function"),
        (functools.partial(print, 1), "has no name of its own; give it a task_name"),
        (Shop.sell, "a stored call has no self"),
        (no_wraps(print), "or, in a decorator, use functools.wraps"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            app.task(given)  # type: ignore[call-overload]
        assert told in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"make one with app = headway\.App\(\)"):
        headway.App.task(lambda: None)  # type: ignore[call-overload]
    assert list(app.tasks) == [build.name]


def test_two_functions_behind_one_decorator_are_told_apart(app: headway.App) -> None:
    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(function)(no_wraps(function))

    app.task(task_name="one")(wrapped(lambda x: x))
    with pytest.raises(InvalidInputError, match="there are two tasks one"):
        app.task(task_name="one")(wrapped(lambda y: y))


def test_a_member_of_an_enumeration_of_texts_travels_as_its_text(app: headway.App) -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    class Level(enum.IntEnum):
        HIGH = 3

    @app.task
    def paint(colour: Colour, level: Level) -> list[Any]:
        assert type(colour) is str and type(level) is int
        return [colour, level]

    assert paint.submit(Colour.RED, Level.HIGH).result() == ["red", 3]


def test_what_is_no_call_is_not_submitted(app: headway.App, build: Task[..., Any]) -> None:
    call, handle = build.call("docs"), build.submit("docs")
    for given, told in (
        (call, "submit_many takes a list of calls; for one there is submit"),
        ([call, build], "is not a call; make one with task.call"),
        ([call, handle], "<job-1> is not a call, but a job already"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            app.submit_many(given)
        assert told in str(caught.value)

    def half() -> Iterator[Any]:
        yield call
        raise RuntimeError("of the caller's own")

    with pytest.raises(RuntimeError, match="of the caller's own"):
        app.submit_many(half())
    assert app.submit_many([]) == []
    assert stored(app) == 1


def test_a_job_of_another_store_is_no_predecessor(
    app: headway.App, build: Task[..., Any], tmp_path: Path
) -> None:
    other, same = headway.App(), headway.App(home=str(tmp_path / ".headway"))
    build.submit("docs")
    with using(other, home=tmp_path / "other"):

        @other.task
        def fetch() -> None: ...

        theirs = fetch.submit()
        with pytest.raises(InvalidInputError, match="after: job-1 is a job of another store"):
            build.submit("docs", after=[theirs])
    assert stored(app) == 1
    with same:
        assert build.submit("docs", after=[same.handle(1)]).id == "job-2"


def test_an_id_is_an_id(app: headway.App, build: Task[..., Any]) -> None:
    handle = build.submit("docs")
    assert app.handle(1) == handle == app.handle("job-1") and {handle} == {app.handle("#1")}
    assert handle != build.submit("docs") and handle != 1
    for given in (None, True, 1.5, handle):
        with pytest.raises(InvalidInputError, match="is not the id of a job; give 'job-24' or 24"):
            app.handle(given)  # type: ignore[arg-type]


def test_a_result_is_waited_for_as_long_as_a_text_says(
    app: headway.App, build: Task[..., Any]
) -> None:
    held = build.submit("docs", after=[build.submit("first", require_approval=True)])
    for timeout in ("2s", timedelta(0), 0, -1):
        with pytest.raises(HeadwayError, match="waiting on job job-1"):
            held.result(timeout=timeout)
    with pytest.raises(InvalidInputError, match="timeout '2 s' is not a duration"):
        held.result(timeout="2 s")


def test_a_failure_can_leave_the_process_that_saw_it(app: headway.App) -> None:
    @app.task
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(headway.TaskFailedError) as caught:
        fail.submit().result()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) == "job-1 (fail) failed: ValueError: no"
    assert (copy.job_id, copy.status) == (1, "failed")


def test_an_empty_url_is_no_url() -> None:
    with pytest.raises(InvalidInputError, match="the URL of the store is empty"):
        headway.App("")


def test_who_waits_for_what_nobody_can_call_hears_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    app = headway.App(home=make_test_home(tmp_path), clock=FakeClock())
    told = "job-1 is not run: no worker runs shop.sell (headway config set app.modules shop"

    @app.task(task_name="shop.sell")
    def sell() -> None: ...

    handle = sell.submit()
    with app, pytest.raises(TimedOutError, match="job-1 is still queued: no worker runs"):
        handle.result(timeout=9)
    assert [each.getMessage()[: len(told)] for each in caplog.records] == [told], "once"
    with app, pytest.raises(TimedOutError, match="job-1 is still queued: no worker runs"):
        lines = WaitLines(app.client, lambda most: AwaitedJobs({}, ()), quiet=False, bar=False)
        wait._ended(app.client, Waiter(app.client.context, 1), 9.0, lines)
    assert capsys.readouterr().err.count(told) == 1
    sell.submit(delay="1h")
    with app, pytest.raises(TimedOutError, match="waiting for its time"):
        app.handle(2).result(timeout=9)
    assert len(caplog.records) == 1, "what will run by itself is waited for in silence"


def test_who_follows_a_job_that_is_not_started_hears_why(tmp_path: Path) -> None:
    class Impatient(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.monotonic() > 1005 and not other.handle(1).done():
                other.handle(1).cancel()

    home = make_test_home(tmp_path)
    app, other = headway.App(home=home, clock=Impatient()), headway.App(home=home)

    @app.task(task_name="shop.sell")
    def sell() -> None: ...

    with app, other:
        sell.submit()
        here = SimpleNamespace(connect=lambda: app.client)
        followed = CliRunner().invoke(tail, ["-f", "1"], obj=here)
    assert followed.exit_code == 0
    assert followed.stderr.count("job-1 waits: no worker runs shop.sell (headway config set") == 1
