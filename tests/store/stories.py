"""What people do to a store: random stories, told beside a small model of it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from small_model import ENDED, SECOND, Job
from storytelling import A_NUMBER, ARTIFACTS, KEYS, REPO, act
from worker_stories import WorkerStories

from headway.base.errors import ConflictError, InvalidInputError
from headway.core.model import JobSpec, Lock, LockMode, PinnedHead
from headway.core.retention import RetentionRule
from headway.jobs import approvals as approving
from headway.jobs import artifacts as publishing
from headway.jobs.quotas import parse_rate
from headway.jobs.request import Request
from headway.jobs.retention import Collector
from headway.jobs.specification import specify
from headway.jobs.submit import submit_calls

LOCKS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(("shared", "exclusive")), max_size=2)
RESOURCES = ("x", "y")
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
        "kind": st.sampled_from(("command", "command", "other")),
        "resources": st.lists(st.sampled_from(RESOURCES), max_size=2, unique=True),
        "target": st.sampled_from((None, None, "t")),
        "rates": st.sampled_from(((), (), ("r",), ("r=1/4s",))),
        "place": st.sampled_from((None, None, None, 1, 2)),
    }
)


class Stories(WorkerStories):
    """What people do to jobs: one by one, and as a graph."""

    # -- what people do ------------------------------------------------------------------------

    @initialize(max_active=st.sampled_from((1, 2, 3, 3, -1)), which=A_NUMBER)
    def set_out(self, max_active: int, which: int) -> None:
        self.steer(max_active)
        self.submit_next({}, which)

    @act(
        batch=st.lists(ASKED, min_size=1, max_size=3),
        into=st.none() | A_NUMBER,
        last=st.sampled_from((False, False, True)),
    )
    def submit(
        self, batch: list[dict[str, Any]], into: int | None = None, last: bool = False
    ) -> None:
        """All in one transaction; they may come after any that were there before."""
        asked = [self._request(**each) for each in batch]
        group = self._group(into) if into is not None else None
        specs = [spec._replace(group=f"group-{group.id}" if group else None) for spec, _ in asked]
        if group and not self.model.takes_members(group):
            with pytest.raises(ConflictError):
                submit_calls(self.client.context, specs)
            return
        specs[-1] = specs[-1]._replace(last=last and group is not None)
        jobs = [self.model.submit(**fields) for _, fields in asked]
        for job, (_, fields) in zip(jobs, asked, strict=True):
            note(f"job-{job.id}: {fields}" + (f" in group-{group.id}" if group else ""))
            if group:
                self.model.join(job, group)
        try:
            submitted = submit_calls(self.client.context, specs)
        except InvalidInputError as error:
            assert "a cycle" in str(error) and self.model.hopeless()
            self._take_back(jobs)
            return
        assert [each.job_id for each in submitted] == [job.id for job in jobs]
        if group and specs[-1].last:
            self.model.close(group)
        self._put([(job, spec.place) for job, spec in zip(jobs, specs, strict=True) if spec.place])

    def _take_back(self, jobs: Sequence[Job]) -> None:
        """The model knows them, but they were refused."""
        for job in jobs:
            del self.model.jobs[job.id]
        self.model.next_id = jobs[0].id

    def _put(self, places: list[tuple[Job, int]]) -> None:
        for job, rank in places:
            self.model.move(job, "position", rank)
        self._adopt([job.id for job, _ in places])

    def _adopt(self, ids: Sequence[int], *, anywhere: bool = False) -> None:
        """These were put elsewhere: the store shows where they stand beside what runs, and if
        nobody can know better, also beside what waits."""
        if not ids:
            return
        with self.store.read() as tx:
            orders = {row.id: row.order for row in tx.jobs.active()}
        known = [job.id for job in self.waiting() if not anywhere or job.id not in ids]
        assert sorted(known, key=lambda each: orders[each]) == known
        self.model.place(ids, orders)

    @act(9, locks=LOCKS, which=A_NUMBER)
    def submit_next(self, locks: dict[str, str], which: int) -> None:
        """One that has little to wait for, and may be waited for; or two of a kind."""
        plain = {"delay": 0, "priority": which % 2, "retries": which % 3 // 2, "retry_on": ()}
        makes = {"needs": [], "produces": [ARTIFACTS[which % 2]] * (which % 7 == 1)}
        takes = {"kind": "command", "target": None, "place": None}
        asked = {
            "locks": locks,
            "after": [which] * (which % 3 == 1),
            "pin": None,
            "approval": None,
            "resources": RESOURCES[: which % 4 % 3],
            "rates": ("r",) * (which % 11 % 3 == 1),
            **makes,
            **takes,
            **plain,
        }
        self.submit([asked] * (1 + which % 5 % 2), which if which % 4 == 1 else None)

    def _request(
        self,
        locks: dict[str, str],
        after: list[int],
        needs: list[str],
        produces: list[str],
        pin: str | None,
        approval: str | None,
        kind: str,
        rates: Sequence[str],
        place: int | None,
        resources: Sequence[str],
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
            type=kind,
            rates=tuple(parse_rate(each) for each in rates),
            position=place,
            resources=tuple(resources),
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
            "requested": self.clock.now() + delay if delay else None,
            "retry_base": 2 * SECOND,
            "pin": pin,
            "approval": approval,
            "kind": kind,
            "rates": tuple(rates),
            "resources": tuple(resources),
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
            first = self.model.next_id
            assert self.client.retry(asked.id).id == self.model.rewind(last).id
            if self.model.moves:  # since they ended, others may have come to stand where they did
                self._adopt(range(first, self.model.next_id), anywhere=True)
        else:
            with pytest.raises(ConflictError):
                self.client.retry(asked.id)

    @act(2, when=lambda self: self.model.jobs, which=A_NUMBER, agrees=st.booleans())
    def decide(self, which: int, agrees: bool) -> None:
        """Once, while it waits, and only if someone is asked."""
        asking = [job for job in self.waiting() if job.approval == "pending"]
        job = asking[which % len(asking)] if asking and which % 4 else self._job(which)
        note(f"decide on job-{job.id}: {agrees}")

        def tell() -> None:
            if agrees:
                approving.approve(self.client.context, job.id)
            else:
                approving.reject(self.client.context, job.id, None)

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
        with self.inside(claim):
            artifact, _ = publishing.publish(self.client.context, "t", key)
        self.model.publish(self.model.jobs[claim.job_id], artifact)

    @act(2, to=st.sampled_from("ab"))
    def move_head(self, to: str) -> None:
        self.model.head = to

    @act(2, when=lambda self: self.model.jobs)
    def collect(self) -> None:
        """All that has ended goes, but nothing that anybody still refers to."""
        going = self.model.may_go()
        collector = Collector(
            self.store, self.home, "host", actor="ann", rule=RetentionRule(days=0, jobs=None)
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
