"""Limits that a program meets and that hold for its runner: all of its jobs wait, none is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agents

from harness import Bench, Site, wait_for
from headway.base.clock import SystemClock
from headway.base.errors import NotFoundError
from headway.core.agents import ParkedRunner, park_until
from headway.core.model import Job
from headway.core.states import Status
from headway.integrations.agents.files import load_runner
from headway.integrations.agents.limits import limit_in
from headway.jobs.agents import agent_request
from headway.testing.clock import FakeClock

MINUTE = 60_000_000
RUNNER = """
argv = ["{program}", ["--resume", "{{session_id}}"]]
prompt = "stdin"
parser = "jsonl"
limits = [{{ match = 'resets in (?P<seconds>\\d+)' }}, {{ match = 'usage limit' }}]
"""
PROGRAM = """#!/bin/sh
cat > "$HEADWAY_RESULT_FILE.prompt"
echo "$HEADWAY_JOB_ID $*" >> {folder}/starts
if [ -e {folder}/says ]; then cat {folder}/says; exit 1; fi
echo '{{"type": "result", "text": "done", "session_id": "s-2"}}'
"""


class Limited:
    """A runner whose program says what a file has, or succeeds where there is none."""

    def __init__(self, bench: Bench) -> None:
        self.agents = Agents(bench)
        self.bench = bench
        program = bench.folder / "limited"
        program.write_text(PROGRAM.format(folder=bench.folder))
        program.chmod(0o755)
        self.agents.runner("limited", RUNNER.format(program=program))

    @property
    def clock(self) -> FakeClock:
        assert isinstance(self.bench.clock, FakeClock)
        return self.bench.clock

    def says(self, error: str | None, **more: str) -> None:
        file = self.bench.folder / "says"
        if error is None:
            file.unlink()
        else:
            words = "".join(f', "{key}": "{value}"' for key, value in more.items())
            line = f'{{"type": "result", "error": "{error}", "session_id": "s-1"{words}}}'
            file.write_text(f"{line}\n")

    def starts(self) -> list[str]:
        file = self.bench.folder / "starts"
        return file.read_text().splitlines() if file.exists() else []

    def submit(self, **options: Any) -> int:
        return self.agents.submit("limited", "do it", **options)

    def met(self, job: int) -> Job:
        """The next job of the chain, once this one has met the limit."""
        self.bench.until(lambda: self.bench.status(job) is Status.FAILED, "the limit to be met")
        self.bench.step()
        return self.bench.last(job)

    def parked(self) -> ParkedRunner | None:
        with self.bench.store.read() as tx:
            return tx.runners.parked().get("limited")


@pytest.fixture
def limited(make_bench: Callable[..., Bench]) -> Limited:
    return Limited(make_bench(clock=FakeClock(SystemClock().now()), max_active=1))


def test_ten_agents_meet_a_limit_and_one_learns_it(limited: Limited) -> None:  # fault J9
    limited.says("you are over it; resets in 600")
    jobs = [limited.submit(retries=1) for _ in range(10)]
    again = limited.met(jobs[0])
    assert len(limited.starts()) == 1
    assert (again.attempt, again.retries_used, again.retry_of) == (2, 0, jobs[0])
    parked = limited.parked()
    assert parked is not None and parked.until is not None
    for job in (again.id, *jobs[1:]):
        wait = limited.bench.client.document(job)["wait"]
        assert wait["kind"] == "rate"
        assert wait["detail"].startswith("limited is parked until ")
        assert wait["detail"].endswith(": limited: you are over it; resets in 600")
    limited.says(None)
    limited.clock.advance(590)
    limited.bench.step()
    assert len(limited.starts()) == 1
    limited.clock.advance(30)
    ended = limited.bench.until_ended(*jobs)
    assert {job.status for job in ended} == {Status.SUCCEEDED}
    assert all(job.retries_used == 0 for job in ended) and len(limited.starts()) == 11
    assert limited.parked() is None


def test_a_parked_agent_continues_its_session(limited: Limited) -> None:
    limited.says("resets in 60")
    job = limited.submit()
    again = limited.met(job)
    limited.says(None)
    limited.clock.advance(70)
    limited.bench.until_ended(job)
    assert limited.starts() == [f"job-{job} ", f"job-{again.id} --resume s-1"]
    folder = Path(limited.bench.home.job(again.id))
    said = (folder / "agent.json.prompt").read_text()
    assert said.startswith("You were interrupted by a limit.") and said.endswith("do it\n")


def test_without_a_time_the_wait_doubles(limited: Limited) -> None:
    limited.says("usage limit")
    job = limited.submit()
    waits = []
    for _ in range(7):
        job = limited.met(job).id
        parked = limited.parked()
        assert parked is not None and parked.until is not None
        waits.append((parked.until - parked.at) // MINUTE)
        limited.clock.advance((parked.until - parked.at) / 1e6 + 1)
    assert waits == [15, 30, 60, 120, 240, 300, 300]
    limited.says(None)
    limited.bench.until_ended(job)
    limited.says("usage limit")
    limited.met(limited.submit())
    parked = limited.parked()
    assert parked is not None and parked.until == parked.at + 15 * MINUTE


def test_a_refused_login_parks_until_a_person_resumes(limited: Limited) -> None:
    limited.says("bad key", **{"class": "auth"})
    job = limited.submit()
    again = limited.met(job)
    limited.clock.advance(1e6)
    limited.bench.step()
    document = limited.bench.client.document(again.id)
    assert document["wait"]["detail"] == "limited is parked: limited: bad key"
    limited.says(None)
    assert limited.bench.client.runners.resume("limited") is True
    assert limited.bench.client.runners.resume("limited") is False
    with pytest.raises(NotFoundError, match="there is no runner 'other'"):
        limited.bench.client.runners.resume("other")
    assert limited.bench.until_ended(job)[0].status is Status.SUCCEEDED
    assert "runner_parked" in limited.bench.kinds(job)


def test_a_runner_may_let_a_refused_login_fail(limited: Limited) -> None:
    limited.agents.runner(
        "limited", RUNNER.format(program=limited.bench.folder / "limited") + 'auth = "fail"\n'
    )
    limited.says("bad key", **{"class": "auth"})
    job = limited.bench.until_ended(limited.submit())[0]
    assert job.status is Status.FAILED and limited.parked() is None


def test_other_runners_are_not_parked(limited: Limited) -> None:
    limited.says("usage limit")
    limited.met(limited.submit())
    assert limited.agents.ended("claude", "do it").status is Status.SUCCEEDED


def test_a_worker_killed_while_it_parks_a_runner_parks_it_once(tmp_path: Path) -> None:
    site = Site(tmp_path)
    program = tmp_path / "limited"
    program.write_text(PROGRAM.format(folder=tmp_path))
    program.chmod(0o755)
    (tmp_path / "says").write_text('{"type": "result", "error": "resets in 600"}\n')
    folder = Path(site.home.path) / "runners"
    folder.mkdir()
    (folder / "limited.toml").write_text(RUNNER.format(program=program))
    job = site.client.submit(agent_request("do it", runner="limited")).job_id
    point, what = "agent", "parked"
    try:
        dying = site.start_worker(env={"HEADWAY_POINTS": f"{point}.{what}=kill"})
        assert dying.wait(60) == -9
        with site.client.context.store.read() as tx:
            assert tx.runners.parked() == {}, "all of it, or nothing"
        site.start_worker()
        wait_for(lambda: len(site.client.jobs.chain(job)) == 2, what="its chain to go on")
        with site.client.context.store.read() as tx:
            (parked,) = tx.runners.parked().values()
        assert (parked.runner, parked.job_id) == ("limited", job)
        assert site.kinds(job).count("runner_parked") == 1
        assert (tmp_path / "starts").read_text().count("\n") == 1
    finally:
        site.close()


NOW = 1_763_464_800_000_000  # 2025-11-18T11:20:00Z
YEAR = 365 * 24 * 3600 * 1_000_000


@pytest.mark.parametrize(
    ("after", "minutes"),
    [(0, 1), (-5 * MINUTE, 1), (30_000_000, 1), (90 * MINUTE, 90), (YEAR, 24 * 60), (None, 15)],
)
def test_a_reset_in_the_past_or_in_a_year_is_bounded(
    after: int | None, minutes: int
) -> None:  # fault J10
    assert park_until(NOW, after, None) == (NOW + minutes * MINUTE, after is None)


@pytest.mark.parametrize(
    ("pattern", "text", "after"),
    [
        (r"reached\|(?P<epoch>\d+)", "Claude AI usage limit reached|1763468400", 3600),
        (r"reached\|(?P<epoch>\d+)", "limit reached|1763468400000", 3600),
        (r"retry in (?P<seconds>[\d.]+)s", "Please retry in 34.5s.", 34.5),
        (r"again in (?P<seconds>.+?)\.", "Try again in 2 hours 13 minutes.", 7980),
        (r"again in (?P<seconds>.+?)\.", "Try again in 5h2m.", 18120),
        (r"resets (?P<time>.+)", "limit reached, resets 3pm (Europe/Berlin)", 9600),
        (r"resets (?P<time>.+)", "resets 12:20pm (Europe/Berlin)", 24 * 3600),
        (r"resets (?P<time>.+)", "resets 2025-11-18T12:20:00+00:00", 3600),
        (r"resets (?P<time>.+)", "resets some day", None),
        (r"resets (?P<time>.+)", "RESETS 99:99", None),
        (r"usage limit", "you hit a usage limit", None),
    ],
)
def test_a_text_tells_when_work_may_go_on(pattern: str, text: str, after: float | None) -> None:
    found = limit_in(["", text], [pattern], NOW)
    assert found is not None
    assert found.again_at == (None if after is None else NOW + round(after * 1e6))


def test_other_texts_tell_of_no_limit() -> None:
    assert limit_in(["all is well"], [r"limit"], NOW) is None


@pytest.mark.parametrize(
    ("runner", "text", "after"),
    [
        ("claude", "Claude AI usage limit reached|1763468400", 3600),
        ("claude", "5-hour limit reached, resets 3pm (Europe/Berlin)", 9600),
        ("claude", "You've hit your weekly limit", None),
        ("codex", "You've hit your usage limit. Or try again in 2 hours 13 minutes.", 7980),
        ("codex", "You've hit your usage limit.", None),
        ("gemini", "You have exhausted your capacity. Your quota will reset after 5h2m.", 18120),
    ],
)
def test_the_shipped_runners_know_the_limits_of_their_providers(
    runner: str, text: str, after: float | None
) -> None:
    found = limit_in([text], load_runner(runner, None).limits, NOW)
    assert found is not None
    assert found.again_at == (None if after is None else NOW + round(after * 1e6))


@pytest.mark.parametrize("runner", ["claude", "codex", "gemini"])
def test_an_overloaded_model_is_no_limit(runner: str) -> None:
    texts = ["API Error: 529 Overloaded", "429 Too Many Requests", "it used up its 10 turns"]
    assert limit_in(texts, load_runner(runner, None).limits, NOW) is None
