"""Schedules: what fires when, once each, whatever happens to workers and to the schedule."""

from collections.abc import Callable
from typing import Any

import pytest

from harness import Bench
from headway.base.clock import SECOND
from headway.base.errors import ConflictError, InvalidInputError, KeyReusedError, NotFoundError
from headway.core.model import WaitKind
from headway.core.states import ACTIVE, Status
from headway.jobs.request import Request
from headway.jobs.templates import add_template, archive_template
from keeping import MINUTE, Keeping, Wall


@pytest.mark.req("E1")
def test_a_slot_becomes_a_job_that_is_stored_queued_with_a_position(paused: Keeping) -> None:
    name = paused.add(name="tick", priority=3)
    paused.later(59)
    assert paused.jobs() == []
    paused.later(1)
    (job,) = paused.jobs()
    assert (job.status, job.position > 0, job.name) == (Status.QUEUED, True, "tick")
    assert (job.schedule_id, job.submitted_by) == ("schedule-1", "schedule-1")
    assert (job.priority, job.retry.max_attempts, job.env_digest) == (3, 3, None)
    document = paused.client.schedules.show(name)
    assert document["last_job"] == {"id": "job-1", "state": "queued", "reason": None}
    assert document["active_job"] == "job-1"
    assert paused.slots(name) == [("fired", 1, None)]
    (event,) = paused.events("schedule_fired")
    assert event.job_id == job.id and event.data["schedule"] == "schedule-1"


def test_a_job_of_a_slot_runs_in_the_step_that_makes_it(keeping: Keeping) -> None:
    keeping.add(shell="pwd; echo $PATH; echo $HOME")
    keeping.clock.advance(60)
    keeping.bench.step()
    assert keeping.jobs()[0].status is Status.RUNNING
    (job,) = keeping.bench.until_ended(1)
    assert job.status is Status.SUCCEEDED
    written = (keeping.bench.folder / ".headway").rglob("stdout.log")
    folder, path, home = next(iter(written)).read_text().splitlines()
    assert folder == str(keeping.bench.folder), "it runs in the project's folder"
    assert path.startswith("/usr/local/sbin:") and home != "/", "not the author's environment"


def test_no_slot_fires_that_lies_before_the_schedule_or_its_change(paused: Keeping) -> None:
    paused.clock.advance(90)
    name = paused.add(name="a", cron="* * * * *")
    paused.settle()
    assert paused.jobs() == []
    paused.clock.advance(600)
    paused.add(name="a", cron="* * * * *", replace=True)
    paused.settle()
    assert paused.jobs() == [] and paused.slots(name) == []
    paused.clock.advance(600)
    paused.client.schedules.disable(name)
    paused.client.schedules.enable(name)
    paused.settle()
    assert paused.jobs() == []


@pytest.mark.req("D5")
def test_what_is_done_to_a_schedule_touches_no_job_that_it_made(paused: Keeping) -> None:
    name = paused.add(name="a", argv=["true", "old"])
    paused.later(60)
    before = paused.jobs()
    paused.add(name="a", argv=["true", "new"], every="2m", overlap="replace", replace=True)
    assert paused.client.schedules.disable(name) and not paused.client.schedules.disable(name)
    paused.later(600)
    assert paused.jobs() == before
    assert paused.client.schedules.enable(name) and not paused.client.schedules.enable(name)
    paused.client.schedules.remove(name)
    paused.later(600)
    assert paused.jobs() == before and paused.client.schedules.list() == []


