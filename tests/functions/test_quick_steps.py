"""Between whole steps there are quick ones for plain calls: they ask for nothing that nobody can
have changed, and whatever anyone has changed ends them."""

from collections.abc import Callable
from typing import Any

import pytest
from lanes import Elsewhere, Lanes, held

from headway.core.states import Status
from headway.functions.app import Handle
from headway.store.records import Lending
from headway.worker.fastlane.steps import AHEAD, MOST_AHEAD, _Ahead

pytestmark = pytest.mark.bulk  # the fast lane claims and settles in bulk

MakeLanes = Callable[..., Lanes]
Handles = list[Handle[Any]]


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
    assert lanes.quick_steps  # how many calls one of them makes depends on how soon they return
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


@pytest.mark.req("G38")
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
    # A server tells that it was only a call, which a quick step sees by itself.
    assert lanes.step() == lanes.bench.store.shared
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
    from headway.jobs.request import Request

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
        tx.claims.lend("lending", Lending(a.job_id, b.job_id, lanes.bench.clock.now() + 10**9))
    assert lanes.step(), "nobody has a place to fill"
    lanes.bench.step()
    assert not lanes.is_quiet
    assert lanes.running() == [a.job_id, b.job_id], "the one that is waited for has what is lent"
    with elsewhere.store.write() as tx:
        tx.claims.end_lending("lending")


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
        (told,) = tx.jobs.progress([call.job_id]).values()
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
        assert [each.job_id for each in tx.claims.lock_views(["k"])["k"].holders] == [locked.job_id]
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


# -- while a commit is waited for -----------------------------------------------------------------


def test_what_returns_during_a_commit_is_settled_by_the_next_one_at_once(
    make_lanes: MakeLanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server is at work without us; meanwhile calls are handed out, and journals read."""
    lanes = make_lanes(max_active=2)
    a, b, c, d = (lanes.hold.submit(word) for word in "abcd")
    lanes.become_quiet()
    pool, found = lanes.bench.engine.pool, []
    read_ahead, of_b = pool.read_ahead, lanes.claims()[b.job_id]

    def read_the_end_of_b() -> None:
        if not found:
            lanes.touch("go-b")
            lanes.until_written("e", of_b)
            found.append("b")
        read_ahead()

    monkeypatch.setattr(pool, "read_ahead", read_the_end_of_b)
    lanes.let_go("a", a)
    assert lanes.step()
    if not lanes.bench.store.shared:  # a file is written by ourselves
        assert found == [] and lanes.settled(a, b) == ["succeeded", None]
        return
    assert lanes.settled(a, b) == ["succeeded", "succeeded"]
    assert lanes.running() == [c.job_id, d.job_id] == lanes.bench.engine.started
    lanes.until_written("s", lanes.claims()[c.job_id])  # the host has them both
    lanes.let_go("c", c)
    lanes.until_written("s", lanes.claims()[d.job_id])


def test_trouble_during_a_commit_is_told_after_it(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = held(lanes, "a", "b")
    pool = lanes.bench.engine.pool

    def fail() -> None:
        raise OSError("the journal cannot be read")

    monkeypatch.setattr(pool, "read_ahead", fail)
    lanes.let_go("a", a)
    if lanes.bench.store.shared:
        with pytest.raises(OSError, match="journal"):
            lanes.step()
    else:
        assert lanes.step()
    monkeypatch.undo()
    assert lanes.settled(a, b) == ["succeeded", None]
    lanes.until_written("s", lanes.claims()[b.job_id])
    lanes.let_go("b", b)
    lanes.ended(b)


def test_a_call_that_comes_when_nothing_is_left_needs_no_whole_step_on_a_server(
    lanes: Lanes, elsewhere: Elsewhere
) -> None:
    (a,) = held(lanes, "a")
    lanes.let_go("a", a)
    lanes.step()
    lanes.become_quiet()
    for word in "bc":
        call = elsewhere.submitting(lanes, lambda: lanes.hold.submit(word))  # noqa: B023
        assert lanes.step() == lanes.bench.store.shared
        assert lanes.running() == [call.job_id]
        lanes.let_go(word, call)
        assert lanes.step()
        assert lanes.running() == [] and lanes.settled(call) == ["succeeded"]


def test_where_others_add_calls_no_more_is_read_than_is_needed_at_once(
    lanes: Lanes, elsewhere: Elsewhere
) -> None:
    a, b, c = held(lanes, *"abc")
    limits = []
    for word, handle in (("a", a), ("b", b)):
        elsewhere.submitting(lanes, lambda: lanes.hold.submit("later"))
        lanes.let_go(word, handle)
        assert lanes.step() == lanes.bench.store.shared
        limits.append(lanes.asked.count("plain_calls"))
    assert lanes.running() == [c.job_id]
    if lanes.bench.store.shared:
        ahead = lanes.bench.engine.tools.shortcut.steps._ahead
        assert limits == [1, 1] and not ahead.suffices(1) and len(ahead.calls) <= 1


def test_of_calls_that_hosts_hold_few_of_few_are_read_ahead(lanes: Lanes) -> None:
    """They are slow, or large, and would have to be read again and again."""
    a, b, *_ = held(lanes, *"abcdefghijklmnopqrst")
    (host,) = lanes.hosts
    host.window = 1
    lanes.let_go("a", a)
    assert lanes.step() and lanes.running() == [b.job_id]
    assert host.window <= 2
    assert len(lanes.bench.engine.tools.shortcut.steps._ahead.calls) < 2 * AHEAD


def test_so_many_are_read_ahead_and_no_more(lanes: Lanes) -> None:
    lanes.module.app.submit_many(lanes.work.call(str(number)) for number in range(450))
    ahead, read = _Ahead(), []
    with lanes.bench.store.write() as tx:
        for _ in range(2):
            assert len(ahead.first(tx, 10, 200)) == 10
            read.append(len(ahead.calls))
            ahead.drop(len(ahead.calls))
        assert read == [MOST_AHEAD, MOST_AHEAD]
        assert len(_Ahead().first(tx, 10, 3)) == 10, "as many as are needed, however few fit"
        few = _Ahead(busy=3)
        for _ in range(3):
            assert few.first(tx, 10, 200) == few.calls, "no further, where others add calls"
            few.drop(10)
        few.first(tx, 10, 200)
        assert len(few.calls) == MOST_AHEAD, "and then as ever"
