"""No job waits that need not wait (docs/protocols.md, section 11), whatever happened before."""

import errno
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from stocked import START, System

from headway.core.model import Claim, JobId, Lock, LockMode, RetryPolicy, WaitKind
from headway.core.settle import Ending, HostFailed, Judgement, NeverRan, Outcome, Verdict
from headway.core.states import TERMINAL
from headway.store.records import Lending
from headway.testing.clock import FakeClock
from postgres import fresh_schema
from ready import open_ready

KEYS = ("a", "b", "c")
LOCKS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(LockMode), max_size=2)
A_NUMBER = st.integers(0, 1 << 16)
ENDINGS = ("succeed", "fail", "undone", "launch", "host", "signal")


class Waking(RuleBasedStateMachine):
    """Random stories; after each act the planner steps until it is quiet."""

    def __init__(self) -> None:
        super().__init__()
        self._story = ExitStack()
        folder = Path(self._story.enter_context(tempfile.TemporaryDirectory()))
        self.clock = FakeClock(START)
        url, without_durability = self.new_store(folder)
        store = open_ready(url, self.clock)
        # What is checked here needs no durability, and the examples are many.
        store.database.execute(without_durability, {})  # type: ignore[attr-defined]
        self.system = System(store, self.clock, folder)
        self.jobs: list[JobId] = []
        self.unproven: list[Claim] = []
        self.tokens = 0

    def teardown(self) -> None:
        self._let_everything_finish()
        self.system.store.close()
        self._story.close()

    def new_store(self, folder: Path) -> tuple[str, str]:
        return f"sqlite://{folder}/headway.db", "pragma synchronous = off"

    # -- acts ----------------------------------------------------------------------------------

    @initialize(max_active=st.sampled_from((1, 2, 4, -1)))
    def set_out(self, max_active: int) -> None:
        self.system.set_max_active(max_active)

    @rule(
        locks=LOCKS,
        after=st.lists(A_NUMBER, max_size=2),
        delay=st.sampled_from((0, 0, 0, 5)),
        priority=st.sampled_from((0, 0, 1)),
        retries=st.sampled_from((0, 0, 1)),
    )
    def submit(
        self,
        locks: dict[str, LockMode],
        after: list[int],
        delay: int,
        priority: int,
        retries: int,
    ) -> None:
        declared = sorted({self.jobs[each % len(self.jobs)] for each in after if self.jobs})
        made = self.system.submit(
            locks=tuple(Lock(key, mode) for key, mode in sorted(locks.items())),
            after=tuple(declared),
            not_before=self.clock.now() + delay * 1_000_000 if delay else None,
            priority=priority,
            retry=RetryPolicy(max_attempts=retries, base=2_000_000),
        )
        note(f"job-{made.id}: {locks} after {declared} delay {delay} priority {priority}")
        self.jobs.append(made.id)

    @precondition(lambda self: self.live())
    @rule(which=A_NUMBER, how=st.sampled_from(ENDINGS), tree_gone=st.booleans())
    def end(self, which: int, how: str, tree_gone: bool) -> None:
        live = self.live()
        claim = live[which % len(live)]
        note(f"job-{claim.job_id} ends: {how}, tree gone {tree_gone}")
        self.system.judge(claim, self._judgement(how, tree_gone))
        with self.system.store.read() as tx:
            self.unproven = tx.claims.unproven()

    def _judgement(self, how: str, tree_gone: bool) -> Judgement:
        now = self.clock.now()
        match how:
            case "succeed":
                return Verdict(Outcome(Ending.EXITED, now, exit_code=0), tree_gone)
            case "fail":
                return Verdict(Outcome(Ending.EXITED, now, exit_code=1), tree_gone)
            case "signal":
                return Verdict(Outcome(Ending.OUTCOME_UNKNOWN, now), tree_gone)
            case "launch":
                return Verdict(Outcome(Ending.SPAWN_ERROR, now, errno=errno.ENOENT), True)
            case "undone":
                return NeverRan("the parent died")
            case _:
                return HostFailed(WaitKind.PRESSURE, "no memory")

    @precondition(lambda self: self.unproven)
    @rule(which=A_NUMBER)
    def prove_gone(self, which: int) -> None:
        claim = self.unproven.pop(which % len(self.unproven))
        note(f"job-{claim.job_id}'s tree is gone")
        self.system.prove_gone(claim)

    @precondition(lambda self: self.jobs)
    @rule(which=A_NUMBER)
    def cancel(self, which: int) -> None:
        note(f"cancel job-{self.jobs[which % len(self.jobs)]}")
        self.system.cancel(self.jobs[which % len(self.jobs)])

    @precondition(lambda self: self.jobs)
    @rule(which=A_NUMBER)
    def retry_by_hand(self, which: int) -> None:
        note(f"retry job-{self.jobs[which % len(self.jobs)]}")
        self.system.retry(self.jobs[which % len(self.jobs)])

    @rule()
    def pause(self) -> None:
        self.system.pause()

    @rule()
    def resume(self) -> None:
        self.system.resume()

    @rule(value=st.sampled_from((1, 2, 4, -1)))
    def change_the_limit(self, value: int) -> None:
        self.system.set_max_active(value)

    @rule(seconds=st.sampled_from((1, 3, 70)))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.live() and self.jobs)
    @rule(which=A_NUMBER, awaited=A_NUMBER)
    def lend(self, which: int, awaited: int) -> None:
        live = self.live()
        lender = live[which % len(live)].job_id
        chain = self.jobs[awaited % len(self.jobs)]
        self.tokens += 1
        note(f"job-{lender} waits for job-{chain}")
        with self.system.store.write() as tx:
            expires = self.clock.now() + 3_600_000_000
            tx.claims.lend(f"lending-{self.tokens}", Lending(lender, chain, expires))

    @rule()
    def stop_lending(self) -> None:
        with self.system.store.write() as tx:
            for number in range(1, self.tokens + 1):
                tx.claims.end_lending(f"lending-{number}")

    # -- what always holds ----------------------------------------------------------------------

    def live(self) -> list[Claim]:
        with self.system.store.read() as tx:
            return sorted(tx.claims.live(), key=lambda claim: claim.job_id)

    @invariant()
    def nobody_waits_who_need_not(self) -> None:
        started = self.system.until_quiet()
        note(f"started {[claim.job_id for claim in started]}")
        assert self.system.missed() == {}
        with self.system.store.read() as tx:
            capacity = self.system.capacity(tx)
            holders = tx.claims.lock_views(KEYS)
        if capacity.max_active > 0 and any(claim.borrowed_from is None for claim in started):
            assert capacity.running <= capacity.max_active
        for view in holders.values():
            modes = [holder.mode for holder in view.holders]
            assert len(modes) <= 1 or LockMode.EXCLUSIVE not in modes
        self.check(started)

    def check(self, started: list[Claim]) -> None:
        """What else holds after these were started."""

    def _let_everything_finish(self) -> None:
        """Every job comes to its end when everything is allowed to finish."""
        self.system.resume()
        self.system.set_max_active(2)
        for _ in range(20 * (len(self.jobs) + 2)):
            for claim in self.live():
                self.system.judge(claim, self._judgement("succeed", True))
            with self.system.store.read() as tx:
                unproven = tx.claims.unproven()
            for claim in unproven:
                self.system.prove_gone(claim)
            self.clock.advance(120)
            self.system.until_quiet()
        with self.system.store.read() as tx:
            assert [job for job in tx.jobs.active() if job.status not in TERMINAL] == []


