"""The entries of a jobs file: when they are due, what holds them back, what is known of them."""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from declaring import Declaring
from harness import Bench
from headway.base.clock import SECOND
from headway.base.errors import StoreFullError, WorkerPresentError
from headway.base.host import Host
from headway.base.worker_lock import START, WorkerLock
from headway.core.model import JobSpec
from headway.core.states import Status
from headway.jobs.insert import add_jobs
from headway.jobs.request import Request
from headway.jobs.settings import Config
from headway.schedules.jobsfile.model import POLL_FILE
from headway.worker.one_pass import single_step
from headway.worker.step import Engine
from simulation.machines import SimulatedLauncher

TRUE = "jobs:\n  tidy: {type: command, run: [/bin/true], interval: 60}\n"
SCRIPTS = """\
jobs:
  first: {type: script, run: first, interval: 60}
  second: {type: script, run: shop:second, interval: 60, group: local}
"""
HELD = """\
jobs:
  sweep: {type: script, run: sweep, interval: 60, conditions: [quiet]}
  other: {type: script, run: other, interval: 60}
"""
BROKEN = TRUE + "  bad: {type: command, run: [/bin/true], interval: 5, intervall: 5}\n"


def also(text: str, more: str) -> str:
    """The file with more words in its first entry."""
    return text.replace("}", f", {more}}}", 1)


@pytest.fixture
def yard(declared_yard: Declaring) -> Declaring:
    return declared_yard


@pytest.mark.req("O1", "O4", "O13")
def test_an_interval_counts_from_the_end_of_the_last_run(yard: Declaring) -> None:
    yard.declare(TRUE)
    yard.pass_seconds(200)
    jobs = yard.made("tidy")
    assert len(jobs) == 4
    for before, job in pairwise(jobs):
        assert before.finished_at is not None
        assert 60 <= (job.created_at - before.finished_at) / SECOND < 61
    last = yard.ran("tidy")[-1]
    record = yard.record("tidy")
    assert (record.last_end_at, record.last_status) == (last.finished_at, "succeeded")
    assert [each.data["entries"] for each in yard.events("jobs_file_loaded")] == [1]
    assert jobs[0].submitted_by == "jobs.yaml" and jobs[0].name == "tidy"


@pytest.mark.req("O12", "O13")
def test_a_failure_is_a_run_and_the_next_interval_comes(yard: Declaring) -> None:
    yard.fails = {1, 2}
    yard.declare(TRUE)
    yard.pass_seconds(30)
    assert yard.record("tidy").last_status == "failed"
    assert yard.record("tidy").last_end_at == yard.made("tidy")[0].finished_at
    yard.pass_seconds(60)
    assert len(yard.made("tidy")) == 2


def test_a_second_engine_makes_no_second_job(yard: Declaring) -> None:
    yard.declare(TRUE)
    host = Host("host", "boot-0", yard.home.path, "")
    launcher: Any = SimulatedLauncher(yard.machine)
    other = Engine(
        yard.store, yard.home, Config(), host, yard.clock, worker_id="other", launcher=launcher
    )
    other.launches.open()
    yard.step()
    other.step(limit=0)
    yard.step()
    assert len(yard.made("tidy")) == 1
    other.close()


@pytest.mark.req("O11")
def test_a_disabled_entry_does_nothing_until_the_file_says_otherwise(yard: Declaring) -> None:
    yard.declare(also(TRUE, "enabled: false"))
    yard.pass_seconds(5)
    assert yard.made("tidy") == [] and not yard.engine.rounds.awake
    yard.declare(TRUE)
    yard.pass_seconds(5)
    assert len(yard.made("tidy")) == 1 and yard.engine.rounds.awake


def test_a_file_that_is_gone_has_no_entries(yard: Declaring) -> None:
    yard.declare(TRUE)
    yard.pass_seconds(5)
    yard.file.unlink()
    yard.pass_seconds(100)
    assert len(yard.made("tidy")) == 1 and not yard.engine.rounds.awake
    yard.declare(TRUE)
    yard.pass_seconds(5)
    assert len(yard.made("tidy")) == 2
    assert [each.data["entries"] for each in yard.events("jobs_file_loaded")] == [1, 0, 1]


