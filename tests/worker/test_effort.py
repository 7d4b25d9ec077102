"""Whatever a worker's work raises is told and tried again, and is never its death."""

from collections.abc import Callable

import pytest

from headway.base.clock import SECOND
from headway.base.errors import (
    DataError,
    SchemaTooNewError,
    StoreBusyError,
    StoreCorruptError,
    StoreFailedError,
    StoreFullError,
    StoreReplacedError,
    StoreUndoneError,
)
from headway.testing.clock import FakeClock
from headway.worker.effort import Effort


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_700_000_000 * SECOND)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def effort(clock: FakeClock, said: list[str]) -> Effort:
    return Effort("step", clock, said.append)


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def pauses(effort: Effort, clock: FakeClock, error: Exception, number: int) -> list[float]:
    found = []
    for _ in range(number):
        assert not effort.make(raising(error))
        found.append(round(effort.pause(clock.monotonic()), 3))
        clock.advance(found[-1])
        assert effort.may_be_made(clock.monotonic())
    return found


@pytest.mark.parametrize(
    "error", [StoreFullError("no space"), DataError("row 7"), OSError(24, "no"), KeyError("13")]
)
def test_the_pauses_grow_up_to_a_minute(effort: Effort, clock: FakeClock, error: Exception) -> None:
    assert pauses(effort, clock, error, 8) == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize("error", [StoreBusyError("away"), StoreUndoneError("lost")])
def test_a_server_that_is_away_is_asked_again_every_two_seconds(  # fault D1
    effort: Effort, clock: FakeClock, error: Exception
) -> None:
    assert pauses(effort, clock, error, 7) == [0.1, 0.2, 0.4, 0.8, 1.6, 2, 2]


def test_news_cut_a_pause_short_but_not_to_nothing(effort: Effort, clock: FakeClock) -> None:
    pauses(effort, clock, OSError(28, "full"), 5)
    effort.make(raising(OSError(28, "full")))
    assert not effort.may_be_made(clock.monotonic(), news=True)
    assert effort.pause(clock.monotonic(), news=True) == pytest.approx(1.0)
    clock.advance(1.0)
    assert effort.may_be_made(clock.monotonic(), news=True)
    assert not effort.may_be_made(clock.monotonic())


def test_it_is_told_once_and_again_when_it_is_over(effort: Effort, said: list[str]) -> None:
    for _ in range(3):
        effort.make(raising(StoreFullError("no space for it")))
    assert effort.failures == 3
    assert effort.make(lambda: None) and effort.make(lambda: None)
    assert said == [
        "cannot step: no space for it; running jobs go on, it is tried again",
        "can step again",
    ]
    assert (effort.failures, effort.error, effort.again_at) == (0, None, 0.0)


def test_another_cause_is_told_too(effort: Effort, said: list[str]) -> None:
    effort.make(raising(StoreFullError("full")))
    effort.make(raising(StoreBusyError("away")))
    assert len(said) == 2 and "away" in said[1]


def test_of_what_nobody_foresaw_it_is_told_where_it_comes_from(
    effort: Effort, said: list[str]
) -> None:
    effort.make(raising(KeyError("13 (FD 13) is already registered")))
    assert said[0].startswith("cannot step: KeyError: '13 (FD 13) is already registered'; ")
    assert "Traceback" in said[1] and "in work" in said[1]


@pytest.mark.parametrize(
    "error",
    [
        *(StoreCorruptError("torn"), StoreReplacedError("gone"), StoreFailedError("EIO")),
        *(SchemaTooNewError("newer"), KeyboardInterrupt(), SystemExit(3)),
    ],
)
def test_a_store_that_must_not_be_touched_ends_it(  # fault A13 C4 C5
    effort: Effort, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        effort.make(raising(error))
    assert effort.failures == 0
