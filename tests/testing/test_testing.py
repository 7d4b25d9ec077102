"""`headway.testing`: tasks are tested without a worker, by the rules that a worker goes by."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.base.clock import SECOND
from headway.base.errors import HeadwayError, InvalidInputError, TimedOutError
from headway.base.worker_lock import STAYS, WorkerLock
from headway.jobs.request import Request
from headway.testing import drain, using
from headway.testing.clock import FakeClock


@pytest.fixture
def app(tmp_path: Path) -> Iterator[headway.App]:
    made = headway.App()
    with using(made, home=tmp_path):
        yield made


def clock_of(app: headway.App) -> FakeClock:
    clock = app._where["clock"]
    assert isinstance(clock, FakeClock)
    return clock


def test_a_job_runs_and_has_its_result(app: headway.App) -> None:
    @app.task
    def add(a: int, b: int) -> int:
        return a + b

    handle = add.submit(1, b=2)
    assert handle.state == "queued"
    assert [each.id for each in drain(app)] == [handle.id]
    assert handle.state == "succeeded"
    assert handle.result() == 3
    assert handle.document()["run"]["result"] == 3
    assert drain(app) == []


def test_a_function_sees_its_job_and_its_arguments_as_after_a_journey(app: headway.App) -> None:
    seen: list[Any] = []

    @app.task
    def look(things: list[Any]) -> None:
        seen.append((headway.current().id, headway.current().attempt, things))
        headway.current().progress(0.5, "halfway")

    given = [1, {"a": None}]
    handle = look.submit(given)
    drain(app)
    assert seen == [("job-1", 1, given)]
    assert seen[0][2] is not given
    assert handle.document()["run"]["progress"] == {"fraction": 0.5, "text": "halfway"}


def test_retries_wait_on_the_fake_clock(app: headway.App) -> None:
    times: list[int] = []

    @app.task(retries=2, retry_base="10s")
    def flaky() -> str:
        times.append(clock_of(app).now())
        if len(times) < 3:
            raise ConnectionError("not yet")
        return "now"

    handle = flaky.submit()
    assert [each.id for each in drain(app)] == ["job-1", "job-2", "job-3"]
    assert handle.result() == "now"
    first, second = times[1] - times[0], times[2] - times[1]
    assert first >= 10 * SECOND and second >= 20 * SECOND


def test_a_delay_is_waited_for_and_not_longer(app: headway.App) -> None:
    @app.task
    def tick() -> None: ...

    begin = clock_of(app).now()
    late, soon = tick.submit(delay="1h"), tick.submit()
    assert [each.id for each in drain(app)] == [soon.id, late.id]
    assert 0 <= clock_of(app).now() - begin - 3600 * SECOND < SECOND


def test_a_rate_is_waited_for_on_the_fake_clock(app: headway.App) -> None:
    @app.task(rates=["mail=2/min"])
    def send(n: int) -> int:
        return n

    began = app.client.context.clock.now()
    handles = [send.submit(n) for n in range(5)]
    assert handles[2].result() == 2, "two at once, the third a minute later"
    assert app.client.context.clock.now() - began >= 60 * SECOND
    assert [handle.job_id for handle in drain(app)] == [each.job_id for each in handles[3:]]
    assert 120 * SECOND <= app.client.context.clock.now() - began < 125 * SECOND


def test_a_rate_of_the_settings_and_a_pause_between_passes_are_waited_for(
    app: headway.App,
) -> None:
    @app.task(rates=["mail"])
    def send() -> None: ...

    app.client.set_setting("scheduler.limits.rate.mail", "1/h")
    app.client.set_setting("scheduler.spawn_delay", "2h")
    began = app.client.context.clock.now()
    for _ in range(3):
        send.submit()
    assert len(drain(app)) == 3
    assert 4 * 3600 * SECOND <= app.client.context.clock.now() - began < 5 * 3600 * SECOND


def test_a_precondition_is_looked_at_again_but_not_for_ever(
    app: headway.App, tmp_path: Path
) -> None:
    @app.task
    def deploy() -> str:
        return "done"

    with app.client.context.store.write() as tx:
        tx.settings.set("scheduler.missing_producer", "wait", by="test")
    there, never = tmp_path / "there", tmp_path / "never"
    first = deploy.submit(needs=[f"file:{there}"])
    second = deploy.submit(needs=[f"file:{never}"])
    assert drain(app) == []
    there.touch()
    assert first.result() == "done"
    with pytest.raises(TimedOutError, match="never"):
        second.result()


def test_with_the_real_clock_nothing_is_waited_for(tmp_path: Path) -> None:
    from headway.base.clock import SystemClock

    app = headway.App()

    @app.task
    def tick() -> None: ...

    with using(app, home=tmp_path, clock=SystemClock()):
        tick.submit(delay="1h")
        assert drain(app) == []


def test_after_is_honoured_and_a_failure_blocks(app: headway.App) -> None:
    order: list[str] = []

    @app.task
    def note(name: str, fails: bool = False) -> None:
        order.append(name)
        if fails:
            raise ValueError(name)

    first = note.submit("first", fails=True, priority=-5)
    second = note.submit("second", after=[first])
    third = note.submit("third")
    drain(app)
    assert order == ["third", "first"]
    assert (first.state, second.state, third.state) == (
        "failed",
        "blocked_by_dependency",
        "succeeded",
    )
    with pytest.raises(headway.TaskFailedError, match="ValueError: first"):
        first.result()


def test_skip_and_retry_are_ends_of_their_own(app: headway.App) -> None:
    @app.task
    def nothing_to_do() -> None:
        raise headway.Skip("up to date")

    @app.task
    def once_more() -> int:
        if headway.current().attempt == 1:
            raise headway.Retry("not there yet", after="5m")
        return headway.current().attempt

    skipped, retried = nothing_to_do.submit(), once_more.submit()
    drain(app)
    assert skipped.state == "skipped" and skipped.result() is None
    assert retried.result() == 2


def test_a_success_without_its_file_says_so(app: headway.App, tmp_path: Path) -> None:
    @app.task
    def write() -> None:
        return None

    handle = write.submit(produces=[f"file:{tmp_path}/plan.md"])
    drain(app)
    assert handle.document()["run"]["not_produced"] == [f"file:{tmp_path}/plan.md"]


def test_locks_are_free_again_for_the_next(app: headway.App) -> None:
    held: list[int] = []

    @app.task(locks=["db"])
    def migrate(number: int) -> None:
        held.append(number)

    for number in range(3):
        migrate.submit(number)
    drain(app)
    assert held == [0, 1, 2]


def test_a_task_may_wait_for_another(app: headway.App) -> None:
    """With one slot: it is lent, as a worker would."""

    @app.task
    def inner(n: int) -> int:
        return n * 2

    @app.task
    def outer(n: int) -> int:
        return inner.submit(n).result() + 1

    assert app.client.scheduler.settings() == {}
    handle = outer.submit(20)
    assert [each.id for each in drain(app)] == ["job-1", "job-2"]
    assert handle.result() == 41


def test_async_functions_run(app: headway.App) -> None:
    @app.task
    async def fetch(n: int) -> int:
        await asyncio.sleep(0)
        return n

    handle = fetch.submit(7)
    drain(app)
    assert handle.result() == 7


def test_result_runs_what_it_waits_for_and_no_more(app: headway.App) -> None:
    @app.task
    def double(n: int) -> int:
        return 2 * n

    first, second = double.submit(1), double.submit(2)
    assert first.result() == 2
    assert second.state == "queued"


def test_result_of_what_never_runs_fails_at_once_and_says_why(app: headway.App) -> None:
    @app.task
    def wait() -> None: ...

    app.client.pause("a test")
    with pytest.raises(TimedOutError, match="paused by test: a test"):
        wait.submit().result()


def test_a_task_of_another_app_waits_and_says_so(app: headway.App, tmp_path: Path) -> None:
    @app.task
    def known() -> None: ...

    other = headway.App()

    @other.task
    def foreign() -> None: ...

    with using(other, home=tmp_path):
        handle = foreign.submit()
    assert drain(app) == []
    wait = app.handle(handle.job_id).document()["wait"]
    assert wait["kind"] == "task" and "foreign is unknown" in wait["detail"]


def test_the_limit_makes_it_step_by_step(app: headway.App) -> None:
    @app.task
    def again(n: int) -> None:
        again.submit(n + 1)

    again.submit(0)
    assert len(drain(app, limit=1)) == 1
    assert len(drain(app, limit=5)) == 5


def test_a_command_is_left_alone(app: headway.App) -> None:
    job = app.client.submit(Request(argv=("true",))).job_id
    assert drain(app) == []
    assert app.client.job(job).status == "queued"


def test_a_drain_inside_of_a_drain_is_refused(app: headway.App) -> None:
    @app.task
    def nest() -> None:
        drain(app)

    handle = nest.submit()
    drain(app)
    with pytest.raises(headway.TaskFailedError, match="already running"):
        handle.result()


def test_an_app_is_given_back_as_it_was(tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    app = headway.App("sqlite:///nowhere/at/all.db", home=elsewhere)

    @app.task
    def answer() -> int:
        return 42

    with using(app, home=tmp_path):
        answer.submit()
        assert len(drain(app)) == 1
    assert app._where["home"] == elsewhere
    assert app._context is None
    with pytest.raises((HeadwayError, OSError)):
        answer.submit()


def test_what_the_environment_says_does_not_reach_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_STORE", "postgresql://production/headway")
    app = headway.App()
    with using(app, home=tmp_path):
        assert not app.client.context.store.shared


def test_no_process_is_started(app: headway.App) -> None:
    pids: list[int] = []

    @app.task
    def who() -> None:
        pids.append(os.getpid())

    who.submit()
    drain(app)
    assert pids == [os.getpid()]
    assert not app.client.context.worker_is_there()


def test_what_people_use_is_not_drained(tmp_path: Path) -> None:
    app = headway.App(home=str(tmp_path / "new" / ".headway"))

    @app.task
    def work() -> None: ...

    with using(app, home=tmp_path / "new"):  # which makes the folder
        handle = work.submit()
        assert drain(app) == [handle]
        with pytest.raises(InvalidInputError, match="drain takes an app, not <job-1>"):
            drain(handle)  # type: ignore[arg-type]
    config = tmp_path / "new" / ".headway" / "config.toml"
    config.write_text("")
    with app, pytest.raises(InvalidInputError, match=r"drain\(\) is for tests"):
        drain(app)
    with (
        pytest.raises(InvalidInputError, match="is in use, and not by a test"),
        using(app, home=tmp_path / "new"),
    ):
        pass


PLUGIN_TEST = """
import headway, headway.testing, os, pytest

