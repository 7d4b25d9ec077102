"""What becomes of the entries of a jobs file when a step is undone, or one of them is damaged."""

from collections.abc import Callable
from typing import Any

import pytest
from declaring import Declaring

from headway.clock import SECOND
from headway.errors import StoreFullError

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
