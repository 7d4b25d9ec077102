"""The part of a step that settles claims whose supervisors have ended, or do not answer."""

from contextlib import suppress

from headway.base.crashpoints import reach
from headway.core.model import Claim
from headway.jobs.lifecycle import trees_gone
from headway.jobs.part import Part
from headway.store.transaction import ReadTx, WriteTx
from headway.supervise.evidence import Evidence
from headway.supervise.rescue import ask_to_cancel
from headway.worker.attempts import do_all
from headway.worker.ends import Documents
from headway.worker.recovery import JudgedClaim
from headway.worker.tools import Tools

RECOVER_EVERY = 30.0
LOOK_AGAIN = 1.0


class OutcomesPart(Part):
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._ends = tools.ends
        self._launches = tools.launches
        self._recovery = tools.recovery
        self._judged: list[JudgedClaim] = []
        self._documents: Documents = {}
        self._unproven: list[Claim] = []  # settled, and their trees may still live
        self._asked: set[str] = set()  # claims whose supervisors were passed a cancel
        self._next_look = tools.clock.monotonic()
        self._next_recovery = self._next_look + RECOVER_EVERY

    def remember(self, tx: ReadTx) -> list[Claim]:
        """All claims whose trees are not proven to be gone."""
        unproven = tx.claims.unproven()
        self._unproven = self._recovery.mine(unproven)
        return unproven

    def take_in(self) -> None:
        self._judged = self._launches.take_in()
        self._tools.has_duties |= bool(self._judged)

    def step(self, tx: WriteTx) -> None:
        self._documents = self._ends.settle(tx, self._judged)
        self._tools.settler.look_at_probes(tx, self._launches.claims)
        self.remember(tx)

    def undo(self) -> None:
        judged, self._judged = self._judged, []
        self._launches.put_back(judged)

    def committed(self) -> None:
        (judged, self._judged), documents = (self._judged, []), self._documents
        do_all(
            (
                lambda: self._ends.settled(judged, documents),
                self._pass_on_cancels,
                self.recover,
            )
        )

    def delay(self) -> float:
        soonest = max(self._next_recovery, self._next_look) - self._tools.now
        return min(soonest, LOOK_AGAIN) if self._unproven or self._launches.unseen() else soonest

    def _pass_on_cancels(self) -> None:
        """Have the supervisors of cancelled jobs end them. The canceller may be on another
        host, or may have died before reaching them."""
        if not self._tools.cancelling:
            self._asked.clear()
            return
        for claim in self._launches.claims:
            if claim.job_id in self._tools.cancelling and claim.token not in self._asked:
                with suppress(OSError):  # no room to write it now; the next step tries again
                    ask_to_cancel(Evidence(claim.folder, claim.token))
                    self._asked.add(claim.token)

    def recover(self) -> None:
        """Look after trees that are not yet gone, and claims whose supervisor is silent."""
        now = self._tools.now
        if now < self._next_look:
            return
        self._next_look = now + LOOK_AGAIN
        self._prove_trees_gone()
        claims = self._launches.unseen()
        if now >= self._next_recovery:
            self._next_recovery = now + RECOVER_EVERY
            with self._tools.store.read() as tx:
                mine = self._recovery.mine(tx.claims.live())
            claims = self._launches.judgeable([each for each in mine if not each.function_host])
        self._ends.judge(claims + self._ended_by_force())

    def _ended_by_force(self) -> list[Claim]:
        """End supervisors from outside that answer neither a cancel nor a deadline."""
        if not self._launches.claims:
            return []
        with self._tools.store.read() as tx:
            silent = self._recovery.unanswered(tx, self._launches.claims)
        for claim in silent:
            self._launches.end_supervisor(claim)
            reach("engine.forced")
        return silent

    def _prove_trees_gone(self) -> None:
        proven = self._recovery.prove_gone(self._unproven)
        if not proven:
            return
        with self._tools.store.write() as tx:
            trees_gone(tx, proven, actor=self._tools.worker_id)
        reach("engine.proved_gone")
        for claim in proven:
            self._ends.groups.note(claim.folder, claim.token)
