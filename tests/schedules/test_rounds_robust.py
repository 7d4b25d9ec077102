"""What the entries of a jobs file survive: steps that are undone, damage, and being away."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from declaring import Declaring
from headway.base.clock import SECOND
from headway.base.errors import StoreFullError
from headway.core.periodic import Timing
from headway.jobs.retention import GONE_ENTRIES_KEPT_FOR
from headway.schedules.jobsfile.job_of_entry import timing_of
from headway.schedules.jobsfile.model import Entry
from headway.worker.janitor import Janitor

TIDY = "jobs:\n  tidy: {type: command, run: [/bin/true], interval: 60}\n"
ASKED = "jobs:\n  tidy: {type: script, run: tidy, interval: 60}\n"
AGENTS = TIDY.replace("}", ", conditions: [no_agents_running]}")

Undo = Callable[[], None]


@pytest.fixture
def yard(declared_yard: Declaring) -> Declaring:
    return declared_yard


@pytest.fixture
def undo(yard: Declaring, monkeypatch: pytest.MonkeyPatch) -> Undo:
    """Make a step that ends after the round, and not well."""

    def refuse(*_: Any, **__: Any) -> None:
        raise StoreFullError("no room")

    def undone() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(yard.engine.planner, "step", refuse)
            with pytest.raises(StoreFullError):
                yard.engine.step()
        yard.due = yard.clock.now()

    return undone


@pytest.mark.parametrize("text", [TIDY, ASKED, AGENTS], ids=["made", "asked", "agents"])
@pytest.mark.parametrize("times", [1, 3])
def test_an_entry_that_was_due_in_it_runs_in_the_next(
    yard: Declaring, undo: Undo, text: str, times: int
) -> None:
    yard.declare(text)
    yard.pass_seconds(30)
    due_at = yard.record("tidy").next_at
    assert len(yard.made("tidy")) == 1 and due_at is not None
    yard.clock.move_to(due_at + 1)
    for _ in range(times):
        undo()
    yard.pass_seconds(30)
    assert len(yard.made("tidy")) == 2


def test_an_end_that_was_taken_in_with_it_counts(yard: Declaring, undo: Undo) -> None:
    yard.declare(TIDY)
    yard.step()
    yard.clock.move_to(yard.clock.now() + 20 * SECOND)
    undo()
    yard.pass_seconds(70)
    assert len(yard.made("tidy")) == 2


def test_a_file_that_was_taken_over_with_it_is_taken_over(yard: Declaring, undo: Undo) -> None:
    yard.declare(TIDY)
    yard.pass_seconds(5)
    yard.declare(TIDY.replace("tidy", "sweep"))
    yard.clock.move_to(yard.clock.now() + 2 * SECOND)
    undo()
    yard.pass_seconds(5)
    assert len(yard.made("sweep")) == 1
    assert len(yard.events("jobs_file_loaded")) == 2


def test_trouble_of_the_poll_that_it_would_have_told_of_is_told_of(
    yard: Declaring, undo: Undo
) -> None:
    yard.world.poll_trouble = "it is down"
    yard.declare(ASKED)
    yard.step()  # asks
    undo()
    assert yard.events("poll_failed") == []
    yard.pass_seconds(5)
    assert [each.data for each in yard.events("poll_failed")] == [{"reason": "it is down"}]


AGENT = "  review: {type: agent, prompt: Look., runner: odd, interval: 60}\n"


@pytest.mark.parametrize(
    "description",
    [
        "argv = " + "[" * 5000 + "]" * 5000,
        "argv = ['a']\nprompt = 'stdin'\n[defaults]\nmax_turns = " + "9" * 5000,
        "argv = 5",
        "\0",
    ],
    ids=["deep", "large", "wrong", "binary"],
)
def test_a_runner_that_cannot_be_read_holds_back_its_own_entries_alone(
    yard: Declaring, description: str
) -> None:
    runners = Path(yard.home.path) / "runners"
    runners.mkdir()
    (runners / "odd.toml").write_text(description)
    yard.declare(TIDY + AGENT)
    yard.pass_seconds(5)
    assert len(yard.made("tidy")) == 1 and yard.made("review") == []
    assert yard.record("review").held


class Stubborn(NamedTuple):
    def next_after(self, instant: int) -> int:
        raise OverflowError("date value out of range")


def test_a_rule_that_breaks_when_it_is_asked_holds_back_its_own_entry_alone(
    yard: Declaring, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing = timing_of

    def broken(entry: Entry) -> Timing:
        return Timing(rule=Stubborn()) if entry.cron else timing(entry)

    monkeypatch.setattr("headway.schedules.jobsfile.entries.timing_of", broken)
    yard.declare(TIDY + "  odd: {type: command, run: [/bin/true], cron: '@daily'}\n")
    yard.pass_seconds(70)
    assert len(yard.made("tidy")) == 2
    assert yard.record("odd").held == "OverflowError: date value out of range"


@pytest.mark.parametrize("document", ["{", "7", '["x"]'])
@pytest.mark.parametrize("text", [TIDY, None, "jobs: 7"], ids=["another", "none", "broken"])
def test_a_damaged_last_good_set_counts_as_none_and_is_written_anew(
    yard: Declaring, document: str, text: str | None
) -> None:
    yard.declare(ASKED)
    yard.pass_seconds(5)
    with yard.store.write() as tx:
        tx._db.send("put_jobs_file", **damaged(tx, document))
    if text is None:
        yard.file.unlink()
    else:
        yard.declare(text)
    yard.pass_seconds(70)
    assert len(yard.made("tidy")) == (2 if text == TIDY else 1)
    with yard.store.read() as tx:
        file = tx.jobsfile.file("host")
    assert file is not None and len(file.entries or ()) <= 1
    readable = document.startswith("[")
    last = yard.events("jobs_file_loaded", "jobs_file_refused")[-1]
    assert ("damage" in last.data) is not readable


def damaged(tx: Any, document: str) -> dict[str, Any]:
    file = tx.jobsfile.file("host")
    return {
        "host_id": "host",
        "digest": file.digest,
        "read_at": file.read_at,
        "trouble": None,
        "document": document,
        "loaded_at": file.loaded_at,
    }


def test_a_damaged_row_is_written_anew_also_if_there_is_no_other_file(yard: Declaring) -> None:
    yard.declare(TIDY)
    yard.pass_seconds(5)
    with yard.store.write() as tx:
        tx._db.send("put_jobs_file", **damaged(tx, "{"))
    yard.crash()
    yard.pass_seconds(70)
    assert len(yard.made("tidy")) == 2
    assert ["damage" in each.data for each in yard.events("jobs_file_loaded")] == [False, True]


def test_a_worker_that_makes_no_more_rounds_does_not_wake_for_one(yard: Declaring) -> None:
    yard.declare(TIDY)
    yard.pass_seconds(5)
    yard.engine.dispatching = False
    yard.declare(TIDY + "\n")
    yard.clock.move_to(yard.clock.now() + 2 * SECOND)
    assert yard.engine.rounds.notice() and yard.engine.step() > 0


def test_an_entry_that_is_gone_is_forgotten_after_a_month_and_not_before(yard: Declaring) -> None:
    yard.declare(TIDY)
    yard.pass_seconds(5)
    with yard.store.write() as tx:
        tx.jobsfile.keep_entry_state("host", "tidy", {"runs": 1})
    yard.declare(TIDY.replace("tidy", "sweep"))
    yard.pass_seconds(5)
    janitor = Janitor(yard.store, yard.home, yard.clock, host_id="host", actor="worker-1")
    yard.clock.move_to(yard.clock.now() + GONE_ENTRIES_KEPT_FOR - 60 * SECOND)
    janitor.step()
    assert yard.record("tidy").gone_at is not None
    yard.declare(TIDY)  # it comes back, and the other goes
    yard.pass_seconds(5)
    assert yard.record("tidy").gone_at is None
    yard.clock.move_to(yard.clock.now() + GONE_ENTRIES_KEPT_FOR + 60 * SECOND)
    janitor.step()
    with yard.store.read() as tx:
        assert list(tx.jobsfile.entries("host")) == ["tidy"]
        assert tx.jobsfile.entry_state("host", "tidy") == {"runs": 1}