def test_without_a_file_nothing_is_asked_of_the_store(yard: Declaring) -> None:
    yard.step()
    yard.engine.rounds.notice()
    nothing: Any = None
    yard.engine.rounds.step(nothing)
    assert yard.engine.rounds.next_in() is None
    with yard.store.read() as tx:
        assert tx.jobsfile.file("host") is None


@pytest.mark.req("O2", "O8", "O7")
def test_one_question_for_all_that_is_due_and_the_poll_only_for_remote_ones(
    yard: Declaring,
) -> None:
    yard.world.poll = {"open_prs": 2}
    yard.declare(SCRIPTS)
    yard.pass_seconds(0.5)
    (asked,) = yard.world.asked
    assert [(each.name, each.run, each.wants_poll) for each in asked] == [
        ("first", "first", True),
        ("second", "shop:second", False),
    ]
    first, second = yard.made("first")[0], yard.made("second")[0]
    path = first.params["env"][POLL_FILE]
    assert Path(path).read_text() == '{"open_prs": 2}'
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert "env" not in second.params and second.type == "script"
    assert first.params["argv"][1:] == [
        "-P",
        "-m",
        "headway.schedules.jobsfile.script",
        "first",
        "first",
    ]
    yard.pass_seconds(10)
    assert not os.path.exists(path), "no active job needs it"


@pytest.mark.req("O7")
def test_local_entries_alone_need_no_poll(yard: Declaring) -> None:
    yard.declare(also(SCRIPTS, "group: local"))
    yard.pass_seconds(1)
    assert [each.wants_poll for each in yard.world.asked[0]] == [False, False]


def test_a_poll_that_fails_is_seen_once_and_remote_entries_run_without(yard: Declaring) -> None:
    yard.world.poll, yard.world.poll_trouble = {}, "poll raised OSError: down"
    yard.declare(SCRIPTS)
    yard.pass_seconds(150)
    assert len(yard.made("first")) == 3 and "env" not in yard.made("first")[0].params
    assert [each.data for each in yard.events("poll_failed")] == [
        {"reason": "poll raised OSError: down"}
    ]
    with yard.store.read() as tx:
        file = tx.jobsfile.file("host")
    assert file is not None and file.poll_trouble == "poll raised OSError: down"


@pytest.mark.parametrize("has_poll", [True, False])
def test_trouble_of_the_poll_is_over_when_it_returns_nothing_or_is_gone(
    yard: Declaring, has_poll: bool
) -> None:
    yard.world.poll_trouble = "the poll took longer than 10 s"
    yard.declare(SCRIPTS)
    yard.pass_seconds(5)
    yard.world.poll_trouble, yard.world.has_poll = None, has_poll
    yard.pass_seconds(60)
    with yard.store.read() as tx:
        file = tx.jobsfile.file("host")
    assert file is not None and file.poll_trouble is None
    assert (file.polled_at is not None) is has_poll


def test_what_a_dead_worker_left_of_a_poll_is_removed(yard: Declaring) -> None:
    yard.world.poll = [1]
    yard.declare(SCRIPTS)
    yard.pass_seconds(0.1)
    needed = yard.made("first")[0].params["env"][POLL_FILE]
    orphan = Path(needed).with_name("orphan.json")
    orphan.write_text("{}")
    yard.crash()
    yard.step()
    assert not orphan.exists() and os.path.exists(needed)


def test_a_job_of_an_entry_that_is_gone_keeps_what_was_polled(yard: Declaring) -> None:
    yard.client.set_setting("scheduler.max_active", 1)
    yard.client.submit(Request(argv=("true",), check=False))
    yard.world.poll = [1]
    yard.declare(SCRIPTS)
    yard.pass_seconds(0.1)
    (first,) = yard.made("first")
    yard.declare(SCRIPTS.replace("first", "third"))
    yard.pass_seconds(1.1)
    assert os.path.exists(first.params["env"][POLL_FILE]) and yard.made("third")


