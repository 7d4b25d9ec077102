"""The end of a function and the start of the one that waited for it: how often the worker has to
ask a server, which takes longer than all that is done for an answer."""

import select
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from lanes import Elsewhere, Lanes

from harness import wait_for
from headway.base.errors import NotFoundError
from headway.core.states import Status
from headway.functions.app import Handle
from headway.jobs.request import Request
from headway.store.postgres.wire import Wire
from headway.store.records import Unclaim

MakeLanes = Callable[..., Lanes]
pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was sent together, each time."""
    sent: list[list[str]] = []
    run = Wire.run

    def counted(self: Wire, statements: Any, *more: Any) -> Any:
        sent.append([" ".join(text.split())[:60] for text, _ in statements])
        return run(self, statements, *more)

    monkeypatch.setattr(Wire, "run", counted)
    return sent


def chain_of(lanes: Lanes, *words: str) -> list[Handle[Any]]:
    """Submitted in one call."""
    calls = [lanes.hold.call(words[0])]
    for word in words[1:]:
        calls.append(lanes.hold.options(after=[calls[-1]]).call(word))
    handles: list[Handle[Any]] = lanes.module.app.submit_many(calls)
    return handles


def one_by_one(lanes: Lanes, *words: str) -> list[Handle[Any]]:
    handles = [lanes.hold.submit(words[0])]
    for word in words[1:]:
        handles.append(lanes.hold.submit(word, after=[handles[-1]]))
    return handles


def stepped(lanes: Lanes, trips: list[list[str]]) -> int:
    trips.clear()
    lanes.step()
    return len(trips)


@pytest.mark.parametrize("submit", [chain_of, one_by_one])
def test_a_link_of_a_chain_is_two_round_trips(
    make_lanes: MakeLanes, trips: list[list[str]], submit: Callable[..., list[Handle[Any]]]
) -> None:
    """To settle, and to hear who waited for it; to start that one."""
    lanes = make_lanes(max_active=2)
    handles = submit(lanes, *"abcde")
    lanes.bench.until(lambda: lanes.running() == [handles[0].job_id], "the first")
    lanes.let_go("a", handles[0])
    lanes.bench.until(lambda: lanes.running() == [handles[1].job_id], "the second")
    for word, ended, started in zip("bcd", handles[1:], handles[2:], strict=False):
        lanes.let_go(word, ended)
        assert stepped(lanes, trips) <= 2, trips
        assert lanes.running() == [started.job_id]
    assert lanes.settled(*handles) == ["succeeded"] * 4 + [None]


def test_a_submit_after_another_is_two_round_trips(
    make_lanes: MakeLanes, trips: list[list[str]]
) -> None:
    """To hear which id and place it gets, and whether there is what it is after; to store it."""
    lanes = make_lanes()
    first = lanes.hold.submit("a")
    trips.clear()
    second = lanes.hold.submit("b", after=[first])
    assert len(trips) == 2, trips
    second = lanes.hold.submit("b", after=[second])
    assert len(trips) == 4, trips
    with pytest.raises(NotFoundError, match="job-99"):
        lanes.hold.submit("c", after=[second, "job-99"])
    assert lanes.hold.submit("d", after=[second]).job_id == second.job_id + 1


def test_with_a_time_that_is_to_come_it_is_no_more(
    make_lanes: MakeLanes, trips: list[list[str]]
) -> None:
    lanes = make_lanes(max_active=2)
    later = lanes.hold.submit("later", delay="1h")
    handles = chain_of(lanes, *"abcd")
    lanes.bench.until(lambda: lanes.running() == [handles[0].job_id], "the first")
    lanes.let_go("a", handles[0])
    lanes.bench.until(lambda: lanes.running() == [handles[1].job_id], "the second")
    lanes.let_go("b", handles[1])
    assert stepped(lanes, trips) <= 2, trips
    assert lanes.running() == [handles[2].job_id]
    assert lanes.bench.status(later.job_id) is Status.QUEUED


def third_of_a_chain(lanes: Lanes) -> list[Handle[Any]]:
    """The second one runs, and the step that started it has seen how things stand."""
    handles = chain_of(lanes, *"abcd")
    lanes.bench.until(lambda: lanes.running() == [handles[0].job_id], "the first")
    lanes.let_go("a", handles[0])
    lanes.bench.until(lambda: lanes.running() == [handles[1].job_id], "the second")
    return handles


def test_after_others_wrote_it_looks_how_things_stand(
    lanes: Lanes, elsewhere: Elsewhere, trips: list[list[str]]
) -> None:
    handles = third_of_a_chain(lanes)
    lanes.let_go("b", handles[1])
    elsewhere.client.pause("hands off")
    assert stepped(lanes, trips) <= 6, trips  # in vain, undone, and then as ever
    assert lanes.running() == [] and lanes.settled(*handles) == ["succeeded"] * 2 + [None] * 2
    wait = lanes.bench.client.document(handles[2].job_id)["wait"]
    assert wait is not None and wait["kind"] == "paused"
    elsewhere.client.resume()
    lanes.bench.until(lambda: lanes.running() == [handles[2].job_id], "the third")


def test_a_chain_goes_on_while_others_add_what_waits(lanes: Lanes, elsewhere: Elsewhere) -> None:
    """As when a chain is submitted one by one, faster than it runs."""
    handles = third_of_a_chain(lanes)
    for word, ended, started in zip("bc", handles[1:], handles[2:], strict=False):
        lanes.let_go(word, ended)
        last = handles[-1]
        for _ in range(2):
            last = elsewhere.submitting(lanes, partial(lanes.hold.submit, "more", after=[last]))
        lanes.step()
        assert lanes.running() == [started.job_id]
        assert lanes.bench.job(last.job_id).status is Status.WAITING_ON_DEPS


def test_who_was_cancelled_elsewhere_meanwhile_ends_as_cancelled_or_not_at_all(
    lanes: Lanes, elsewhere: Elsewhere
) -> None:
    handles = third_of_a_chain(lanes)
    lanes.let_go("b", handles[1])
    elsewhere.client.cancel([handles[1].job_id, handles[2].job_id])
    lanes.step()
    assert lanes.settled(*handles[:3]) == ["succeeded", "succeeded", "cancelled"]
    lanes.bench.until_ended(handles[3].job_id)
    assert lanes.running() == [] and len(lanes.ledger()) == 2


def test_what_this_process_writes_itself_is_seen(lanes: Lanes) -> None:
    handles = third_of_a_chain(lanes)
    lanes.let_go("b", handles[1])
    lanes.bench.client.pause("hands off")
    lanes.step()
    assert lanes.running() == [] and lanes.settled(handles[1]) == ["succeeded"]
    lanes.bench.client.resume()


def test_a_call_whose_claim_was_ended_elsewhere_is_not_settled_again(
    lanes: Lanes, elsewhere: Elsewhere
) -> None:
    """# fault C1: another host has taken this one for lost."""
    handles = third_of_a_chain(lanes)
    claim = lanes.claims()[handles[1].job_id]
    lanes.let_go("b", handles[1])
    with elsewhere.store.write() as tx:
        unclaim = Unclaim(claim.token, claim.job_id, "lost", None, 0, None)
        assert tx.claims.undo([unclaim]) == [True]
    lanes.step()
    kinds = lanes.bench.kinds(handles[1].job_id)
    assert "succeeded" not in kinds, "what another claim returned is not its own"
    assert lanes.claims()[claim.job_id].token != claim.token, "it was claimed anew"
    lanes.bench.until_ended(handles[1].job_id)
    assert lanes.bench.kinds(handles[1].job_id) == [*kinds, "succeeded"]


