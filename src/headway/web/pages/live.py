"""The one stream of a page: what has changed, in words that regions know, and perhaps a log.

A frame names topics, and up to 200 jobs. At most four are sent a second, so a drain of 20,000 jobs
is a few frames, and not 20,000. A followed log comes in the same stream, as HTML, because a browser
opens few connections to one host.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from headway.web.calls import Asker, Live, Stream, WebCall
from headway.web.handlers.jobs import read_logs, refuse_elsewhere
from headway.web.pages.escapes import AnsiReader
from headway.web.streams import (
    COMMENT_EVERY,
    LOG_EVERY,
    STREAMS,
    EventPlace,
    LogPlace,
    LogRead,
    decoded,
    frame,
    newest,
    parse_log_place,
    parse_place,
)
from headway.web.tail import EventDocument, EventTail

FRAME_EVERY = 0.25  # seconds between two frames, at least
MOST_JOBS = 200

# How the kinds of events begin, and the topic of each; of a job it is `jobs`, besides the job.
TOPICS: Mapping[str, str] = {
    "group_": "groups",
    "workflow_": "runs",
    "schedule_": "schedules",
    "webhook_": "webhooks",
    "runner_": "runners",
    "jobs_file_": "schedules",
    "template_": "templates",
    "target_": "targets",
}
OTHERS = "scheduler"  # pauses, hosts, workers, settings, reservations


def topics_of(events: Iterable[EventDocument]) -> dict[str, Any]:
    """One frame for all of these."""
    topics: set[str] = set()
    jobs: dict[str, None] = {}
    for event in events:
        topics.add(_topic(event["kind"], event["job"]))
        if event["job"]:
            topics.add("jobs")
            jobs.setdefault(event["job"])
    return {
        "topics": sorted(topics),
        "jobs": list(jobs)[:MOST_JOBS],
        "more": len(jobs) > MOST_JOBS,
    }


def _topic(kind: str, job: str | None) -> str:
    found = next((topic for begin, topic in TOPICS.items() if kind.startswith(begin)), None)
    return found or ("jobs" if job else OTHERS)


class Followed(NamedTuple):
    """A log that a page follows: of one job and its retries."""

    place: LogPlace
    readers: Mapping[str, AnsiReader]  # of each stream


def live(call: WebCall) -> Stream:
    after = call.header("last-event-id")
    place = None if after is None else parse_place(after)
    followed = None
    if "log" in call.query:
        from_place = parse_log_place(call.query["log"])
        call.client.jobs.get(from_place.job)
        refuse_elsewhere(call.client, from_place.job)
        followed = Followed(from_place, {each: AnsiReader() for each in STREAMS})

    def make(live: Live) -> AsyncGenerator[bytes, None]:
        return _frames(live.tail, live.ask, place, followed)

    return Stream(make)


async def _frames(
    tail: EventTail, ask: Asker, after: EventPlace | None, followed: Followed | None
) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    with tail.listening() as listener:
        await tail.caught_up()
        listener.begin()
        epoch, last = await ask(newest)
        missed = after is not None and (after.epoch, after.seq) != (epoch, last)
        yield frame("hello", {"missed": missed}, EventPlace(epoch, last).id)
        sent_at = said_at = loop.time()
        while not listener.ended:
            pause = COMMENT_EVERY if followed is None else LOG_EVERY
            await listener.wait(pause)
            now = loop.time()
            if listener.fell_behind:
                listener.begin()
                yield frame("hello", {"missed": True}, EventPlace(epoch, tail.position).id)
            left = sent_at + FRAME_EVERY - now
            if listener.waits and left > 0:
                await asyncio.sleep(left)
            fresh = [each for each in listener.take() if each["seq"] > last]
            piece = b""
            if fresh:
                last = fresh[-1]["seq"]
                sent_at = loop.time()
                piece = frame("news", topics_of(fresh), EventPlace(epoch, last).id)
            if followed is not None:
                followed, more = await _log(ask, followed)
                piece += more
            if not piece and now - said_at >= COMMENT_EVERY:
                piece = b": still there\n\n"
            if piece:
                said_at = now
                yield piece
        yield frame("bye", {})


async def _log(ask: Asker, followed: Followed) -> tuple[Followed | None, bytes]:
    """What was written since the last look; None when no more will come."""
    found: LogRead = await ask(partial(_read, followed.place))
    place, sent = followed.place, b""
    for piece in decoded(found, place):
        place = piece.place
        text = followed.readers[piece.stream].read(piece.text)
        sent += frame(
            "log",
            {
                "job": f"job-{place.job}",
                "stream": piece.stream,
                "html": str(text),
                "skipped": piece.skipped,
                "place": place.id,
            },
        )
    if sent or not found.ended:
        return followed._replace(place=place), sent
    if found.next_job is None:
        return None, frame("end", {"job": f"job-{place.job}", "state": found.state})
    following = LogPlace(found.next_job)
    readers = {each: AnsiReader() for each in STREAMS}
    return Followed(following, readers), frame("next", {"job": f"job-{following.job}"})


def _read(place: LogPlace, client: Any) -> LogRead:
    return read_logs(client, place, this=False)
