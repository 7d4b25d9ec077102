"""Entries of the jobs file that are not agents take no slot, but a place of their own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from declaring import Declaring
from headway.base.clock import SECOND
from headway.core.model import Job, JobId
from headway.core.states import Status
from headway.jobs.dry_run import dry_run
from headway.jobs.request import Request
from headway.jobs.reservations import stand_in_line
from headway.jobs.views.queue import line_up
from headway.jobs.views.search import SearchQuery
from headway.jobs.views.status import scheduler_status
from headway.jobs.views.why import why
from headway.store.records import Lending, Unclaim
from simulation.machines import Fate

SCRIPT = "  sweep: {type: script, run: sweep, interval: 60}\n"
AGENT = "  review: {type: agent, prompt: Look., interval: 60}\n"


def entries(count: int, more: str = "") -> str:
    lines = (
        f"  tidy-{number}: {{type: command, run: [/bin/true], interval: 600{more}}}\n"
        for number in range(1, count + 1)
    )
    return "jobs:\n" + "".join(lines)


@pytest.fixture
def yard(declared_yard: Declaring, tmp_path: Path) -> Declaring:
    """With one slot, which a job has that does not end."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    declared_yard.config.env = {"PATH": f"{program.parent}:/bin"}
    declared_yard.client.set_setting("scheduler.max_active", 1)
    declared_yard.fate = endless(declared_yard)  # type: ignore[method-assign]
    return declared_yard


def endless(yard: Declaring) -> Callable[[JobId], Fate]:
    usual = yard.fate

    def fate(job_id: JobId) -> Fate:
        with yard.store.read() as tx:
            job = tx.jobs.by_id([job_id])[job_id]
        longest = job.name in ("long", *(f"tidy-{number}" for number in range(1, 10)))
        return replace(usual(job_id), seconds=3600.0) if longest else usual(job_id)

    return fate


def busy(yard: Declaring) -> JobId:
    made = yard.client.submit(Request(argv=("true",), name="long", check=False))
    yard.step()
    return made.job_id


def one(yard: Declaring, name: str) -> Job:
    (job,) = yard.made(name)
    return job


@pytest.mark.req("O18", "G26")
def test_with_all_slots_in_use_a_script_runs_and_an_agent_waits(yard: Declaring) -> None:
    busy(yard)
    yard.declare("jobs:\n" + SCRIPT + AGENT)
    yard.pass_seconds(1.5)
    assert one(yard, "sweep").status is Status.RUNNING
    waiting = one(yard, "review")
    assert waiting.status is Status.QUEUED
    assert [each["detail"] for each in why(yard.client.context, waiting.id)["objections"]] == [
        "the one slot is in use"
    ]
    told = scheduler_status(yard.client.context)
    assert (told["active"], told["max_active"], told["free"]) == (1, 1, 0)
    assert told["jobs_file"] == {"parallel": 4, "running": 1, "waiting": 0}


def test_an_entry_that_runs_leaves_its_slot_to_others(yard: Declaring) -> None:
    yard.declare(entries(1))
    yard.pass_seconds(1.5)
    told = scheduler_status(yard.client.context)
    assert (told["active"], told["free"]) == (0, 1)
    busy(yard)
    assert sorted(claim.slot for claim in yard.live()) == [-1, 1]
    told = scheduler_status(yard.client.context)
    assert (told["active"], told["free"], told["jobs_file"]["running"]) == (1, 0, 1)


def states(yard: Declaring, count: int) -> list[Status]:
    return [one(yard, f"tidy-{number}").status for number in range(1, count + 1)]


def test_a_fifth_entry_waits_for_one_of_four_places(yard: Declaring) -> None:
    busy(yard)
    yard.declare(entries(5))
    yard.pass_seconds(1.5)
    assert states(yard, 5) == [Status.RUNNING] * 4 + [Status.QUEUED]
    told = scheduler_status(yard.client.context)
    assert told["jobs_file"] == {"parallel": 4, "running": 4, "waiting": 1}
    assert (told["queued_total"], told["queued_ready"]) == (1, 1)
    last = one(yard, "tidy-5")
    (objection,) = why(yard.client.context, last.id)["objections"]
    assert objection["kind"] == "capacity"
    assert objection["detail"] == "all 4 places for entries of the jobs file are in use"
    assert objection["remedy"].endswith("or raise jobsfile.parallel")
    yard.client.cancel([one(yard, "tidy-2").id])
    yard.pass_seconds(30)
    assert states(yard, 5)[4] is Status.RUNNING
    assert sorted(claim.slot for claim in yard.live()) == [-4, -3, -2, -1, 1]


