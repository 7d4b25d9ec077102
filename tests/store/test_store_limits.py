"""Limits and rates: what the verbs do, and that in any story no cap is exceeded, nobody waits who
need not, and nobody is passed by one behind it that needs the same."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import rule
from recording import verbs
from stocked import SECOND, START, System, add, claim_for, parking, start
from test_store_waking import A_NUMBER, LOCKS, Waking, tell

from headway.core.facts import Occupant
from headway.core.model import Claim, Job, Lock, LockMode, Rate, Stage, Wait, WaitKind
from headway.core.policies import BUILT_IN, keys_of, rate_keys
from headway.core.settle import Ending, Outcome, Verdict
from headway.core.states import WAITING, Status
from headway.store.records import Slots
from headway.store.store import Store
from postgres import fresh_schema

LACKS = Wait(WaitKind.CAPACITY, "resource gpu is in use")


@verbs(
    "limits.waited_for",
    "limits.parked_under",
    "limits.count_parked",
    "limits.count_limited",
    "waits.park",
)
def test_those_who_wait_for_a_limit_lie_there_in_dispatch_order(store: Store) -> None:
    filed: dict[str, Any] = {"status": Status.QUEUED, "stage": Stage.PARKED, "wait": LACKS}
    with store.write() as tx:
        jobs = [add(tx, priority=priority) for priority in (0, 5, 0)]
        assert tx.limits.waited_for() == frozenset()
        tx.waits.park([parking(each, "limit:resource:gpu", "chain:7", **filed) for each in jobs])
        tx.waits.park([parking(jobs[2], "limit:resource:gpu", "limit:type:x@host", **filed)])
        assert tx.limits.waited_for() == {"limit:resource:gpu", "limit:type:x@host"}
    with store.write() as tx:
        assert tx.limits.waited_for() == {"limit:resource:gpu", "limit:type:x@host"}
        found = [each.id for each in tx.limits.parked_under("limit:resource:gpu", 10)]
        assert found == [jobs[1].id, jobs[0].id, jobs[2].id]
        assert [each.id for each in tx.limits.parked_under("limit:resource:gpu", 2)] == found[:2]
        assert tx.limits.parked_under("limit:resource:other", 2) == []
        assert tx.limits.count_parked() == {"limit:resource:gpu": 3, "limit:type:x@host": 1}
        assert tx.limits.count_limited() == 3
        tx.waits.park([parking(each, "lock:k", **filed) for each in jobs])
    with store.read() as tx:
        assert tx.limits.waited_for() == frozenset() and tx.limits.count_parked() == {}


@verbs("claims.slots", "claims.begin")
def test_what_claims_occupy_is_counted_as_long_as_they_live(store: Store) -> None:
    with store.write() as tx:
        first, second = add(tx), add(tx)
        start(tx, first, 1, occupies=("type:story", "resource:gpu"))
        start(tx, second, 2, borrowed_from=first.id)
        both = (
            Occupant(first.id, ("type:story", "resource:gpu")),
            Occupant(second.id, (), first.id),
        )
        assert set(tx.claims.slots().occupants) == set(both)
    with store.read() as tx:
        slots = tx.claims.slots()
        assert set(slots.occupants) == set(both)
        running = {first.id: None, second.id: first.id}
        assert slots == Slots(frozenset({1, 2}), running, False, slots.occupants)


@verbs(
    "limits.note_starts", "limits.newest_starts", "limits.forget_starts", "limits.forget_old_starts"
)
def test_starts_are_counted_until_no_rate_can_count_them(store: Store) -> None:
    rates = (Rate("a", 2, SECOND), Rate("b"))
    with store.write() as tx:
        jobs = [add(tx, rates=rates) for _ in range(4)]
        claims = [claim_for(each.id, claimed_at=START + each.id * SECOND) for each in jobs]
        tx.limits.note_starts(list(zip(jobs, claims, strict=True)))
        instants = [each.claimed_at for each in reversed(claims)]
        assert (
            tx.limits.newest_starts("a", 0, 10) == tx.limits.newest_starts("b", 0, 10) == instants
        )
        assert tx.limits.newest_starts("a", 0, 2) == instants[:2]
        assert tx.limits.newest_starts("a", instants[1], 10) == instants[:1]
        assert tx.limits.newest_starts("c", 0, 10) == []
        tx.limits.forget_starts(jobs[3], claims[3])
        assert (
            tx.limits.newest_starts("a", 0, 10)
            == tx.limits.newest_starts("b", 0, 10)
            == instants[1:]
        )
        assert tx.limits.forget_old_starts(0, 3) == 0
        assert tx.limits.forget_old_starts(0, 2) == 2
        assert tx.limits.newest_starts("a", 0, 10) == instants[1:3]
        assert tx.limits.forget_old_starts(instants[1], 3) == 2
        assert tx.limits.newest_starts("b", 0, 10) == instants[1:2]


# -- any story ------------------------------------------------------------------------------------

LIMITED = ("resource.a", "resource.b", "target.t", "type.command")
OWN = Rate("own", 2, 5 * SECOND)


def needs(job: Job) -> set[str]:
    return {*keys_of(job, BUILT_IN), *rate_keys(job)}


class Limiting(Waking):
    """The same stories, of jobs with resources, targets and rates, and of limits that change."""

    @rule(
        resources=st.sets(st.sampled_from(("a", "b"))),
        on=st.sampled_from((None, None, "t")),
        rates=st.sets(st.sampled_from((Rate("set"), OWN)), max_size=1),
        priority=st.sampled_from((0, 0, 1)),
        locks=st.just({}) | LOCKS,
        count=st.integers(1, 6),
    )
    def submit_some(
        self,
        resources: set[str],
        on: str | None,
        rates: set[Rate],
        priority: int,
        locks: dict[str, LockMode],
        count: int,
    ) -> None:
        for _ in range(count):
            made = self.system.submit(
                resources=tuple(sorted(resources)),
                target=on,
                rates=tuple(rates),
                priority=priority,
                locks=tuple(Lock(key, mode) for key, mode in sorted(locks.items())),
            )
            note(f"job-{made.id}: {sorted(needs(made))} {locks} priority {priority}")
            self.jobs.append(made.id)

    @rule(key=st.sampled_from(LIMITED), value=st.none() | st.integers(0, 3))
    def set_a_limit(self, key: str, value: int | None) -> None:
        self._set(key, value)

    @rule(value=st.sampled_from((None, "1/3s", "3/10s")))
    def set_a_rate(self, value: str | None) -> None:
        self._set("rate.set", value)

    def _set(self, key: str, value: object) -> None:
        with self.system.store.write() as tx:
            tx.settings.set(f"scheduler.limits.{key}", value, by="ann")

    @rule(which=A_NUMBER)
    def end_some(self, which: int) -> None:
        for claim in self.live()[: which % 3 + 1]:
            self.system.judge(claim, self._judgement("succeed", True))

    def check(self, started: list[Claim]) -> None:
        with self.system.store.read() as tx:
            capacity = self.system.capacity(tx)
            jobs = tx.jobs.by_id([claim.job_id for claim in started])
            waiting = [each for each in tx.jobs.active() if each.status in WAITING]
            now = tx.now()
        own = [claim for claim in started if claim.borrowed_from is None]
        for key in {key for claim in own for key in claim.occupies if key in capacity.limits}:
            assert capacity.usage[key] <= capacity.limits[key], key
        for key, view in capacity.rates.items():
            assert capacity.usage[key] <= (view.rate.most or 0), key
        begun = [jobs[claim.job_id] for claim in own]
        for each in waiting:
            free = not each.locks and not each.after and (each.not_before or 0) <= now
            behind = [one for one in begun if one.order > each.order and not one.locks]
            passed_by = [one.id for one in behind if needs(each) <= needs(one)]
            assert not (free and passed_by), f"job-{each.id} was passed by {passed_by}"

    def teardown(self) -> None:
        for key in (*LIMITED, "rate.set"):
            self._set(key, None)
        super().teardown()


@pytest.mark.long
def test_no_limit_is_exceeded_and_nobody_waits_or_is_passed_in_any_story() -> None:
    tell(Limiting, count=80)


def test_no_limit_is_exceeded_in_any_story_on_a_server(postgres_server: str) -> None:
    """Fewer stories: what decides is the same, and each query is a journey."""

    class OnServer(Limiting):
        def new_store(self, folder: Path) -> tuple[str, str]:
            url = self._story.enter_context(fresh_schema(postgres_server))
            return url, "set synchronous_commit = off"

    tell(OnServer, count=6)


# -- what it costs --------------------------------------------------------------------------------


@pytest.mark.req("C31")
def test_a_step_looks_at_one_of_very_many_who_wait_for_a_limit(system: System) -> None:
    system.set_max_active(4)
    with system.store.write() as tx:
        tx.settings.set("scheduler.limits.resource.gpu", 1, by="ann")
    for _ in range(300):
        system.submit(resources=("gpu",))
    (holder,) = system.until_quiet()
    looked_at: list[int] = []
    planner = system.planner
    gather = planner._gather

    def counting(tx: Any, jobs: Any, capacity: Any) -> Any:
        looked_at.append(len(jobs))
        return gather(tx, jobs, capacity)

    planner._gather = counting  # type: ignore[method-assign]
    with system.store.write() as tx:
        outcome = Outcome(Ending.EXITED, tx.now(), exit_code=0)
        system.settler.apply(tx, [(holder, Verdict(outcome, tree_gone=True))])
        started = planner.step(tx).started
    assert len(started) == 1 and sum(looked_at) == 1
    system.until_quiet()
    assert sum(looked_at) == 1