app = headway.App()

@app.task
def add(a: int, b: int) -> int:
    return a + b

def test_own_app(headway_home):
    with headway.testing.using(app, home=headway_home.parent) as clock:
        handle = add.submit(1, 2)
        headway.testing.drain(app)
        assert handle.result() == 3
    assert os.environ["HEADWAY_HOME"] == str(headway_home)

def test_fixture_app(headway_app):
    @headway_app.task
    def answer():
        return 42
    handle = answer.submit()
    assert handle.result() == 42

def test_apps_of_modules_are_at_home_there(headway_home):
    assert add.submit(1, 2).id == "job-1"
    assert app.client.context.home.path == str(headway_home)

def test_and_each_test_has_its_own(headway_home):
    assert add.submit(1, 2).id == "job-1"
    headway.testing.drain(app)

def test_which_nobody_keeps():
    assert app._context is None

@pytest.fixture
def mine(tmp_path):
    with headway.testing.using(app, home=tmp_path / "mine"):
        yield app

def test_but_an_app_that_has_a_home_keeps_it(mine, headway_app):
    assert add.submit(1, 2).result() == 3
    assert app.client.context.home.path.endswith("mine/.headway")
"""


def test_pytest_finds_the_fixtures_by_itself(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(PLUGIN_TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "6 passed" in done.stdout, done.stdout + done.stderr


def test_pytest_is_not_needed_to_use_it() -> None:
    script = "import sys, headway.testing, headway.testing.runner; print('pytest' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@contextmanager
def bounded(seconds: int) -> Iterator[None]:
    """A wait without end becomes a failure."""

    def fail(*_: object) -> None:
        raise AssertionError(f"it still waited after {seconds} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_in_the_home_of_a_test_nobody_waits_for_a_worker_without_end(headway_home: Path) -> None:
    with headway.App() as app:

        @app.task
        def double(n: int) -> int:
            return 2 * n

        handle = double.submit(2)
        with (
            bounded(60),
            pytest.raises(TimedOutError, match=r"call headway\.testing\.drain\(app\)"),
        ):
            handle.result()
        with pytest.raises(TimedOutError, match="is still queued"):
            handle.result(timeout=0.05)
        for command in ("wait", "tail -f"):
            argv = ["jobs", *command.split(), "1"]
            said = subprocess.run(
                [sys.executable, "-m", "headway", *argv], capture_output=True, text=True, timeout=60
            )
            assert said.returncode == 124 and "headway.testing.drain(app)" in said.stderr
        app.client.pause("a test")
        with (
            bounded(60),
            pytest.raises(TimedOutError, match=r"headway\.testing\.drain"),
            app.client.reserve(note="by hand"),
        ):
            pass
        app.client.resume()
        with app.client.reserve(note="by hand"):
            pass
        assert [each.job_id for each in drain(app)] == [handle.job_id]
        assert handle.result() == 4


def test_where_a_worker_is_there_it_is_waited_for(
    headway_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with headway.App() as app:

        @app.task
        def double(n: int) -> int:
            return 2 * n

        handle = double.submit(2)
        lock = WorkerLock(app.client.context.home.worker_lock)
        assert lock.take(STAYS)
        try:
            waited: list[float] = []

            def sleep(seconds: float) -> None:
                waited.append(seconds)
                if len(waited) == 3:
                    raise InterruptedError

            monkeypatch.setattr(app.client.context.clock, "sleep", sleep)
            with pytest.raises(InterruptedError):
                handle.result()
        finally:
            lock.close()
        assert len(waited) == 3