def test_the_bound_is_a_setting_that_holds_at_once(yard: Declaring) -> None:
    yard.client.set_setting("jobsfile.parallel", 1)
    yard.client.set_setting("scheduler.max_active", -1)
    yard.declare(entries(3))
    yard.pass_seconds(1.5)
    assert states(yard, 3).count(Status.RUNNING) == 1, "direct dispatch lifts the other cap alone"
    told = why(yard.client.context, one(yard, "tidy-2").id)["objections"]
    assert [each["detail"] for each in told] == [
        "the one place for entries of the jobs file is in use"
    ]
    yard.client.set_setting("jobsfile.parallel", 2)
    yard.step()
    assert states(yard, 3).count(Status.RUNNING) == 2


@pytest.mark.req("O23")
def test_a_pause_holds_entries_of_both_sorts_until_it_is_over(yard: Declaring) -> None:
    busy(yard)
    yard.fails = {2, 3}
    yard.declare("jobs:\n" + SCRIPT + AGENT)
    yard.pass_seconds(10)
    assert one(yard, "sweep").status is Status.FAILED
    yard.client.pause("lunch")
    again = yard.client.retry(one(yard, "sweep").id).id
    yard.pass_seconds(5)
    for job_id in (again, one(yard, "review").id):
        told = yard.client.document(job_id)
        assert told["wait"] == {"kind": "paused", "detail": "paused by ann: lunch"}
    status = scheduler_status(yard.client.context)
    assert (status["queued_ready"], status["reason"]) == (2, "paused by ann: lunch")
    yard.client.resume()
    yard.step()
    assert yard.made("sweep")[-1].status is Status.RUNNING, "although no slot is free"
    assert one(yard, "review").status is Status.QUEUED


def test_entries_share_limits_with_all_others(yard: Declaring) -> None:
    yard.client.set_setting("scheduler.limits.resource.gpu", 1)
    yard.client.submit(Request(argv=("true",), name="long", resources=("gpu",), check=False))
    yard.step()
    yard.declare(entries(2, ", resources: [gpu]"))
    yard.pass_seconds(1.5)
    assert states(yard, 2) == [Status.QUEUED] * 2
    (objection,) = why(yard.client.context, one(yard, "tidy-1").id)["objections"]
    assert objection["detail"] == "resource gpu is in use"
    yard.client.set_setting("scheduler.limits.resource.gpu", 2)
    yard.step()
    assert states(yard, 2) == [Status.RUNNING, Status.QUEUED], "no slot is free, and none needed"


def test_entries_are_not_behind_a_long_queue_for_slots(yard: Declaring) -> None:
    busy(yard)
    yard.client.pause("fill")
    for _ in range(30):
        yard.client.submit(Request(argv=("true",), check=False))
    yard.declare(entries(1))
    yard.pass_seconds(2)
    yard.client.set_setting("scheduler.max_active", 2)
    yard.client.resume()
    yard.step()
    assert states(yard, 1) == [Status.RUNNING]
    assert len(yard.live()) == 3


def test_a_dry_run_and_the_estimates_know_the_places(yard: Declaring) -> None:
    busy(yard)
    yard.client.set_setting("jobsfile.parallel", 1)
    yard.declare(entries(5))
    yard.pass_seconds(2)
    yard.client.set_setting("jobsfile.parallel", 4)
    planned = dry_run(yard.client.context, 10)
    assert [job.name for job in planned.to_dispatch] == [f"tidy-{each}" for each in range(2, 5)]
    assert [left.reason for left in planned.skipped] == [
        "all 4 places for entries of the jobs file are in use"
    ]
    waits = {
        each["name"]: each["estimated_wait_seconds"]
        for each in line_up(yard.client.context, SearchQuery(), limit=50, most=50).documents
    }
    assert [waits[f"tidy-{each}"] for each in range(2, 6)] == [0.0, 0.0, 0.0, None]


