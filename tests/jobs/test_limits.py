"""Limits by type, resource and target, and rates: what may run together, and who is next."""

from collections.abc import Callable

import pytest

from harness import Bench
from headway.base.clock import SECOND, SystemClock
from headway.base.worker_lock import STAYS, WorkerLock
from headway.core.model import Stage
from headway.core.pressure import Measured
from headway.core.states import Status
from headway.jobs.facts import strain_of
from headway.jobs.quotas import parse_rate
from headway.jobs.specification import parse_lock
from headway.jobs.views.present import present_capacity
from headway.store.records import Lending
from headway.testing.clock import FakeClock
from headway.worker.janitor import Janitor
from headway.worker.one_pass import single_step


def set_limit(bench: Bench, key: str, value: object) -> None:
    bench.client.set_setting(f"scheduler.limits.{key}", value)


def running(bench: Bench, *jobs: int) -> list[int]:
    return [job for job in jobs if bench.status(job) is Status.RUNNING]


@pytest.mark.req("D21", "E28", "C4")
@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("resource.ollama", {"resources": ("ollama", "disk")}),
        ("type.story", {"type": "story"}),
        ("target.box", {"target": "box"}),
    ],
)
def test_a_limit_bounds_what_runs_together(
    make_bench: Callable[..., Bench], key: str, options: dict[str, object]
) -> None:
    bench = make_bench(max_active=10)
    set_limit(bench, key, 2)
    jobs = [bench.submit("sleep", "60", **options) for _ in range(4)]
    other = bench.submit("sleep", "60")
    bench.step()
    assert running(bench, *jobs, other) == [*jobs[:2], other]
    kind, word = key.split(".")
    waiting = bench.job(jobs[2])
    assert waiting.stage is Stage.PARKED and waiting.status is Status.QUEUED
    assert bench.client.document(jobs[2])["wait"] == {
        "kind": "capacity",
        "detail": f"all 2 of {kind} {word} are in use",
    }
    bench.client.cancel([jobs[1]])
    bench.until(lambda: bench.status(jobs[2]) is Status.RUNNING)
    assert bench.status(jobs[3]) is Status.QUEUED


@pytest.mark.req("G26")
def test_a_limit_that_is_set_while_jobs_run_counts_them(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=10)
    jobs = [bench.submit("sleep", "60", resources=("gpu",)) for _ in range(2)]
    bench.step()
    set_limit(bench, "resource.gpu", 2)
    third = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    assert running(bench, *jobs, third) == jobs
    set_limit(bench, "resource.gpu", 3)
    bench.step()
    assert running(bench, *jobs, third) == [*jobs, third]
    set_limit(bench, "resource.gpu", 0)
    fourth = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    assert bench.client.document(fourth)["wait"]["detail"] == "none of resource gpu may run"
    set_limit(bench, "resource.gpu", None)
    bench.step()
    assert bench.status(fourth) is Status.RUNNING


def test_those_who_lack_a_limit_do_not_hide_those_who_lack_nothing(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=2)
    set_limit(bench, "resource.gpu", 1)
    blocker = bench.submit("sleep", "60")
    first = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    crowd = [bench.submit("true", resources=("gpu",), priority=5) for _ in range(30)]
    last = bench.submit("sleep", "60")
    bench.step()
    assert all(bench.job(each).stage is Stage.READY for each in crowd)
    bench.client.cancel([blocker])
    bench.until(lambda: bench.status(last) is Status.RUNNING)
    assert all(bench.job(each).stage is Stage.PARKED for each in crowd), "each is filed once"
    assert running(bench, first, *crowd) == [first]
    bench.client.cancel([first])
    bench.until_ended(*crowd)
    starts = [bench.job(each).started_at or 0 for each in crowd]
    assert starts == sorted(starts), "in the order of the queue"
    assert all(bench.kinds(each).count("queued") <= 2 for each in crowd)
    assert "missed_wake_up" not in {kind for each in crowd for kind in bench.kinds(each)}


