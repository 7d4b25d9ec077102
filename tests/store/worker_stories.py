"""What a worker does to a store, and what goes wrong: stories told beside a small model of it."""

import errno
import os
from contextlib import suppress
from itertools import cycle
from pathlib import Path

from hypothesis import note
from hypothesis import strategies as st
from small_model import SECOND
from stocked import finish_of, unclaim_of
from storytelling import A_NUMBER, Told, act

from headway.base.errors import ConflictError
from headway.core.model import Claim, Lock, WaitKind
from headway.core.settle import Ending, HostFailed, Judgement, NeverRan, Outcome, Verdict
from headway.jobs.locks import release_locks
from headway.jobs.request import Request
from headway.store.records import Lending
from headway.supervise.evidence import Evidence, OutcomeRecord, Started
from headway.worker.recovery import JudgedClaim

CODES = {"exit 0": 0, "exit 1": 1, "exit 7": 7, "signal": 137, "cancelled": 143}
FATES = ("lives", *CODES, *3 * ["says nothing"], "claim file gone")
CRASHES = ("submit", "plan", "end", "undo", "cancel", "retry", "pause")


class Crash(BaseException):
    """The process dies: nothing of ours may handle it."""


class WorkerStories(Told):
    """What becomes of a job that was claimed."""

    # -- what steers it --------------------------------------------------------------------------

    @act(3, how=st.sampled_from(("pause", *3 * ["resume"], "reset", 1, 2, 2, 3, 3, -1)))
    def steer(self, how: str | int) -> None:
        match how:
            case "pause":
                self.client.pause("because")
                self.model.paused = True
            case "resume":
                assert self.client.resume() is self.model.paused
                self.model.paused = False
            case "reset":
                self.client.scheduler.reset()
                self.model.reset()
            case _:
                self.client.set_setting("scheduler.max_active", how)
                self.model.max_active = int(how)

    def _set_limit(self, key: str, value: int | str | None) -> None:
        self.client.set_setting(f"scheduler.limits.{key.replace(':', '.')}", value)
        self.model.set_limit(key, value)

    @act(3, seconds=st.sampled_from((1, 4, 70, -1, -4)), rest=st.integers(0, 3))
    def wait(self, seconds: int, rest: int) -> None:
        """The clock goes on or is put back, and for some acts the worker does not look."""
        self.clock.move(seconds)
        self.model.now = self.clock.now()
        self.resting = rest + 1

    # -- what the worker does ------------------------------------------------------------------

    @act(2, when=lambda self: self.model.having("running"))
    def record_starts(self) -> None:
        for claim in self.launching():
            self._record_start(claim)

    def _record_start(self, claim: Claim) -> None:
        started = Started(
            boot_id=claim.boot_id,
            supervisor_pid=0,
            supervisor_start=0,
            child_pid=0,
            child_start=0,
            cgroup=None,
            started_at=self.clock.now(),
        )
        Evidence(claim.folder, claim.token).write_started(started)
        self.started.add(claim.token)

    @act(
        8,
        when=lambda self: self.model.having("running"),
        which=A_NUMBER,
        how=st.sampled_from(("exit 0", *CODES)),
        tree_gone=st.sampled_from((True, True, False)),
    )
    def end(self, which: int, how: str, tree_gone: bool) -> None:
        self._end(self.live[which % len(self.live)], how, tree_gone)

    @act(5, when=lambda self: self.model.having("running"), which=A_NUMBER)
    def succeed(self, which: int) -> None:
        """An act of its own: what comes after a job needs it."""
        self.end(which, "exit 0", True)

    def _end(self, claim: Claim, how: str, tree_gone: bool) -> None:
        note(f"job-{claim.job_id}: {how}, tree gone {tree_gone}")
        self._settle(claim, _exited(how, self.clock.now(), tree_gone))
        self._ended(claim, how, tree_gone=tree_gone)

    def _ended(self, claim: Claim, how: str, *, tree_gone: bool) -> None:
        job = self.model.jobs[claim.job_id]
        ending = "exited" if how.startswith("exit ") else how
        self.model.end(job, ending, CODES.get(how), tree_gone=tree_gone)
        self.over.append(claim)

    def _settle(self, claim: Claim, judgement: Judgement) -> None:
        with self.store.write() as tx:
            self.settler.apply(tx, [(claim, judgement)])

    @act(
        3,
        when=lambda self: self.launching(),
        which=A_NUMBER,
        how=st.sampled_from(("never ran", "no program", "no memory")),
    )
    def launch_fails(self, which: int, how: str) -> None:
        launching = self.launching()
        claim = launching[which % len(launching)]
        note(f"job-{claim.job_id}: {how}")
        job = self.model.jobs[claim.job_id]
        match how:
            case "never ran":
                self._settle(claim, NeverRan(how))
                self.model.undo(job)
            case "no program":
                outcome = Outcome(Ending.SPAWN_ERROR, self.clock.now(), errno=errno.ENOENT)
                self._settle(claim, Verdict(outcome, tree_gone=True))
                self.model.cannot_launch(job)
            case _:
                self._settle(claim, HostFailed(WaitKind.PRESSURE, how))
                self.model.host_fails(job)
        self.over.append(claim)

    @act(2, when=lambda self: self.model.unproven)
    def prove_trees_gone(self) -> None:
        with self.store.write() as tx:
            for claim in tx.claims.unproven():
                tx.claims.prove_gone(claim.token)
                release_locks(tx, [claim.job_id])
        self.model.unproven.clear()

    @act(
        5,
        when=lambda self: self.waiting() and self.live,
        which=A_NUMBER,
        awaited=A_NUMBER,
        seconds=st.sampled_from((3, 1000)),
        tight=st.booleans(),
    )
    def lend(self, which: int, awaited: int, seconds: int, tight: bool) -> None:
        """A command inside a running job waits for another, most often for one that lacks
        capacity, and nothing else is free of what the two of them need."""
        claim = self.live[which % len(self.live)]
        self._record_start(claim)
        waiting = self.waiting()
        waiting += 2 * [job for job in waiting if self.model.holds_back(job) is None]
        lender, job = self.model.jobs[claim.job_id], waiting[awaited % len(waiting)]
        if tight:
            self.steer(max(1, self.model.occupied()))
            wanted = self.model.takes(job) - {"slot"}
            for key in sorted(wanted & self.model.takes(lender) if which % 3 else wanted):
                self._set_limit(key, max(0, self.model.used(key) - (which % 7 == 1)))
        self._lend(lender.id, job.chain, seconds)

    def _lend(self, lender: int, chain: int, seconds: int) -> None:
        until = self.clock.now() + seconds * SECOND
        self.loans += 1
        note(f"{lender} waits for job-{chain}")
        with self.store.write() as tx:
            tx.claims.lend(f"loan-{self.loans}", Lending(lender, chain, until))
        self.model.loans[f"loan-{self.loans}"] = (lender, chain, until)

    @act(when=lambda self: self.model.loans, which=A_NUMBER)
    def stop_lending(self, which: int) -> None:
        token = sorted(self.model.loans)[which % len(self.model.loans)]
        with self.store.write() as tx:
            tx.claims.end_lending(token)
        del self.model.loans[token]

    # -- what goes wrong -----------------------------------------------------------------------

    @act(3, when=lambda self: self.over, which=A_NUMBER)
    def stale_token_speaks(self, which: int) -> None:
        again = [each for each in self.over if self.model.jobs[each.job_id].state == "running"]
        claims = again or self.over
        claim = claims[which % len(claims)]
        note(f"a dead claim of job-{claim.job_id} speaks")
        with self.store.write() as tx:
            assert tx.claims.finish([finish_of(claim)]) == [False]
            assert tx.claims.undo([unclaim_of(claim)]) == [False]
        self._settle(claim, _exited("exit 0", self.clock.now(), True))

    @act(doing=st.sampled_from(CRASHES), which=A_NUMBER)
    def crash(self, doing: str, which: int) -> None:
        """The process dies just before its commit: nothing of what it did is there."""

        def die() -> None:
            raise Crash

        self.store.database.commit = die  # type: ignore[attr-defined]
        with suppress(Crash, ConflictError):
            self._do(doing, which)
        self.store.close()
        self._open()

    def _do(self, doing: str, which: int) -> None:
        claim = self.live[which % len(self.live)] if self.live else None
        match doing:
            case "submit":
                self.client.submit(Request(argv=("true",), locks=(Lock("a"),), check=False))
            case "plan":
                self._step()
            case "end" if claim:
                self._settle(claim, _exited("exit 1", self.clock.now(), True))
            case "undo" if claim:
                self._settle(claim, NeverRan(doing))
            case "cancel" if self.model.jobs:
                self.client.cancel([self._job(which).id])
            case "retry" if self.model.jobs:
                self.client.retry(self._job(which).id)
            case "pause":
                self.client.pause(None)
            case _:
                pass

    @act(
        2,
        fates=st.lists(st.sampled_from(FATES), min_size=1, max_size=4),
        reboot=st.sampled_from((False, False, True)),
    )
    def worker_comes_up(self, fates: list[str], reboot: bool) -> None:
        """Each live claim is judged by what its supervisor left behind."""
        if reboot:
            fates = [fate for fate in fates if fate != "lives"] or ["says nothing"]
            self.boot += 1
        self.store.close()
        self._open()
        judged: list[JudgedClaim] = []
        held: list[int] = []
        expected = []
        for claim, fate in zip(self.live, cycle(fates), strict=False):
            note(f"job-{claim.job_id}: {fate}, start recorded {claim.token in self.started}")
            held += self._leave_behind(claim, fate)
            verdict = self.recovery.judge(claim)
            judged += [verdict] if verdict else []
            if fate == "lives":
                assert verdict is None
            else:
                expected.append((claim, fate))
        with self.store.write() as tx:
            self.settler.apply(tx, [(each.claim, each.judgement) for each in judged])
        with self.store.write() as tx:
            tx.waits.wake_everything()
        for each in judged:
            each.release()
        for lock in held:
            os.close(lock)
        for claim, fate in expected:
            self._recovered(claim, fate, reboot=reboot)

    def _leave_behind(self, claim: Claim, fate: str) -> list[int]:
        evidence = Evidence(claim.folder, claim.token)
        if fate == "lives":
            lock = evidence.try_lock()
            assert lock is not None
            return [lock]
        if fate == "claim file gone":
            os.unlink(evidence.claim)
        elif fate in CODES:
            written = _written(claim, fate, self.clock.now())
            Path(evidence.outcome).write_bytes(written.to_json())
        return []

    def _recovered(self, claim: Claim, fate: str, *, reboot: bool) -> None:
        """docs/guarantees.md, "Recovery": the first row that fits."""
        if fate in CODES:
            self._ended(claim, fate, tree_gone=True)
        elif reboot:
            self._ended(claim, "unknown", tree_gone=True)
        elif fate == "claim file gone" or claim.token in self.started:
            self._ended(claim, "unknown", tree_gone=False)
        else:
            self.model.undo(self.model.jobs[claim.job_id])
            self.over.append(claim)


def _exited(how: str, now: int, tree_gone: bool) -> Verdict:
    ending = {"signal": Ending.SIGNALLED, "cancelled": Ending.CANCELLED}.get(how, Ending.EXITED)
    return Verdict(Outcome(ending, now, exit_code=CODES[how]), tree_gone, {"logs": {}})


def _written(claim: Claim, how: str, now: int) -> OutcomeRecord:
    return OutcomeRecord(
        token=claim.token,
        job=claim.job_id,
        reason={"signal": "signalled", "cancelled": "cancelled"}.get(how, "exited"),
        exit_code=CODES[how],
        started_at=now,
        finished_at=now,
        usage={},
        logs={},
        tree="gone",
    )
