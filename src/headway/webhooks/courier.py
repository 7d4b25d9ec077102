"""The courier: a process beside the worker that makes deliveries of events, and sends them.

Servers of others are slow, and bodies take time to make. Neither may hold up the worker, so the
courier is a process of its own. The worker starts it while there is something to do, and it leaves
half a minute after the last. All that it knows is in the store. So it may be killed at any time,
and two of them do no harm:

- A delivery is leased in a short transaction, sent with none open, and recorded under its lease. If
  the courier dies in between, the lease ends by itself; then the same bytes are sent again under
  the same id.
- A lease is longer than a try. What was leased and not begun in time is given back. So a slow
  receiver does not let the leases of other deliveries run out.

Only the main thread uses the store. Tries are made in other threads, few at once for each receiver.
"""

import os
import queue
import random
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, assert_never

from headway.base.clock import SECOND
from headway.base.crashpoints import reach
from headway.base.errors import HeadwayError, StoreBusyError
from headway.core.webhooks import (
    DELIVERED_KEPT_FOR,
    DID_NOTHING,
    FAILED_KEPT_FOR,
    HOUR,
    JOBS,
    TRIAL_EVERY,
    WAITS_AT_MOST,
    Again,
    Delivery,
    DeliveryState,
    Endpoint,
    EndpointState,
    GivenUp,
    HookReply,
    health_after,
    judge,
)
from headway.jobs.context import Context, open_context
from headway.jobs.settings import load_config
from headway.jobs.webhook_urls import allowed_by
from headway.store.new_jobs import Event
from headway.store.records import Try
from headway.store.tables.webhooks import endpoint_of, receiver_of
from headway.store.transaction import WriteTx
from headway.webhooks.expansion import Page, apply_page, read_page
from headway.webhooks.secret_file import SecretFile, new_secret
from headway.webhooks.signature import signed_headers
from headway.webhooks.transport import TRY_SECONDS, HttpRequest, Resolve, Sending, resolve_by_system

ACTOR = "courier"
LEASE = 60 * SECOND
SENT_WITHIN = 60.0 - TRY_SECONDS - 5.0  # seconds after the lease, else it is given back
PERIOD = 0.4  # seconds between two turns: a commit of each takes its turn from a busy worker
IDLE_PERIOD = 0.25
LEAVES_AFTER = 30.0
LAST_SECONDS = 15.0  # once the worker is gone
AT_ONCE_PER_RECEIVER = 4
AT_ONCE = 32
FEWEST_AHEAD, MOST_AHEAD = 4, 200  # leased for one receiver; more only for one that is quick
FORGOTTEN_AT_ONCE = 1_000  # of each state, in one turn
WAITED_TOO_LONG = "it has waited for 7 days"


class Leased(NamedTuple):
    """A delivery that this courier may send before that second, to its URL, signed by these."""

    delivery: Delivery
    url: str
    secrets: tuple[str, ...]
    before: float


class _Outgoing:
    """What was leased for one receiver and has yet to be sent."""

    def __init__(self) -> None:
        self.waiting: deque[Leased] = deque()
        self.active = 0  # requests under way
        self.ahead = FEWEST_AHEAD

    @property
    def startable(self) -> int:
        """How many more may be begun at once."""
        return min(len(self.waiting), AT_ONCE_PER_RECEIVER - self.active)


