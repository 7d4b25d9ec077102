"""What may happen to a store: random stories, told beside a small model of it."""

import errno
import os
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from direct_stories import Calls
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from order_stories import OrderStories
from small_model import ENDED, SECOND
from stocked import finish_of, unclaim_of
from storytelling import ARTIFACTS, KEYS, REPO, act

from headway import approving, publishing
from headway.collecting import Collector
from headway.consequences import release_locks
from headway.core.model import Claim, JobSpec, Lock, LockMode, PinnedHead, WaitKind
from headway.core.retention import Rule
from headway.core.settle import Ending, Outcome
from headway.engine.rescuer import Judged
from headway.engine.settling import HostFailed, Judgement, NeverRan, Verdict
from headway.errors import ConflictError, InvalidInputError
from headway.store.base import Lending
from headway.submission import Request, specify
from headway.supervise.evidence import Evidence, Started
from headway.supervise.evidence import Outcome as Written

LOCKS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(("shared", "exclusive")), max_size=2)
A_NUMBER = st.integers(0, 1 << 16)
ASKED = st.fixed_dictionaries(
    {
        "locks": LOCKS,
        "after": st.lists(A_NUMBER, max_size=2),
        "delay": st.sampled_from((0, 0, 0, 5)),
        "priority": st.sampled_from((0, 0, 1)),
        "retries": st.sampled_from((0, 0, 1, 2)),
        "retry_on": st.sampled_from(((), (), ("7", "unknown"), ("signal",))),
        "needs": st.lists(st.sampled_from(ARTIFACTS), max_size=1),
        "produces": st.lists(st.sampled_from(ARTIFACTS), max_size=1),
        "pin": st.sampled_from((None, None, None, "a", "b")),
        "approval": st.sampled_from((None, None, None, "pending")),
    }
)
CODES = {"exit 0": 0, "exit 1": 1, "exit 7": 7, "signal": 137, "cancelled": 143}
FATES = ("lives", *CODES, *3 * ["says nothing"], "claim file gone")
CRASHES = ("submit", "plan", "end", "undo", "cancel", "retry", "pause")


class Crash(BaseException):
    """The process dies: nothing of ours may handle it."""


