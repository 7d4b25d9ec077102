"""Direct calls: the next slot for a caller outside of the queue, which itself stays as it is."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from harness import Bench, wait_for
from headway.base.clock import SECOND, SystemClock
from headway.base.errors import InvalidInputError, ReservationLostError, TimedOutError
from headway.client import Client
from headway.core.capacity import direct_lender
from headway.core.reservations import Reservation
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.request import Request
from headway.jobs.reservations import HeldSlot
from headway.jobs.views.present import present_capacity
from headway.jobs.views.status import scheduler_status
from headway.jobs.views.why import why
from headway.jobs.wait import Waiter
from headway.store import open_store
from headway.store.records import Lending
from headway.testing.clock import FakeClock


@contextmanager
def another(bench: Bench) -> Iterator[Client]:
    """A caller of its own: another connection to the store."""
    url = bench.home.store_url or f"sqlite://{bench.home.database}"
    store = open_store(url, bench.clock, create=False)
    environ = bench.client.context.environ
    client = Client(
        Context(bench.home, bench.config, store, bench.clock, environ=environ, actor="ben")
    )
    try:
        yield client
    finally:
        client.close()


class Caller(threading.Thread):
    """Holds a slot from when it gets one until it is told to go."""

    def __init__(self, bench: Bench, note: str = "") -> None:
        super().__init__(daemon=True)
        self._bench = bench
        self._note = note
        self.has_it = threading.Event()
        self.go = threading.Event()
        self.id = ""
        self.start()

    def run(self) -> None:
        with another(self._bench) as client, client.reserve(note=self._note) as held:
            self.id = held.id
            self.has_it.set()
            self.go.wait(30)

    def leave(self) -> None:
        self.go.set()
        self.join(30)
        assert not self.is_alive()


def standing(bench: Bench) -> list[Reservation]:
    with bench.store.read() as tx:
        return tx.reservations.all()


def events(bench: Bench) -> list[tuple[str, str]]:
    """The kinds that are about direct calls, with the name."""
    kinds = ("reserved", "granted", "released", "expired")
    with bench.store.read() as tx:
        found = tx.events.since(0, 1000)
    return [(each.kind, each.data["id"]) for each in found if each.kind in kinds]


def busy(bench: Bench, **options: Any) -> tuple[int, Path]:
    """A running job that ends when its file appears."""
    gate = bench.folder / "gate"
    job = bench.submit(shell=f"until [ -e {gate} ]; do sleep 0.02; done", **options)
    bench.until(lambda: bench.status(job) is Status.RUNNING)
    return job, gate


def asked(bench: Bench, number: int = 1, **fields: object) -> Reservation:
    """A reservation whose holder does nothing."""
    with bench.store.write() as tx:
        made = Reservation(
            id=tx.reservations.take_id(),
            token=f"token-{number}",
            holder="ann",
            note="",
            host_id=bench.client.context.host.id,
            pid=1,
            requested_at=tx.now(),
            expires_at=tx.now() + 10 * SECOND,
        )._replace(**fields)
        tx.reservations.add(made)
    return made


@pytest.mark.req("E10")
@pytest.mark.req("E13")
@pytest.mark.req("D10")
def test_on_an_idle_store_a_direct_call_has_its_slot_at_once_and_makes_no_job(
    bench: Bench,
) -> None:
    with bench.client.reserve(note="a look") as held:
        assert held.id == "direct-1"
        told = scheduler_status(bench.client.context)
        assert (told["active"], told["free"]) == (1, 0)
        (shown,) = told["reservations"]
        assert (shown["id"], shown["holder"], shown["note"]) == ("direct-1", "tester", "a look")
        assert shown["state"] == "running" and shown["granted_at"]
    assert standing(bench) == []
    assert events(bench) == [(kind, "direct-1") for kind in ("reserved", "granted", "released")]
    assert bench.client.listing() == []


@pytest.mark.req("E11")
@pytest.mark.req("E12")
@pytest.mark.req("E15")
@pytest.mark.req("D10")
@pytest.mark.req("G26")
def test_with_the_slot_busy_it_waits_runs_next_and_leaves_the_queue_as_it_is(bench: Bench) -> None:
    running, gate = busy(bench)
    first, second = bench.submit("true"), bench.submit("true")
    bench.step()
    places = [bench.job(each).position for each in (first, second)]
    caller = Caller(bench)
    wait_for(lambda: standing(bench))
    bench.turn()
    assert bench.status(running) is Status.RUNNING, "it never preempts"
    (objection,) = why(bench.client.context, first)["objections"]
    assert objection["kind"] == "capacity"
    assert objection["detail"] == "direct-1 of ben goes first"
    told = scheduler_status(bench.client.context)
    assert told["reason"] == "direct-1 of ben goes first"
    assert told["reservations"][0]["state"] == "waiting"
    assert told["reservations"][0]["wait"] == f"the one slot is in use: job-{running}"

    gate.touch()
    bench.until(caller.has_it.is_set)
    assert bench.status(running) is Status.SUCCEEDED
    bench.turn()
    assert [bench.status(each) for each in (first, second)] == [Status.QUEUED] * 2
    (objection,) = why(bench.client.context, first)["objections"]
    assert "direct-1 of ben" in objection["remedy"]
    assert [bench.job(each).position for each in (first, second)] == places

    caller.leave()
    bench.until_ended(first, second)
    assert (bench.job(first).started_at or 0) < (bench.job(second).started_at or 0)


@pytest.mark.req("C21")
def test_two_callers_get_the_slot_in_the_order_in_which_they_asked(bench: Bench) -> None:
    with bench.client.reserve():
        early = Caller(bench)
        wait_for(lambda: len(standing(bench)) == 2)
        late = Caller(bench)
        wait_for(lambda: len(standing(bench)) == 3)
        told = scheduler_status(bench.client.context)["reservations"]
        assert [each["id"] for each in told] == ["direct-1", "direct-2", "direct-3"]
        assert told[2]["wait"] == "direct-2 of ben goes first"
    wait_for(early.has_it.is_set)
    assert not late.has_it.is_set()
    early.leave()
    wait_for(late.has_it.is_set)
    late.leave()
    assert [name for kind, name in events(bench) if kind == "granted"] == [
        "direct-1",
        "direct-2",
        "direct-3",
    ]


@pytest.mark.req("E14")
@pytest.mark.parametrize("raised", [None, RuntimeError, KeyboardInterrupt, SystemExit])
def test_when_it_is_released_the_same_head_goes_on_whatever_the_block_raised(
    bench: Bench, raised: type[BaseException] | None
) -> None:
    last, head, second = (bench.submit("true", priority=each) for each in (0, 5, 5))
    queue = [head, second, last]
    places = [bench.job(each).order for each in queue]
    with suppress(*([raised] if raised else [])), bench.client.reserve():
        bench.step()
        assert bench.engine.started == [], "the one slot is taken"
        if raised is not None:
            raise raised("no")
    assert standing(bench) == []
    assert [bench.job(each).order for each in queue] == places
    bench.step()
    assert bench.engine.started == [head]
    bench.until_ended(*queue)
    starts = [bench.job(each).started_at or 0 for each in queue]
    assert starts == sorted(starts)


@pytest.mark.req("C12")
def test_with_two_slots_it_occupies_one_and_dispatch_goes_on(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=2)
    first, second = bench.submit("true"), bench.submit("true")
    held_up = asked(bench)
    bench.step()
    assert bench.status(first) is Status.QUEUED, "while it waits nobody else takes a slot"
    with bench.store.write() as tx:
        assert tx.reservations.grant(held_up.token, None)
    bench.step()
    assert bench.status(first) is Status.RUNNING
    assert bench.status(second) is Status.QUEUED
    bench.until_ended(first, second)


def test_without_a_cap_it_has_its_slot_at_once(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=-1)
    job = bench.submit("sleep", "60")
    bench.step()
    with bench.client.reserve():
        assert bench.status(job) is Status.RUNNING


def test_a_pause_holds_it_too(bench: Bench) -> None:
    bench.client.pause("lunch")
    caller = Caller(bench)
    wait_for(lambda: standing(bench))
    told = scheduler_status(bench.client.context)["reservations"][0]
    assert (told["state"], told["wait"]) == ("waiting", "paused by tester: lunch")
    late = pytest.raises(TimedOutError, match="direct-2 got no slot in time: paused")
    with late, bench.client.reserve(timeout=0.05):
        raise AssertionError
    assert [each.name for each in standing(bench)] == ["direct-1"], "who gives up is gone"
    bench.client.resume()
    wait_for(caller.has_it.is_set)
    caller.leave()


@pytest.mark.req("C21")
def test_one_that_nobody_renews_frees_the_queue_right_after_its_time(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    asked(bench)
    granted = asked(bench, 2)
    with bench.store.write() as tx:
        tx.reservations.grant(granted.token, None)
        tx.reservations.renew(granted.token, tx.now() + 12 * SECOND)
    job = bench.submit("true")
    for seconds in (4, 4, 1):
        bench.step()
        clock.advance(seconds)
    delay = bench.step()
    assert 0 < delay <= 1, "it looks again when the first one's time has come"
    clock.advance(delay)
    delay = bench.step()
    assert events(bench) == [("expired", "direct-1")]
    assert bench.status(job) is Status.QUEUED, "the other one has the slot"
    assert 0 < delay <= 2
    clock.advance(delay)
    bench.step()
    assert standing(bench) == []
    assert bench.status(job) is Status.RUNNING


def test_after_a_suspend_its_holder_has_a_period_to_renew_it(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    held = asked(bench)
    with bench.store.write() as tx:
        tx.reservations.grant(held.token, None)
    job = bench.submit("true")
    bench.step()
    clock.advance(3600)  # the machine slept: nobody could renew
    bench.step()
    assert 0 < bench.step() <= 5
    assert bench.status(job) is Status.QUEUED
    clock.advance(3)
    with bench.store.write() as tx:
        assert tx.reservations.renew(held.token, tx.now() + 10 * SECOND)
    bench.step()
    clock.advance(3)
    bench.step()
    assert standing(bench) != [] and bench.status(job) is Status.QUEUED
    clock.advance(4)
    bench.step()
    clock.advance(4)
    bench.step()
    assert standing(bench) == [] and bench.status(job) is Status.RUNNING


def test_a_lent_start_is_not_held_up_by_one_that_waits(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=2)
    lender, _ = busy(bench)
    awaited, other = bench.submit("sleep", "60"), bench.submit("true", priority=5)
    asked(bench)
    with bench.store.write() as tx:
        tx.claims.lend("t", Lending(lender, awaited, tx.now() + 3600 * SECOND))
    bench.step()
    assert bench.status(awaited) is Status.RUNNING
    assert bench.status(other) is Status.QUEUED
    with bench.store.read() as tx:
        claim = tx.claims.of_job(awaited)
        assert claim is not None and claim.borrowed_from == lender, "the free slot is kept"
        assert present_capacity(bench.client.context, tx).running == 1


def test_a_direct_call_that_waits_for_a_job_lends_it_the_one_slot(bench: Bench) -> None:
    done: list[Status] = []

    def call() -> None:
        with another(bench) as client, client.reserve():
            job = client.submit(Request(argv=("true",))).job_id
            done.append(Waiter(client.context, job).until_ended(timeout=30).status)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    bench.until(lambda: not thread.is_alive())
    assert done == [Status.SUCCEEDED]
    with bench.store.read() as tx:
        assert tx.claims.last_of([1])[1].borrowed_from == -1
        assert tx.claims.lendings() == [] == tx.reservations.all()


INSIDE = """
import sys
from headway.client import connect
from headway.jobs.request import Request
from headway.jobs.wait import Waiter
client = connect()
with client.reserve(note="inside", timeout=30) as held:
    job = client.submit(Request(argv=("true",)))
    print(held.id, Waiter(client.context, job.job_id).until_ended().status)
