"""What may befall calls of quick steps, and quick steps themselves: nothing is lost or made twice,
and never do more run than may."""

import errno
import random
from collections.abc import Callable
from typing import Any

import pytest
from lanes import Elsewhere, Lanes, held

from harness import wait_for
from headway.core.states import Status
from headway.functions.app import Handle
from headway.testing.clock import FakeClock
from headway.worker.fastlane.steps import LONGEST_QUIET

pytestmark = pytest.mark.bulk  # the fast lane claims and settles in bulk

MakeLanes = Callable[..., Lanes]
Handles = list[Handle[Any]]


# -- time and death -------------------------------------------------------------------------------


def test_once_its_time_is_up_all_is_looked_at_again(lanes: Lanes) -> None:
    held(lanes, "a", "b")
    clock = lanes.bench.clock
    assert isinstance(clock, FakeClock)
    clock.advance(0.1)
    assert lanes.step()
    clock.advance(LONGEST_QUIET)
    assert not lanes.step()
    assert lanes.is_quiet and lanes.step()


@pytest.mark.parametrize("quick", [True, False])
def test_what_a_journal_said_is_kept_when_the_rest_cannot_be_read(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch, quick: bool
) -> None:
    """A host's journal is read, and then there is no descriptor left for the next one's."""
    a, b = held(lanes, "a", "b")
    if not quick:
        lanes.bench.engine.tools.shortcut.steps.stop()
    lanes.let_go("a", a)

    def refuse(*_: Any) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(lanes.bench.engine.pool, "_take_back_from_the_deaf", refuse)
        with pytest.raises(OSError, match="too many"):
            lanes.step()
    lanes.step()
    assert lanes.settled(a) == ["succeeded"] and lanes.running() == [b.job_id]


def test_orders_for_a_host_that_has_ended_go_nowhere(lanes: Lanes) -> None:
    (a,) = held(lanes, "a")
    lanes.bench.engine.pool.order({"ended": ["r for nobody\n"]})
    lanes.let_go("a", a)
    lanes.step()
    assert lanes.settled(a) == ["succeeded"]


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
        kinds = [event.kind for event in tx.events.of_job(damaged.job_id)]
    assert kinds.count("unclaimed") <= 1 and kinds[-1] == "failed"
    assert sorted(lanes.ledger()) == ["a", "c"]