def test_who_is_put_under_what_it_waits_for_costs_two_however_many(
    lanes: Lanes, trips: list[list[str]]
) -> None:
    first = lanes.hold.submit("a")
    lanes.bench.until(lambda: lanes.running() == [first.job_id], "the first")
    others = [lanes.hold.submit(str(number), after=[first]) for number in range(7)]
    trips.clear()
    lanes.bench.step()
    assert len(trips) <= 2, trips
    kinds = [lanes.bench.job(each.job_id).wait for each in others]
    assert {wait and wait.detail for wait in kinds} == {f"waiting on job job-{first.job_id}"}


def test_a_command_that_was_submitted_starts_with_two(lanes: Lanes, trips: list[list[str]]) -> None:
    lanes.become_quiet()
    command = lanes.bench.client.submit(Request(argv=("sleep", "60"))).job_id
    trips.clear()
    lanes.bench.step()
    assert len(trips) <= 2, trips
    assert lanes.running() == [command]


@pytest.mark.bulk
def test_calls_are_told_apart(lanes: Lanes, elsewhere: Elsewhere) -> None:
    store = lanes.bench.store
    first = lanes.hold.submit("a")
    lanes.become_quiet()
    store.hints()

    def undisturbed(submit: Callable[[], Any]) -> bool:
        """The notice of an earlier commit, which the server was asked about, may still come."""
        store.changed()
        submit()
        received = partial(select.select, [store.hints()], [], [], 30)
        wait_for(lambda: received()[0] and store.changed(), what="its notice")
        return store.undisturbed()

    def wait() -> Handle[Any]:
        return elsewhere.submitting(lanes, lambda: lanes.hold.submit("b", after=[first]))

    second = wait()
    assert not undisturbed(wait)
    assert undisturbed(lambda: elsewhere.submitting(lanes, lambda: lanes.hold.submit("c")))
    assert not undisturbed(lambda: elsewhere.client.pause("x"))
    elsewhere.client.resume()
    lanes.let_go("a", first)
    lanes.bench.until(lambda: second.job_id in lanes.running(), "who waited")