class Courier:
    def __init__(
        self,
        context: Context,
        *,
        resolve: Resolve = resolve_by_system,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._resolve = resolve
        self._chance = chance
        self._allowed = allowed_by(context.config)
        self.secrets = SecretFile(context.home)
        self._known_secrets: frozenset[str] | None = None  # as the store was last told
        self._lock = threading.Lock()  # of what threads share: what is outgoing, and tries
        self._outgoing: dict[str, _Outgoing] = {}  # the one whose turn was last is the last
        self._active = 0  # threads
        self._under_way: set[Sending] = set()
        self._results: queue.SimpleQueue[tuple[Leased, HookReply | None]] = queue.SimpleQueue()
        self._behind = True  # there may be events to make deliveries of
        self._look_at: int | None = 0  # when something may be due; None: not before news
        self._tidy_at = 0.0
        self._began_at = self._worked_at = self._clock.monotonic()
        self._leaves_at: float | None = None  # the worker is gone
        self._config = _stamp(context.home.config)
        self._config_at = 0.0

    # -- its life ------------------------------------------------------------------------------

    def run(self, line: int) -> None:
        """Until there has been nothing to do for a while, or the other end of `line` is closed."""
        while True:
            try:
                self.turn()
            except StoreBusyError:
                self._behind = True
            if self.may_leave():
                return self.leave()
            busy = self._active or not self._results.empty() or self._behind
            if self._leaves_at is None:
                if select.select([line], [], [], PERIOD if busy else IDLE_PERIOD)[0]:
                    self._leaves_at = self._clock.monotonic() + LAST_SECONDS
                    self._behind = True
            else:
                self._clock.sleep(PERIOD)

    @property
    def is_behind(self) -> bool:
        """Whether there may be events to make deliveries of."""
        return self._behind

    @property
    def did_nothing(self) -> bool:
        return self._worked_at == self._began_at

    def may_leave(self) -> bool:
        now = self._clock.monotonic()
        if self._leaves_at is not None:
            return now >= self._leaves_at or not (self.is_busy or self._behind)
        return now - self._worked_at >= LEAVES_AFTER

    @property
    def is_busy(self) -> bool:
        """Whether something is leased, or sent and not yet recorded."""
        with self._lock:
            waiting = any(each.waiting for each in self._outgoing.values())
            return bool(waiting or self._active) or not self._results.empty()

    def leave(self) -> None:
        """Give back what was not sent; say if nobody is to be told any more."""
        with self._lock:
            left = [each for outgoing in self._outgoing.values() for each in outgoing.waiting]
            for outgoing in self._outgoing.values():
                outgoing.waiting.clear()
        with self._store.write() as tx:
            self._record(tx, self._take_results())
            tx.webhooks.give_back(_leases(left))
            tx.webhooks.end()
        reach("courier.left")

    # -- a turn --------------------------------------------------------------------------------

    def turn(self) -> None:
        """Make deliveries of news, write down what came of tries, and begin others."""
        self._end_late_tries()
        self._read_config()
        if self._store.changed():
            self._behind, self._look_at = True, 0
        page = self._read_page() if self._behind else None
        results = self._take_results()
        now = self._clock.monotonic()
        if now >= self._tidy_at and self._tidy():
            self._tidy_at = now + HOUR / SECOND
        due = self._look_at is not None and self._store.present() >= self._look_at
        if page or results or due or self._known_secrets != frozenset(self.secrets.all()):
            try:
                self._write(page, results)
            except BaseException:
                for each in results:  # else they would be sent again
                    self._results.put(each)
                raise
        self._start_threads()
        if self.is_busy or results:
            self._worked_at = now

    def _read_config(self) -> None:
        """Where it may be sent to, if that was changed; what is wrong there counts not."""
        now = self._clock.monotonic()
        if now < self._config_at:
            return
        self._config_at = now + 1.0
        stamp = _stamp(self._context.home.config)
        if stamp != self._config:
            self._config = stamp
            with suppress(HeadwayError):
                self._allowed = allowed_by(load_config(self._context.home, self._context.environ))

    def _read_page(self) -> Page | None:
        page = read_page(self._context)
        self._behind = page is not None and not page.is_last
        if page is not None:
            self._worked_at = self._clock.monotonic()
        return page

    def _write(self, page: Page | None, results: Sequence[tuple[Leased, HookReply | None]]) -> None:
        """All that there is to write, in one transaction: each costs the worker time."""
        with self._store.write() as tx:
            if page is not None and not apply_page(tx, page):
                self._behind = True
            self._note_secrets(tx)
            self._record(tx, results)
            leased = self._lease(tx)
        if page is not None:
            reach("webhooks.expand")
        reach("courier.leased")
        with self._lock:
            for receiver, deliveries in leased.items():
                self._outgoing.setdefault(receiver, _Outgoing()).waiting.extend(deliveries)

    # -- leasing -------------------------------------------------------------------------------

    def _lease(self, tx: WriteTx) -> dict[str, list[Leased]]:
        endpoints = tx.webhooks.endpoints()
        token, now = os.urandom(8).hex(), tx.now()
        before = self._clock.monotonic() + SENT_WITHIN
        found: dict[str, list[Leased]] = {}
        later: list[int] = []
        for receiver, first_due in tx.webhooks.receivers().items():
            endpoint = endpoints.get(endpoint_of(receiver))
            if endpoint is not None and endpoint.id == JOBS and not endpoint.fingerprint:
                endpoint = endpoints[JOBS] = self._with_secret(tx, endpoint)
            secrets = self._secrets_of(endpoint, now) if endpoint is not None else ()
            if endpoint is None or not secrets or endpoint.send_at is None:
                continue
            due_at = max(first_due, endpoint.send_at)
            if due_at > now:
                later.append(due_at)
                continue
            room = self._room(receiver)
            if not room:  # the next result makes some
                continue
            if endpoint.on_trial:
                room = 1
                tx.webhooks.change(endpoint._replace(held_until=now + TRIAL_EVERY))
            taken = tx.webhooks.lease(receiver, lease=token, until=now + LEASE, limit=room)
            found[receiver] = [
                Leased(each, each.url or endpoint.url, secrets, before) for each in taken
            ]
            later.append(now)
        self._look_at = min(later, default=None)
        return found

    def _room(self, receiver: str) -> int:
        """How many more may be leased for it. A receiver that has been sent all that it had may
        have more."""
        with self._lock:
            known = self._outgoing.get(receiver)
            if known is None:
                return FEWEST_AHEAD
            if not known.waiting:
                known.ahead = min(MOST_AHEAD, 2 * known.ahead)
            elif known.waiting[0].before - self._clock.monotonic() < SENT_WITHIN - 1:
                known.ahead = max(FEWEST_AHEAD, known.ahead // 2)
            return max(0, known.ahead - len(known.waiting))

    def _secrets_of(self, endpoint: Endpoint, now: int) -> tuple[str, ...]:
        """The present one first; none if this home does not have it."""
        present = self.secrets.get(endpoint.fingerprint)
        if present is None:
            return ()
        overlap = endpoint.overlap_until is not None and now < endpoint.overlap_until
        old = self.secrets.get(endpoint.old_fingerprint or "") if overlap else None
        return (present,) if old is None else (present, old)

    def _with_secret(self, tx: WriteTx, jobs: Endpoint) -> Endpoint:
        """The first URL of a job is to be sent to: now its secret is made."""
        holders = jobs.holders | {self._context.host.id}
        made = jobs._replace(fingerprint=self.secrets.add(new_secret()), holders=holders)
        tx.webhooks.change(made)
        return made

    def _note_secrets(self, tx: WriteTx) -> None:
        """Let the store know which secrets this host has, if that has changed."""
        known, host = frozenset(self.secrets.all()), self._context.host.id
        if known == self._known_secrets:
            return
        for endpoint in tx.webhooks.endpoints().values():
            has = endpoint.fingerprint in known
            if has != (host in endpoint.holders):
                holders = endpoint.holders | {host} if has else endpoint.holders - {host}
                tx.webhooks.change(endpoint._replace(holders=holders))
        self._known_secrets = known

    # -- sending -------------------------------------------------------------------------------

    def _start_threads(self) -> None:
        with self._lock:
            wanted = self._active + sum(each.startable for each in self._outgoing.values())
            while self._active < min(AT_ONCE, wanted):
                self._active += 1
                threading.Thread(target=self._serve, daemon=True).start()
            for name, each in list(self._outgoing.items()):
                if not each.active and not each.waiting and each.ahead == FEWEST_AHEAD:
                    del self._outgoing[name]

    def _serve(self) -> None:
        """Send one after the other, until nothing may be begun."""
        while (taken := self._take()) is not None:
            outgoing, leased = taken
            late = self._clock.monotonic() > leased.before
            self._results.put((leased, None if late else self._send(leased)))
            with self._lock:
                outgoing.active -= 1

    def _take(self) -> tuple[_Outgoing, Leased] | None:
        """The next delivery, of the receiver with the fewest requests under way; among equals, of
        the one whose turn was longest ago. So slow receivers may hold many threads, but never get
        the next one."""
        with self._lock:
            free = [(each.active, name) for name, each in self._outgoing.items() if each.startable]
            if not free:
                self._active -= 1
                return None
            name = min(free, key=lambda each: each[0])[1]
            chosen = self._outgoing[name] = self._outgoing.pop(name)
            chosen.active += 1
            return chosen, chosen.waiting.popleft()

    def _send(self, leased: Leased) -> HookReply:
        body = leased.delivery.body.encode("ascii")
        request = request_of(leased.delivery.id, leased.url, body, leased.secrets, self._context)
        sending = Sending(request, self._allowed, self._clock, resolve=self._resolve)
        with self._lock:
            self._under_way.add(sending)
        try:
            reply = sending.make()
        except Exception as error:  # whatever it is, it must not stop the others
            reply = HookReply(None, f"{type(error).__name__}: {error}"[:300])
        finally:
            with self._lock:
                self._under_way.discard(sending)
        reach("courier.sent")
        return reply

    def _end_late_tries(self) -> None:
        with self._lock:
            under_way = list(self._under_way)
        for each in under_way:
            each.end_if_late()

    # -- recording -----------------------------------------------------------------------------

    def _take_results(self) -> list[tuple[Leased, HookReply | None]]:
        found = []
        while not self._results.empty():
            found.append(self._results.get())
        return found

    def _record(self, tx: WriteTx, results: Sequence[tuple[Leased, HookReply | None]]) -> None:
        if not results:
            return
        before = tx.webhooks.endpoints()
        endpoints = dict(before)
        delivered: list[Try] = []
        failed: list[Delivery] = []
        for leased, reply in results:
            delivery = leased.delivery
            endpoint = endpoints.get(delivery.endpoint)
            if reply is None or endpoint is None:  # not sent, or removed meanwhile
                continue
            made = Try(delivery.id, delivery.lease or "", reply.status_code, reply.error)
            after = judge(
                reply,
                tries=delivery.tries + 1,
                schedule=endpoint.schedule,
                jitter=self._chance(),
            )
            match after:
                case DeliveryState():
                    delivered.append(made)
                case Again():
                    tx.webhooks.record_failure(made, tx.now() + after.after)
                case GivenUp():
                    if tx.webhooks.record_failure(made, None):
                        failed.append(delivery._replace(error=reply.error))
                case _:
                    assert_never(after)
            if endpoint.id != JOBS:
                hold = after.after if isinstance(after, Again) and after.all_wait else None
                endpoints[endpoint.id] = _with_health(endpoint, reply, tx.now(), hold)
        tx.webhooks.record_delivered(delivered)
        tx.webhooks.give_back(_leases(each for each, reply in results if reply is None))
        for endpoint in endpoints.values():
            if endpoint != before[endpoint.id]:
                self._change(tx, before[endpoint.id], endpoint)
        self._note_failed(tx, failed, endpoints)

    def _change(self, tx: WriteTx, before: Endpoint, after: Endpoint) -> None:
        """An endpoint does better or worse; it is said if that makes another state of it."""
        tx.webhooks.change(after)
        if after.state is before.state:
            return
        data: dict[str, Any] = {"endpoint": after.name, "reason": after.reason}
        match after.state:
            case EndpointState.ACTIVE:
                self._add_event(tx, Event("webhook_resumed", None, data))
            case EndpointState.PAUSED:
                self._add_event(tx, Event("webhook_paused", None, data))
            case EndpointState.DISABLED:
                failed = tx.webhooks.fail_all(receiver_of(after.id), after.reason or "")
                self._add_event(tx, Event("webhook_disabled", None, {**data, "failed": failed}))
            case _:
                assert_never(after.state)

    def _add_event(self, tx: WriteTx, event: Event) -> None:
        """Deliveries are made of it, too; our own commits are no news to us."""
        tx.events.add([event], actor=ACTOR)
        self._behind = True

    def _note_failed(
        self, tx: WriteTx, failed: Sequence[Delivery], endpoints: dict[int, Endpoint]
    ) -> None:
        """One event for each endpoint. A failed delivery of such an event makes no other event, or
        two endpoints that are down would report each other for ever."""
        others = [each for each in failed if each.type != "webhook.failed"]
        known = tx.graph.chains_of([each.job_id for each in others if each.job_id is not None])
        for endpoint_id in sorted({each.endpoint for each in others}):
            those = [each for each in others if each.endpoint == endpoint_id]
            first = those[0]
            jobs = {each.job_id for each in those}
            about = first.job_id if len(jobs) == 1 and first.job_id in known else None
            data = {
                "endpoint": endpoints[endpoint_id].name if endpoint_id != JOBS else None,
                "delivery": first.id,
                "deliveries": len(those),
                "type": first.type,
                "error": first.error,
            }
            self._add_event(tx, Event("webhook_failed", about, data))

    def _tidy(self) -> bool:
        """Fail what has waited too long, and remove what ended long ago. False: there is more."""
        with self._store.write() as tx:
            now = tx.now()
            old = tx.webhooks.fail_old(now - WAITS_AT_MOST, WAITED_TOO_LONG)
            self._note_failed(tx, old, tx.webhooks.endpoints())
            gone = [
                tx.webhooks.forget(state, now - kept_for, FORGOTTEN_AT_ONCE)
                for state, kept_for in (
                    (DeliveryState.DELIVERED, DELIVERED_KEPT_FOR),
                    (DeliveryState.FAILED, FAILED_KEPT_FOR),
                )
            ]
        reach("courier.tidied")
        return max(gone) < FORGOTTEN_AT_ONCE


def request_of(
    delivery_id: str, url: str, body: bytes, secrets: Sequence[str], context: Context
) -> HttpRequest:
    """Signed now."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Headway",
        **signed_headers(delivery_id, context.now() // SECOND, body, secrets),
    }
    return HttpRequest(url, headers, body)


def _with_health(endpoint: Endpoint, reply: HookReply, now: int, hold: int | None) -> Endpoint:
    health = health_after(endpoint, reply, now)
    held_until = health.held_until
    if hold is not None and health.state is EndpointState.ACTIVE:
        held_until = max(now + hold, held_until or 0)
    reason = endpoint.reason
    if health.state is not endpoint.state:
        reason = {
            EndpointState.ACTIVE: None,
            EndpointState.PAUSED: f"{health.failures} failures in a row; the last: {reply.error}",
            EndpointState.DISABLED: "it answered 410: gone",
        }[health.state]
    return endpoint._replace(**health._replace(held_until=held_until)._asdict(), reason=reason)


def _stamp(path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_mtime_ns, found.st_ino
    return None


def _leases(leased: Iterable[Leased]) -> list[tuple[str, str]]:
    return [(each.delivery.id, each.delivery.lease or "") for each in leased]


def main(home: str) -> int:
    """The process. Its standard input is the line to the worker."""
    os.nice(5)
    try:
        context = open_context(home=home, store_url=os.environ.get("HEADWAY_STORE"), actor=ACTOR)
        try:
            courier = Courier(context)
            courier.run(0)
            return DID_NOTHING if courier.did_nothing else 0
        finally:
            context.close()
    except HeadwayError as error:
        sys.stderr.write(f"courier: {error}\n")
        return 1


if __name__ == "__main__":
    status = main(sys.argv[1])
    sys.stderr.flush()
    os._exit(status)  # without waiting for threads whose servers are slow
