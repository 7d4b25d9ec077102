"""A pass over items that are each done by a call that may fail or take long: plan, do, report.

The cycle knows nothing of what it does; capacity, the items, the deed and what follows from it are
handed in. One failure does not stop the others, and none is begun after the deadline.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from headway.base.clock import Clock

PASS_SECONDS = 300.0

T = TypeVar("T")


class Failure(NamedTuple, Generic[T]):
    item: T
    error: Exception


@dataclass(slots=True)
class Report(Generic[T]):
    """The outcome for each item; `reason` says why not all were done."""

    done: list[T] = field(default_factory=list)
    failed: list[Failure[T]] = field(default_factory=list)
    skipped: list[T] = field(default_factory=list)
    reason: str | None = None


@dataclass(slots=True)
class Cycle(Generic[T]):
    """`capacity` is how many may be done now, None for any number; `batch_size` bounds one pass."""

    clock: Clock
    capacity: Callable[[], int | None]
    query: Callable[[], Sequence[T]]
    execute: Callable[[T], None]
    on_success: Callable[[T], None] = lambda item: None
    on_failure: Callable[[T, Exception], None] = lambda item, error: None
    batch_size: int | None = None
    spawn_delay: float = 0.0
    seconds: float = PASS_SECONDS

    def run(self) -> Report[T]:
        """One pass: as many as capacity, batch and items allow, with a pause between two."""
        give_up_at = self.clock.monotonic() + self.seconds
        report: Report[T] = Report()
        free = self.capacity()
        if free is not None and free <= 0:
            report.reason = "there is no capacity"
            return report
        items = list(self.query())
        bounds = [each for each in (free, self.batch_size) if each is not None]
        count = min([len(items), *bounds])
        if count < len(items):
            full = free is not None and count == free
            report.reason = "capacity is used up" if full else f"one pass does {count}"
        for number, item in enumerate(items[:count]):
            if number and self.spawn_delay:
                self.clock.sleep(self.spawn_delay)
            if self.clock.monotonic() >= give_up_at:
                report.reason = f"the pass took longer than {self.seconds:g} s"
                report.skipped += items[number:count]
                break
            self._do(item, report)
        report.skipped += items[count:]
        return report

    def _do(self, item: T, report: Report[T]) -> None:
        try:
            self.execute(item)
        except Exception as error:
            report.failed.append(Failure(item, error))
            self.on_failure(item, error)
            return
        report.done.append(item)
        self.on_success(item)
