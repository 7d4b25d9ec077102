"""A pass over items with everything handed in: what is done, what fails, when it stops."""

from collections.abc import Callable

import pytest

from headway.jobs.passes import Cycle
from headway.testing.clock import FakeClock


class Deeds:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.told: list[str] = []
        self.bad: set[str] = set()
        self.takes = 0.0

    def execute(self, item: str) -> None:
        self.clock.advance(self.takes)
        if item in self.bad:
            raise OSError(f"{item} is bad")
        self.told.append(f"did {item}")

    def cycle(
        self,
        items: str,
        *,
        capacity: Callable[[], int | None] = lambda: None,
        batch_size: int | None = None,
        spawn_delay: float = 0.0,
    ) -> Cycle[str]:
        return Cycle(
            self.clock,
            capacity=capacity,
            query=lambda: list(items),
            execute=self.execute,
            on_success=lambda item: self.told.append(f"closed {item}"),
            on_failure=lambda item, error: self.told.append(f"counted {error}"),
            batch_size=batch_size,
            spawn_delay=spawn_delay,
        )


@pytest.fixture
def deeds() -> Deeds:
    return Deeds()


@pytest.mark.req("G30", "G31")
def test_each_item_is_done_and_closed_and_a_failure_stops_nobody(deeds: Deeds) -> None:
    deeds.bad = {"b"}
    report = deeds.cycle("abc").run()
    assert deeds.told == ["did a", "closed a", "counted b is bad", "did c", "closed c"]
    assert (report.done, [each.item for each in report.failed]) == (["a", "c"], ["b"])
    assert report.reason is None


@pytest.mark.req("G24", "G30")
@pytest.mark.parametrize(
    ("capacity", "batch", "done", "reason"),
    [
        (None, None, "abc", None),
        (2, None, "ab", "capacity is used up"),
        (5, 1, "a", "one pass does 1"),
        (0, 5, "", "there is no capacity"),
        (-2, 5, "", "there is no capacity"),
    ],
)
def test_capacity_and_batch_bound_a_pass(
    deeds: Deeds, capacity: int | None, batch: int | None, done: str, reason: str | None
) -> None:
    report = deeds.cycle("abc", capacity=lambda: capacity, batch_size=batch).run()
    assert (report.done, report.reason) == (list(done), reason)
    if done:
        assert report.skipped == list("abc")[len(done) :]


@pytest.mark.req("G32")
def test_the_delay_lies_between_two_and_never_after_the_last(deeds: Deeds) -> None:
    before = deeds.clock.monotonic()
    deeds.cycle("abc", spawn_delay=7.0).run()
    assert deeds.clock.monotonic() - before == 14.0


@pytest.mark.req("G42")
def test_nothing_is_begun_after_five_minutes(deeds: Deeds) -> None:
    deeds.takes = 200.0
    report = deeds.cycle("abcd").run()
    assert (report.done, report.skipped) == (["a", "b"], ["c", "d"])
    assert report.reason == "the pass took longer than 300 s"
