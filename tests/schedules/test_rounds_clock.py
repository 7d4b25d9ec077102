"""A clock that is set back holds up no entry of a jobs file."""

import pytest

from declaring import Declaring
from headway.base.clock import SECOND

HOUR = 3600
DAY = 24 * HOUR
INTERVAL = "jobs:\n  tidy: {type: command, run: [/bin/true], interval: 60}\n"
SCRIPT = "jobs:\n  tidy: {type: script, run: tidy, interval: 60}\n"
CRON = "jobs:\n  tidy: {type: command, run: [/bin/true], cron: '*/10 * * * *'}\n"


@pytest.fixture
def yard(declared_yard: Declaring) -> Declaring:
    return declared_yard


def set_back(yard: Declaring, seconds: int, *, restart: bool) -> None:
    yard.clock.jump(-seconds * SECOND)
    if restart:
        yard.crash()
    yard.due = yard.clock.now()


@pytest.mark.parametrize(
    ("text", "back", "restart"),
    [(INTERVAL, 60, False), (INTERVAL, DAY, True), (SCRIPT, DAY, False)],
)
def test_an_interval_goes_on(yard: Declaring, text: str, back: int, restart: bool) -> None:
    yard.declare(text)
    yard.pass_seconds(30)
    assert len(yard.made("tidy")) == 1
    set_back(yard, back, restart=restart)
    yard.pass_seconds(300)
    assert len(yard.made("tidy")) == 5


@pytest.mark.parametrize(("back", "restart"), [(HOUR, False), (DAY, True)])
def test_a_cron_entry_runs_at_the_slots_that_come_again(
    yard: Declaring, back: int, restart: bool
) -> None:
    yard.declare(CRON)
    yard.pass_seconds(1230)
    assert len(yard.made("tidy")) == 2
    set_back(yard, back, restart=restart)
    yard.pass_seconds(HOUR)
    assert len(yard.made("tidy")) == 2 + 6


def test_a_slot_that_a_small_correction_brings_again_is_not_run_again(yard: Declaring) -> None:
    yard.declare(CRON)
    yard.pass_seconds(603)
    assert len(yard.made("tidy")) == 1
    yard.pass_seconds(3)
    set_back(yard, 9, restart=True)
    yard.pass_seconds(30)
    assert len(yard.made("tidy")) == 1


@pytest.mark.parametrize("restart", [False, True])
def test_one_that_was_held_back_and_never_ran_is_asked_about(
    yard: Declaring, restart: bool
) -> None:
    yard.world.against = {"tidy": "condition quiet does not hold"}
    yard.declare(SCRIPT)
    yard.pass_seconds(30)
    set_back(yard, DAY, restart=restart)
    yard.world.against = {}
    yard.pass_seconds(2)
    assert len(yard.made("tidy")) == 1


def test_an_entry_that_comes_back_does_not_wait_for_an_end_in_the_future(yard: Declaring) -> None:
    yard.declare(INTERVAL)
    yard.pass_seconds(30)
    yard.file.unlink()
    yard.pass_seconds(5)
    set_back(yard, DAY, restart=False)
    yard.pass_seconds(5)
    yard.declare(INTERVAL)
    yard.pass_seconds(70)
    assert len(yard.made("tidy")) == 2
