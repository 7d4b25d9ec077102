"""A bench whose clock stands, for the tests of schedules."""

from typing import Any

from harness import Bench
from headway.base.clock import SECOND
from headway.core.model import Job
from headway.store.new_jobs import Event
from headway.testing.clock import FakeClock

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Wall(FakeClock):
    def jump(self, micros: int) -> None:
        """The clock is set; no time passes."""
        self._now += micros


class Keeping:
    """A bench whose clock stands, and what its schedules have done."""

    def __init__(self, bench: Bench, clock: Wall) -> None:
        self.bench, self.client, self.clock = bench, bench.client, clock

    def add(self, **said: Any) -> str:
        said = {"every": "1m", **said} if not {"cron", "at"} & said.keys() else said
        if "template" not in said and "shell" not in said:
            said = {"argv": ["true"], **said}
        return self.client.schedules.add(**said).name

    def jobs(self) -> list[Job]:
        with self.bench.store.read() as tx:
            known = tx.jobs.by_id(list(range(1, tx.settings.marks()["next_job_id"])))
        return [known[each] for each in sorted(known)]

    def slots(self, name: str) -> list[tuple[str, int, str | None]]:
        """From the oldest on: what became of them, how many, and why."""
        found = reversed(self.client.schedules.slots(name, 1000))
        return [(each["outcome"], each["slots"], each["reason"]) for each in found]

    def accounted(self, name: str) -> int:
        return sum(slots for _, slots, _ in self.slots(name))

    def events(self, kind: str) -> list[Event]:
        with self.bench.store.read() as tx:
            return [each for each in tx.events.since(0, 10_000) if each.kind == kind]

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.settle()

    def settle(self) -> None:
        """Step until time alone brings more."""
        for _ in range(1000):
            if self.bench.step() > 0:
                return
        raise AssertionError("it never comes to rest")

    def let_end(self) -> None:
        self.bench.until_ended(*(job.id for job in self.jobs()))
