"""Webhooks: which events are told and under which type, and what follows from a reply. Pure.

An endpoint is a URL with a name. A delivery is one event for one endpoint, or for a URL that a job
brought along. Those URLs share one endpoint without a URL, `JOBS`.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from headway.core.model import JobId

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR

CURSOR = "webhook_cursor"  # the mark: events up to this one were made deliveries of
NOBODY = -1  # its value while there is neither an endpoint nor a job's own URL
JOBS = 0  # the id of the endpoint of jobs' own URLs
DID_NOTHING = 3  # how a courier exits that found work only for others, who have the secrets

# -- types -------------------------------------------------------------------------------------

INTERNAL = None
# Each kind of event, as in docs/events.md: the type that endpoints get it under. Of the end of a
# run there is exactly one event.
TYPES: Mapping[str, str | None] = {
    "submitted": "job.submitted",
    "queued": "job.waiting",
    "waiting_on_deps": "job.waiting",
    "waiting_on_locks": "job.waiting",
    "waiting_on_approval": "approval.requested",
    "running": "job.started",
    "succeeded": "job.completed",
    "failed": "job.failed",
    "skipped": "job.skipped",
    "cancelled": "job.cancelled",
    "blocked_by_dependency": "job.blocked",
    "blocked_by_approval": "job.blocked",
    "retried": "job.retried",
    "approved": "approval.decided",
    "rejected": "approval.decided",
    "group_ended": "group.ended",
    "workflow_ended": "workflow.ended",
    "schedule_fired": "schedule.fired",
    "schedule_skipped": "schedule.skipped",
    "paused": "scheduler.paused",
    "resumed": "scheduler.resumed",
    "worker_left": "worker.left",
    "host_trouble": "host.trouble",
    "webhook_failed": "webhook.failed",
    **dict.fromkeys(
        (
            *("cancel_requested", "edited", "moved", "unclaimed", "claim_restored", "readopted"),
            *("tree_unproven", "repinned", "published", "rewound", "looped", "not_produced"),
            *("withdrawn", "worktree_cleaned", "worktree_degraded", "slung", "missed_wake_up"),
            *("group_created", "group_closed", "workflow_started", "fanned_out", "fan_failed"),
            *("workflow_stopped", "workflow_retried", "schedule_added", "schedule_enabled"),
            *("schedule_disabled", "schedule_removed", "schedule_triggered", "schedule_stopped"),
            *("clock_jumped", "reserved", "granted", "released", "expired", "target_added"),
            *("target_removed", "helper_failed", "jobs_file_loaded", "jobs_file_refused"),
            *("entry_held", "poll_failed", "reset", "removed", "template_added"),
            *("template_archived", "set", "restored", "runner_parked", "runner_resumed"),
            *("host_recovered", "worker_started", "webhook_added", "webhook_removed"),
            *("webhook_paused", "webhook_resumed", "webhook_disabled", "webhook_rotated"),
            "webhook_replayed",
        ),
        INTERNAL,
    ),
}
ENDS = ("job.completed", "job.failed", "job.skipped", "job.cancelled", "job.blocked")
ALL_TYPES = tuple(sorted({each for each in TYPES.values() if each is not None}))
TEST = "webhook.test"  # only by hand, and never for an event


def is_wanted(type_: str, wanted: Iterable[str]) -> bool:
    """`*` is every type, `job.*` every one that begins so."""
    return any(
        each in ("*", type_) or (each.endswith(".*") and type_.startswith(each[:-1]))
        for each in wanted
    )


def unknown_types(wanted: Iterable[str]) -> list[str]:
    return [each for each in wanted if not any(is_wanted(known, [each]) for known in ALL_TYPES)]


# -- endpoints and deliveries ------------------------------------------------------------------


class EndpointState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"  # nothing is sent; one that paused itself has a trial now and then
    DISABLED = "disabled"  # it said that it is gone


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Endpoint(NamedTuple):
    """`since`: it gets the events after this one. `held_until`: nothing is sent before; of one that
    paused itself, when its next trial is. `holders`: the hosts that have its secret."""

    id: int
    name: str
    url: str
    types: tuple[str, ...]
    schedule: str
    state: EndpointState
    reason: str | None
    since: int
    fingerprint: str
    old_fingerprint: str | None
    overlap_until: int | None
    holders: frozenset[str]
    failures: int
    failing_since: int | None
    held_until: int | None
    created_at: int
    created_by: str
    changed_at: int

    @property
    def shown(self) -> str:
        return f"endpoint-{self.id}"

    @property
    def send_at(self) -> int | None:
        """When it may be sent to; None: not before somebody resumes it."""
        paused = self.state is EndpointState.PAUSED and self.held_until is None
        return None if paused or self.state is EndpointState.DISABLED else self.held_until or 0

    @property
    def on_trial(self) -> bool:
        """It paused itself: one delivery at a time is tried."""
        return self.state is EndpointState.PAUSED and self.held_until is not None


class Delivery(NamedTuple):
    """`id` is the header `webhook-id`. Few are sent at once to one `receiver`: an endpoint, or the
    origin of jobs' own URLs. While it is leased, `due_at` is the lease's end."""

    id: str
    endpoint: int
    receiver: str
    url: str | None  # of a job's own
    type: str
    seq: int
    job_id: JobId | None
    chain: JobId | None
    state: DeliveryState
    tries: int
    due_at: int
    created_at: int
    waiting_since: int
    tried_at: int | None = None
    status_code: int | None = None
    error: str | None = None
    ended_at: int | None = None
    lease: str | None = None
    body: str = ""  # only where it is asked for


def delivery_id(epoch: str, seq: int, endpoint: int, chain: JobId | None, place: int) -> str:
    """The same for the same event and the same receiver, in every process that makes it. The n-th
    URL of a job is told apart by its place. What is signed has full stops between its parts, so
    there is none in here."""
    to = str(endpoint) if endpoint != JOBS else f"job{chain}_{place}"
    return f"{epoch}-{seq}-{to}"


# -- replies -----------------------------------------------------------------------------------

# The pauses between tries, in microseconds. One more try than pauses is made.
SCHEDULES: Mapping[str, tuple[int, ...]] = {
    "quick": (30 * SECOND, 60 * SECOND, 120 * SECOND),
    "standard": (
        *(5 * SECOND, 300 * SECOND, 1_800 * SECOND),
        *(2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR),
    ),
}
JITTER = 0.2  # of a pause, at most, is added to it
STAYS_FOR = round(max(SCHEDULES["quick"]) * (1 + JITTER))  # an idle worker, for the next try
LONGEST_RETRY_AFTER = DAY
GONE = 410
RETRY_LATER = frozenset({429, 503})
PAUSES_AFTER = 20  # failures in a row
PAUSES_OVER = HOUR  # since the first of them
TRIAL_EVERY = HOUR
WAITS_AT_MOST = 7 * DAY
FAILED_KEPT_FOR = 30 * DAY
DELIVERED_KEPT_FOR = 3 * DAY


class HookReply(NamedTuple):
    """What came of one try. `retry_after` is in microseconds, if the receiver said so."""

    status_code: int | None
    error: str | None = None
    retry_after: int | None = None

    @property
    def is_success(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300 and not self.error


class Again(NamedTuple):
    """It is tried once more, after so many microseconds. `all_wait`: and so is everything else for
    this receiver."""

    after: int
    all_wait: bool = False


class GivenUp(NamedTuple):
    """It has failed. `gone`: the receiver wants nothing more at all."""

    gone: bool = False


def judge(
    reply: HookReply, *, tries: int, schedule: str, jitter: float
) -> DeliveryState | Again | GivenUp:
    """What follows from the reply to the `tries`-th try; `jitter` is from 0 to 1."""
    if reply.is_success:
        return DeliveryState.DELIVERED
    if reply.status_code == GONE:
        return GivenUp(gone=True)
    pauses = SCHEDULES[schedule]
    if tries > len(pauses):
        return GivenUp()
    if reply.status_code in RETRY_LATER and reply.retry_after is not None:
        return Again(min(reply.retry_after, LONGEST_RETRY_AFTER), all_wait=True)
    return Again(round(pauses[tries - 1] * (1 + JITTER * jitter)))


class Health(NamedTuple):
    """How an endpoint does: failures in a row, since when, and what that makes of it."""

    state: EndpointState
    failures: int
    failing_since: int | None
    held_until: int | None


def health_after(endpoint: Endpoint, reply: HookReply, now: int) -> Health:
    """After one more reply. One that works goes on, also if it had paused itself; one that has
    failed for long pauses itself. One that a person paused stays so."""
    by_hand = endpoint.state is EndpointState.PAUSED and endpoint.held_until is None
    if endpoint.state is EndpointState.DISABLED or by_hand:
        return Health(endpoint.state, endpoint.failures, endpoint.failing_since, None)
    if reply.is_success:
        asked_to_wait = endpoint.state is EndpointState.ACTIVE
        return Health(EndpointState.ACTIVE, 0, None, endpoint.held_until if asked_to_wait else None)
    failures = endpoint.failures + 1
    since = now if endpoint.failing_since is None else endpoint.failing_since
    if reply.status_code == GONE:
        return Health(EndpointState.DISABLED, failures, since, None)
    if endpoint.on_trial or (failures >= PAUSES_AFTER and now - since >= PAUSES_OVER):
        return Health(EndpointState.PAUSED, failures, since, now + TRIAL_EVERY)
    return Health(EndpointState.ACTIVE, failures, since, endpoint.held_until)