def test_a_job_that_came_later_does_not_pass_one_that_waits_for_the_same(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=2)
    set_limit(bench, "resource.gpu", 1)
    holder = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    locked = bench.submit("sleep", "60", resources=("gpu",), locks=(parse_lock("repo"),))
    early = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    assert [bench.job(each).stage for each in (locked, early)] == [Stage.PARKED] * 2
    other = bench.submit("sleep", "60", locks=(parse_lock("repo"),), priority=9)
    bench.step()
    late = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    assert running(bench, other) == [other] and bench.job(late).stage is Stage.READY
    bench.client.cancel([holder])
    bench.until(lambda: running(bench, locked, early, late))
    assert running(bench, locked, early, late) == [early], "the first objects at its lock"


def test_one_who_waits_for_a_limit_does_not_pass_one_further_down_the_queue(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=3)
    set_limit(bench, "resource.gpu", 1)
    repo = (parse_lock("repo"),)
    holder = bench.submit("sleep", "60", resources=("gpu",))
    bench.submit("sleep", "60", locks=repo)
    bench.step()
    filed = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    bench.submit("sleep", "60")
    bench.step()
    for _ in range(6):
        bench.submit("sleep", "60", locks=repo, priority=5)
    first = bench.submit("sleep", "60", resources=("gpu",), priority=4)
    bench.step()
    assert (bench.job(filed).stage, bench.job(first).stage) == (Stage.PARKED, Stage.READY)
    bench.client.cancel([holder])
    bench.until(lambda: running(bench, filed, first))
    assert running(bench, filed, first) == [first]


def test_more_than_one_limit_must_have_room(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=10)
    set_limit(bench, "resource.a", 1)
    set_limit(bench, "resource.b", 1)
    on_a = bench.submit("sleep", "60", resources=("a",))
    on_b = bench.submit("sleep", "60", resources=("b",))
    bench.step()
    both = bench.submit("sleep", "60", resources=("a", "b"))
    bench.step()
    assert (
        bench.client.document(both)["wait"]["detail"]
        == "resource a is in use; resource b is in use"
    )
    next_on_a = bench.submit("sleep", "60", resources=("a",), priority=-1)
    bench.client.cancel([on_a])
    bench.until(lambda: bench.status(next_on_a) is Status.RUNNING)
    bench.client.cancel([on_b])
    bench.turn()
    assert bench.status(both) is Status.QUEUED
    bench.client.cancel([next_on_a])
    bench.until(lambda: bench.status(both) is Status.RUNNING)


@pytest.mark.req("D21")
def test_a_borrower_runs_in_what_its_lender_holds_of_the_limits(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=3)
    set_limit(bench, "resource.gpu", 1)
    lender = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    inner = bench.submit("sleep", "60", resources=("gpu",))
    other = bench.submit("sleep", "60", resources=("gpu",), priority=5)
    bench.step()
    assert running(bench, inner, other) == []
    with bench.store.write() as tx:
        tx.claims.lend("t", Lending(lender, inner, tx.now() + 3600 * SECOND))
        tx.waits.wake_chains([inner])
    bench.step()
    assert running(bench, inner, other) == [inner]
    with bench.store.read() as tx:
        claim = tx.claims.of_job(inner)
        assert claim is not None and claim.borrowed_from == lender
        assert present_capacity(bench.client.context, tx).usage["resource:gpu"] == 1
    with bench.store.write() as tx:
        tx.claims.end_lending("t")
    bench.client.cancel([lender])
    bench.until(lambda: bench.status(lender) is Status.CANCELLED)
    bench.turn()
    assert bench.status(other) is Status.QUEUED, "the other one still counts"
    bench.client.cancel([inner])
    bench.until(lambda: bench.status(other) is Status.RUNNING)