@pytest.mark.req("O9", "O10")
def test_one_that_is_held_back_is_no_run_and_stays_due(yard: Declaring) -> None:
    yard.world.against = {"sweep": "condition quiet does not hold"}
    yard.declare(HELD)
    yard.pass_seconds(50)
    assert yard.made("sweep") == [] and len(yard.made("other")) == 1
    record = yard.record("sweep")
    assert record.held == "condition quiet does not hold" and record.last_end_at is None
    assert [each.data for each in yard.events("entry_held")] == [
        {"entry": "sweep", "reason": "condition quiet does not hold"}
    ]
    # At first with the other; then after 1, 2, 4, 8 and 16 seconds.
    assert yard.world.names() == [["sweep", "other"], *[["sweep"]] * 5]
    del yard.world.against["sweep"]
    yard.pass_seconds(15)
    assert len(yard.made("sweep")) == 1
    assert yard.record("sweep").held is None


def test_what_took_too_long_is_asked_apart_from_the_rest(yard: Declaring) -> None:
    yard.world.against = {"sweep": "condition quiet took longer than 10 s"}
    yard.declare(HELD)
    yard.pass_seconds(5)
    before = yard.world.names()
    assert before[0] == ["sweep", "other"], "nobody knew yet"
    yard.clock.move_to(yard.clock.now() + 100 * SECOND)
    yard.pass_seconds(0.5)
    assert sorted(yard.world.names()[len(before) :]) == [["other"], ["sweep"]]
    assert len(yard.made("other")) == 2


def test_while_one_is_asked_slowly_the_others_go_on(yard: Declaring) -> None:
    yard.world.against = {"sweep": "condition quiet took longer than 10 s"}
    yard.declare(HELD)
    yard.pass_seconds(0.5)
    rounds = yard.engine.rounds
    rounds.background._under_way.add("ask slowly")  # as while its thread is at it
    yard.pass_seconds(200)
    assert len(yard.made("other")) == 4 and yard.world.names()[1:] == [["other"]] * 3
    rounds.background.drop("ask slowly")


def test_another_reason_is_told_of(yard: Declaring) -> None:
    yard.world.against = {"sweep": "one"}
    yard.declare(HELD)
    yard.pass_seconds(5)
    yard.world.against = {"sweep": "two"}
    yard.pass_seconds(20)
    yard.crash()
    yard.pass_seconds(20)
    assert [each.data["reason"] for each in yard.events("entry_held")] == ["one", "two"]


@pytest.mark.req("O14")
def test_what_cannot_be_made_holds_only_its_own_entry(yard: Declaring) -> None:
    yard.world.against = {"first": "no job 'first' is registered"}
    yard.declare(SCRIPTS + "  lost: {type: command, run: [/no/program], interval: 60}\n")
    yard.pass_seconds(5)
    assert yard.made("first") == [] == yard.made("lost") and len(yard.made("second")) == 1
    held = yard.record("lost").held
    assert held is not None and "'/no/program' was not found" in held


@pytest.mark.req("O23")
def test_while_dispatch_is_paused_nothing_is_asked_and_nothing_made(yard: Declaring) -> None:
    yard.client.pause("a break")
    yard.declare(SCRIPTS)
    yard.pass_seconds(20)
    assert yard.world.asked == [] and yard.made("first") == []
    yard.client.resume()
    yard.pass_seconds(2)
    assert len(yard.made("first")) == 1


