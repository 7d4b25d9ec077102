"""Agent jobs that cannot be started, and that this concerns no other job."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import RUNNERS, Agents

from harness import Bench
from headway.base.clock import SystemClock
from headway.base.errors import (
    CannotLaunchError,
    DataError,
    InvalidInputError,
    NotFoundError,
    StoreError,
)
from headway.core.model import Claim, Job
from headway.core.states import Status
from headway.testing.clock import FakeClock


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_program_that_is_missing_is_refused_and_later_a_launch_failure(
    make_bench: Callable[..., Bench], runner: str
) -> None:
    clock = FakeClock(SystemClock().now())
    agents = Agents(make_bench(clock=clock))
    (agents.programs / runner).unlink()
    report = "there is" if runner == "command" else f"{runner} is not installed:"
    report += f" no program '{runner}' on PATH; install it"
    with pytest.raises(InvalidInputError, match=report):
        agents.submit(runner, "do it")
    job = agents.submit(runner, "do it", check=False, retries=2)
    for strike in (1, 2):
        agents.bench.until(lambda strike=strike: agents.bench.job(job).launch_failures == strike)
        document = agents.bench.client.document(job)
        assert document["wait"]["kind"] == "launch" and document["run"] is None
        clock.advance(10)
    ended = agents.bench.until_ended(job)[0]
    assert (ended.id, ended.status) == (job, Status.FAILED)
    assert ended.reason is not None
    assert ended.reason.startswith(f"circuit-broken: {report}")
    assert "set PATH in [env]" in ended.reason
    assert not (Path(agents.bench.home.job(job)) / "result.json").exists()


def test_a_program_that_comes_back_is_started_without_an_attempt_lost(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    agents = Agents(make_bench(clock=clock))
    (agents.programs / "claude").unlink()
    job = agents.submit("claude", "do it", check=False)
    agents.bench.until(lambda: agents.bench.job(job).launch_failures == 1)
    agents.install("claude", "claude")
    clock.advance(10)
    ended = agents.bench.until_ended(job)[0]
    assert (ended.id, ended.status, ended.attempt) == (job, Status.SUCCEEDED, 1)


def test_an_unknown_runner_is_refused_and_later_a_launch_failure(agents: Agents) -> None:
    with pytest.raises(InvalidInputError, match=r"there is no runner 'nobody'; there are claude"):
        agents.submit("nobody", "do it")
    agents.runner("own", 'argv = ["claude"]\nprompt = "stdin"\nparser = "text"\n')
    job = agents.submit("own", "do it")
    os.unlink(Path(agents.bench.home.path) / "runners" / "own.toml")
    agents.bench.until(lambda: agents.bench.job(job).launch_failures == 1)
    wait = agents.bench.client.document(job)["wait"]
    assert "there is no runner 'own'" in wait["detail"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("argv = " + "[" * 5000 + "]" * 5000, "nest too deeply"),
        ("argv = [" + "9" * 5000 + "]", "4300 digits"),
        (None, "is not a file"),
    ],
)
def test_a_runner_file_that_went_bad_is_a_launch_failure_of_its_job_alone(
    agents: Agents, text: str | None, words: str
) -> None:
    agents.runner("own", 'argv = ["claude"]\nprompt = "stdin"\nparser = "text"\n')
    job, other = agents.submit("own", "do it"), agents.bench.submit("true")
    path = Path(agents.bench.home.path) / "runners" / "own.toml"
    path.unlink()
    if text is None:
        os.mkfifo(path)
    else:
        path.write_text(text)
    agents.bench.step()
    assert agents.bench.job(job).launch_failures == 1
    detail = agents.bench.client.document(job)["wait"]["detail"]
    assert "own.toml" in detail and words in detail
    assert agents.bench.until_ended(other)[0].status is Status.SUCCEEDED


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (InvalidInputError("no"), "queued"),
        (NotFoundError("no"), "queued"),
        (CannotLaunchError("no"), "queued"),
        (PermissionError(13, "no"), "queued"),
        (DataError("no"), "failed"),
        (ValueError("no"), "failed"),
        (TypeError("no"), "failed"),
        (KeyError("no"), "failed"),
        (IndexError("no"), "failed"),
        (OverflowError("no"), "failed"),
        (RecursionError("no"), "failed"),
    ],
    ids=repr,
)
def test_what_is_wrong_with_one_job_ends_no_step(
    agents: Agents, error: Exception, ending: str
) -> None:
    bench = agents.bench
    bad = bench.submit("true")
    specify = bench.engine.planner._specify

    def specified(job: Job, claim: Claim) -> dict[str, Any]:
        if job.id == bad:
            raise error
        return specify(job, claim)

    bench.engine.planner._specify = specified
    other = bench.submit("true")
    bench.step()
    assert bench.status(bad) == ending
    assert bench.job(bad).launch_failures == (1 if ending == "queued" else 0)
    assert "no" in (bench.job(bad).reason or bench.client.document(bad)["wait"]["detail"])
    assert bench.until_ended(other)[0].status is Status.SUCCEEDED


def test_what_ails_the_store_ends_the_step(agents: Agents) -> None:
    def specified(job: Job, claim: Claim) -> dict[str, Any]:
        raise StoreError("gone")

    agents.bench.may_miss = True
    job = agents.bench.submit("true")
    agents.bench.engine.planner._specify = specified
    with pytest.raises(StoreError):
        agents.bench.step()
    assert agents.bench.job(job).launch_failures == 0
