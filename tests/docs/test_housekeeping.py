"""The example of a jobs file runs: intervals, groups, conditions and polls as in the if-chain that
it takes the place of."""

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness import DEADLINE, Bench, wait_for
from headway.config import load_config
from headway.core.model import Job
from headway.core.states import Status
from headway.home import Home
from headway.jobsfile.model import Entry
from headway.jobsfile.reading import read_jobs_file
from headway.testing import FakeClock

EXAMPLE = Path(__file__).parents[2] / "examples" / "housekeeping"
NEW = {"sweep_stale_worktrees", "cleanup_merged_branches", "review_stale_prs"}


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


before = loaded("before")


class House:
    """A copy of the example with a board, and an engine whose clock stands still."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("board", "__pycache__"))
        self.board = folder / "board"
        loaded("board").make(self.board)
        self.file = folder / ".headway" / "jobs.yaml"
        config = load_config(Home(str(folder / ".headway")))
        self.clock = FakeClock()
        self.bench = Bench(
            folder,
            clock=self.clock,
            settings={**config.values, "worker.autostart": False},
            max_active=4,
        )
        self._known: set[int] = set()

    def at_rest(self) -> dict[str, Job]:
        """Step until all that is due has run; the jobs that ran since the last time, by name."""
        wait_for(self._is_at_rest, deadline=DEADLINE)
        jobs = [each for each in self._jobs() if each.id not in self._known]
        self._known |= {each.id for each in jobs}
        assert len({each.name for each in jobs}) == len(jobs)
        return {str(each.name): each for each in jobs}

    def _is_at_rest(self) -> bool:
        for key, _ in self.bench.engine.finisher.selector.select(0.02):
            key.data()
        delay = self.bench.step()
        return delay > 0.1 and all(each.finished_at is not None for each in self._jobs())

    def _jobs(self) -> list[Job]:
        with self.bench.store.read() as tx:
            return [*tx.finished_jobs(0, 1000), *tx.active_jobs()]

    def read(self, name: str) -> Any:
        return json.loads((self.board / name).read_text())

    def write(self, name: str, document: Any) -> None:
        (self.board / name).write_text(json.dumps(document))

    def polls(self) -> int:
        file = self.board / "polls.log"
        return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "house")
    yield made
    made.bench.close()


def entries() -> dict[str, Entry]:
    found = read_jobs_file((EXAMPLE / ".headway" / "jobs.yaml").read_bytes())
    return {entry.name: entry for entry in found}


@pytest.mark.req("O24")
def test_the_seven_keep_their_intervals_and_groups() -> None:
    seven = {name: entry for name, entry in entries().items() if name not in NEW}
    intervals = {name: (entry.interval or 0) / 1e6 for name, entry in seven.items()}
    assert intervals == before.HOUSEKEEPING_JOB_INTERVALS
    local = {name for name, entry in seven.items() if entry.group == "local"}
    assert local == {"check_finished_agents"}
    assert all(entry.enabled and not entry.conditions for entry in seven.values())
    assert all(entry.type == "script" for entry in seven.values())


@pytest.mark.req("O24", "O7", "O8")
def test_the_same_runs_at_the_same_times_with_as_many_polls(house: House) -> None:
    text = house.file.read_text()
    alone = text[: text.index("  # --- new ones")]
    house.file.write_text(alone)
    ran: list[tuple[str, bool]] = []
    polls: list[int] = []
    functions = {
        name: lambda data, name=name: ran.append((name, data is not None))
        for name in before.HOUSEKEEPING_JOB_INTERVALS
    }
    state: dict[str, float] = {}
    for now in (0, 10, 59, 60):
        house.clock.advance(now - (house.clock.now() - FakeClock().now()) / 1e6)
        before.run_scheduler(state, now, functions, lambda: polls.append(1) or {})
        jobs = house.at_rest()
        with_data = {
            (name, "HEADWAY_POLL_DATA" in job.params.get("env", {})) for name, job in jobs.items()
        }
        assert with_data == set(ran), f"at {now} s"
        assert house.polls() == len(polls), f"at {now} s"
        assert {job.status for job in jobs.values()} <= {Status.SUCCEEDED}
        ran.clear()
    assert len(polls) == 2  # at 0 and at 60, though six jobs wanted it each time
