"""Server-sent events: what happens, and what a job writes, as it comes.

An id names a place: `EPOCH-SEQ` of an event, or both offsets of a log. A client that lost its
connection sends the last one, and the stream goes on from there. After a restore the epoch is
another one and numbers begin anew; then the stream says `reset`.
"""

import asyncio
import codecs
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError, NotFoundError
from headway.client import Client
from headway.web.calls import Asker
from headway.web.tail import EventDocument, EventTail

COMMENT_EVERY = 15.0
BACKLOG = 500
MOST_KNOWN = 10_000  # jobs of which a stream remembers the group
LOG_EVERY = 0.1  # seconds between two looks at what a job has written
LOG_PIECE = 64 << 10
STREAMS = ("stdout", "stderr")


def frame(event: str, data: Any, id_: str | None = None) -> bytes:
    head = f"id: {id_}\n" if id_ is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


class EventPlace(NamedTuple):
    """A place in the row of events."""

    epoch: str
    seq: int

    @property
    def id(self) -> str:
        return f"{self.epoch}-{self.seq}"


def parse_place(text: str) -> EventPlace:
    epoch, dash, number = text.rpartition("-")
    if not dash or not number.isdecimal() or len(number) > 18:
        raise InvalidInputError(f"{text[:80]!r} is not an id of an event; give EPOCH-SEQ")
    return EventPlace(epoch, int(number))


class EventFilter:
    """Which events one wants to see. Of a group, also those of its members."""

    def __init__(
        self,
        kinds: frozenset[str] = frozenset(),
        job: str | None = None,
        group: str | None = None,
    ) -> None:
        self._kinds = kinds
        self._job = job
        self._group = group
        self._groups: dict[str, str | None] = {}  # of jobs that events were about

    def fits(self, event: EventDocument) -> bool:
        if self._kinds and event["kind"] not in self._kinds:
            return False
        if self._job is not None and event["job"] != self._job:
            return False
        if self._group is None:
            return True
        return self._group in (event["data"].get("group"), self._groups.get(event["job"]))

    def learn(self, client: Client, batch: Sequence[EventDocument]) -> None:
        """Find out of which groups the jobs are that these events are about."""
        if self._group is None:
            return
        if len(self._groups) > MOST_KNOWN:
            self._groups.clear()
        for job in {each["job"] for each in batch if each["job"]} - set(self._groups):
            with suppress(NotFoundError):  # it was removed since
                self._groups[job] = client.document(job)["group_id"]

    async def learn_groups(self, ask: Asker, batch: Sequence[EventDocument]) -> None:
        if self._group is not None and batch:
            await ask(lambda client: self.learn(client, batch))


async def events(
    tail: EventTail,
    ask: Asker,
    *,
    after: str | None,
    wanted: EventFilter,
) -> AsyncGenerator[bytes, None]:
    """All events that fit, from a place on, or from now on."""
    with tail.listening() as listener:
        await tail.caught_up()
        listener.begin()
        # From the store, and not where the tail is: the caller may have read what it has not.
        epoch, last = await ask(newest)
        if after is None:
            yield frame("hello", {"epoch": epoch, "seq": last}, EventPlace(epoch, last).id)
        else:
            place = parse_place(after)
            if place.epoch != epoch or place.seq > last:
                yield frame("reset", {"epoch": epoch, "seq": last}, EventPlace(epoch, last).id)
            else:
                async for piece in _backlog(ask, place.seq, last, epoch, wanted):
                    yield piece
        quiet_since = asyncio.get_running_loop().time()
        while not listener.ended:
            await listener.wait(COMMENT_EVERY)
            batch = listener.take()
            if listener.fell_behind:
                yield frame(
                    "resync", {"last": EventPlace(epoch, last).id}, EventPlace(epoch, last).id
                )
                return
            fresh = [each for each in batch if each["seq"] > last]
            if fresh:
                last = fresh[-1]["seq"]
            await wanted.learn_groups(ask, fresh)
            piece = b"".join(_rendered(each, epoch) for each in fresh if wanted.fits(each))
            now = asyncio.get_running_loop().time()
            if not piece and now - quiet_since >= COMMENT_EVERY:
                piece = b": still there\n\n"
            if piece:
                quiet_since = now
                yield piece
        yield frame("bye", {})


