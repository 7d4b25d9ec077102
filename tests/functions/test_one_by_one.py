"""Where there is room for one call, the end of one and the start of the next are one commit."""

from typing import Any

import pytest
from lanes import Lanes, held

from harness import wait_for
from headway.core.states import Status
from headway.functions.app import Handle
from headway.functions.pool.host import LARGEST_WINDOW

pytestmark = pytest.mark.bulk  # the fast lane claims and settles in bulk


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


def test_the_end_of_one_and_the_start_of_the_next_are_one_commit(lanes: Lanes) -> None:
    a, b, c, d = one_runs(lanes, *"abcd")
    lanes.let_go("b", b)
    writes = lanes.bench.store.writes
    assert lanes.step()
    assert lanes.running() == [c.job_id] and lanes.bench.store.writes == writes + 1
    assert lanes.is_quiet
    lanes.let_go("c", c)
    assert lanes.step()
    assert lanes.running() == [d.job_id]
    assert lanes.bench.engine.started == [d.job_id]
    lanes.let_go("d", d)
    assert lanes.step()
    assert lanes.settled(a, b, c, d) == ["succeeded"] * 4
    assert lanes.ledger() == [*"abcd"], "each was made once"


def test_each_has_its_result_its_run_and_its_events(lanes: Lanes) -> None:
    _, b, c = one_runs(lanes, *"abc", task="answers")
    lanes.let_go("b", b)
    assert lanes.step()
    lanes.let_go("c", c)
    assert lanes.step()
    assert (b.result(), c.result()) == ("b", "c")
    kinds = ["submitted", "running", "succeeded"]
    assert lanes.bench.kinds(b.job_id) == lanes.bench.kinds(c.job_id) == kinds
    with lanes.bench.store.read() as tx:
        runs = tx.jobs.runs([b.job_id, c.job_id])
    assert {(run.status, run.exit_code) for run in runs.values()} == {("COMPLETED", 0)}


def test_as_many_follow_each_other_as_return_at_once(lanes: Lanes) -> None:
    handles = one_runs(lanes, *(str(number) for number in range(12)))
    for word in range(2, 12):
        lanes.touch(f"go-{word}")
    lanes.let_go("1", handles[1])
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
    lanes.let_go("b", b)
    assert lanes.step() and lanes.running() == [large.job_id]
    lanes.ended(large)
    assert len(large.result()) == 900_000


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
    lanes.let_go("b", b)
    lanes.bench.until(lambda: lanes.running() == [dependent.job_id], "who goes first")
    assert lanes.settled(b, c, dependent) == ["succeeded", None, None]


def test_a_store_that_fails_leaves_the_end_to_the_next_step(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headway.base.errors import StoreFullError

    _, b, c = one_runs(lanes, *"abc")
    database: Any = lanes.bench.store.database  # type: ignore[attr-defined]

    def full() -> None:
        raise StoreFullError("no space")

    monkeypatch.setattr(database, "commit", full)
    lanes.let_go("b", b)
    with pytest.raises(StoreFullError, match="no space"):
        lanes.step()
    monkeypatch.undo()
    assert lanes.running() == [b.job_id]
    assert not lanes.step()
    assert lanes.running() == [c.job_id] and lanes.settled(b, c) == ["succeeded", None]
    wait_for(lambda: lanes.ledger() == [*"abc"], what="each to be made once")
