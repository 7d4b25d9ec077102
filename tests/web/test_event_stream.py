"""Events as they come, and from a place on: nothing is missed and nothing comes twice."""

import asyncio
from typing import Any

import pytest
from served import Served, on_both_stores
from wire import Frame

from harness import wait_for
from headway.web import tail


def submitted(frames: list[Frame]) -> list[str]:
    return [each.data["job"] for each in frames if each.event == "submitted"]


def place(served: Served) -> str:
    events = served.bench.client.events
    return f"{events.epoch()}-{events.last()}"


def resumed(served: Served, after: str, query: str = "") -> Any:
    return served.stream(f"events{query}", [("Last-Event-ID", after)])


@on_both_stores
def test_a_stream_begins_now_and_shows_each_event_once(served: Served) -> None:
    served.submit("true")
    at = place(served)
    with served.stream("events") as following:
        hello = next(following.frames)
        assert (hello.event, hello.id) == ("hello", at)
        assert f"{hello.data['epoch']}-{hello.data['seq']}" == at
        job = f"job-{served.submit('true')}"
        come = following.until("submitted")
    assert submitted(come) == [job]
    event = come[-1]
    assert set(event.data) == {"seq", "at", "kind", "status", "actor", "job", "data"}
    assert event.id == f"{hello.data['epoch']}-{event.data['seq']}"


@on_both_stores
def test_one_who_comes_back_goes_on_where_it_was(served: Served) -> None:
    at = place(served)
    jobs = [f"job-{served.submit('true')}" for _ in range(3)]
    with resumed(served, at) as following:
        come = [next(following.frames) for _ in range(3)]
    assert submitted(come) == jobs
    later = f"job-{served.submit('true')}"
    with resumed(served, come[1].id) as following:
        come = [next(following.frames), next(following.frames)]
        assert submitted(come) == [jobs[2], later]
        newest = f"job-{served.submit('true')}"
        assert submitted(following.until("submitted")) == [newest]


def test_a_place_can_also_stand_in_the_query(shared: Served) -> None:
    at = place(shared)
    job = f"job-{shared.submit('true')}"
    with shared.stream(f"events?after={at}") as following:
        assert submitted([next(following.frames)]) == [job]


@pytest.mark.parametrize("after", ["x-1", "0-0", "{epoch}-999999", "{epoch}0-1"])
def test_a_place_that_is_not_of_these_numbers_is_reset(shared: Served, after: str) -> None:
    epoch = shared.bench.client.events.epoch()
    with resumed(shared, after.format(epoch=epoch)) as following:
        reset = next(following.frames)
        assert (reset.event, reset.id) == ("reset", place(shared))
        job = f"job-{shared.submit('true')}"
        assert submitted(following.until("submitted")) == [job]