async def _backlog(
    ask: Asker, seq: int, until: int, epoch: str, wanted: EventFilter
) -> AsyncGenerator[bytes, None]:
    while seq < until:
        batch: Sequence[EventDocument] = await ask(partial(_since, seq=seq))
        batch = [each for each in batch if each["seq"] <= until]
        if not batch:
            return
        seq = batch[-1]["seq"]
        await wanted.learn_groups(ask, batch)
        yield b"".join(_rendered(each, epoch) for each in batch if wanted.fits(each))


def newest(client: Client) -> tuple[str, int]:
    """What the numbers of events are counted in, and the last of them."""
    return client.events.epoch() or "0", client.events.last()


def _since(client: Client, *, seq: int) -> Sequence[EventDocument]:
    return client.events.since(seq, limit=BACKLOG)


def _rendered(event: EventDocument, epoch: str) -> bytes:
    """Once for all listeners: the bytes are kept with the event."""
    if "_sent" not in event:
        data = {key: value for key, value in event.items() if key != "_sent"}
        event["_sent"] = frame(event["kind"], data, EventPlace(epoch, event["seq"]).id)
    sent: bytes = event["_sent"]
    return sent


# -- logs --------------------------------------------------------------------------------------


class LogPlace(NamedTuple):
    """How far each stream of a job has been read."""

    job: int
    stdout: int = 0
    stderr: int = 0

    @property
    def id(self) -> str:
        return f"{self.job}-{self.stdout}-{self.stderr}"


def parse_log_place(text: str) -> LogPlace:
    parts = text.split("-")
    if len(parts) != 3 or not all(part.isdecimal() and len(part) <= 18 for part in parts):
        raise InvalidInputError(f"{text[:80]!r} is not an id of a log; give JOB-STDOUT-STDERR")
    return LogPlace(*(int(part) for part in parts))


class LogRead(NamedTuple):
    """What one look at the logs of a job has found."""

    job: int
    state: str
    pieces: Sequence[tuple[str, int, bytes, int]]  # stream, offset of its end, bytes, skipped
    ended: bool
    next_job: int | None  # the next of its chain


class LogText(NamedTuple):
    """A part of a stream as text, and how far each stream has been read with it."""

    place: LogPlace
    stream: str
    offset: int  # of its beginning
    text: str
    skipped: int


def decoded(found: LogRead, place: LogPlace) -> Iterator[LogText]:
    """What was found, never cut inside of a character."""
    for stream, end, data, skipped in found.pieces:
        text, used = codecs.utf_8_decode(data, "replace", False)
        if not used and found.ended:  # half a character is all that is left
            text, used = codecs.utf_8_decode(data, "replace", True)
        begin = end - len(data)
        place = place._replace(**{stream: begin + used})
        if text or skipped:
            yield LogText(place, stream, begin, text, skipped)


Reader = Callable[[Client, LogPlace], LogRead]


async def logs(
    ask: Asker, tail: EventTail, place: LogPlace, read: Reader
) -> AsyncGenerator[bytes, None]:
    """What a job has written and writes, until it has ended, or until its chain has."""
    with tail.listening() as listener:
        quiet = 0.0
        while not listener.ended:
            found: LogRead = await ask(partial(_look, read, place))
            sent = b""
            for piece in decoded(found, place):
                place = piece.place
                said = {
                    "job": f"job-{place.job}",
                    "stream": piece.stream,
                    "offset": piece.offset,
                    "text": piece.text,
                    "skipped": piece.skipped,
                }
                sent += frame("log", said, place.id)
            if sent:
                quiet = 0.0
                yield sent
                continue
            if found.ended and found.next_job is None:
                yield frame("end", {"job": f"job-{place.job}", "state": found.state}, place.id)
                return
            if found.ended and found.next_job is not None:
                place = LogPlace(found.next_job)
                yield frame("next", {"job": f"job-{place.job}"}, place.id)
                continue
            await listener.wait(LOG_EVERY)
            quiet += LOG_EVERY
            if quiet >= COMMENT_EVERY:
                quiet = 0.0
                yield b": still there\n\n"
        yield frame("bye", {})


def _look(read: Reader, place: LogPlace, client: Client) -> LogRead:
    return read(client, place)
