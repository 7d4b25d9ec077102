"""Jobs, claims and a small engine without processes, for the tests of the store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headway.base.home import Home
from headway.base.host import Host
from headway.core.facts import Capacity
from headway.core.model import Claim, Job, JobId, Pause, Stage, Wait, WaitKind
from headway.core.plan import Hold, decide
from headway.core.reservations import Reservation
from headway.core.settle import ChainRetry, Judgement
from headway.core.states import TERMINAL, WAITING, Status
from headway.integrations.probes import answers_to
from headway.jobs import lifecycle as consequences
from headway.jobs.facts import count_capacity, gather
from headway.store.records import (
    Finish,
    Parking,
    Unclaim,
)
from headway.store.store import Store
from headway.store.transaction import ReadTx, WriteTx
from headway.testing.clock import FakeClock
from headway.worker.planner import PlannedStep, Planner
from headway.worker.probes import Probes
from headway.worker.settler import Settler

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
HOST = Host("host", "boot", "/home")
BUDGET = 1 << 40

Opener = Callable[[], Store]


def only_a_file(test: Callable[..., None]) -> Callable[..., None]:
    """For a test of what only a store in a file has: its inode, its log, its pages."""
    import pytest  # not by the processes that tests start, which take longer for it than to act

    return pytest.mark.parametrize("url", ["sqlite"], indirect=True)(test)


def job(job_id: JobId, **fields: Any) -> Job:
    defaults: dict[str, Any] = {
        "id": job_id,
        "name": f"name-{job_id}",
        "type": "command",
        "status": Status.QUEUED,
        "priority": 0,
        "position": 100 * job_id,
        "params": {"argv": ["true"]},
        "created_at": START,
        "chain": job_id,
    }
    return Job(**(defaults | fields))


def add(tx: WriteTx, **fields: Any) -> Job:
    """Store one more job and give it back."""
    made = job(tx.jobs.take_ids(1), **fields)
    tx.jobs.add([made])
    return made


def claim_for(job_id: JobId, slot: int = 1, **fields: Any) -> Claim:
    defaults: dict[str, Any] = {
        "job_id": job_id,
        "token": f"token-{job_id}",
        "slot": slot,
        "worker_id": "worker",
        "host_id": HOST.id,
        "home": HOST.home,
        "boot_id": HOST.boot_id,
        "folder": f"/jobs/{job_id}",
        "claimed_at": START,
    }
    return Claim(**(defaults | fields))


def reservation(number: int, **fields: Any) -> Reservation:
    defaults: dict[str, Any] = {
        "id": number,
        "token": f"direct-token-{number}",
        "holder": "ann",
        "note": "a look",
        "host_id": HOST.id,
        "pid": 77,
        "requested_at": START,
        "expires_at": START + 10 * SECOND,
    }
    return Reservation(**(defaults | fields))


def start(tx: WriteTx, waiting: Job, slot: int = 1, **fields: Any) -> Claim:
    made = claim_for(waiting.id, slot, **fields)
    tx.claims.begin([(waiting, made)])
    return made


def finish_of(claim: Claim, **fields: Any) -> Finish:
    defaults: dict[str, Any] = {
        "token": claim.token,
        "job_id": claim.job_id,
        "status": Status.SUCCEEDED,
        "reason": None,
        "finished_at": START + SECOND,
        "exit_code": 0,
        "error": None,
        "executed": True,
        "tree_gone": True,
    }
    return Finish(**(defaults | fields))


def unclaim_of(claim: Claim, **fields: Any) -> Unclaim:
    defaults: dict[str, Any] = {
        "token": claim.token,
        "job_id": claim.job_id,
        "cause": "nothing was started",
        "not_before": None,
        "launch_failures": 0,
        "launch_wait": None,
    }
    return Unclaim(**(defaults | fields))


def parking(waiting: Job, *topics: str, **fields: Any) -> Parking:
    kind = WaitKind.LOCKS if waiting.locks else WaitKind.DEPENDENCIES
    defaults: dict[str, Any] = {
        "job": waiting,
        "status": Status.WAITING_ON_LOCKS if waiting.locks else Status.WAITING_ON_DEPS,
        "stage": Stage.PARKED,
        "wait": Wait(kind, f"waiting on {kind.value}"),
        "topics": topics,
        "reserves": False,
        "wake_at": None,
    }
    return Parking(**(defaults | fields))


class System:
    """The planner and the settler over a store; a "process" is a claim that a test ends."""

    def __init__(self, store: Store, clock: FakeClock, folder: Path) -> None:
        self.store = store
        self.clock = clock
        self.settler = Settler(HOST, "worker", chance=lambda: 0.0)
        self.planner = Planner(
            HOST,
            "worker",
            self.settler,
            specify=lambda job, claim: {},
            log_budget=BUDGET,
            home=Home(str(folder)),
            probes=Probes(lambda questions: answers_to(questions, {}), clock, in_thread=False),
        )

    def submit(self, **fields: Any) -> Job:
        with self.store.write() as tx:
            position = tx.jobs.next_places().position
            return add(tx, **{"position": position, "created_at": tx.now(), **fields})

    def step(self) -> PlannedStep:
        with self.store.write() as tx:
            return self.planner.step(tx)

    def until_quiet(self) -> list[Claim]:
        started: list[Claim] = []
        while True:
            step = self.step()
            started += step.started
            if not step.started and not step.more:
                return started

    def judge(self, claim: Claim, judgement: Judgement) -> None:
        with self.store.write() as tx:
            self.settler.apply(tx, [(claim, judgement)])

    def cancel(self, job_id: JobId) -> None:
        """As the client does it: a waiting job ends, a running one is asked to."""
        with self.store.write() as tx:
            asked = tx.jobs.by_id([job_id])[job_id]
            last = tx.jobs.last_in_chain(asked.chain) or asked
            if last.status in WAITING:
                consequences.end_unstarted(
                    tx, last, Status.CANCELLED, "cancelled by ann", actor="ann"
                )
            elif last.status is Status.RUNNING:
                tx.jobs.request_cancel(last.id, "ann")

    def retry(self, job_id: JobId) -> None:
        """As the client does it, for a chain that ended without success."""
        with self.store.write() as tx:
            asked = tx.jobs.by_id([job_id])[job_id]
            last = tx.jobs.last_in_chain(asked.chain) or asked
            if last.status in TERMINAL - {Status.SUCCEEDED}:
                consequences.continue_chain(tx, last, ChainRetry(None, 0), actor="ann", data={})
                tx.waits.chain_reopened(last.chain)

    def pause(self) -> None:
        with self.store.write() as tx:
            tx.settings.pause(Pause("ann", None, tx.now()))

    def resume(self) -> None:
        with self.store.write() as tx:
            tx.settings.resume()

    def set_max_active(self, value: int) -> None:
        with self.store.write() as tx:
            tx.settings.set("scheduler.max_active", value, by="ann")

    def prove_gone(self, claim: Claim) -> None:
        with self.store.write() as tx:
            tx.claims.prove_gone(claim.token)
            consequences.release_locks(tx, [claim.job_id])

    def capacity(self, tx: ReadTx) -> Capacity:
        return count_capacity(tx, HOST.id, log_budget=BUDGET)

    def missed(self) -> dict[JobId, Any]:
        """Waiting jobs that need not wait: a wake-up was missed."""
        found: dict[JobId, Any] = {}
        with self.store.read() as tx:
            waiting = [each for each in tx.jobs.active() if each.status in WAITING]
            capacity = self.capacity(tx)
            for each in waiting:
                decision = decide(each, gather(tx, [each], capacity, ("",), home=Home("/none")))
                if not isinstance(decision, Hold):
                    found[each.id] = decision
        return found

    def look(self, verb: Callable[[ReadTx], Any]) -> Any:
        with self.store.read() as tx:
            return verb(tx)
