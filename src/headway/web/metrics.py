"""Metrics in the text format of Prometheus. They have no ids, names or labels of users.

A scrape reads the gauges from the store. The server counts the rest itself, from its start on:
requests when they are answered, and jobs by the events that the tail hands on.
"""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from math import inf
from operator import add
from typing import Any, NamedTuple

from headway import __version__
from headway.base.clock import SECOND
from headway.base.units import parse_instant
from headway.client import Client
from headway.core.fire import sort_of_skip
from headway.core.model import AGENT, FUNCTION, GATE, OPERATION
from headway.jobs.views.times import JobTimes
from headway.webhooks.views import CountedTo, backlog, count_ended

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
MOST_SERIES = 200  # of a label that grows with what users make; the rest is `other`
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})  # a client may send any word
FRESH_FOR = 1.0  # seconds; gauges are read once, however many ask
OWN_TYPES = frozenset({"command", FUNCTION, AGENT, GATE, OPERATION})  # others are words of users
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)

Labels = tuple[tuple[str, str], ...]


def _line(name: str, labels: Labels, value: float) -> str:
    said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    number = f"{value:d}" if isinstance(value, int) else repr(value)  # all digits of it
    return f"headway_{name}{{{said}}} {number}" if said else f"headway_{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _family(name: str, kind: str, about: str, lines: Iterable[str]) -> list[str]:
    return [f"# HELP headway_{name} {about}", f"# TYPE headway_{name} {kind}", *lines]


class Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.sum += seconds

    def lines(self, name: str, labels: Labels) -> list[str]:
        bounds = [*(f"{each:g}" for each in SECONDS), "+Inf"]
        pairs = zip(bounds, accumulate(self.counts), strict=True)
        return [
            *(_line(f"{name}_bucket", (*labels, ("le", each)), count) for each, count in pairs),
            _line(f"{name}_sum", labels, self.sum),
            _line(f"{name}_count", labels, sum(self.counts)),
        ]


class Metrics:
    """What the server counts itself."""

    def __init__(self, since: int = 0) -> None:
        """`since`: when the server began, by the clock of the store."""
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # of gauges, by one for all who ask
        self._gauges = ""
        self._read_at = -inf
        self._counting = threading.Lock()  # of deliveries, by one at a time
        self._deliveries = CountedTo(since)
        self._replayed = False
        self._endpoints: set[str] = set()  # with series of their own
        self._counters: dict[str, Counter[Labels]] = {name: Counter() for name in COUNTERS}
        self._histograms: dict[str, dict[Labels, Histogram]] = {name: {} for name in HISTOGRAMS}

    def gauges(self, client: Client, now: float) -> str:
        """What the store says; at the second `now` of a monotonic clock."""
        with self._reading:
            if now - self._read_at >= FRESH_FOR:
                self._gauges, self._read_at = gauges(client), now
            return self._gauges

    def requested(self, route: str, method: str, code: int, seconds: float) -> None:
        method = method if method in METHODS else OTHER
        with self._lock:
            labels = (("route", route), ("method", method), ("code", str(code)))
            self._counters["http_requests_total"][labels] += 1
            self._observe("http_request_seconds", (("route", route),), seconds)

    def happened(self, client: Client, batch: Sequence[Mapping[str, Any]]) -> None:
        """Count events. Called in the thread that reads them."""
        ended = {int(each["job"][4:]): each["kind"] for each in batch if each["kind"] in ENDS}
        times = client.jobs.times(list(ended)) if ended else ()
        with self._lock:
            for event in batch:
                name = BY_KIND.get(event["kind"])
                if name is not None:
                    self._counters[name][()] += 1
                elif event["kind"] == "schedule_skipped":
                    reason = sort_of_skip(event["data"]["reason"])
                    skipped = self._counters["schedule_slots_skipped_total"]
                    skipped[(("reason", reason),)] += event["data"]["slots"]
                elif event["kind"] == "webhook_replayed":  # old ones may end once more
                    self._replayed = True
            for each in times:
                self._count_end(each, ended[each.job_id])

    def count_deliveries(self, client: Client) -> None:
        """Those that ended since the last time: of an end of a delivery there is no event."""
        with self._counting:
            with self._lock:
                replayed, self._replayed = self._replayed, False
            if replayed:
                self._deliveries = self._deliveries._replace(made_since=0)
            self._deliveries, ended = count_ended(client.context, self._deliveries)
            with self._lock:
                for (endpoint, outcome), number in ended.items():
                    self._count_delivered(endpoint, outcome, number)

    def _count_delivered(self, endpoint: str, outcome: str, number: int) -> None:
        if len(self._endpoints) < MOST_SERIES:
            self._endpoints.add(endpoint)
        named = endpoint if endpoint in self._endpoints else OTHER
        labels = (("endpoint", named), ("outcome", outcome))
        self._counters["webhook_deliveries_total"][labels] += number

    def _count_end(self, times: JobTimes, state: str) -> None:
        of_type = (("type", times.type if times.type in OWN_TYPES else OTHER),)
        self._counters["jobs_ended_total"][(("state", state), *of_type)] += 1
        if times.waited is not None:
            self._observe("job_wait_seconds", (), times.waited)
        if times.ran is not None:
            self._observe("job_run_seconds", of_type, times.ran)

    def _observe(self, name: str, labels: Labels, seconds: float) -> None:
        known = self._histograms[name]
        if labels not in known and len(known) >= MOST_SERIES:
            labels = tuple((key, OTHER) for key, _ in labels)
        known.setdefault(labels, Histogram()).add(seconds)

    def text(self) -> str:
        with self._lock:
            lines: list[str] = []
            for name, about in COUNTERS.items():
                found = self._counters[name] or Counter({} if name in LABELLED else {(): 0})
                rows = (_line(name, labels, count) for labels, count in sorted(found.items()))
                lines += _family(name, "counter", about, rows)
            for name, about in HISTOGRAMS.items():
                rows = (
                    line
                    for labels, each in sorted(self._histograms[name].items())
                    for line in each.lines(name, labels)
                )
                lines += _family(name, "histogram", about, rows)
            return "\n".join(lines) + "\n"


