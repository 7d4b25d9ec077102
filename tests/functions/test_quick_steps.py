"""Between whole steps there are quick ones for plain calls: they ask for nothing that nobody can
have changed, and whatever anyone has changed ends them."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lanes import Elsewhere, Lanes

from harness import Bench, wait_for
from headway.app import Handle
from headway.core.states import Status
from headway.engine import functionhost, hosting
from headway.engine.lane import LONGEST_QUIET
from headway.store.base import Lending
from headway.store.calling import CallWriteTx
from headway.store.transaction import Telling
from headway.testing import FakeClock

MakeLanes = Callable[..., Lanes]
Handles = list[Handle[Any]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The named queries of write transactions, in order."""
    names: list[str] = []
    for part, verb in (
        *((Telling, verb) for verb in ("_all", "_ask", "_many", "_tell")),
        (CallWriteTx, "_tell_given"),
    ):
        ask = getattr(part, verb)

        def counted(self: Any, query: Any, /, *rows: Any, ask: Any = ask, **said: Any) -> Any:
            names.extend([query] if isinstance(query, str) else query)
            return ask(self, query, *rows, **said)

        monkeypatch.setattr(part, verb, counted)
    return names


@pytest.fixture
def make_lanes(
    make_bench: Callable[..., Bench], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> MakeLanes:
    """Time stands still, so that it ends no quiet."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(hosting, "STUCK", 3600.0)
    monkeypatch.setattr(functionhost, "AIM", 1e9)  # calls may wait inside however long others take

    def make(*, max_active: int = 1, processes: int = 1, threads: int = 1) -> Lanes:
        settings = {
            "app.modules": ("shop_tasks",),
            "app.threads": threads,
            "app.processes": processes,
        }
        bench = make_bench(settings=settings, max_active=max_active, clock=FakeClock())
        return Lanes(bench, asked)

    return make


@pytest.fixture
def lanes(make_lanes: MakeLanes) -> Lanes:
    return make_lanes()


@pytest.fixture
def elsewhere(lanes: Lanes) -> Iterator[Elsewhere]:
    other = Elsewhere(lanes.bench)
    yield other
    other.store.close()


def held(lanes: Lanes, *words: str) -> Handles:
    """Calls of which the first runs, seen by a whole step that saw nothing else."""
    handles = [lanes.hold.submit(word) for word in words]
    lanes.become_quiet()
    assert lanes.running() == [handles[0].job_id]
    return handles


# -- nothing else ---------------------------------------------------------------------------------


@pytest.mark.parametrize("max_active", [1, 3])
def test_calls_are_settled_and_claimed_without_asking_how_things_stand(
    make_lanes: MakeLanes, max_active: int
) -> None:
    lanes = make_lanes(max_active=max_active)
    handles = [lanes.work.submit(str(number)) for number in range(20)]
    lanes.become_quiet()
    last = handles[-1].job_id
    lanes.until_quickly(lambda: lanes.bench.status(last) is not Status.QUEUED)
    assert lanes.quick_steps >= 3
    lanes.ended(*handles)
    assert lanes.settled(*handles) == ["succeeded"] * 20
    assert lanes.ledger() == [str(number) for number in range(20)], "in their order"
    assert [handle.result() for handle in handles] == [str(number) for number in range(20)]


def test_a_quick_step_costs_a_handful_of_statements_however_many_calls(
    make_lanes: MakeLanes,
) -> None:
    lanes = make_lanes(max_active=10)
    handles = [lanes.hold.submit(str(number)) for number in range(30)]
    lanes.become_quiet()
    for handle in handles[:10]:
        lanes.let_go(str(handles.index(handle)), handle)
    assert lanes.step()
    assert lanes.asked[0] == "plain_calls" and len(lanes.asked) <= 9
    written = lanes.asked[1:]
    assert lanes.running() == [each.job_id for each in handles[10:20]]
    for handle in handles[10:15]:
        lanes.let_go(str(handles.index(handle)), handle)
    assert lanes.step()
    assert lanes.asked == written, "the queue was read in advance"
    assert lanes.running() == [each.job_id for each in handles[15:25]]


def test_a_step_in_which_nothing_can_happen_opens_no_transaction(lanes: Lanes) -> None:
    held(lanes, "a", "b")
    writes = lanes.bench.store.writes  # type: ignore[attr-defined]
    for _ in range(3):
        assert lanes.step() and not lanes.asked
    assert lanes.bench.store.writes == writes  # type: ignore[attr-defined]


def test_who_waits_for_a_call_hears_of_its_end_and_goes_first(lanes: Lanes) -> None:
    a, b = held(lanes, "a", "b")
    c = lanes.hold.submit("c", priority=5, after=[a])
    lanes.become_quiet()
    lanes.let_go("a", a)
    assert lanes.step(), "to settle one needs no whole step"
    assert lanes.running() == [] and lanes.delay == 0, "the next follows at once"
    assert not lanes.step()
    assert lanes.running() == [c.job_id], "the one that waited stands before the other"
    assert lanes.settled(a, b, c) == ["succeeded", None, None]


# -- what others do -------------------------------------------------------------------------------


def test_after_a_pause_nothing_starts(lanes: Lanes, elsewhere: Elsewhere) -> None:
    a, b = held(lanes, "a", "b")
    elsewhere.client.pause("hands off")
    lanes.let_go("a", a)
    assert not lanes.step()
    assert lanes.running() == [] and lanes.settled(a, b) == ["succeeded", None]
    elsewhere.client.resume()
    lanes.step()
    assert lanes.running() == [b.job_id]


def test_a_call_that_was_cancelled_while_it_waited_never_starts(
    lanes: Lanes, elsewhere: Elsewhere
) -> None:
    a, b, c = held(lanes, "a", "b", "c")
    elsewhere.client.cancel([b.job_id])
    lanes.let_go("a", a)
    assert not lanes.step()
    assert lanes.running() == [c.job_id]
    assert lanes.settled(a, b, c) == ["succeeded", "cancelled", None]


def test_what_was_read_in_advance_is_read_anew_once_others_wrote(
    lanes: Lanes, elsewhere: Elsewhere
) -> None:
    a, b, c, d, e = held(lanes, *"abcde")
    lanes.let_go("a", a)
    assert lanes.step() and lanes.running() == [b.job_id]
    elsewhere.client.cancel([c.job_id])
    lanes.let_go("b", b)
    assert not lanes.step()
    assert lanes.running() == [d.job_id] and lanes.is_quiet
    lanes.let_go("d", d)
    assert lanes.step() and lanes.running() == [e.job_id]
    assert lanes.settled(a, b, c, d, e) == [
        *("succeeded", "succeeded", "cancelled"),
        "succeeded",
        None,
    ]


def test_what_is_more_urgent_goes_first_whoever_submits_it(
    lanes: Lanes, elsewhere: Elsewhere
) -> None:
    a, b = held(lanes, "a", "b")
    urgent = elsewhere.submitting(lanes, lambda: lanes.hold.submit("c", priority=5))
    lanes.let_go("a", a)
    assert not lanes.step()
    assert lanes.running() == [urgent.job_id]
    lanes.become_quiet()
    more = lanes.hold.submit("d", priority=9)  # by the worker's own process
    lanes.let_go("c", urgent)
    assert not lanes.step()
    assert lanes.running() == [more.job_id]
    assert lanes.settled(a, b, urgent, more) == ["succeeded", None, "succeeded", None]


def test_a_command_that_is_submitted_meanwhile_has_its_turn(
    lanes: Lanes, elsewhere: Elsewhere
) -> None:
    from headway.submission import Request

    a, b = held(lanes, "a", "b")
    command = elsewhere.client.submit(Request(argv=("sleep", "60"), priority=1)).job_id
    lanes.let_go("a", a)
    assert not lanes.step()
    assert lanes.running() == [command]
    elsewhere.client.cancel([command, b.job_id])


def test_a_lower_cap_holds_from_then_on(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(max_active=3)
    handles = [lanes.hold.submit(str(number)) for number in range(6)]
    lanes.become_quiet()
    assert len(lanes.running()) == 3
    other = Elsewhere(lanes.bench)
    other.client.set_setting("scheduler.max_active", 2)
    for number in range(2):
        lanes.let_go(str(number), handles[number])
    assert not lanes.step()
    assert lanes.running() == [each.job_id for each in handles[2:4]]
    lanes.become_quiet()
    other.client.set_setting("scheduler.max_active", 4)
    lanes.bench.step()  # as who is told of it does; who is not looks before long
    assert lanes.running() == [each.job_id for each in handles[2:6]]
    other.store.close()


def test_who_lends_its_slot_ends_the_quiet(lanes: Lanes, elsewhere: Elsewhere) -> None:
    a, b = held(lanes, "a", "b")
    with elsewhere.store.write() as tx:
        tx.lend("lending", Lending(a.job_id, b.job_id, lanes.bench.clock.now() + 10**9))
    assert lanes.step(), "nobody has a place to fill"
    lanes.bench.step()
    assert not lanes.is_quiet
    assert lanes.running() == [a.job_id, b.job_id], "the one that is waited for has what is lent"
    with elsewhere.store.write() as tx:
        tx.end_lending("lending")


# -- what is not plain ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("fails", "failed", "ValueError: a"),
        ("skips", "skipped", "a"),
        ("asks_again", "failed", "a"),
        ("prints", "succeeded", None),
    ],
)
def test_an_end_that_is_more_than_a_return_is_settled_by_a_whole_step(
    lanes: Lanes, name: str, status: str, reason: str | None
) -> None:
    first = getattr(lanes, name).submit("a")
    second = lanes.hold.submit("b")
    lanes.become_quiet()
    lanes.let_go("a", first)
    assert not lanes.step()
    assert lanes.settled(first, second) == [status, None]
    assert lanes.bench.job(first.job_id).reason == reason
    assert lanes.running() == [second.job_id]


def test_progress_that_was_told_is_kept_at_once(lanes: Lanes) -> None:
    call = lanes.tells.submit("a")
    lanes.become_quiet()
    lanes.let_go("a", call, "p")
    assert not lanes.step()
    with lanes.bench.store.read() as tx:
        (told,) = tx.progress([call.job_id]).values()
    assert told.fraction == 0.5


def test_a_call_that_needs_more_is_left_to_a_whole_step(lanes: Lanes) -> None:
    (a,) = held(lanes, "a")
    locked = lanes.hold.submit("b", locks=["k"])
    c = lanes.hold.submit("c")
    lanes.become_quiet()
    lanes.let_go("a", a)
    assert lanes.step(), "it settles what has ended"
    assert lanes.settled(a) == ["succeeded"] and lanes.running() == [] and lanes.delay == 0
    assert not lanes.step()
    assert lanes.running() == [locked.job_id]
    with lanes.bench.store.read() as tx:
        assert [each.job_id for each in tx.lock_views(["k"])["k"].holders] == [locked.job_id]
    assert lanes.settled(c) == [None]


def test_a_call_of_a_function_that_nobody_knows_keeps_no_other_waiting(lanes: Lanes) -> None:
    exec("@app.task\ndef ghost(): pass\n", vars(lanes.module))
    a, unknown, c = lanes.hold.submit("a"), lanes.ghost.submit(), lanes.hold.submit("c")
    lanes.become_quiet()
    lanes.let_go("a", a)
    assert lanes.step() and lanes.running() == [] and lanes.delay == 0
    assert not lanes.step()
    assert lanes.running() == [c.job_id]
    wait = lanes.bench.job(unknown.job_id).wait
    assert wait is not None and "ghost" in wait.detail


# -- time and death -------------------------------------------------------------------------------


def test_once_its_time_is_up_all_is_looked_at_again(lanes: Lanes) -> None:
    held(lanes, "a", "b")
    clock = lanes.bench.clock
    assert isinstance(clock, FakeClock)
    clock.advance(LONGEST_QUIET * 0.9)
    assert lanes.step()
    clock.advance(LONGEST_QUIET * 0.1)
    assert not lanes.step()
    assert lanes.is_quiet and lanes.step()


def test_a_job_whose_time_comes_meanwhile_goes_first(lanes: Lanes) -> None:
    clock = lanes.bench.clock
    assert isinstance(clock, FakeClock)
    a, b = held(lanes, "a", "b")
    later = lanes.hold.submit("later", delay="100ms", priority=5)
    lanes.become_quiet()
    assert lanes.running() == [a.job_id]
    lanes.let_go("a", a)
    clock.advance(0.1)
    assert not lanes.step()
    assert lanes.running() == [later.job_id] and lanes.settled(b) == [None]


def claimed_quickly(lanes: Lanes, call: Handle[Any], first: Handle[Any]) -> None:
    """The call is claimed by a quick step, and begins."""
    lanes.become_quiet()
    lanes.let_go("first", first)
    assert lanes.step() and lanes.running() == [call.job_id]
    lanes.until_written("s", lanes.claims()[call.job_id])


@pytest.mark.parametrize("graceful", [True, False])
def test_a_call_of_a_quick_step_is_cancelled_while_it_runs(
    lanes: Lanes, elsewhere: Elsewhere, graceful: bool
) -> None:
    first = lanes.hold.submit("first")
    call = lanes.hold.submit("call", grace="10ms")
    claimed_quickly(lanes, call, first)
    elsewhere.client.cancel([call.job_id])
    assert lanes.step(), "nothing waits, so that nobody has looked"
    if graceful:  # it returns before anyone asks it to end
        lanes.let_go("call", call)
    (job,) = lanes.ended(call)
    ended = (Status.SUCCEEDED, None) if graceful else (Status.CANCELLED, "cancelled by other")
    assert (job.status, job.reason) == ended
    assert len(lanes.settled(call)) == 1


def test_a_host_that_dies_takes_its_quickly_claimed_calls_along(lanes: Lanes) -> None:
    first, call = (lanes.hold.submit(word) for word in ("first", "call"))
    claimed_quickly(lanes, call, first)
    lanes.kill_host()
    assert not lanes.step()
    assert lanes.settled(call) == ["failed"]
    assert lanes.bench.job(call.job_id).reason == "its host died: killed by SIGKILL"


def test_a_call_of_a_quick_step_that_a_dead_host_never_began_is_made_by_the_next(
    make_lanes: MakeLanes,
) -> None:
    lanes = make_lanes(max_active=2)
    first, begun, waiting = (lanes.hold.submit(word) for word in ("first", "begun", "waiting"))
    lanes.become_quiet()
    lanes.let_go("first", first)
    assert lanes.step() and lanes.running() == [begun.job_id, waiting.job_id]
    lanes.until_written("s", lanes.claims()[begun.job_id])
    lanes.kill_host()
    assert not lanes.step()
    assert "unclaimed" in lanes.bench.kinds(waiting.job_id)
    assert lanes.settled(begun) == ["failed"]
    lanes.touch("go-waiting")
    (job,) = lanes.ended(waiting)
    assert job.status is Status.SUCCEEDED and lanes.ledger().count("waiting") == 1


def test_what_a_quick_step_claimed_is_taken_up_by_the_next_worker(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(max_active=2)
    first, begun, waiting = (lanes.hold.submit(word) for word in ("first", "begun", "waiting"))
    lanes.become_quiet()
    lanes.let_go("first", first)
    assert lanes.step() and lanes.running() == [begun.job_id, waiting.job_id]
    lanes.until_written("s", lanes.claims()[begun.job_id])
    lanes.bench.crash()
    lanes.bench.engine.recover()
    assert "unclaimed" in lanes.bench.kinds(waiting.job_id)
    lanes.touch("go-begun")
    lanes.touch("go-waiting")
    jobs = lanes.ended(begun, waiting)
    assert {job.status for job in jobs} == {Status.SUCCEEDED}
    assert lanes.settled(begun) == ["succeeded"]
    assert sorted(lanes.ledger()) == ["begun", "first", "waiting"], "each once"


def test_a_call_of_a_quick_step_ends_at_its_deadline(lanes: Lanes) -> None:
    first, call = lanes.hold.submit("first"), lanes.too_long.submit("call")
    lanes.become_quiet()
    lanes.let_go("first", first)
    assert lanes.step() and lanes.running() == [call.job_id]
    (job,) = lanes.ended(call)
    assert (job.status, job.reason) == (Status.FAILED, "timed out after 0.2 s")
    assert lanes.settled(call) == ["failed"]


# -- never too many -------------------------------------------------------------------------------


def test_no_more_run_than_may_and_each_in_a_slot_of_its_own(
    make_lanes: MakeLanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = make_lanes(max_active=5, processes=2, threads=2)
    chance = random.Random(7)
    handles = [lanes.nap.submit(chance.choice([0, 0.001, 0.004])) for _ in range(120)]
    lanes.become_quiet()
    assert len(lanes.hosts) == 2
    database: Any = lanes.bench.store.database  # type: ignore[attr-defined]
    used: list[list[int]] = []
    commit = database.commit

    def committed() -> None:
        rows = database.execute("select slot from claims where state = 'live'", {})
        used.append(sorted(row[0] for row in rows))
        commit()

    monkeypatch.setattr(database, "commit", committed)

    def ended() -> bool:
        lanes.hear()
        lanes.step()
        return lanes.settled(*handles[-5:]) == ["succeeded"] * 5

    wait_for(ended, what="all to end")
    lanes.ended(*handles)
    assert lanes.settled(*handles) == ["succeeded"] * 120
    assert max(map(len, used)) == 5 and all(len(set(each)) == len(each) for each in used)
    assert {slot for each in used for slot in each} == {1, 2, 3, 4, 5}
    assert lanes.quick_steps > 5


# -- undone ---------------------------------------------------------------------------------------

REFUSE = {
    "sqlite": [
        "create trigger refuse before insert on events when new.kind = 'running' "
        "begin select raise(abort, 'no room'); end"
    ],
    "postgres": [
        "create function refuse() returns trigger as "
        "$$ begin raise exception 'no room'; end $$ language plpgsql",
        "create trigger refuse before insert on events for each row when (new.kind = 'running') "
        "execute function refuse()",
    ],
}
ALLOW = {
    "sqlite": ["drop trigger refuse"],
    "postgres": ["drop trigger refuse on events", "drop function refuse"],
}


def test_a_quick_step_that_comes_to_nothing_is_made_up_for_once(lanes: Lanes) -> None:
    """fault: the store refuses in the middle, when ends are written and claims are not."""
    a, b = held(lanes, "a", "b")
    database: Any = lanes.bench.store.database  # type: ignore[attr-defined]
    for statement in REFUSE[database.dialect.name]:
        database.execute(statement, {})
    lanes.let_go("a", a)
    for _ in range(2):  # a quick step, and then a whole one
        with pytest.raises(Exception, match="no room"):
            lanes.step()
        assert lanes.running() == [a.job_id] and lanes.settled(a, b) == [None, None]
        assert "b" not in lanes.ledger(), "what was not committed is not sent"
        assert sum(host.held for host in lanes.hosts) == 0, "no place is held for it"
    for statement in ALLOW[database.dialect.name]:
        database.execute(statement, {})
    assert not lanes.step()
    assert lanes.running() == [b.job_id] and lanes.settled(a, b) == ["succeeded", None]
    lanes.let_go("b", b)
    lanes.ended(b)
    assert lanes.settled(a, b) == ["succeeded", "succeeded"]
    assert lanes.ledger() == ["a", "b"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_whose_parameters_are_damaged_fails_alone(
    make_lanes: MakeLanes, threads: int
) -> None:
    """fault: a row was changed by other means; only who reads all of it can know."""
    lanes = make_lanes(max_active=3, threads=threads)
    a, damaged, c = (lanes.work.submit(word) for word in "abc")
    database: Any = lanes.bench.store.database  # type: ignore[attr-defined]
    with lanes.bench.store.write():
        params = '{"args":{"word":b},"task":"shop_tasks.work"}'
        database.execute(f"update jobs set params = '{params}' where id = {damaged.job_id}", {})
    statuses = f"select status from jobs where id <= {c.job_id} order by id"
    wanted = [("succeeded",), ("failed",), ("succeeded",)]
    lanes.bench.until(lambda: database.execute(statuses, {}) == wanted, "all to end")
    assert lanes.settled(a, c) == ["succeeded"] * 2
    with lanes.bench.store.read() as tx:
        kinds = [event.kind for event in tx.events_of(damaged.job_id)]
    assert kinds.count("unclaimed") <= 1 and kinds[-1] == "failed"
    assert sorted(lanes.ledger()) == ["a", "c"]
