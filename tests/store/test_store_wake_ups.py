"""Wake-ups across hosts: what one host's job gives up, a job of another may have at once."""

from pathlib import Path
from typing import Any

import pytest
from stocked import System

from headway.base.home import Home
from headway.base.new_home import make_home
from headway.client import Client
from headway.core.model import Claim, Job, Lock, LockMode, Stage
from headway.core.order import Place, Side
from headway.core.settle import Ending, Outcome, Verdict
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.edit import Changes, edit
from headway.jobs.lifecycle import end_unstarted
from headway.jobs.order import move
from headway.jobs.retry import rewind
from headway.jobs.settings import Config
from headway.store.store import Store
from headway.store.tables.waits import MOST_SHARERS
from headway.testing.clock import FakeClock


@pytest.fixture
def client(store: Store, clock: FakeClock, tmp_path: Path) -> Client:
    home = Home(str(tmp_path / ".headway"))
    make_home(home)
    config = Config({"worker.autostart": False})
    return Client(
        Context(home, config, store, clock, environ={"PATH": "/bin:/usr/bin"}, actor="ann")
    )


class Promised:
    """A job of another host has been promised a free lock, and one of this host waits behind it.
    From then on the other host makes no step."""

    def __init__(self, system: System) -> None:
        self.system = system
        system.set_max_active(-1)
        system.planner.queues = ("", "there")
        self.first = system.submit()
        (claim,) = system.until_quiet()
        self._succeed(claim)
        system.submit(locks=(Lock("held"),))
        system.until_quiet()
        locks = (Lock("held"), Lock("free"))
        self.theirs = system.submit(locks=locks, queue="there", after=(self.first.id,))
        system.until_quiet()
        self.ours = system.submit(locks=(Lock("free"),))
        assert system.until_quiet() == []
        assert self.status(self.ours) is Status.WAITING_ON_LOCKS
        system.planner.queues = ("",)

    def _succeed(self, claim: Claim) -> None:
        outcome = Outcome(Ending.EXITED, self.system.clock.now(), exit_code=0)
        self.system.judge(claim, Verdict(outcome, tree_gone=True))

    def status(self, job: Job) -> Status:
        found: dict[int, Any] = self.system.look(lambda tx: tx.jobs.by_id([job.id]))
        status: Status = found[job.id].status
        return status

    def goes_now(self) -> bool:
        return self.ours.id in [each.job_id for each in self.system.until_quiet()]


@pytest.fixture
def promised(system: System) -> Promised:
    return Promised(system)


def test_a_rewind_gives_up_what_was_promised(promised: Promised, client: Client) -> None:
    rewind(client.context, promised.first.id)
    assert promised.goes_now()


def test_an_end_gives_up_what_was_promised(promised: Promised) -> None:
    with promised.system.store.write() as tx:
        end_unstarted(tx, promised.theirs, Status.CANCELLED, "cancelled by ann", actor="ann")
    assert promised.goes_now()


def test_a_move_behind_another_gives_up_what_was_promised(
    promised: Promised, client: Client
) -> None:
    move(client.context, promised.theirs.id, Place(Side.BACK))
    assert promised.goes_now()


def test_another_priority_gives_up_what_was_promised(promised: Promised, client: Client) -> None:
    edit(client.context, promised.theirs.id, Changes(priority=-1))
    assert promised.goes_now()


def test_who_is_moved_is_looked_at_however_many_wait_before_it(
    system: System, client: Client
) -> None:
    """Those before it would share the lock with it, but lack another; who had made it wait, and
    would not share, stands behind it now."""
    system.set_max_active(-1)
    for key in ("one", "other"):
        system.submit(locks=(Lock(key),))
    shared = Lock("free", LockMode.SHARED)
    for _ in range(2 * MOST_SHARERS):
        system.submit(locks=(Lock("one"), shared))
    alone = system.submit(locks=(Lock("other"), Lock("free")))
    moved = system.submit(locks=(shared,))
    assert len(system.until_quiet()) == 2
    move(client.context, moved.id, Place(Side.BEFORE, alone.id))
    assert [each.job_id for each in system.until_quiet()] == [moved.id]


def test_who_is_moved_is_looked_at_whatever_it_waits_for(system: System, client: Client) -> None:
    system.pause()
    first, moved = (system.submit(not_before=system.clock.now() + 1000) for _ in range(2))
    system.until_quiet()
    assert stage(system, moved) is Stage.PARKED
    move(client.context, moved.id, Place(Side.FRONT))
    assert (stage(system, first), stage(system, moved)) == (Stage.PARKED, Stage.WOKEN)


def stage(system: System, job: Job) -> Stage | None:
    found: Job = system.look(lambda tx: tx.jobs.by_id([job.id]))[job.id]
    return found.stage


def test_nothing_of_a_rewound_set_counts_as_failed_any_more(system: System, client: Client) -> None:
    first = system.submit()
    second = system.submit(after=(first.id,))
    system.submit(after=(second.id,))
    (claim,) = system.until_quiet()
    outcome = Outcome(Ending.EXITED, system.clock.now(), exit_code=1)
    system.judge(claim, Verdict(outcome, tree_gone=True))
    system.until_quiet()
    store: Any = system.store
    marks = "select distinct mark from edges"
    assert [mark for (mark,) in store.database.execute(marks, {})] == ["failed"]
    rewind(client.context, first.id)
    assert [mark for (mark,) in store.database.execute(marks, {})] == ["pending"]
