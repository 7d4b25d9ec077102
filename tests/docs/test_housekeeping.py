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
from headway.base.home import Home
from headway.base.trust import record
from headway.core.model import Job
from headway.core.states import Status
from headway.integrations.agents import files as runner_files
from headway.jobs.agents import agent_request
from headway.jobs.settings import load_config
from headway.schedules.jobsfile.model import Entry
from headway.schedules.jobsfile.reader import read_jobs_file
from headway.testing.clock import FakeClock

EXAMPLE = Path(__file__).parents[2] / "examples" / "housekeeping"
NEW = {"sweep_stale_worktrees", "cleanup_merged_branches", "review_stale_prs"}


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


before = loaded("before")

ANSWER = {"type": "result", "subtype": "success", "is_error": False, "result": "two wait"}
AGENT = """#!/bin/sh
cat >>{prompts}
while [ -e {gate} ]; do sleep 0.05; done
echo '{answer}'
"""


class House:
    """A copy of the example with a board, and an engine whose clock stands still."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("board", "__pycache__"))
        record(str(folder / ".headway"))  # as `headway trust` of the README does
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

    def at_rest(self, *, but: int | None = None) -> dict[str, Job]:
        """Step until all that is due has run; the jobs that ran since the last time, by name. One
        may go on."""
        wait_for(lambda: self._is_at_rest(but), deadline=DEADLINE)
        jobs = [each for each in self._jobs() if each.id not in {*self._known, but}]
        self._known |= {each.id for each in jobs}
        assert len({each.name for each in jobs}) == len(jobs)
        return {str(each.name): each for each in jobs}

    def _is_at_rest(self, but: int | None) -> bool:
        for key, _ in self.bench.engine.launches.watchlist.select(0.02):
            key.data()
        delay = self.bench.step()
        ended = all(each.finished_at is not None for each in self._jobs() if each.id != but)
        return delay > 0.1 and ended

    def _jobs(self) -> list[Job]:
        with self.bench.store.read() as tx:
            return [*tx.jobs.finished(0, 1000), *tx.jobs.active()]

    def read(self, name: str) -> Any:
        return json.loads((self.board / name).read_text())

    def write(self, name: str, document: Any) -> None:
        (self.board / name).write_text(json.dumps(document))

    def held(self) -> dict[str, str]:
        with self.bench.store.read() as tx:
            records = tx.jobsfile.entries(self.bench.client.context.host.id).values()
        return {each.name: each.held for each in records if each.held}

    def has_agent(self) -> None:
        """In the place of the real program one that notes its prompt, and that may have to wait."""
        program = self.folder / "claude.sh"
        gate, prompts = self.board / "gate", self.board / "prompts.log"
        program.write_text(AGENT.format(gate=gate, prompts=prompts, answer=json.dumps(ANSWER)))
        program.chmod(0o755)
        runners = Path(self.bench.home.path) / "runners"
        runners.mkdir()
        text = (Path(runner_files.__file__).parent / "builtin" / "claude.toml").read_text()
        (runners / "claude.toml").write_text(text.replace('"claude", "-p"', f'"{program}", "-p"'))

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
    for now in (0, 10, 60):
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


@pytest.mark.req("O17", "O3")
def test_all_of_it_keeps_house(house: House) -> None:
    house.has_agent()
    text = house.file.read_text()
    house.file.unlink()
    (house.board / "gate").touch()
    agent = house.bench.client.submit(agent_request("Look around.", runner="claude")).job_id
    wait_for(lambda: house.bench.step() and house.bench.status(agent) is Status.RUNNING)

    house.file.write_text(text)
    house.clock.advance(1)
    first = house.at_rest(but=agent)
    assert set(first) == set(entries()) - {"sweep_stale_worktrees", "review_stale_prs"}
    assert {job.status for job in first.values()} == {Status.SUCCEEDED}
    assert house.held() == {
        "sweep_stale_worktrees": "condition no_agents_running does not hold",
        "review_stale_prs": "condition has_open_prs does not hold",
    }
    assert house.polls() == 1
    the_house_is_in_order(house)
    assert (house.board / "worktrees" / "parser").exists()

    (house.board / "gate").unlink()
    house.write("tasks/printer.json", {"status": "provisional", "agent": "ben"})
    assert [job.id for job in house.at_rest().values()] == [agent]
    house.clock.advance(9)
    second = house.at_rest()
    assert set(second) == {"sweep_stale_worktrees", "review_stale_prs"}
    assert {job.status for job in second.values()} == {Status.SUCCEEDED}
    assert house.held() == {}
    assert [each.name for each in (house.board / "worktrees").iterdir()] == ["printer"]
    review = second["review_stale_prs"]
    assert (review.type, review.params["agent"]["model"]) == ("agent", "haiku")
    prompts = (house.board / "prompts.log").read_text()
    assert prompts.startswith("Look around.")
    assert "Review open PRs older than 48 hours." in prompts
    result = json.loads((Path(house.bench.home.job(review.id)) / "result.json").read_text())
    assert result["final_text"] == "two wait"


def the_house_is_in_order(house: House) -> None:
    assert house.read("agents/ada.json")["status"] == "finished"
    assert house.read("agents/ben.json")["status"] == "running"
    assert house.read("tasks/printer.json")["status"] == "incoming"
    assert (house.board / "hooks.log").read_text() == "parser was merged\n"
    assert not list((house.board / "hooks").iterdir())
    assert house.read("projects/compiler.json")["status"] == "completed"
    assert house.read("projects/shell.json")["status"] == "open"
    assert house.read("branches.json") == {"printer": "open"}
    assert house.read("health.json")["queue"] == "good"  # it had the data of the poll
    assert house.read("evaluation.json") == {"ada": "1 of 1", "ben": "0 of 1"}
    assert house.read("orchestrators/this.json")["times"] == 1