@pytest.mark.parametrize("change", ["edit", "disable", "remove", "trigger"])
@pytest.mark.parametrize("before", [True, False])
def test_a_change_beside_a_firing_never_doubles_or_revives_a_slot(  # fault E7
    paused: Keeping, change: str, before: bool
) -> None:
    """Whichever of the two transactions is first."""
    name = paused.add(name="a")
    paused.clock.advance(60)

    def changed() -> None:
        if change == "edit":
            paused.add(name="a", replace=True, overlap="queue")
        elif change == "disable":
            paused.client.schedules.disable(name)
        elif change == "remove":
            paused.client.schedules.remove(name)
        elif before:
            paused.client.schedules.trigger(name)

    if before:
        changed()
        paused.settle()
        assert len(paused.jobs()) == (change == "trigger")
    else:
        paused.settle()
        changed()
        paused.settle()
        assert len(paused.jobs()) == 1
    paused.later(60)
    fires_again = change == "edit"
    assert len(paused.jobs()) == fires_again + (change == "trigger" or not before)


def test_a_run_longer_than_the_interval_makes_the_others_skipped(
    keeping: Keeping,
) -> None:  # fault E8
    name = keeping.add(shell="while ! test -e gate; do sleep 0.01; done")
    for _ in range(5):
        keeping.later(60)
    assert keeping.slots(name) == [("fired", 1, None), ("skipped", 4, "job-1 is still running")]
    assert len(keeping.events("schedule_skipped")) == 1
    (keeping.bench.folder / "gate").touch()
    keeping.let_end()
    keeping.later(60)
    assert len(keeping.jobs()) == 2


def test_a_retry_that_waits_for_its_time_is_still_active(keeping: Keeping) -> None:
    name = keeping.add(argv=["false"], retry_base="1h")
    keeping.later(60)
    keeping.bench.until(lambda: len(keeping.jobs()) == 2)
    assert keeping.jobs()[1].schedule_id == "schedule-1"
    keeping.later(60)
    assert keeping.slots(name)[-1] == ("skipped", 1, "job-2 still waits")


def test_queued_overlap_makes_jobs_of_which_one_runs_at_a_time(keeping: Keeping) -> None:
    keeping.client.set_setting("scheduler.max_active", 5)
    keeping.add(shell="while ! test -e gate; do sleep 0.01; done", overlap="queue")
    for _ in range(3):
        keeping.later(60)
    states = [job.status for job in keeping.jobs()]
    assert states == [Status.RUNNING, Status.WAITING_ON_LOCKS, Status.WAITING_ON_LOCKS]
    (keeping.bench.folder / "gate").touch()
    keeping.let_end()


def test_replacing_overlap_cancels_as_an_operator_does(keeping: Keeping) -> None:
    keeping.client.set_setting("scheduler.max_active", 5)
    shell = "test -e gate || { touch begun; sleep 600; }"
    keeping.add(shell=shell, overlap="replace", grace="0s")
    keeping.later(60)
    keeping.bench.until((keeping.bench.folder / "begun").exists)
    (keeping.bench.folder / "gate").touch()
    keeping.later(60)
    first, second = keeping.bench.until_ended(1, 2)
    assert (first.status, first.cancel_requested_by) == (Status.CANCELLED, "schedule-1")
    assert second.status is Status.SUCCEEDED and WaitKind.LOCKS in second.waited_on


def test_replacing_ends_a_job_that_waits(paused: Keeping) -> None:
    paused.add(overlap="replace")
    for _ in range(3):
        paused.later(60)
    first, second, third = paused.jobs()
    assert first.status is second.status is Status.CANCELLED and third.status in ACTIVE
    assert first.reason == "cancelled by schedule-1"


def test_a_paused_scheduler_still_makes_the_job_which_says_why_it_waits(paused: Keeping) -> None:
    name = paused.add()
    for _ in range(3):
        paused.later(60)
    (job,) = paused.jobs()
    assert paused.client.document(job.id)["wait"]["kind"] == WaitKind.PAUSED
    assert paused.slots(name) == [("fired", 1, None), ("skipped", 2, "job-1 still waits")]


