"""Wake-ups across hosts: what one host's job gives up, a job of another may have at once."""

from pathlib import Path
from typing import Any

import pytest
from stocked import System

from headway.client import Client
from headway.config import Config
from headway.consequences import end_unstarted
from headway.core.model import Claim, Job, Lock
from headway.core.order import Place, Side
from headway.core.settle import Ending, Outcome
from headway.core.states import Status
from headway.editing import Changes, edit
from headway.engine.settling import Verdict
from headway.home import Home, make_home
from headway.ordering import move
from headway.rewinding import rewind
from headway.store.base import Store
from headway.testing import FakeClock


@pytest.fixture
def client(store: Store, clock: FakeClock, tmp_path: Path) -> Client:
    home = Home(str(tmp_path / ".headway"))
    make_home(home)
    config = Config({"worker.autostart": False})
    return Client(home, config, store, clock, environ={"PATH": "/bin:/usr/bin"}, actor="ann")


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
        found: dict[int, Any] = self.system.look(lambda tx: tx.jobs([job.id]))
        status: Status = found[job.id].status
        return status

    def goes_now(self) -> bool:
        return self.ours.id in [each.job_id for each in self.system.until_quiet()]


@pytest.fixture
def promised(system: System) -> Promised:
    return Promised(system)


def test_a_rewind_gives_up_what_was_promised(promised: Promised, client: Client) -> None:
    rewind(client, promised.first.id)
    assert promised.goes_now()


def test_an_end_gives_up_what_was_promised(promised: Promised) -> None:
    with promised.system.store.write() as tx:
        end_unstarted(tx, promised.theirs, Status.CANCELLED, "cancelled by ann", actor="ann")
    assert promised.goes_now()


def test_a_move_behind_another_gives_up_what_was_promised(
    promised: Promised, client: Client
) -> None:
    move(client, promised.theirs.id, Place(Side.BACK))
    assert promised.goes_now()


def test_another_priority_gives_up_what_was_promised(promised: Promised, client: Client) -> None:
    edit(client, promised.theirs.id, Changes(priority=-1))
    assert promised.goes_now()