class Stories(OrderStories, Calls):
    """Everything that may happen to a job: by people, by the worker, and by accident."""

    # -- what people do ------------------------------------------------------------------------

    @initialize(max_active=st.sampled_from((1, 2, 3, 3, -1)))
    def set_out(self, max_active: int) -> None:
        self.steer(max_active)

    @act(batch=st.lists(ASKED, min_size=1, max_size=3))
    def submit(self, batch: list[dict[str, Any]]) -> None:
        """All in one transaction; they may come after any that were there before."""
        asked = [self._request(**each) for each in batch]
        jobs = [self.model.submit(**fields) for _, fields in asked]
        for job, (_, fields) in zip(jobs, asked, strict=True):
            note(f"job-{job.id}: {fields}")
        try:
            submitted = self.client.submit_specs([spec for spec, _ in asked])
        except InvalidInputError as error:
            assert "a cycle" in str(error) and self.model.hopeless()
            for job in jobs:
                del self.model.jobs[job.id]
            self.model.next_id = jobs[0].id
            return
        assert [each.job_id for each in submitted] == [job.id for job in jobs]

    @act(4, locks=LOCKS, which=A_NUMBER)
    def submit_next(self, locks: dict[str, str], which: int) -> None:
        """One that has little to wait for, and may be waited for; or two of a kind."""
        plain = {"delay": 0, "priority": which % 2, "retries": which % 3 // 2, "retry_on": ()}
        makes = {"needs": [], "produces": [ARTIFACTS[which % 2]] * (which % 7 == 1)}
        asked = {
            "locks": locks,
            "after": [which] * (which % 3 == 1),
            "pin": None,
            "approval": None,
            **makes,
            **plain,
        }
        self.submit([asked] * (1 + which % 5 % 2))

    def _request(
        self,
        locks: dict[str, str],
        after: list[int],
        needs: list[str],
        produces: list[str],
        pin: str | None,
        approval: str | None,
        **asked: Any,
    ) -> tuple[JobSpec, dict[str, Any]]:
        """As it is submitted, and as the model knows it. The pin is put in afterwards, for there
        is no repository."""
        declared = tuple(sorted({self._job(each).id for each in after if self.model.jobs}))
        delay = asked.pop("delay") * SECOND
        gates = {"needs": tuple(needs), "produces": tuple(set(produces) - set(needs))}
        request = Request(
            argv=("true",),
            locks=tuple(Lock(key, LockMode(mode)) for key, mode in locks.items()),
            after=declared,
            delay=delay,
            retry_base=2 * SECOND,
            check=False,
            require_approval=approval is not None,
            **gates,
            **asked,
        )
        spec = specify(request, environ={}, working_directory="/", found={})
        if pin is not None:
            spec = spec._replace(pinned_head=PinnedHead("main", pin), repo=REPO)
        fields = {
            "locks": locks,
            "after": declared,
            "not_before": self.clock.now() + delay if delay else None,
            "retry_base": 2 * SECOND,
            "pin": pin,
            "approval": approval,
            **gates,
            **asked,
        }
        return spec, fields

    @act(key=st.sampled_from(("x", "y")), name=st.sampled_from(("one", "two")))
    def submit_with_key(self, key: str, name: str) -> None:
        """The same again names the job that is there; something else under the key is refused."""
        request = Request(argv=("true",), key=key, name=name, check=False)
        known, known_request = self.keys.setdefault(key, (self.model.next_id, request))
        if known == self.model.next_id:
            self.model.submit()
        if known_request == request:
            assert self.client.submit(request).job_id == known
        else:
            with pytest.raises(ConflictError):
                self.client.submit(request)

    @act(2, when=lambda self: self.model.jobs, which=A_NUMBER)
    def cancel(self, which: int) -> None:
        asked = self._job(which)
        last = self.model.last(asked.chain)
        note(f"cancel job-{asked.id}")
        if last.state in ENDED:
            with pytest.raises(ConflictError):
                self.client.cancel([asked.id])
        else:
            self.model.cancel(last)
            assert self.client.cancel([asked.id])[0].job_id == last.id

    @act(2, when=lambda self: self.model.jobs, which=A_NUMBER)
    def retry_by_hand(self, which: int) -> None:
        """The job and all that follows from it, unless any of it runs or all of it is well."""
        asked = self._job(which)
        last = self.model.last(asked.chain)
        note(f"retry job-{asked.id}")
        if self.model.may_rewind(last):
            assert self.client.retry(asked.id).id == self.model.rewind(last).id
        else:
            with pytest.raises(ConflictError):
                self.client.retry(asked.id)

    @act(3, when=lambda self: self.model.jobs, which=A_NUMBER, agrees=st.booleans())
    def decide(self, which: int, agrees: bool) -> None:
        """Once, while it waits, and only if someone is asked."""
        asking = [job for job in self.waiting() if job.approval == "pending"]
        job = asking[which % len(asking)] if asking and which % 4 else self._job(which)
        note(f"decide on job-{job.id}: {agrees}")

        def tell() -> None:
            if agrees:
                approving.approve(self.client, job.id)
            else:
                approving.reject(self.client, job.id, None)

        if job not in asking:
            with pytest.raises(ConflictError):
                tell()
            return
        tell()
        if agrees:
            job.approval = "approved"
        else:
            self.model.reject(job)

    @act(2, when=lambda self: self.live, which=A_NUMBER, key=st.sampled_from("12"))
    def publish(self, which: int, key: str) -> None:
        """From inside a running job, announced or not."""
        claim = self.live[which % len(self.live)]
        outside = self.client.environ
        self.client.environ = {
            "HEADWAY_JOB_ID": str(claim.job_id),
            "HEADWAY_CLAIM": claim.token,
            "HEADWAY_HOME": self.home.path,
        }
        artifact, _ = publishing.publish(self.client, "t", key)
        self.client.environ = outside
        self.model.publish(self.model.jobs[claim.job_id], artifact)

    @act(2, to=st.sampled_from("ab"))
    def move_head(self, to: str) -> None:
        self.model.head = to

    @act(2, when=lambda self: self.model.jobs)
    def collect(self) -> None:
        """All that has ended goes, but nothing that anybody still refers to."""
        going = self.model.may_go()
        collector = Collector(
            self.store, self.home, "host", actor="ann", rule=Rule(days=0, jobs=None)
        )
        removed: set[int] = set()
        while (step := collector.step()) is not None:
            removed.update(step.jobs)
        note(f"removed {sorted(removed)}")
        assert removed == self.model.remove(going)
        self._forget(removed)

    def _forget(self, ids: set[int]) -> None:
        self.keys = {key: known for key, known in self.keys.items() if known[0] not in ids}
        self.over = [claim for claim in self.over if claim.job_id not in ids]
        self.final = {number: row for number, row in self.final.items() if number not in ids}
        self.past = [event for event in self.past if event.job_id not in ids]

    @act(3, how=st.sampled_from(("pause", "resume", "resume", "reset", 1, 2, 3, -1)))
    def steer(self, how: str | int) -> None:
        match how:
            case "pause":
                self.client.pause("because")
                self.model.paused = True
            case "resume":
                assert self.client.resume() is self.model.paused
                self.model.paused = False
            case "reset":
                self.client.reset()
                self.model.reset()
            case _:
                self.client.set_setting("scheduler.max_active", how)
                self.model.max_active = int(how)

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
        6,
        when=lambda self: self.model.having("running"),
        which=A_NUMBER,
        how=st.sampled_from(("exit 0", *CODES)),
        tree_gone=st.sampled_from((True, True, False)),
    )
    def end(self, which: int, how: str, tree_gone: bool) -> None:
        self._end(self.live[which % len(self.live)], how, tree_gone)

    @act(3, when=lambda self: self.model.having("running"), which=A_NUMBER)
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
            for claim in tx.unproven_claims():
                tx.prove_gone(claim.token)
                release_locks(tx, claim.job_id)
        self.model.unproven.clear()

    @act(
        3,
        when=lambda self: self.waiting() and self.live,
        which=A_NUMBER,
        awaited=A_NUMBER,
        seconds=st.sampled_from((3, 1000)),
        tight=st.booleans(),
    )
    def lend(self, which: int, awaited: int, seconds: int, tight: bool) -> None:
        """A command inside a running job waits for another, most often for one at the door."""
        if tight:
            self.steer(max(1, self.model.occupied()))
        claim = self.live[which % len(self.live)]
        self._record_start(claim)
        at_door = [job for job in self.waiting() if not job.after and self.model.is_due(job)]
        waiting = at_door or self.waiting()
        lender, chain = claim.job_id, waiting[awaited % len(waiting)].chain
        until = self.clock.now() + seconds * SECOND
        self.loans += 1
        note(f"job-{lender} waits for job-{chain}")
        with self.store.write() as tx:
            tx.lend(f"loan-{self.loans}", Lending(lender, chain, until))
        self.model.loans[f"loan-{self.loans}"] = (lender, chain, until)

    @act(when=lambda self: self.model.loans, which=A_NUMBER)
    def stop_lending(self, which: int) -> None:
        token = sorted(self.model.loans)[which % len(self.model.loans)]
        with self.store.write() as tx:
            tx.end_lending(token)
        del self.model.loans[token]

    # -- what goes wrong -----------------------------------------------------------------------

    @act(2, when=lambda self: self.over, which=A_NUMBER)
    def stale_token_speaks(self, which: int) -> None:
        claim = self.over[which % len(self.over)]
        note(f"a dead claim of job-{claim.job_id} speaks")
        with self.store.write() as tx:
            assert tx.finish([finish_of(claim)]) == [False]
            assert tx.unclaim([unclaim_of(claim)]) == [False]
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
        judged: list[Judged] = []
        held: list[int] = []
        expected = []
        for claim, fate in zip(self.live, cycle(fates), strict=False):
            note(f"job-{claim.job_id}: {fate}, start recorded {claim.token in self.started}")
            held += self._leave_behind(claim, fate)
            verdict = self.rescuer.judge(claim)
            judged += [verdict] if verdict else []
            if fate == "lives":
                assert verdict is None
            else:
                expected.append((claim, fate))
        with self.store.write() as tx:
            self.settler.apply(tx, [(each.claim, each.judgement) for each in judged])
        with self.store.write() as tx:
            tx.wake_everything()
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


def _written(claim: Claim, how: str, now: int) -> Written:
    return Written(
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