def test_when_a_waiter_stops_waiting_both_count_for_every_limit(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=10)
    set_limit(bench, "resource.gpu", 1)
    lender = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    inner = bench.submit("sleep", "60", resources=("gpu",))
    with bench.store.write() as tx:
        tx.claims.lend("t", Lending(lender, inner, tx.now() + 3600 * SECOND))
    bench.step()
    with bench.store.write() as tx:
        tx.claims.end_lending("t")
    with bench.store.read() as tx:
        assert present_capacity(bench.client.context, tx).usage["resource:gpu"] == 2
    again = bench.submit("sleep", "60", resources=("gpu",))
    with bench.store.write() as tx:
        tx.claims.lend("u", Lending(inner, again, tx.now() + 3600 * SECOND))
    bench.step()
    assert bench.status(again) is Status.QUEUED, "nothing new until under the cap"
    bench.client.cancel([lender])
    bench.until(lambda: bench.status(again) is Status.RUNNING)


# -- rates --------------------------------------------------------------------------------------


def test_a_rate_spaces_starts_and_touches_only_those_who_may_start(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=100)
    rate = (parse_rate("claude=2/min"),)
    jobs = [bench.submit("sleep", "60", rates=rate) for _ in range(6)]
    delay = bench.step()
    assert running(bench, *jobs) == jobs[:2]
    assert bench.client.document(jobs[2])["wait"] == {
        "kind": "rate",
        "detail": "rate claude: 2/1m is used up",
    }
    why = bench.client.jobs.why(jobs[2])["objections"]
    assert why[0]["until"] is not None
    assert 0 < delay <= 60
    seen = [len(bench.events(job)) for job in jobs]
    clock.advance(59)
    bench.step()
    assert running(bench, *jobs) == jobs[:2]
    clock.advance(1.001)
    bench.step()
    assert running(bench, *jobs) == jobs[:4]
    assert [len(bench.events(job)) for job in jobs[4:]] == seen[4:], "not even looked at"
    with bench.store.read() as tx:
        assert tx.waits.next_wake() is None


def test_a_rate_of_the_settings_holds_for_all_who_name_it_and_the_stricter_counts(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=100)
    free = [bench.submit("sleep", "60", rates=(parse_rate("api"),)) for _ in range(3)]
    bench.step()
    assert running(bench, *free) == free, "nobody has given a number"
    clock.advance(3600)
    set_limit(bench, "rate.api", "1/min")
    own = bench.submit("sleep", "60", rates=(parse_rate("api=5/min"),))
    other = bench.submit("sleep", "60", rates=(parse_rate("api"),))
    bench.step()
    assert running(bench, own, other) == [own]
    assert bench.client.document(other)["wait"]["detail"] == "rate api: 1/min is used up"
    set_limit(bench, "rate.api", None)
    bench.step()
    assert bench.status(other) is Status.RUNNING


def test_a_start_that_came_to_nothing_does_not_count(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=5)
    rate = (parse_rate("x=1/h"),)
    broken = bench.submit("/no/such/program", rates=rate, check=False)
    bench.until(lambda: "unclaimed" in bench.kinds(broken))
    with bench.store.read() as tx:
        assert tx.limits.newest_starts("x", 0, 10) == []
    good = bench.submit("sleep", "60", rates=rate, priority=1)
    bench.until(lambda: bench.status(good) is Status.RUNNING)
    with bench.store.read() as tx:
        assert len(tx.limits.newest_starts("x", 0, 10)) == 1


