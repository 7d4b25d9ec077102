"""One reader of new events for all who listen.

While anyone listens, one thread asks every 50 ms whether somebody committed, reads what is new in a
short transaction, and hands it to the event loop. So a thousand listeners cost one reading. It
rests while nobody listens. What counts events asks it to `keep_up`: then it reads, after a rest,
what it has missed.

After a restore events are counted anew, on SQLite in another file. Then all who listen are ended:
who comes back with a place of before is told that it begins anew.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from headway.base.errors import HeadwayError, StoreReplacedError
from headway.client import Client

log = logging.getLogger("headway.web")

LOOK_EVERY = 0.05
AFTER_TROUBLE = 1.0
MOST_AT_ONCE = 500
RING = 256  # batches that wait for one listener,
MOST_WAITING = 10_000  # and events in them: all that waits is kept in memory

EventDocument = dict[str, Any]


class EventListener:
    """One who waits for new events, in batches. All its methods are for the event loop."""

    def __init__(self) -> None:
        self._batches: deque[Sequence[EventDocument]] = deque()
        self._waiting = 0  # events in all of them
        self._news = asyncio.Event()
        self.fell_behind = False
        self.ended = False

    def put(self, batch: Sequence[EventDocument]) -> None:
        if len(self._batches) >= RING or self._waiting + len(batch) > MOST_WAITING:
            self._forget()
            self.fell_behind = True
        elif not self.fell_behind:
            self._batches.append(batch)
            self._waiting += len(batch)
        self._news.set()

    def end(self) -> None:
        self.ended = True
        self._news.set()

    async def wait(self, seconds: float) -> None:
        """Until there is news, or the time is over."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return
        self._news.clear()

    @property
    def waits(self) -> bool:
        """Whether `take` would give something."""
        return bool(self._batches)

    def begin(self) -> None:
        """Forget what came until now."""
        self._forget()
        self.fell_behind = False

    def take(self) -> list[EventDocument]:
        """The next of what came, and no more than one reading has: what is made of it is kept until
        it is read."""
        taken = list(self._batches.popleft()) if self._batches else []
        while self._batches and len(taken) + len(self._batches[0]) <= MOST_AT_ONCE:
            taken += self._batches.popleft()
        self._waiting -= len(taken)
        if self._batches:
            self._news.set()
        return taken

    def _forget(self) -> None:
        self._batches.clear()
        self._waiting = 0


class EventTail:
    """Made in the event loop that it hands events to. `watch` is called in the thread, and so is
    `on_restore`, before those who listen are ended."""

    def __init__(
        self,
        open_client: Callable[[], Client],
        *,
        watch: Callable[[Client, Sequence[EventDocument]], None] = lambda client, batch: None,
        on_restore: Callable[[], None] = lambda: None,
    ) -> None:
        self._open = open_client
        self._watch = watch
        self._on_restore = on_restore
        self._loop = asyncio.get_running_loop()
        self._listeners: set[EventListener] = set()
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._fresh = asyncio.Event()  # the thread has looked since somebody came
        self.keep_up = False
        self.looked_at = 0.0  # by the loop's clock
        self._wanted_at = 0.0
        self.position = 0  # the number of the last event that was handed out

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="tail", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let all listeners end, also those that only begin."""
        self._stopping.set()
        self._wanted.set()
        self._fresh.set()
        self._end_all()

    @property
    def age(self) -> float | None:
        """For how many seconds it has not looked; None while it rests. For any thread."""
        if not self._listeners:
            return None
        return self._loop.time() - max(self.looked_at, self._wanted_at)

    @contextmanager
    def listening(self) -> Iterator[EventListener]:
        listener = EventListener()
        if self._stopping.is_set():
            listener.end()
        elif not self._listeners:
            self._fresh.clear()
            self._wanted_at = self._loop.time()
        self._listeners.add(listener)
        self._wanted.set()
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and not self._stopping.is_set():
                self._wanted.clear()

    async def caught_up(self, seconds: float = 5.0) -> None:
        """Until all that was committed before somebody began to listen was handed out."""
        try:
            await asyncio.wait_for(self._fresh.wait(), seconds)
        except TimeoutError:
            raise HeadwayError("the store does not answer; try again") from None

    # -- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        client: Client | None = None
        seen: int | None = None
        epoch: str | None = None
        last = -1
        while not self._stopping.is_set():
            if not self._wanted.is_set():
                self._wanted.wait()
                seen = None  # look at once: others committed meanwhile
                if not self.keep_up:
                    last, epoch = -1, None
                continue
            pause = LOOK_EVERY
            try:
                client = client or self._open()
                changes = client.context.changes()
                if changes != seen:
                    before, epoch = epoch, client.events.epoch()
                    if before not in (None, epoch):
                        self._begin_anew()
                        last = -1
                    if last < 0:
                        last = client.events.last()
                    last = self._read(client, last)
                    seen = changes
                self._looked(last)
            except StoreReplacedError:
                if client is not None:
                    client.close()
                client, seen = None, None
            except HeadwayError as error:
                log.warning("the tail: %s", error)
                pause, seen = AFTER_TROUBLE, None
            self._stopping.wait(pause)
        if client is not None:
            client.close()

    def _begin_anew(self) -> None:
        log.warning("the tail: the store was restored; streams end and begin anew")
        self._on_restore()
        self._in_loop(self._end_all)

    def _read(self, client: Client, last: int) -> int:
        while batch := client.events.since(last, limit=MOST_AT_ONCE):
            last = batch[-1]["seq"]
            self._watch(client, batch)
            self._in_loop(partial(self._hand_out, batch))
            if len(batch) < MOST_AT_ONCE:
                break
        return last

    def _looked(self, last: int) -> None:
        def note() -> None:
            self.position = last
            self.looked_at = asyncio.get_running_loop().time()
            self._fresh.set()

        self._in_loop(note)

    def _in_loop(self, act: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act)

    def _hand_out(self, batch: Sequence[EventDocument]) -> None:
        self.position = batch[-1]["seq"]
        for each in self._listeners:
            each.put(batch)

    def _end_all(self) -> None:
        for each in self._listeners:
            each.end()
