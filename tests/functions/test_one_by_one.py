"""Where there is room for one call, the end of one and the start of the next are one commit, and
the worker stays with them until anything else happens. Only a store in a file has this way."""

import socket
from typing import Any

import pytest
from lanes import Elsewhere, Lanes, held

from harness import wait_for
from headway.app import Handle
from headway.core.states import Status
from headway.engine.functionhost import LARGEST_WINDOW, FunctionHost, MoreToTellError
from headway.engine.onebyone import OneByOne


@pytest.fixture
def store_url() -> None:
    """A file."""


def become_quick(lanes: Lanes) -> None:
    lanes.become_quiet()
    for host in lanes.hosts:
        host.window = LARGEST_WINDOW


def one_runs(lanes: Lanes, *words: str, task: str = "hold") -> list[Handle[Any]]:
    """Calls of which the second runs, and the others are known to come after it."""
    (first,) = held(lanes, words[0])
    handles = [first, *(getattr(lanes, task).submit(word) for word in words[1:])]
    become_quick(lanes)
    lanes.let_go(words[0], first)
    assert lanes.step() and lanes.running() == [handles[1].job_id] and lanes.is_quiet
    return handles


def test_the_next_one_follows_the_last_without_anything_being_asked(lanes: Lanes) -> None:
    a, b, c, d = one_runs(lanes, *"abcd")
    lanes.returns("b", b)
    writes = lanes.bench.store.writes
    assert lanes.step() and not lanes.asked
    assert lanes.running() == [c.job_id] and lanes.bench.store.writes == writes + 1
    assert lanes.is_quiet and lanes.delay == 0, "there may be more to do by now"
    assert lanes.step() and lanes.delay > 0, "there was not"
    lanes.returns("c", c)
    assert lanes.step() and not lanes.asked
    assert lanes.running() == [d.job_id]
    assert lanes.bench.engine.started == [d.job_id]
    lanes.let_go("d", d)
    assert lanes.step()
    assert lanes.settled(a, b, c, d) == ["succeeded"] * 4
    assert lanes.ledger() == [*"abcd"], "each was made once"


def test_what_was_passed_on_is_as_what_was_settled(lanes: Lanes) -> None:
    """The one that returned has its result, its run and its events, and so has the next one."""
    _, b, c = one_runs(lanes, *"abc", task="answers")
    lanes.returns("b", b)
    assert lanes.step() and not lanes.asked
    lanes.let_go("c", c)
    assert lanes.step()
    assert (b.result(), c.result()) == ("b", "c")
    kinds = ["submitted", "running", "succeeded"]
    assert lanes.bench.kinds(b.job_id) == lanes.bench.kinds(c.job_id) == kinds
    with lanes.bench.store.read() as tx:
        runs = tx.runs([b.job_id, c.job_id])
    assert {(run.status, run.exit_code) for run in runs.values()} == {("COMPLETED", 0)}


def test_as_many_follow_each_other_as_return_at_once(lanes: Lanes) -> None:
    handles = one_runs(lanes, *(str(number) for number in range(12)))
    for word in range(2, 12):
        lanes.touch(f"go-{word}")
    lanes.returns("1", handles[1])
    last = handles[-1].job_id
    lanes.until_quickly(lambda: lanes.bench.status(last) is not Status.QUEUED)
    lanes.ended(*handles)
    assert lanes.settled(*handles) == ["succeeded"] * 12
    assert lanes.ledger() == [str(number) for number in range(12)]


def test_an_order_that_is_too_large_for_the_line_is_sent_in_pieces(lanes: Lanes) -> None:
    (a,) = held(lanes, "a")
    b, large = lanes.hold.submit("b"), lanes.work.submit("x" * 900_000)
    become_quick(lanes)
    lanes.let_go("a", a)
    assert lanes.step() and lanes.running() == [b.job_id]
    lanes.returns("b", b)
    assert lanes.step() and lanes.running() == [large.job_id]
    lanes.ended(large)
    assert len(large.result()) == 900_000


# -- what ends it -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "end"),
    [("fails", "failed"), ("skips", "skipped"), ("asks_again", "failed"), ("prints", "succeeded")],
)
def test_an_end_that_is_more_than_a_return_is_settled_by_a_whole_step(
    lanes: Lanes, task: str, end: str
) -> None:
    _, b, c = one_runs(lanes, *"abc", task=task)
    lanes.returns("b", b)
    assert lanes.step() and lanes.running() == [b.job_id] and lanes.delay == 0
    assert not lanes.step()
    assert lanes.running() == [c.job_id] and lanes.settled(b, c) == [end, None]


def test_progress_is_told(lanes: Lanes) -> None:
    _, b, _ = one_runs(lanes, *"abc", task="tells")
    lanes.returns("b", b, kind="p")
    assert lanes.step() and lanes.delay == 0
    assert not lanes.step()
    assert lanes.running() == [b.job_id]
    with lanes.bench.store.read() as tx:
        assert tx.progress([b.job_id])[b.job_id].text == "half"