ENDS = frozenset(
    {"succeeded", "failed", "cancelled", "skipped", "blocked_by_dependency", "blocked_by_approval"}
)
COUNTERS = {
    "jobs_submitted_total": "Jobs that were submitted.",
    "jobs_ended_total": "Jobs that ended, by state and type.",
    "retries_total": "Jobs that were made to try again.",
    "missed_wake_ups_total": "Jobs that could have started earlier; please report it.",
    "schedule_slots_skipped_total": "Slots of schedules that made nothing.",
    "webhook_deliveries_total": "Deliveries that ended, by endpoint and outcome.",
    "http_requests_total": "Requests that were answered.",
}
LABELLED = frozenset(
    {
        "jobs_ended_total",
        "schedule_slots_skipped_total",
        "webhook_deliveries_total",
        "http_requests_total",
    }
)
BY_KIND = {
    "submitted": "jobs_submitted_total",
    "retried": "retries_total",
    "missed_wake_up": "missed_wake_ups_total",
}
HISTOGRAMS = {
    "job_wait_seconds": "From when a job could first start to its start.",
    "job_run_seconds": "From the start of a job to its end.",
    "http_request_seconds": "How long requests took.",
}


# -- gauges ------------------------------------------------------------------------------------


def gauges(client: Client) -> str:
    """What the store says now."""
    status = client.scheduler.status()
    lines = _family(
        "build_info", "gauge", "The version.", [_line("build_info", (("version", __version__),), 1)]
    )
    for name, about, rows in _present(client, status):
        lines += _family(
            name, "gauge", about, (_line(name, labels, value) for labels, value in rows)
        )
    return "\n".join(lines) + "\n"