@pytest.mark.parametrize("reboot", [False, True])
def test_a_crash_keeps_the_count(yard: Declaring, reboot: bool) -> None:
    busy(yard)
    yard.declare(entries(5))
    yard.pass_seconds(1.5)
    yard.crash(reboot=reboot)
    yard.step()
    told = scheduler_status(yard.client.context)
    running = [status for status in states(yard, 5) if status is Status.RUNNING]
    assert told["jobs_file"]["running"] == len(running) == (1 if reboot else 4)
    assert (told["active"], told["free"]) == ((0, 1) if reboot else (1, 0))


def test_a_claim_of_before_holds_the_slot_that_it_took(yard: Declaring) -> None:
    """As an older version has left it: without the key of its place."""
    yard.declare(entries(1))
    yard.pass_seconds(1.5)
    (claim,) = yard.live()
    with yard.store.write() as tx:
        tx.claims.undo([Unclaim(claim.token, claim.job_id, "test", None, 0, None)])
        job = tx.jobs.by_id([claim.job_id])[claim.job_id]
        tx.claims.begin([(job, claim._replace(slot=1, occupies=("type:command",)))])
    told = scheduler_status(yard.client.context)
    assert (told["active"], told["free"], told["jobs_file"]["running"]) == (1, 0, 0)


def test_a_retry_of_an_entry_takes_a_place_like_its_first_job(yard: Declaring) -> None:
    busy(yard)
    yard.fails = {2}
    yard.declare("jobs:\n" + SCRIPT)
    yard.pass_seconds(10)
    first = one(yard, "sweep")
    yard.client.retry(first.id)
    yard.step()
    again = yard.made("sweep")[-1]
    assert (again.retry_of, again.status) == (first.id, Status.RUNNING)
    assert scheduler_status(yard.client.context)["active"] == 1


def lend(yard: Declaring, lender: JobId, awaited: JobId) -> None:
    """The one job waits for the other."""
    with yard.store.write() as tx:
        tx.claims.lend(f"of {lender}", Lending(lender, awaited, tx.now() + 3600 * SECOND))


def submit(yard: Declaring, name: str = "other") -> JobId:
    return yard.client.submit(Request(argv=("true",), name=name, check=False)).job_id


def test_an_entry_that_waits_for_a_job_has_no_slot_to_lend(yard: Declaring) -> None:
    busy(yard)
    yard.declare(entries(1))
    yard.pass_seconds(1.5)
    awaited = submit(yard)
    lend(yard, one(yard, "tidy-1").id, awaited)
    yard.step()
    assert yard.client.job(awaited).status is Status.QUEUED
    told = scheduler_status(yard.client.context)
    assert (told["active"], told["free"]) == (1, 0)


def test_a_job_that_waits_for_an_entry_lends_its_slot_to_what_that_waits_for(
    yard: Declaring,
) -> None:
    """Or the slot would wait for the entry, the entry for a job, and that job for the slot."""
    waiter = busy(yard)
    yard.declare(entries(1))
    yard.pass_seconds(1.5)
    entry = one(yard, "tidy-1").id
    lend(yard, waiter, entry)
    awaited = submit(yard, "long")
    yard.step()
    assert yard.client.job(awaited).status is Status.QUEUED, "nobody waits for it yet"
    lend(yard, entry, awaited)
    yard.step()
    assert yard.client.job(awaited).status is Status.RUNNING
    told = scheduler_status(yard.client.context)
    assert (told["free"], told["jobs_file"]["running"]) == (0, 1)


def test_a_direct_call_goes_before_entries(yard: Declaring) -> None:
    """While one waits, no queued job starts."""
    busy(yard)
    with yard.store.write() as tx:
        asking = stand_in_line(yard.client.context, tx, "by hand", (), None)
    yard.declare(entries(1))
    yard.pass_seconds(1.5)
    (objection, *_) = why(yard.client.context, one(yard, "tidy-1").id)["objections"]
    assert objection["detail"] == f"{asking.name} of {asking.holder} goes first"
    with yard.store.write() as tx:
        tx.reservations.release(asking)
    yard.step()
    assert states(yard, 1) == [Status.RUNNING]