# -- sequences that once left a job waiting -------------------------------------------------------

SHARED, EXCLUSIVE = LockMode.SHARED, LockMode.EXCLUSIVE


def ended(system: System, claim: Claim) -> None:
    outcome = Outcome(Ending.EXITED, system.clock.now(), exit_code=0)
    system.judge(claim, Verdict(outcome, tree_gone=True))


def test_a_waiter_that_only_shares_a_freed_key_lets_the_next_sharer_look(system: System) -> None:
    system.set_max_active(-1)
    system.submit(locks=(Lock("k", EXCLUSIVE),))
    system.submit(locks=(Lock("m", EXCLUSIVE),))
    holder_of_k, _ = system.until_quiet()
    system.submit(locks=(Lock("k", SHARED), Lock("m", EXCLUSIVE)))
    sharer = system.submit(locks=(Lock("k", SHARED),))
    assert system.until_quiet() == []
    ended(system, holder_of_k)
    assert [claim.job_id for claim in system.until_quiet()] == [sharer.id]
    assert system.missed() == {}


def test_a_reservation_that_is_given_up_lets_all_sharers_look(system: System) -> None:
    system.set_max_active(-1)
    system.submit(locks=(Lock("k", SHARED),))
    system.submit(locks=(Lock("m", EXCLUSIVE),))
    system.until_quiet()
    alone = system.submit(locks=(Lock("k", EXCLUSIVE),))
    system.submit(locks=(Lock("k", SHARED), Lock("m", EXCLUSIVE)))
    sharer = system.submit(locks=(Lock("k", SHARED),))
    assert system.until_quiet() == []
    system.cancel(alone.id)
    assert [claim.job_id for claim in system.until_quiet()] == [sharer.id]


def test_a_job_blocked_in_a_round_wakes_those_looked_at_in_the_same_round(system: System) -> None:
    first = system.submit()
    system.pause()
    soon = system.clock.now() + 5_000_000
    second = system.submit(after=(first.id,), not_before=soon)
    system.submit(after=(second.id,), not_before=soon)
    system.until_quiet()
    system.cancel(first.id)
    system.until_quiet()
    system.clock.advance(5)
    system.until_quiet()
    assert system.missed() == {}
    assert system.look(lambda tx: tx.jobs.active()) == []


def test_an_unreadable_job_gives_up_what_it_reserved(system: System) -> None:
    system.set_max_active(-1)
    system.submit(locks=(Lock("k", SHARED),))
    system.until_quiet()
    reserver = system.submit(locks=(Lock("k", EXCLUSIVE),))
    sharer = system.submit(locks=(Lock("k", SHARED),))
    assert system.until_quiet() == []
    with system.store.write() as tx:
        sql = f"update jobs set retry = '{{' where id = {reserver.id}"
        system.store.database.execute(sql, {})  # type: ignore[attr-defined]
        tx.waits.wake([reserver.id])
    assert [claim.job_id for claim in system.until_quiet()] == [sharer.id]


def tell(stories: Callable[[], Waking], *, count: int) -> None:
    run_state_machine_as_test(
        stories,
        settings=settings(
            max_examples=count,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_job_waits_that_need_not_wait() -> None:
    tell(Waking, count=60)


def test_no_job_waits_that_need_not_wait_on_a_server(postgres_server: str) -> None:
    """Fewer stories: what decides is the same, and each query is a journey."""

    class OnServer(Waking):
        def new_store(self, folder: Path) -> tuple[str, str]:
            url = self._story.enter_context(fresh_schema(postgres_server))
            return url, "set synchronous_commit = off"

    tell(OnServer, count=6)