def test_what_was_just_read_is_no_number_beyond_the_last(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader of the stream looks now and then; others have read of a commit before it."""
    with served.stream("events") as other:
        assert next(other.frames).event == "hello"
        monkeypatch.setattr(tail, "LOOK_EVERY", 1.0)
        for _ in range(2):  # the second look takes as long
            served.submit("true")
            other.until("submitted")
        served.submit("true")
        at = served.get("events?limit=1000")["next"]
        with resumed(served, at) as following:
            job = f"job-{served.submit('true')}"
            assert submitted([next(following.frames)]) == [job]


def test_filters_leave_the_others_out(shared: Served) -> None:
    group = shared.post(
        "groups", {"name": "filtered", "open": True, "on_failure": "continue"}
    ).json["group"]["id"]
    at = place(shared)
    one = f"job-{shared.submit('true')}"
    two = f"job-{shared.submit('true', group=group)}"
    assert shared.post(f"jobs/{two}/cancel", {}).status == 200
    last = f"job-{shared.submit('true', group=group)}"

    def first(query: str, count: int) -> list[tuple[str, str]]:
        with resumed(shared, at, query) as following:
            come = [next(following.frames) for _ in range(count)]
        return [(each.event, each.data["job"]) for each in come if each.data["job"]]

    assert first("?kind=cancelled", 1) == [("cancelled", two)]
    assert first(f"?job={one}", 1) == [("submitted", one)]
    assert {job for _, job in first(f"?group={group}", 3)} == {two, last}
    assert first(f"?kind=submitted&job={last}", 1) == [("submitted", last)]
    pages = shared.get(f"events?after={at}&kind=submitted&group={group}")["events"]
    assert [each["job"] for each in pages] == [two, last]


def test_pages_of_events_lead_on_to_the_stream(shared: Served) -> None:
    at = place(shared)
    jobs = [f"job-{shared.submit('true')}" for _ in range(5)]
    seen: list[str] = []
    while True:
        page = shared.get(f"events?after={at}&limit=2")
        at = page["next"]
        if not page["events"]:
            break
        seen += [each["job"] for each in page["events"]]
    assert seen == jobs
    with resumed(shared, at) as following:
        job = f"job-{shared.submit('true')}"
        assert submitted(following.until("submitted")) == [job]


def test_many_events_at_once_all_come(shared: Served) -> None:
    """More than the reader takes in one look."""
    with shared.stream("events?kind=submitted") as following:
        assert next(following.frames).event == "hello"
        graph = [{"id": f"n{number}", "argv": ["true"]} for number in range(1200)]
        made = shared.post("graphs", {"jobs": graph})
        assert made.status == 201
        come = [next(following.frames) for _ in graph]
    assert submitted(come) == [each["id"] for each in made.json["jobs"]]


def test_one_who_is_late_takes_what_came_in_parts() -> None:
    """Else all that waits for each of 500 listeners would be made into bytes at once."""
    listener = tail.EventListener()
    for begin in range(0, 10_000, 400):
        listener.put([{"seq": seq} for seq in range(begin, begin + 400)])

    async def take_all() -> list[int]:
        seen: list[int] = []
        while len(seen) < 10_000:
            await asyncio.wait_for(listener.wait(60), 30)  # there is more, so it does not wait
            taken = listener.take()
            assert 0 < len(taken) <= tail.MOST_AT_ONCE
            seen += [each["seq"] for each in taken]
        return seen

    assert asyncio.run(take_all()) == list(range(10_000))
    assert not listener.fell_behind and not listener.take()


def test_one_who_never_reads_keeps_a_bounded_number_of_events() -> None:  # fault G6
    """Else all that a busy store says in twenty seconds would stay in memory for one listener."""
    listener = tail.EventListener()
    batch: list[Any] = [{"seq": 1}] * tail.MOST_AT_ONCE
    for _ in range(tail.MOST_WAITING // tail.MOST_AT_ONCE):
        listener.put(batch)
    assert not listener.fell_behind and len(listener.take()) == tail.MOST_AT_ONCE
    listener.put(batch)
    assert not listener.fell_behind, "what was taken waits no more"
    listener.put(batch)
    assert listener.fell_behind and not listener.waits
    listener.put(batch)
    assert not listener.waits, "nothing is kept for one who has to begin anew"
    listener.begin()
    listener.put(batch)
    assert listener.waits and not listener.fell_behind


def test_a_head_of_a_stream_has_no_end_and_no_events(shared: Served) -> None:
    heard = shared.ask("HEAD", "events", accept="text/event-stream")
    assert heard.status == 200 and heard.header("content-type").startswith("text/event-stream")
    assert heard.header("cache-control") == "no-store"
    wait_for(lambda: not shared.application._streams.total())


def test_when_the_server_ends_streams_say_goodbye_and_waits_are_answered(served: Served) -> None:
    job = served.submit("true", require_approval=True)
    with (
        served.stream("events") as events,
        served.stream(f"jobs/{job}/logs") as logs,
        served.wire() as waiting,
    ):
        assert next(events.frames).event == "hello"
        given = [("Authorization", f"Bearer {served.token('submit')}"), ("Prefer", "wait=60")]
        waiting.put(waiting.request("POST", "/api/v1/jobs", given, {"argv": ["true"]}))
        events.until("submitted")
        served.stop()
        assert events.until("bye") and not list(events.frames)
        assert logs.until("bye") and not list(logs.frames)
        assert waiting.hear().status == 202


def test_who_begins_to_listen_at_the_end_is_let_go(served: Served) -> None:
    """The thread reads no more: nobody may wait for it, or the server ends late and by force."""

    async def listens(before: bool) -> bool:
        made = tail.EventTail(served._open)  # its thread was not started: it looks at nothing
        if before:
            made.stop()
        with made.listening() as listener:
            waiting = asyncio.ensure_future(made.caught_up(seconds=20))
            await asyncio.sleep(0)
            made.stop()
            done, _ = await asyncio.wait({waiting}, timeout=5)
            waiting.cancel()
            return bool(done) and listener.ended

    assert asyncio.run(listens(before=False))
    assert asyncio.run(listens(before=True))
