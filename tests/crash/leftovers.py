"""What a worker can find when it comes up: claims of every sort at once, and how each must end."""

import os
import signal
from typing import Any

from stage import Part, Stage, work

from harness import wait_for
from headway.base.clock import SystemClock
from headway.base.host import this_host
from headway.core.states import Status
from headway.jobs.settings import Config
from headway.store.records import Lending
from headway.supervise import cgroup
from headway.supervise.launcher import Launcher
from headway.worker.step import Engine

# name: (status, exit code, how often its command may have begun, how often it ended)
ENDS: dict[str, tuple[Status, int | None, tuple[int, ...], int]] = {
    "unsent": (Status.SUCCEEDED, 0, (1,), 1),  # claimed, and its parent never heard of it
    "unsent_cancelled": (Status.CANCELLED, None, (0,), 0),
    "forked": (Status.SUCCEEDED, 0, (1,), 1),  # its supervisor died before the start record
    "robbed": (Status.FAILED, None, (0,), 0),  # someone deleted its claim file
    "living": (Status.FAILED, 5, (1,), 1),
    "orphaned": (Status.FAILED, None, (1,), 0),  # its supervisor died, its tree lives
    "done": (Status.SUCCEEDED, 0, (1,), 1),  # its outcome was not taken in
    "failed": (Status.FAILED, 3, (1,), 1),
    "timed_out": (Status.FAILED, 124, (0, 1), 0),  # its deadline passed while nobody looked
    "cancelling": (Status.CANCELLED, 143, (1,), 0),  # its canceller died after the commit
    "borrower": (Status.FAILED, 6, (1,), 1),  # in the slot of one that waits for it
    "after_done": (Status.SUCCEEDED, 0, (1,), 1),
    "after_failed": (Status.BLOCKED_BY_DEPENDENCY, None, (0,), 0),
    "after_orphaned": (Status.BLOCKED_BY_DEPENDENCY, None, (0,), 0),
    "locked_out": (Status.SUCCEEDED, 0, (1,), 1),  # waits for the locks of five of them
}
WITHHELD = ("unsent", "unsent_cancelled", "forked", "robbed")
SENT = ("living", "orphaned", "done", "failed", "timed_out", "cancelling")


class Withholding(Launcher):
    """Sends only some of the requests."""

    withheld: frozenset[str] = frozenset()

    def launch(self, folder: str, token: str) -> None:
        if folder not in self.withheld:
            super().launch(folder, token)


def leave_claims(part: Part, withheld: list[int], lender: int, borrower: int) -> None:
    """Be a worker that starts everything, sees nothing end, and is killed."""
    store, launcher = part.store(), Withholding()
    launcher.withheld = frozenset(part.home.job(each) for each in withheld)
    config, host, clock = Config(part.settings), this_host(part.home), SystemClock()
    engine = Engine(
        store, part.home, config, host, clock, worker_id="worker-lost", launcher=launcher
    )
    engine.outcomes.recover = lambda: None  # type: ignore[method-assign]  # it is killed before that
    engine.launches.open()
    engine.step()
    with store.write() as tx:
        later = tx.now() + 15_000_000
        tx.claims.lend("0" * 32, Lending(lender, borrower, later))
        tx.claims.lend(
            "1" * 32, Lending(lender, borrower, tx.now() - 1)
        )  # of a waiter that was killed
        tx.waits.wake_chains([borrower])
    engine.step()
    signal.pause()


class Leftovers:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.begin_anew()
        stage.client.set_setting("scheduler.max_active", len(WITHHELD) + len(SENT))
        self._submit()
        number = stage.number
        withheld = [number(name) for name in WITHHELD]
        lost = stage.actor(leave_claims, withheld, number("living"), number("borrower"))
        for name in (*SENT, "borrower"):
            stage.started(number(name))
        for name in ("living", "orphaned", "cancelling", "borrower"):
            wait_for(lambda name=name: ("start", name) in stage.written(), what=name)
        stage.kill(lost)
        self._break()

    def _submit(self) -> None:
        job, gate = self.stage.job, self.stage.gate
        for name in ("unsent", "unsent_cancelled", "forked"):
            job(name, locks=(name,))
        job("robbed")
        job("living", gate("living"), code=5)
        orphaned = job("orphaned", f"setsid sleep 600 & {gate('never')}", locks=("orphaned",))
        done = job("done", locks=("done",))
        failed = job("failed", code=3)
        job("timed_out", gate("never"), timeout=50_000, grace=0)
        job("cancelling", gate("never"), grace=0)
        job("borrower", gate("living"), code=6)
        job("after_done", after=(done,))
        job("after_failed", after=(failed,))
        job("after_orphaned", after=(orphaned,))
        job("locked_out", locks=("unsent", "unsent_cancelled", "forked", "orphaned", "done"))

    def _break(self) -> None:
        """Do to each what its sort needs."""
        stage = self.stage
        number = stage.number
        with stage.client.context.store.write() as tx:
            for name in ("unsent_cancelled", "cancelling"):
                tx.jobs.request_cancel(number(name), "tester")
        forked = stage.evidence(number("forked"))
        lock = forked.try_lock()
        assert lock is not None
        os.close(lock)
        base = cgroup.find_base()
        if base is not None:
            cgroup.make(cgroup.path_for(base, forked.token))
        os.unlink(stage.evidence(number("robbed")).claim)
        os.kill(stage.started(number("orphaned")).supervisor_pid, signal.SIGKILL)
        for name in ("done", "failed", "timed_out"):
            wait_for(stage.evidence(number(name)).read_outcome, what=name)

    def finish(self) -> None:
        """The next worker brings all of them to the one end that each can have."""
        stage = self.stage
        worker = stage.actor(work)
        stage.until_ended(*(each for each, name in stage.names.items() if not self._gated(name)))
        stage.open_gate("living")
        stage.until_ended(*stage.names)
        stage.leave(worker)
        stage.check_settled()
        self._check_ends()

    def _gated(self, name: str) -> bool:
        return name in ("living", "borrower")

    def _check_ends(self) -> None:
        stage, written = self.stage, self.stage.written()
        for job, name in stage.names.items():
            document = stage.client.document(job)
            run: dict[str, Any] = document["run"] or {}
            code = run.get("exit_code")
            status, exit_code, begun, ended = ENDS[name]
            assert (stage.status(job), code) == (status, exit_code), name
            assert written.count(("start", name)) in begun, name
            assert written.count(("end", name)) == ended, name
        begun = [name for word, name in written if word == "start"]
        assert begun.index("locked_out") > max(begun.index(each) for each in ("unsent", "forked"))
