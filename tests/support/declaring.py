"""A yard with a jobs file: entries are real, and so are engine and store; what a round asks of the
world is answered by the test."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

from headway.base.clock import SECOND
from headway.core.model import Job
from headway.core.states import TERMINAL
from headway.schedules.jobsfile.questions import EntryAnswers, EntryQuestions
from headway.store.new_jobs import Event
from headway.store.records import EntryRecord
from headway.store.store import Store
from headway.testing.clock import FakeClock
from yard import SOON, Yard


class World:
    """Answers what a round asks, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[list[EntryQuestions]] = []
        self.against: dict[str, str] = {}  # entry: why it may not run
        self.has_poll = True
        self.poll: object = None
        self.poll_trouble: str | None = None
        self.modules: Sequence[str] = ()

    def ask(self, entries: Sequence[EntryQuestions]) -> EntryAnswers:
        self.asked.append(list(entries))
        held = {each.name: self.against[each.name] for each in entries if each.name in self.against}
        wanted = any(each.wants_poll for each in entries if each.name not in held)
        if not wanted:
            return EntryAnswers(held)
        data = None if self.poll_trouble else self.poll
        return EntryAnswers(held, self.has_poll, self.poll_trouble, data)

    def names(self) -> list[list[str]]:
        return [[each.name for each in together] for together in self.asked]

    def stop(self) -> None: ...


class Declaring(Yard):
    def __init__(self, folder: Path, open_store: Callable[[str, FakeClock], Store]) -> None:
        self.world = World()
        super().__init__(folder, open_store)
        self.client.set_setting("scheduler.max_active", 20)

    def come_up(self) -> None:
        super().come_up()
        self.engine.rounds.asking = self.world  # type: ignore[assignment]

    @property
    def file(self) -> Path:
        return Path(self.home.path) / "jobs.yaml"

    def declare(self, text: str) -> None:
        """Put another file in place; it is noticed with the next second."""
        with suppress(FileNotFoundError):
            self.file.unlink()
        fresh = self.file.with_suffix(".new")
        fresh.write_text(dedent(text))
        fresh.rename(self.file)

    def step(self) -> None:
        """Nothing here is about limits, so rows are not counted."""
        self.due = self.clock.now() + int(max(self.engine.step(), SOON) * SECOND)

    def pass_seconds(self, seconds: float) -> None:
        """As in a worker, the file is looked at after a second."""
        self.pass_time(min(seconds, 1.0))
        if seconds > 1:
            self.pass_time(seconds - 1.0)

    def made(self, name: str) -> list[Job]:
        """All jobs of an entry, the oldest first."""
        with self.store.read() as tx:
            ids = list(range(1, tx.settings.marks()["next_job_id"]))
            jobs = tx.jobs.by_id(ids)
        maker = f"jobs.yaml:{name}"
        return [jobs[each] for each in sorted(jobs) if jobs[each].schedule_id == maker]

    def ran(self, name: str) -> list[Job]:
        return [job for job in self.made(name) if job.status in TERMINAL]

    def record(self, name: str) -> EntryRecord:
        with self.store.read() as tx:
            return tx.jobsfile.entries("host")[name]

    def events(self, *kinds: str) -> list[Event]:
        with self.store.read() as tx:
            return [each for each in tx.events.since(0, 10_000) if each.kind in kinds]