def test_old_starts_are_forgotten_with_the_other_leftovers(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    bench.until_ended(bench.submit("true", rates=(parse_rate("x=1/h"),)))
    host = bench.client.context.host.id
    janitor = Janitor(bench.store, bench.home, clock, host_id=host, actor="janitor")
    janitor.step()
    with bench.store.read() as tx:
        assert len(tx.limits.newest_starts("x", 0, 10)) == 1
    clock.advance(32 * 86_400)
    janitor.step()
    with bench.store.read() as tx:
        assert tx.limits.newest_starts("x", 0, 10) == []


# -- what people see ------------------------------------------------------------------------------


@pytest.mark.req("C25", "C26")
def test_status_names_every_limit_and_why_names_who_uses_it_up(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=5)
    set_limit(bench, "resource.gpu", 1)
    set_limit(bench, "rate.api", "9/h")
    holder = bench.submit("sleep", "60", resources=("gpu",), rates=(parse_rate("api"),))
    waiting = [bench.submit("sleep", "60", resources=("gpu",)) for _ in range(2)]
    bench.step()
    status = bench.client.scheduler.status()
    assert status["limits"] == [
        {"kind": "resource", "name": "gpu", "limit": 1, "used": 1, "waiting": 2}
    ]
    assert status["rates"] == [
        {"name": "api", "limit": "9/h", "used": 1, "until": None, "waiting": 0}
    ]
    (objection,) = bench.client.jobs.why(waiting[0])["objections"]
    assert f"in use by job-{holder} (sleep 60, running" in objection["remedy"]
    assert [each["id"] for each in objection["jobs"]] == [f"job-{holder}"]
    assert bench.client.scheduler.dry_run(10).to_dispatch == ()
    bench.client.cancel([holder])
    bench.until(lambda: bench.status(waiting[0]) is Status.RUNNING)
    set_limit(bench, "resource.gpu", 2)
    assert [each.id for each in bench.client.scheduler.dry_run(10).to_dispatch] == [waiting[1]]


@pytest.mark.req("C25")
def test_the_reason_names_the_limit_if_all_that_waits_lacks_it(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=5)
    lock = WorkerLock(bench.home.worker_lock)
    assert lock.take(STAYS), "as a worker does"
    set_limit(bench, "type.command", 0)
    bench.submit("true")
    bench.step()
    assert bench.client.scheduler.status()["reason"] == "none of type command may run"
    bench.submit("true", type="other", delay=3600 * SECOND)
    bench.step()
    reason = bench.client.scheduler.status()["reason"]
    assert reason is not None and reason.startswith("every queued job waits")
    lock.close()


def test_who_has_room_but_no_slot_stays_filed_and_says_so(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=3)
    set_limit(bench, "resource.gpu", 1)
    holder = bench.submit("sleep", "60", resources=("gpu",))
    bench.submit("sleep", "60")
    bench.step()
    filed = bench.submit("sleep", "60", resources=("gpu",))
    bench.step()
    before = len(bench.events(filed))
    more = [bench.submit("sleep", "60", priority=1) for _ in range(2)]
    bench.client.cancel([holder])
    bench.until(lambda: running(bench, *more) == more)
    assert bench.job(filed).stage is Stage.PARKED and len(bench.events(filed)) == before
    assert bench.client.document(filed)["wait"]["detail"] == "all 3 slots are in use"
    bench.client.cancel(more[:1])
    bench.until(lambda: bench.status(filed) is Status.RUNNING)


# -- pressure -------------------------------------------------------------------------------------


@pytest.mark.req("C4")
def test_pressure_leaves_no_capacity_until_it_falls(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=3)
    measured = [Measured(9.0, 1 << 30)]
    bench.engine.planner._strain = lambda settings: strain_of(settings, lambda: measured[0])
    job = bench.submit("sleep", "60")
    bench.client.set_setting("scheduler.pressure.load", 2.0)
    delay = bench.step()
    assert bench.status(job) is Status.QUEUED and delay <= 3.0
    assert bench.job(job).wait is not None
    waits = bench.client.jobs.history(job)[-1].data
    assert waits == {"wait": "pressure", "detail": "the load per processor is 9.00, above 2"}
    other = bench.submit("sleep", "60")
    running_one = bench.submit("true")
    bench.step()
    assert running(bench, job, other, running_one) == []
    measured[0] = Measured(1.0, 1 << 30)
    clock.advance(3)
    bench.step()
    assert bench.status(job) is Status.RUNNING


def test_pressure_is_measured_on_this_host_and_shown(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    job = bench.submit("true")
    bench.client.set_setting("scheduler.pressure.memory", "900TiB")
    bench.step()
    told = bench.client.scheduler.status()
    assert "of memory are available, less than" in str(told["pressure"])
    assert told["reason"] == told["pressure"]
    assert bench.client.document(job)["wait"]["kind"] == "pressure"
    bench.client.set_setting("scheduler.pressure.memory", "1KiB")
    bench.until_ended(job)


# -- passes ---------------------------------------------------------------------------------------


class Slept(FakeClock):
    """A clock that notes the pauses that are made with it."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)


def one_pass(bench: Bench, clock: Slept, limit: int) -> list[int]:
    bench.engine.close()
    host = bench.client.context.host
    started = single_step(bench.store, bench.home, bench.config, host, clock, limit=limit)
    bench.until_begun()
    bench.new_engine()
    bench.engine.recover()
    return started


@pytest.mark.req("G24", "G32")
@pytest.mark.parametrize(
    ("cap", "batch", "ready", "started"),
    [(5, 2, 4, 2), (2, 5, 4, 2), (5, 5, 3, 3), (-1, 2, 4, 2), (3, 1, 0, 0)],
)
def test_a_pass_starts_the_least_of_capacity_batch_and_ready_with_pauses_between(
    make_bench: Callable[..., Bench], cap: int, batch: int, ready: int, started: int
) -> None:
    clock = Slept(SystemClock().now())
    bench = make_bench(clock=clock, max_active=cap)
    bench.client.set_setting("scheduler.spawn_delay", "7s")
    jobs = [bench.submit("sleep", "60") for _ in range(ready)]
    assert len(bench.client.scheduler.dry_run(batch).to_dispatch) == started
    assert one_pass(bench, clock, batch) == jobs[:started]
    assert clock.pauses == [7.0] * max(0, started - 1), "between them, and none after the last"


@pytest.mark.req("G24")
def test_without_a_spawn_delay_a_pass_makes_no_pause(make_bench: Callable[..., Bench]) -> None:
    clock = Slept(SystemClock().now())
    bench = make_bench(clock=clock, max_active=9)
    jobs = [bench.submit("sleep", "60") for _ in range(4)]
    assert one_pass(bench, clock, 3) == jobs[:3]
    assert clock.pauses == []


@pytest.mark.req("G32")
def test_a_job_that_waits_for_the_next_pass_says_so_and_goes_when_the_delay_is_lowered(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(clock=FakeClock(SystemClock().now()), max_active=9)
    bench.client.set_setting("scheduler.spawn_delay", "1h")
    first, second = bench.submit("sleep", "60"), bench.submit("sleep", "60")
    bench.step()
    assert (bench.status(first), bench.status(second)) == (Status.RUNNING, Status.QUEUED)
    wait = bench.client.document(second)["wait"]
    assert wait["kind"] == "capacity" and "spawn_delay" in wait["detail"]
    assert "spawn_delay" in bench.client.scheduler.status()["reason"]
    planned = bench.client.scheduler.dry_run(9)
    assert planned.to_dispatch == () and "spawn_delay" in planned.reason
    bench.client.set_setting("scheduler.spawn_delay", "0s")
    bench.step()
    assert bench.status(second) is Status.RUNNING


@pytest.mark.req("G29")
def test_a_dry_run_names_those_who_lack_something_of_a_limit(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=4)
    set_limit(bench, "resource.gpu", 1)
    jobs = [bench.submit("sleep", "60", resources=("gpu",)) for _ in range(3)]
    bench.step()
    planned = bench.client.scheduler.dry_run(4)
    assert [(left.job.id, left.reason) for left in planned.skipped] == [
        (job, "resource gpu is in use") for job in jobs[1:]
    ]