def test_what_cannot_be_made_is_a_skipped_slot_that_says_why(paused: Keeping) -> None:
    add_template(paused.client.context, "build", argv=["true", "{what}"], params={"what": None})
    name = paused.add(name="a", template="build", params={"what": "all"}, overlap="queue")
    paused.add(name="b", overlap="queue")
    paused.later(60)
    assert [job.params["argv"] for job in paused.jobs()] == [["true", "all"], ["true"]]
    assert paused.jobs()[0].template_id == "build"
    archive_template(paused.client.context, "build")
    paused.later(60)
    paused.later(60)
    assert len(paused.jobs()) == 4, "the other goes on"
    *_, (outcome, count, reason) = paused.slots(name)
    assert (outcome, count) == ("skipped", 2) and "is archived" in str(reason)


def test_jitter_delays_the_job_and_not_the_slots(paused: Keeping) -> None:
    name = paused.add(every="1h", jitter="30m", overlap="queue")
    delays = set()
    for _ in range(4):
        document = paused.client.schedules.show(name)
        paused.clock.jump(0)
        with paused.bench.store.read() as tx:
            (schedule,) = tx.schedules.all()
        assert schedule.next_slot and schedule.next_fire_at
        delays.add(schedule.next_fire_at - schedule.next_slot)
        assert document["next_slot"] != document["next_fire_at"]
        before = len(paused.jobs())
        paused.later((schedule.next_fire_at - paused.clock.now() - SECOND) / SECOND)
        assert len(paused.jobs()) == before
        paused.later(1)
        assert len(paused.jobs()) == before + 1
    assert len(delays) > 1 and all(0 <= each < 30 * MINUTE for each in delays)
    assert [outcome for outcome, _, _ in paused.slots(name)] == ["fired"] * 4


def test_triggering_makes_a_job_of_no_slot_and_moves_nothing(paused: Keeping) -> None:
    name = paused.add(name="a")
    before = paused.client.schedules.show(name)
    job_id = paused.client.schedules.trigger("#1").job_id
    assert paused.bench.job(job_id).schedule_id == "schedule-1"
    last = {"id": "job-1", "state": "queued", "reason": None}
    assert paused.client.schedules.show(name) == {**before, "active_job": "job-1", "last_job": last}
    with pytest.raises(ConflictError, match="job-1 still waits; wait for it, or cancel it"):
        paused.client.schedules.trigger(name)
    paused.client.cancel([job_id])
    paused.client.schedules.disable(name)
    assert paused.client.schedules.trigger("schedule-1").created, "also while it is disabled"
    (first, _) = paused.events("schedule_triggered")
    assert (first.job_id, first.actor) == (job_id, "tester")


def test_triggering_with_the_same_key_makes_one_job(paused: Keeping) -> None:
    for name in ("a", "b"):
        paused.add(name=name)
    trigger = paused.client.schedules.trigger
    made = trigger("a", key="monday")
    before = paused.events("schedule_triggered")
    assert trigger("schedule-1", key="monday") == (made.job_id, False), "although it is active"
    paused.client.cancel([made.job_id])
    assert trigger("a", key="monday") == (made.job_id, False), "although it has ended"
    with pytest.raises(KeyReusedError, match="'monday' belongs to job-1, which b did not make"):
        trigger("b", key="monday")
    with pytest.raises(InvalidInputError, match="key '' must be"):
        trigger("a", key="")
    assert len(paused.jobs()) == 1 and paused.events("schedule_triggered") == before
    paused.client.submit(Request(argv=("true",), key="tuesday"))
    with pytest.raises(KeyReusedError, match="'tuesday' belongs to job-2"):
        trigger("a", key="tuesday")
    assert trigger("a", key="wednesday") == (3, True)


def test_once_is_once(paused: Keeping) -> None:
    name = paused.add(at="+10m")
    paused.later(1000)
    paused.later(1000)
    assert len(paused.jobs()) == 1
    document = paused.client.schedules.show(name)
    assert (document["next_slot"], document["enabled"]) == (None, True)
    with paused.bench.store.read() as tx:
        assert tx.settings.marks()["next_fire_at"] == 0