"""


def test_inside_a_job_it_borrows_that_jobs_slot_and_lends_it_on(bench: Bench) -> None:
    with_library(bench)
    outer = bench.submit(sys.executable, "-c", INSIDE)
    bystander = bench.submit("true", priority=5)
    waiting = asked(bench, expires_at=1 << 60)  # not even another that waits is in its way
    with bench.store.write() as tx:
        tx.reservations.release(waiting)
    bench.until(lambda: bench.status(bystander) is Status.SUCCEEDED)
    bench.until(lambda: bench.status(outer) is Status.RUNNING)
    blocking = asked(bench, 3, expires_at=1 << 60)
    bench.until(lambda: bench.status(outer) is not Status.RUNNING)
    told = Path(bench.home.job(outer), "stdout.log").read_text().split()
    assert told[1:] == ["succeeded"]
    assert [each.name for each in standing(bench)] == [blocking.name]


def test_a_direct_call_within_a_direct_call_has_its_slot(bench: Bench) -> None:
    queued = bench.submit("true")
    with bench.client.reserve(), bench.client.reserve(timeout=30) as inner:
        with bench.client.reserve(timeout=30):
            assert [each.inside for each in standing(bench)] == [None, -1, -2]
            with bench.store.read() as tx:
                assert present_capacity(bench.client.context, tx).running == 1
        bench.step()
        assert bench.status(queued) is Status.QUEUED
        job = bench.client.submit(Request(argv=("true",))).job_id
        with bench.store.write() as tx:
            outer = tx.reservations.all()[0]
            tx.claims.lend("t", Lending(-2, job, tx.now() + 3600 * SECOND))
            tx.waits.wake_chains([job])
        bench.until_ended(job)
        assert (outer.name, inner.id) == ("direct-1", "direct-2")
        assert bench.status(queued) is Status.QUEUED, "what is lent on is the same one slot"
    bench.until_ended(queued)


def test_once_the_outer_one_is_gone_the_inner_one_counts(bench: Bench) -> None:
    outer = asked(bench)
    with bench.store.write() as tx:
        tx.reservations.grant(outer.token, None)
    inner = asked(bench, 2, inside=outer.occupant)
    with bench.store.write() as tx:
        assert direct_lender(inner, present_capacity(bench.client.context, tx)) == outer.occupant
        tx.reservations.grant(inner.token, outer.occupant)
        assert present_capacity(bench.client.context, tx).running == 1
        tx.reservations.release(outer)
        assert present_capacity(bench.client.context, tx).running == 1


def with_library(bench: Bench) -> None:
    import os

    path = os.pathsep.join(each for each in sys.path if each)
    bench.client.context.environ = {**bench.client.context.environ, "PYTHONPATH": path}
    Path(bench.home.config).write_text("[worker]\nautostart = false\n")


def lose(bench: Bench, held: HeldSlot) -> None:
    """As if it had expired."""
    with bench.store.write() as tx:
        found = tx.reservations.by_token(held.token)
        assert found is not None
        tx.reservations.release(found)


def test_who_has_lost_it_is_told(bench: Bench) -> None:
    bench.client.set_setting("scheduler.reservation_expiry", "1s")
    lost = pytest.raises(ReservationLostError, match="direct-1 was not renewed")
    with lost, bench.client.reserve() as held:
        assert not held.lost
        lose(bench, held)
        wait_for(lambda: held.lost)
    with pytest.raises(RuntimeError), bench.client.reserve() as held:
        lose(bench, held)
        raise RuntimeError("this is the news")


def test_it_is_renewed_for_as_long_as_the_block_takes(bench: Bench) -> None:
    bench.client.set_setting("scheduler.reservation_expiry", "1s")
    with bench.client.reserve():
        first = standing(bench)[0].expires_at
        wait_for(lambda: standing(bench)[0].expires_at >= first + SECOND)
        bench.step()
    assert [kind for kind, _ in events(bench)] == ["reserved", "granted", "released"]


def test_without_a_worker_those_in_line_remove_what_a_dead_caller_left(bench: Bench) -> None:
    bench.client.set_setting("scheduler.reservation_expiry", "1s")
    with bench.store.read() as tx:
        now = tx.now()
    dead = asked(bench, expires_at=now + SECOND // 2)
    with bench.store.write() as tx:
        tx.reservations.grant(dead.token, None)
    with bench.client.reserve(timeout=20) as held:
        assert held.id == "direct-2"
    assert ("expired", "direct-1") in events(bench)


def test_one_of_another_host_is_left_to_that_host_for_a_while(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    elsewhere = asked(bench, host_id="elsewhere")
    with bench.store.write() as tx:
        tx.reservations.grant(elsewhere.token, None)
    job = bench.submit("true")
    for seconds in (4, 4, 4, 4, 4, 4, 4):
        bench.step()
        clock.advance(seconds)
    delay = bench.step()
    assert standing(bench) != [] and bench.status(job) is Status.QUEUED
    assert 0 < delay <= 2
    clock.advance(delay)
    bench.step()
    assert events(bench) == [("expired", "direct-1")]
    assert bench.status(job) is Status.RUNNING


def test_one_that_lost_its_place_in_line_asks_anew(bench: Bench) -> None:
    with bench.client.reserve() as held:
        caller = Caller(bench)
        wait_for(lambda: len(standing(bench)) == 2)
        with bench.store.write() as tx:
            tx.reservations.release(tx.reservations.all()[1])
        wait_for(lambda: "direct-3" in [each.name for each in standing(bench)])
        assert held.id == "direct-1"
    wait_for(caller.has_it.is_set)
    assert caller.id == "direct-3"
    caller.leave()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resources": ("a b",)}, "resource 'a b'"),
        ({"type": ""}, "type ''"),
        ({"target": "-x"}, "target '-x'"),
        ({"note": "x" * 201}, "a note has at most 200"),
        ({"note": "x\0"}, "no NUL"),
    ],
)
def test_wrong_words_are_refused_and_nothing_stands(
    bench: Bench, options: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words), bench.client.reserve(**options):  # type: ignore[arg-type]
        raise AssertionError
    assert standing(bench) == [] and events(bench) == []