def test_what_others_write_before_it_ends_it(lanes: Lanes, elsewhere: Elsewhere) -> None:
    _, b, c = one_runs(lanes, *"abc")
    elsewhere.client.pause("hands off")
    lanes.returns("b", b)
    assert lanes.step() and lanes.running() == [b.job_id] and lanes.delay == 0
    assert not lanes.step()
    assert lanes.running() == [] and lanes.settled(b, c) == ["succeeded", None]


@pytest.mark.parametrize("whole", [True, False], ids=["committed", "under way"])
def test_what_others_write_while_the_end_is_waited_for_ends_it(
    lanes: Lanes, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    _, b, c = one_runs(lanes, *"abc")
    end_of, run = OneByOne._end_of, OneByOne.run
    theirs = elsewhere.store.write()

    def others_write(self: Any, *arguments: Any) -> Any:
        tx = theirs.__enter__()
        tx.set_setting("scheduler.batch_size", 7, by="other")
        if whole:
            theirs.__exit__(None, None, None)
        return end_of(self, *arguments)

    def until_they_are_done(self: Any, *arguments: Any) -> None:
        run(self, *arguments)
        if not whole:
            theirs.__exit__(None, None, None)

    monkeypatch.setattr(OneByOne, "_end_of", others_write)
    monkeypatch.setattr(OneByOne, "run", until_they_are_done)
    lanes.returns("b", b)
    assert lanes.step() and lanes.running() == [b.job_id] and lanes.delay == 0
    monkeypatch.undo()
    assert not lanes.step()
    assert lanes.running() == [c.job_id] and lanes.settled(b, c) == ["succeeded", None]


def test_a_host_that_dies_meanwhile_is_noticed(lanes: Lanes) -> None:
    _, b, c = one_runs(lanes, *"abc")
    wait_for(lambda: lanes.ledger() == [*"ab"], what="it to have begun")
    lanes.kill_host()
    assert not lanes.step()
    assert lanes.running() == [] and lanes.settled(b, c) == ["failed", None]


def test_who_waits_for_an_end_is_told(lanes: Lanes) -> None:
    _, b, c = one_runs(lanes, *"abc")
    dependent = lanes.hold.submit("d", priority=5, after=[b])
    become_quick(lanes)
    lanes.returns("b", b)
    lanes.bench.until(lambda: lanes.running() == [dependent.job_id], "who goes first")
    assert lanes.settled(b, c, dependent) == ["succeeded", None, None]


def test_a_store_that_fails_leaves_the_end_to_the_next_step(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headway.errors import StoreFullError

    _, b, c = one_runs(lanes, *"abc")
    database: Any = lanes.bench.store.database  # type: ignore[attr-defined]

    def full() -> None:
        raise StoreFullError("no space")

    monkeypatch.setattr(database, "commit", full)
    lanes.returns("b", b)
    with pytest.raises(StoreFullError, match="no space"):
        lanes.step()
    monkeypatch.undo()
    assert lanes.running() == [b.job_id]
    assert not lanes.step()
    assert lanes.running() == [c.job_id] and lanes.settled(b, c) == ["succeeded", None]
    wait_for(lambda: lanes.ledger() == [*"abc"], what="each to be made once")


# -- what a host says ---------------------------------------------------------------------------


@pytest.fixture
def host() -> Any:
    worker, other = socket.socketpair()
    made = FunctionHost("/nowhere", "token", 0.0)
    made.connection = worker
    with worker, other:
        yield made, other


def test_hints_are_only_hints(host: tuple[FunctionHost, socket.socket]) -> None:
    made, other = host
    assert not made.hinted(), "nothing was said"
    other.send(b"\n\n")
    assert made.hinted() and not made.hinted() and made.hear() == []


def test_what_else_was_said_is_still_heard(host: tuple[FunctionHost, socket.socket]) -> None:
    made, other = host
    other.send(b'\n{"lent"')
    with pytest.raises(MoreToTellError):
        made.hinted()
    assert made.hear() == [], "not all of it was said"
    other.send(b": 1}\n\n")
    with pytest.raises(MoreToTellError):
        made.hinted()
    assert made.hear() == [{"lent": 1}]
    assert not made.hinted()
    other.send(b'{"lent": 0}\n')
    with pytest.raises(MoreToTellError):
        made.hinted()
    other.close()
    assert made.hear() == [{"lent": 0}, {"gone": True}], "also its last words"
    with pytest.raises(MoreToTellError):
        made.hinted()
    assert made.hear() == [{"gone": True}]
    made.connection = None
    with pytest.raises(MoreToTellError):
        made.hinted()
