"""Calls one by one: where there is room for a single one, the next waits for the end of the last.

Then a commit is on the way of each, and so is whatever the worker does before and after it. So who
is next, its token and its order are made ready while the last one runs; and the worker stays here,
looking for the end, until something else happens, no end comes within an instant, or others write.
All that it waits for otherwise rings the same bell, its selector: a ring that is not about the host
is a reason to leave. Nothing is taken in that was not committed, so whoever is next finds it again.
"""

import os
import select
from collections.abc import Sequence

from headway.clock import Clock
from headway.core.plaincalls import PlainCall
from headway.crashpoints import reach
from headway.engine.crew import Crew
from headway.engine.functionhost import FunctionHost, MoreToTellError, Returned, order_of
from headway.engine.tokens import tokens
from headway.engine.watchlist import Watchlist
from headway.store.base import Store
from headway.store.seam_calls import Relay, TakenCall

LOOKS = 400  # for an end, before the worker goes to sleep
SOON = 1000  # microseconds that a call may take
LONGEST = 0.1  # seconds until it looks at everything else


class OneByOne:
    def __init__(self, store: Store, crew: Crew, selector: Watchlist, clock: Clock) -> None:
        self._store = store
        self._crew = crew
        self._clock = clock
        self._bell = select.poll()
        self._bell.register(selector.fileno(), select.POLLIN)
        self._has_processors = len(os.sched_getaffinity(0)) > 1
        self.made: list[TakenCall] = []  # by the last run
        self.as_before = True  # whether nothing else happened by its end

    def run(self, host: FunctionHost, calls: Sequence[PlainCall], until: float) -> None:
        """Hand these to the host, which makes a plain call, as long as each returns at once."""
        self.made, self.as_before = [], True
        relay = self._store.relay(host.claimant) if host.claimant is not None else None
        if relay is None or not self._has_processors:
            return
        try:
            self._run(host, relay, calls, min(until, self._clock.monotonic() + LONGEST))
        finally:
            relay.drop()
            if self.made:
                host.read_at = self._clock.monotonic()
            if not self.as_before:
                self._crew.look()  # what was hinted at here is hinted at only once

    def _run(
        self, host: FunctionHost, relay: Relay, calls: Sequence[PlainCall], until: float
    ) -> None:
        (last,) = host.plain.values()
        for call, token in zip(calls, tokens(self._clock.now(), len(calls)), strict=True):
            order = order_of(call, token).encode()
            self.as_before = relay.prepare(last, call, token)
            returned = self._end_of(host, last) if self.as_before else None
            if returned is None:
                return
            self.as_before = False
            now = relay.pass_on(returned.finished_at, returned.result)
            self.as_before = now is not None
            if now is None:
                return
            reach("onebyone.passed_on")
            host.send_bytes(order)
            reach("crew.sent")
            if host.has_unsent:
                self._crew.flush(host)
            last = TakenCall(call, token, last.slot, now)
            host.pass_on(returned, last)
            self.made.append(last)
            if returned.took > SOON or self._clock.monotonic() >= until:
                return

    def _end_of(self, host: FunctionHost, last: TakenCall) -> Returned | None:
        """How it returned; None if it does not within an instant, or if something else happened."""
        rings = self._bell.poll
        try:
            for _ in range(LOOKS):
                if not rings(0):
                    continue
                if not host.hinted():
                    break
                returned = host.returned(last)
                if returned is not None:
                    return returned
            else:
                return None
        except MoreToTellError:
            self._crew.hear(host)
        self.as_before = False
        return None