@pytest.mark.req("O23")
def test_a_pass_that_finds_a_worker_or_a_pause_does_not_look_at_the_file(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench()
    (Path(bench.home.path) / "jobs.yaml").write_text(TRUE)

    def one_pass() -> list[int]:
        host = bench.client.context.host
        return single_step(bench.store, bench.home, bench.config, host, bench.clock, limit=1)

    def known() -> object:
        with bench.store.read() as tx:
            return tx.jobsfile.file(bench.client.context.host.id), tx.jobsfile.entries(
                bench.client.context.host.id
            )

    worker = WorkerLock(bench.home.worker_lock)
    assert worker.take(START)
    with pytest.raises(WorkerPresentError):
        one_pass()
    assert known() == (None, {}) and bench.client.listing() == []
    worker.close()
    bench.client.pause("a break")
    assert one_pass() == [] and bench.client.listing() == []
    bench.client.resume()
    assert one_pass() == [1]
    bench.engine.recover()
    bench.until_ended(1)


@pytest.mark.req("O23")
def test_a_pause_that_comes_while_it_is_asked_counts(yard: Declaring) -> None:
    yard.declare(SCRIPTS)
    yard.step()  # asks
    assert len(yard.world.asked) == 1
    yard.client.pause("a break")
    yard.pass_seconds(5)
    assert yard.made("first") == []


@pytest.mark.req("O17")
def test_a_running_agent_holds_back_what_wants_none(yard: Declaring) -> None:
    agent = JobSpec(params={"argv": ["true"]}, name="a", type="agent")
    with yard.store.write() as tx:
        add_jobs(tx, [agent], yard.engine.rounds._origin)
    yard.step()
    yard.declare(also(TRUE, "conditions: [no_agents_running]"))
    yard.pass_seconds(1)
    assert yard.made("tidy") == []
    assert yard.record("tidy").held == "condition no_agents_running does not hold"
    yard.pass_seconds(10)
    assert len(yard.made("tidy")) == 1 and yard.world.asked == []


@pytest.mark.req("O25")
def test_the_interval_follows_other_work(yard: Declaring) -> None:
    yard.declare(also(TRUE, "interval_active: 10, interval_idle: 300"))
    yard.pass_seconds(100)
    assert len(yard.made("tidy")) == 1, "its own jobs are no other work"
    yard.client.submit(Request(argv=("true",), delay=100 * SECOND, check=False))
    yard.pass_seconds(3)
    assert len(yard.made("tidy")) == 2
    yard.pass_seconds(60)
    for before, job in pairwise(yard.made("tidy")[1:]):
        assert before.finished_at is not None
        assert 10 <= (job.created_at - before.finished_at) / SECOND < 11


def test_a_cron_entry_runs_at_its_slots_and_once_for_those_that_were_missed(
    yard: Declaring,
) -> None:
    yard.declare(TRUE.replace("interval: 60", 'cron: "* * * * *"'))
    yard.pass_seconds(30)
    assert yard.made("tidy") == [], "its first slot is to come"
    yard.pass_seconds(60)
    assert [job.created_at % (60 * SECOND) for job in yard.made("tidy")] == [0]
    yard.clock.move_to(yard.clock.now() + 3600 * SECOND)
    yard.pass_seconds(20)
    assert len(yard.made("tidy")) == 2


def test_a_broken_file_keeps_the_last_good_set_running(yard: Declaring) -> None:
    yard.declare(TRUE)
    yard.pass_seconds(5)
    yard.declare(BROKEN)
    yard.pass_seconds(60)
    assert len(yard.made("tidy")) == 2
    yard.crash()  # another worker comes up with the broken file
    yard.pass_seconds(70)
    assert len(yard.made("tidy")) == 3 and yard.engine.rounds.awake
    (refused,) = yard.events("jobs_file_refused")
    assert refused.data["entries"] == 1
    (problem,) = refused.data["problems"]
    assert (problem["line"], problem["key"]) == (3, "jobs.bad.intervall")
    with yard.store.read() as tx:
        file = tx.jobsfile.file("host")
    assert file is not None and file.entries is not None
    assert list(file.trouble) == refused.data["problems"]
    yard.declare(TRUE.replace("interval: 60", "interval: 5"))
    yard.pass_seconds(10)
    assert len(yard.made("tidy")) >= 4
    with yard.store.read() as tx:
        good = tx.jobsfile.file("host")
    assert good is not None and good.trouble == ()


def test_a_first_file_that_is_broken_makes_nothing(yard: Declaring) -> None:
    yard.declare(BROKEN)
    yard.pass_seconds(5)
    assert yard.made("tidy") == [] and len(yard.events("jobs_file_refused")) == 1


@pytest.mark.req("O22")
def test_what_is_known_of_a_run_outlives_the_worker(yard: Declaring) -> None:
    """Neither does it run again at once, nor is its time forgotten."""
    yard.declare(TRUE)
    yard.pass_seconds(10)
    (job,), record = yard.ran("tidy"), yard.record("tidy")
    assert job.finished_at is not None
    assert (record.last_job, record.last_end_at) == (job.id, job.finished_at)
    assert (record.last_status, record.next_at) == ("succeeded", job.finished_at + 60 * SECOND)
    for _ in range(3):
        yard.crash()
        yard.step()
        assert yard.record("tidy") == record
    left = (job.finished_at - yard.clock.now()) / SECOND + 60
    yard.pass_time(left - 0.1)
    assert yard.made("tidy") == [job], "not before its interval has passed"
    yard.pass_time(0.2)
    assert len(yard.made("tidy")) == 2


@pytest.mark.req("O22")
def test_what_an_earlier_worker_wrote_down_is_what_a_step_goes_by(yard: Declaring) -> None:
    """The row is a format: these are the words and units of every version."""
    now = yard.clock.now()
    database = yard.store.database  # type: ignore[attr-defined]
    database.execute(
        "insert into entries (host_id, name, state, last_job, last_end_at, last_status, next_at, "
        "held, held_at, gone_at) values ('host', 'tidy', '{\"seen\": 3}', null, "
        f"{now - 20 * SECOND}, 'failed', {now + 40 * SECOND}, null, null, null)",
        {},
    )
    yard.declare(TRUE)
    yard.crash()
    record = yard.record("tidy")
    assert (record.last_end_at, record.last_status) == (now - 20 * SECOND, "failed")
    with yard.store.read() as tx:
        assert tx.jobsfile.entry_state("host", "tidy") == {"seen": 3}
    yard.pass_seconds(39)
    assert yard.made("tidy") == [], "40 of its 60 seconds were left"
    yard.pass_time(2)
    assert len(yard.made("tidy")) == 1
    yard.pass_time(10)
    assert yard.record("tidy").last_status == "succeeded"
    with yard.store.read() as tx:
        assert tx.jobsfile.entry_state("host", "tidy") == {"seen": 3}, (
            "what its function keeps stays"
        )


@pytest.mark.req("O22")
def test_an_end_that_no_worker_has_written_down_is_found(yard: Declaring) -> None:
    yard.declare(TRUE)
    yard.step()
    (job,) = yard.made("tidy")
    yard.client.cancel([job.id])  # while it runs; the worker dies
    yard.machine.worker_lives = False
    yard.crash()
    yard.pass_seconds(30)
    (ended,) = yard.ran("tidy")
    assert yard.record("tidy").last_end_at == ended.finished_at
    assert yard.record("tidy").last_status == "cancelled"


def test_an_entry_goes_on_when_its_last_job_was_removed(yard: Declaring) -> None:
    yard.declare(TRUE)
    yard.pass_seconds(10)
    (job,), record = yard.made("tidy"), yard.record("tidy")
    with yard.store.write() as tx:
        tx.retention.remove_jobs([job.id])
        tx.jobsfile.put_entries("host", [record._replace(next_at=None)])
    yard.crash()
    yard.pass_seconds(65)
    assert len(yard.made("tidy")) == 1


def test_a_job_that_is_run_again_is_not_joined_by_another(yard: Declaring) -> None:
    yard.fails = {1}
    yard.declare(TRUE)
    yard.pass_seconds(50)
    (first,) = yard.made("tidy")
    yard.client.pause("")
    again = yard.client.retry(first.id)
    yard.pass_seconds(30)
    yard.client.resume()
    yard.pass_seconds(20)
    assert [job.id for job in yard.made("tidy")] == [first.id, again.id]
    assert yard.record("tidy").last_end_at == yard.made("tidy")[1].finished_at


def test_a_clock_that_goes_back_does_not_hold_up_an_interval(yard: Declaring) -> None:
    yard.declare(TRUE)
    yard.pass_seconds(10)
    record = yard.record("tidy")
    with yard.store.write() as tx:
        late = (record.last_end_at or 0) + 3600 * SECOND
        tx.jobsfile.put_entries(
            "host", [record._replace(last_end_at=late, next_at=late + 60 * SECOND)]
        )
    yard.crash()
    yard.pass_seconds(70)
    assert len(yard.made("tidy")) == 2


def test_a_changed_interval_counts_from_the_same_end(yard: Declaring) -> None:
    yard.declare(TRUE.replace("60", "1000"))
    yard.pass_seconds(100)
    yard.declare(TRUE)
    yard.pass_seconds(3)
    assert len(yard.made("tidy")) == 2


def test_a_step_that_was_undone_is_made_again(yard: Declaring, monkeypatch: Any) -> None:
    yard.declare(SCRIPTS)
    yard.step()

    def refuse(*_: Any, **__: Any) -> None:
        raise StoreFullError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(yard.engine.planner, "step", refuse)
        with pytest.raises(StoreFullError):
            yard.engine.step()
    assert yard.made("first") == []
    yard.step()
    assert len(yard.made("first")) == 1 and len(yard.world.asked) == 1


REVIEW = "jobs:\n  review: {type: agent, prompt: Look., interval: 60}\n"


@pytest.mark.req("O18")
def test_an_agent_takes_a_slot_like_any_job_and_is_put_off_while_there_is_none(
    yard: Declaring, tmp_path: Path
) -> None:
    yard.config.env = {"PATH": str(with_claude(tmp_path))}
    yard.client.set_setting("scheduler.max_active", 1)
    first = yard.client.submit(Request(argv=("true",), check=False)).job_id
    yard.declare(REVIEW)
    yard.pass_seconds(1)
    (agent,) = yard.made("review")
    last = yard.client.submit(Request(argv=("true",), check=False)).job_id
    ran_alone, waits = [], dict[int, list[tuple[int, str]]]()
    for _ in range(60):
        live = [claim.job_id for claim in yard.live()]
        assert len(live) <= 1, "there is one slot for all"
        if live and live != ran_alone[-1:]:
            ran_alone += live
        for each in {agent.id, last} - set(live):
            wait = yard.client.document(each)["wait"]
            if live and wait is not None:
                waits.setdefault(each, []).append((live[0], wait["kind"]))
        if live == [first]:
            record = yard.record("review")
            assert record.last_end_at is None, "what is put off is no run"
        yard.pass_time(0.2)
    assert ran_alone == [first, agent.id, last]
    assert set(waits[agent.id]) == {(first, "capacity")}
    assert set(waits[last]) == {(first, "capacity"), (agent.id, "capacity")}
    assert yard.record("review").last_job == agent.id
    assert yard.record("review").last_status is not None


def with_claude(folder: Path) -> Path:
    """A folder with an agent's program, which is never run here."""
    program = folder / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program.parent


def test_an_agent_is_made_when_its_program_is_there_and_waits_for_a_slot(
    yard: Declaring, tmp_path: Path
) -> None:
    yard.client.set_setting("scheduler.max_active", 1)
    yard.client.submit(Request(argv=("true",), check=False))
    yard.declare(
        "jobs:\n  review: {type: agent, prompt: Look., interval: 60, model: haiku, max_turns: 3}\n"
    )
    yard.pass_seconds(0.5)
    held = yard.record("review").held
    assert held is not None and held.startswith("claude is not installed")
    yard.config.env = {"PATH": str(with_claude(tmp_path))}
    yard.pass_seconds(0.6)
    (job,) = yard.made("review")
    assert (job.type, job.status) == ("agent", Status.QUEUED)
    wanted = {"prompt": "Look.", "model": "haiku", "max_turns": 3, "runner": "claude"}
    assert wanted.items() <= job.params["agent"].items()


def test_jobs_of_entries_run_beside_each_other_however_few_slots_there_are(
    yard: Declaring,
) -> None:
    yard.client.set_setting("scheduler.max_active", 1)
    yard.declare(SCRIPTS)
    yard.pass_seconds(0.5)
    states = sorted(job.status for name in ("first", "second") for job in yard.made(name))
    assert states == [Status.RUNNING, Status.RUNNING]
