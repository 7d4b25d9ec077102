"""A task that not every host knows, as in every roll-out: its jobs keep their places for those who
do, and nobody's other work stands behind them."""

import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import DEADLINE, Bench, wait_for
from headway.core.facts import REPORT_VALID_FOR
from headway.core.model import FUNCTIONS, Stage
from headway.core.states import Status
from headway.functions.app import Handle
from headway.jobs.views.why import why
from headway.testing.clock import FakeClock
from headway.worker import planner
from headway.worker.functions import WRITE_EVERY
from several import Hosts

PRELUDE = """
import headway

app = headway.App()
"""
TASK = """
@app.task
def {name}(number=0):
    with open("ledger", "a") as file:
        file.write("{name} ")
"""
SETTINGS = {"app.modules": ("shop",)}


class Fleet:
    """Hosts whose module has some of the tasks each."""

    def __init__(self, hosts: Hosts, **known: tuple[str, ...]) -> None:
        self.clock = FakeClock()
        names = tuple(known)
        self._hosts, self._known = hosts, known
        self.benches: dict[str, Bench] = {}
        for bench, name in zip(
            hosts(*names, clock=self.clock, max_active=8, settings=SETTINGS), names, strict=True
        ):
            (bench.folder / "shop.py").write_text(source(*known[name]))
            self.benches[name] = bench
        self._module = types.ModuleType("shop")
        every = sorted({task for tasks in known.values() for task in tasks} | {"nobodys"})
        exec(compile(source(*every), "shop.py", "exec"), vars(self._module))
        first = self.benches[names[0]]
        self._module.app._context = first.client.context
        self._module.app._pid = os.getpid()

    def __getitem__(self, name: str) -> Bench:
        return self.benches[name]

    def come_up(self, *names: str) -> None:
        for name in names:
            bench = self.benches[name]
            bench.engine.recover()
            bench.until(lambda bench=bench: bench.engine.pool.is_known, "what it knows")  # type: ignore[misc]
            bench.until(lambda bench=bench: not bench.engine.pool.processes.news, "it to be told")  # type: ignore[misc]

    def submit(self, task: str, **options: Any) -> Handle[Any]:
        made = getattr(self._module, task)
        handle: Handle[Any] = (made.options(**options) if options else made).submit()
        return handle

    def ledger(self, name: str) -> list[str]:
        file = self.benches[name].folder / "ledger"
        return file.read_text().split() if file.exists() else []

    def ended(self, *handles: Handle[Any]) -> bool:
        first = next(iter(self.benches.values()))
        return all(first.status(each.job_id) is Status.SUCCEEDED for each in handles)

    def until_ended(self, *handles: Handle[Any], by: tuple[str, ...] = ()) -> None:
        """All of them step, in turns."""

        def turn() -> bool:
            for name in by or tuple(self.benches):
                self.benches[name].turn(0.01)
            return self.ended(*handles)

        wait_for(turn, what=f"{[each.id for each in handles]} to end", deadline=DEADLINE)


def source(*tasks: str) -> str:
    return PRELUDE + "".join(TASK.format(name=name) for name in tasks)


@pytest.fixture
def fleet(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Fleet]:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return lambda **known: Fleet(hosts, **known)


def waits(bench: Bench, *handles: Handle[Any]) -> list[Any]:
    found = (bench.job(each.job_id) for each in handles)
    return [(job.stage, job.queue, job.wait and job.wait.kind.value) for job in found]


def test_what_one_of_three_hosts_knows_runs_there_at_once(fleet: Callable[..., Fleet]) -> None:
    three = fleet(one=("common", "rare"), two=("common",), three=("common",))
    three.come_up("one", "two", "three")
    rare = [three.submit("rare") for _ in range(6)]
    for _ in range(5):
        for name in ("two", "three"):
            three[name].step()
    assert waits(three["two"], *rare) == [(Stage.READY, FUNCTIONS, None)] * 6
    assert all(not why(three["two"].client.context, each.job_id)["objections"] for each in rare)
    three.until_ended(*rare)
    assert three.ledger("one") == ["rare"] * 6


