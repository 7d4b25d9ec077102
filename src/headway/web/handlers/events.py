"""What happened: a page of events, or a stream of them."""

from collections.abc import AsyncGenerator

from headway.base.errors import InvalidInputError
from headway.web.calls import Answer, Live, Reply, Stream, WebCall
from headway.web.streams import EventFilter, events, parse_place
from headway.web.tail import EventDocument

MOST_SCANNED = 20_000  # events that a page looks through


def list_events(call: WebCall) -> Answer:
    wanted = filter_of(call)
    if "text/event-stream" in (call.header("accept") or ""):
        after = call.header("last-event-id") or call.query.get("after")
        if after is not None:
            parse_place(after)

        def make(live: Live) -> AsyncGenerator[bytes, None]:
            return events(live.tail, live.ask, after=after, wanted=wanted)

        return Stream(make)
    return _page(call, wanted)


def _page(call: WebCall, wanted: EventFilter) -> Reply:
    """Events after a place, the oldest first."""
    client, limit = call.client, call.query["limit"]
    epoch = client.events.epoch() or "0"
    seq = 0
    if "after" in call.query:
        place = parse_place(call.query["after"])
        if place.epoch != epoch:
            raise InvalidInputError(
                f"{place.id} is of before a restore; events are counted in {epoch} now"
            )
        seq = place.seq
    found: list[EventDocument] = []
    scanned = 0
    while len(found) < limit and scanned < MOST_SCANNED:
        batch = client.events.since(seq, limit=500)
        if not batch:
            break
        wanted.learn(client, batch)
        for each in batch:
            scanned += 1
            seq = each["seq"]
            if wanted.fits(each):
                found.append(each)
                if len(found) == limit:
                    break
    return Reply(document={"events": found, "epoch": epoch, "next": f"{epoch}-{seq}"})


def filter_of(call: WebCall) -> EventFilter:
    job, group = call.query.get("job"), call.query.get("group")
    return EventFilter(
        frozenset(call.query.get("kind", ())),
        None if job is None else f"job-{call.client.jobs.find(job)}",
        None if group is None else call.client.groups.show(group)["id"],
    )
