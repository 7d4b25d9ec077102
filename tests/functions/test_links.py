"""The end of a function and the start of the one that waited for it: how often the worker has to
ask a server, which takes longer than all that is done for an answer."""

from collections.abc import Callable
from typing import Any

import pytest
from lanes import Lanes

from headway.app import Handle
from headway.core.states import Status
from headway.store.pgwire import Wire
from headway.submission import Request

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
def test_a_link_of_a_chain_is_three_journeys(
    make_lanes: MakeLanes, trips: list[list[str]], submit: Callable[..., list[Handle[Any]]]
) -> None:
    """To hear how things stand; to settle, and to hear who waited for it; to start that one."""
    lanes = make_lanes(max_active=2)
    handles = submit(lanes, *"abcde")
    lanes.bench.until(lambda: lanes.running() == [handles[0].job_id], "the first")
    lanes.let_go("a", handles[0])
    lanes.bench.until(lambda: lanes.running() == [handles[1].job_id], "the second")
    for word, ended, started in zip("bcd", handles[1:], handles[2:], strict=False):
        lanes.let_go(word, ended)
        assert stepped(lanes, trips) <= 3, trips
        assert lanes.running() == [started.job_id]
    assert lanes.settled(*handles) == ["succeeded"] * 4 + [None]


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
    assert stepped(lanes, trips) <= 3, trips
    assert lanes.running() == [handles[2].job_id]
    assert lanes.bench.status(later.job_id) is Status.QUEUED


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