def test_jobs_that_were_looked_at_by_others_are_left_as_well(fleet: Callable[..., Fleet]) -> None:
    """A call that is not plain is looked at by whoever comes first."""
    two = fleet(one=("rare",), two=("common",))
    two.come_up("one", "two")
    rare = [two.submit("rare", locks=("key",)), two.submit("rare", priority=3)]
    for _ in range(3):
        two["two"].step()
    assert all(each[2] != "task" for each in waits(two["two"], *rare))
    two.until_ended(*rare)


def test_ones_own_work_does_not_stand_behind_that_of_others(
    fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "NEAR", 10)
    two = fleet(one=("rare",), two=("common",))
    two.come_up("one", "two")
    rare = [two.submit("rare") for _ in range(25)]  # more than are looked at near the head
    own = [two.submit("common") for _ in range(3)]
    two.until_ended(*own, by=("two",))
    assert two.ledger("two") == ["common"] * 3
    assert {each[0] for each in waits(two["two"], *rare)} == {Stage.READY}
    two["two"].step()
    assert two["two"].step() > 0.1, "it does not come again and again"
    assert two["two"].step(undisturbed=True) > 0.1
    two.until_ended(*rare)


def test_what_nobody_knows_waits_and_says_so_until_one_comes_up(
    fleet: Callable[..., Fleet],
) -> None:
    two = fleet(one=("rare",), two=("common",))
    two.come_up("two")
    job = two.submit("rare")
    two["two"].step()
    assert waits(two["two"], job) == [(Stage.PARKED, FUNCTIONS, "task")]
    (told,) = why(two["two"].client.context, job.job_id)["objections"]
    assert (told["kind"], told["detail"]) == ("task", "task shop.rare is unknown")
    two.come_up("one")
    two.until_ended(job)
    assert "missed_wake_up" not in two["one"].kinds(job.job_id)


@pytest.mark.parametrize("gone", ["silent", "left"])
def test_a_host_that_is_not_up_is_not_counted_on(fleet: Callable[..., Fleet], gone: str) -> None:
    two = fleet(one=("rare",), two=("common",))
    two.come_up("one", "two")
    worker = two["one"].new_worker()
    worker._register()
    if gone == "left":
        worker._record_end("signal")
    job = two.submit("rare")
    two["two"].step()
    if gone == "silent":
        assert waits(two["two"], job) == [(Stage.READY, FUNCTIONS, None)]
        two.clock.advance(REPORT_VALID_FOR / 1e6 + 1)
    delay = two["two"].step()
    assert delay <= WRITE_EVERY
    assert waits(two["two"], job) == [(Stage.PARKED, FUNCTIONS, "task")]
    (told,) = why(two["two"].client.context, job.job_id)["objections"]
    assert told["kind"] == "task" and two["one"].home.path in told["detail"]
    assert "no host that is up knows shop.rare" in told["detail"]
    if gone == "left":
        two["one"].new_worker()._register()
        two["one"].crash()
    two.until_ended(job)
    assert "missed_wake_up" not in two["one"].kinds(job.job_id)
    worker._engine.launches.watchlist.close()


def test_a_host_that_is_idle_says_again_that_it_is_up(fleet: Callable[..., Fleet]) -> None:
    two = fleet(one=("rare",), two=("common",))
    two.come_up("one", "two")
    for _ in range(8):
        two.clock.advance(min(WRITE_EVERY, two["one"].step()))
        two["one"].step()
    job = two.submit("rare")
    two["two"].step()
    assert waits(two["two"], job) == [(Stage.READY, FUNCTIONS, None)]
    two.until_ended(job)
    assert Path(two["one"].folder, "ledger").read_text() == "rare "