def _present(
    client: Client, status: Mapping[str, Any]
) -> Iterable[tuple[str, str, list[tuple[Labels, float]]]]:
    hosts = _hosts(client, status)
    yield (
        "worker_up",
        "Whether a worker is there.",
        [(each, health.worker) for each, health in hosts.items()],
    )
    yield "paused", "Whether dispatch is paused.", [((), status["paused"])]
    yield (
        "breaker_open",
        "Whether launches are held back.",
        [(each, health.breaker) for each, health in hosts.items()],
    )
    rows: list[tuple[Labels, float]] = [
        ((("state", state),), count) for state, count in sorted(status["waiting"].items())
    ]
    rows.append(((("state", "running"),), status["active"]))
    yield "jobs", "Jobs that have not ended, by state.", rows
    yield "jobs_ready", "Jobs that wait for a slot alone.", [((), status["queued_ready"])]
    waits, oldest = _waits(client)
    yield "jobs_waiting", "Jobs that wait for something, by what.", waits
    yield "oldest_ready_seconds", "The age of the oldest job that waits for a slot alone.", oldest
    asking = sum(each["now"] for each in client.jobs.approvals())
    yield "approvals_pending", "Jobs that wait for a person now.", [((), asking)]
    yield "slots_in_use", "Slots in use.", [((), status["active"])]
    if status["max_active"] > 0:
        yield "slots_capacity", "Slots in all.", [((), status["max_active"])]
    limits = status["limits"]
    yield (
        "limit_in_use",
        "What is in use of a limit.",
        _bounded((_limit(each), each["used"]) for each in limits),
    )
    yield (
        "limit_capacity",
        "How much a limit allows.",
        _bounded((_limit(each), each["limit"]) for each in limits),
    )
    yield "log_bytes", "What jobs have written, as it is kept.", [((), status["log_bytes"])]
    yield (
        "schedule_last_fire_timestamp_seconds",
        "When a schedule last fired.",
        _last_fires(client),
    )

    found = backlog(client.context)
    pending = (((("endpoint", name),), number) for name, number in found.pending.items())
    yield "webhook_pending", "Deliveries that are still to be made.", _bounded(pending)
    yield (
        "webhook_oldest_pending_seconds",
        "For how long the first of them waits.",
        [((), found.oldest)],
    )
    yield "store_bytes", "How large the store is.", [((), client.context.store.size())]


class _HostHealth(NamedTuple):
    worker: bool
    breaker: bool


def _hosts(client: Client, status: Mapping[str, Any]) -> dict[Labels, _HostHealth]:
    """This one, and the others of the store. Whether a worker of another host lives is not known;
    it is there unless it has left. Homes of one machine are one."""
    here = _HostHealth(status["worker"], status["breaker"] is not None)
    found: dict[Labels, _HostHealth] = {(("host", client.context.host.name),): here}
    for each in client.scheduler.hosts():
        labels = (("host", each["name"]),)
        if each["here"] or (labels not in found and len(found) >= MOST_SERIES):
            continue
        worker = each["worker"] is not None and each["worker"]["ended_at"] is None
        known = found.get(labels, _HostHealth(worker=False, breaker=False))
        found[labels] = _HostHealth(
            known.worker or worker, known.breaker or each["breaker"] is not None
        )
    return found


def _waits(client: Client) -> tuple[list[tuple[Labels, float]], list[tuple[Labels, float]]]:
    with client.context.store.read() as tx:
        waits, ready_since, now = tx.jobs.count_waits(), tx.jobs.oldest_ready(), tx.now()
    kinds: list[tuple[Labels, float]] = [
        ((("kind", kind),), number) for kind, number in sorted(waits.items())
    ]
    return kinds, [((), 0 if ready_since is None else max(0, now - ready_since) / SECOND)]


def _bounded(
    rows: Iterable[tuple[Labels, float]], together: Callable[[float, float], float] = add
) -> list[tuple[Labels, float]]:
    """The first so many series; the rest is one."""
    found: dict[Labels, float] = {}
    for labels, value in rows:
        if labels not in found and len(found) >= MOST_SERIES:
            labels = tuple((key, OTHER) for key, _ in labels)
        found[labels] = together(found[labels], value) if labels in found else value
    return list(found.items())


def _limit(limit: Mapping[str, Any]) -> Labels:
    return (("kind", limit["kind"]), ("word", limit["name"]))


def _last_fires(client: Client) -> list[tuple[Labels, float]]:
    fired = [each for each in client.schedules.list() if each["last_slot"]]
    rows: Iterable[tuple[Labels, float]] = (
        ((("schedule", each["name"]),), parse_instant(each["last_slot"], 0) / SECOND)
        for each in fired
    )
    return _bounded(rows, max)