def test_the_delay_of_a_step_ends_at_the_next_slot(keeping: Keeping) -> None:
    keeping.add(every="7s")
    assert 0 < keeping.bench.step() <= 7
    keeping.client.schedules.disable("schedule-1")
    with keeping.bench.store.read() as tx:
        assert tx.settings.marks()["next_fire_at"] == 0


def test_idle_schedules_cost_no_query(make_bench: Callable[..., Bench]) -> None:
    keeping = Keeping(make_bench(clock=Wall()), Wall())
    asked = 0
    database = keeping.bench.store.database  # type: ignore[attr-defined]
    execute = database.execute

    def counted(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return execute(*given)

    database.execute = counted
    counts = []
    for number in (0, 1, 50):
        for _ in range(number):
            keeping.add(every="1h")
        keeping.settle()
        before = asked
        keeping.bench.step()
        counts.append(asked - before)
    assert len(set(counts)) == 1, counts


def test_a_stopped_schedule_goes_on_when_it_is_enabled(paused: Keeping) -> None:
    name = paused.add()
    with paused.bench.store.write() as tx:
        (schedule,) = tx.schedules.all()
        tx.schedules.put(schedule._replace(next_slot=None, next_fire_at=None))
        tx.schedules.note_next_fire()
    assert paused.client.schedules.enable(name) and not paused.client.schedules.enable(name)
    paused.later(60)
    assert len(paused.jobs()) == 1


def test_a_schedule_that_cannot_be_read_is_put_to_rest(paused: Keeping) -> None:
    paused.add(name="good")
    with paused.bench.store.write() as tx:
        (schedule,) = tx.schedules.all()
        rule = {"cron": "* * * * *", "timezone": "Atlantis/Capital"}
        gone = {**schedule.document, "rule": rule}
        tx.schedules.put(schedule._replace(id=tx.schedules.take_id(), name="lost", document=gone))
        tx.schedules.note_next_fire()
    paused.later(60)
    assert len(paused.jobs()) == 1
    (event,) = paused.events("schedule_stopped")
    assert event.data["name"] == "lost" and "Atlantis" in event.data["reason"]
    assert "Atlantis" in paused.client.schedules.show("lost")["in_words"], "it is still listed"
    assert paused.client.schedules.disable("lost")
    with pytest.raises(InvalidInputError, match="Atlantis"):
        paused.client.schedules.enable("lost")
    paused.add(name="lost", replace=True)


def test_of_a_damaged_row_it_is_said_what_can_be_done(paused: Keeping) -> None:
    name = paused.add(name="a")
    with paused.bench.store.write() as tx:
        (schedule,) = tx.schedules.all()
        tx.schedules.put(schedule._replace(document={"damaged": "no JSON"}))
    paused.later(60)
    assert [each.data["reason"] for each in paused.events("schedule_stopped")] == ["no JSON"]
    assert paused.client.schedules.show(name)["in_words"] == "no JSON"
    for verb in (paused.client.schedules.enable, paused.client.schedules.trigger):
        with pytest.raises(ConflictError, match="cannot be read; remove it"):
            verb(name)
    assert paused.client.schedules.disable(name)
    paused.client.schedules.remove(name)


@pytest.mark.req("D16")
def test_another_zone_counts_for_the_next_slot_and_for_no_job_made_before(paused: Keeping) -> None:
    said: dict[str, Any] = {"name": "nine", "cron": "0 9 * * *"}
    paused.add(**said)
    assert paused.client.schedules.show("nine")["next_slot"].endswith("T09:00:00.000000Z")
    paused.later(24 * 3600)
    before = paused.jobs()
    paused.add(**said, timezone="Asia/Tokyo", replace=True)
    assert paused.client.schedules.show("nine")["next_slot"].endswith("T00:00:00.000000Z")
    assert paused.jobs() == before and len(before) == 1


@pytest.mark.parametrize(
    ("zone", "at"),
    [
        ({"timezone": "Europe/Berlin"}, "2026-07-01T10:00:00.000000Z"),
        ({}, "2026-07-01T12:00:00.000000Z"),
    ],
)
def test_a_single_instant_is_read_on_the_clock_of_its_zone(
    paused: Keeping, zone: dict[str, str], at: str
) -> None:
    added = paused.client.schedules.add(at="2026-07-01T12:00", argv=["true"], **zone)
    assert paused.client.schedules.show(added.name)["next_slot"] == at


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no rule": ({"every": None}, "give one of --cron, --every and --at"),
    "two rules": ({"cron": "* * * * *"}, "give one of --cron, --every and --at"),
    "no cron": ({"every": None, "cron": "61 * * * *"}, "61"),
    "impossible": ({"every": None, "cron": "0 0 30 2 *"}, "0 0 30 2"),
    "no zone": ({"every": None, "cron": "@daily", "timezone": "Atlantis"}, "Atlantis"),
    "a zone without cron": ({"timezone": "Europe/Berlin"}, "an interval has no clock"),
    "too often": ({"every": "10ms"}, "at least 1s"),
    "no duration": ({"every": "often"}, "is not a duration"),
    "the past": ({"every": None, "at": "2001-01-01T00:00Z"}, "in the future"),
    "no job": ({"argv": None}, "give --template NAME, or a command after --"),
    "a word of one job": ({"key": "k"}, "key is about one job"),
    "an unknown word": ({"prio": 3}, "did you mean 'priority'"),
    "no program": ({"argv": ["no-such-program"]}, "was not found"),
    "no folder": ({"cwd": "/no/such/folder"}, "there is no directory"),
    "a repository": ({"worktree": True}, "looks at a repository"),
    "a pinned head": ({"pin_head": "main"}, "looks at a repository"),
    "catch-up": ({"catch_up": "some"}, "not one of latest, all, none"),
    "overlap": ({"overlap": "wait"}, "not one of skip, queue, replace"),
    "all, and skip": ({"catch_up": "all", "overlap": "skip"}, "--overlap queue"),
    "all, and replace": ({"catch_up": "all", "overlap": "replace"}, "--overlap queue"),
    "window": ({"window": "0s"}, "--window"),
    "jitter": ({"jitter": "1m"}, "not shorter than the time between two slots"),
    "name": ({"name": "a b"}, "schedule 'a b'"),
    "a name like an id": ({"name": "schedule-7"}, "looks like the id"),
    "a parameter": ({"params": {"a": "b"}}, "give --template"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_wrong_is_refused_whole(bench: Bench, what: str) -> None:
    said, expected = REFUSED[what]
    with pytest.raises(InvalidInputError, match=expected):
        bench.client.schedules.add(**{"every": "1m", "argv": ["true"], **said})
    assert bench.client.schedules.list() == []
    with bench.store.read() as tx:
        assert tx.settings.marks()["next_schedule_id"] == 1


def test_names_are_taken_once_and_unknown_ones_are_not_found(bench: Bench) -> None:
    bench.client.schedules.add(name="a", every="1m", argv=["true"])
    with pytest.raises(ConflictError, match="--replace"):
        bench.client.schedules.add(name="a", every="1m", argv=["true"])
    for reference in ("b", "schedule-2", "#2", "2", "0", "schedule-"):
        with pytest.raises(NotFoundError, match="schedules list"):
            bench.client.schedules.show(reference)
    for verb in ("enable", "disable", "trigger", "remove"):
        with pytest.raises(NotFoundError):
            getattr(bench.client.schedules, verb)("b")
    assert bench.client.schedules.show("1") == bench.client.schedules.show("a")
    with pytest.raises(NotFoundError, match="template"):
        bench.client.schedules.add(every="1m", template="none")
