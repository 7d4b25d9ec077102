"""Endpoints and deliveries as people and programs see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.clock import SECOND
from headway.base.errors import InvalidInputError
from headway.base.units import show_instant
from headway.core.destinations import destination_of
from headway.core.model import JobId, shown
from headway.core.webhooks import JOBS, Delivery, DeliveryState, Endpoint
from headway.webhooks.secret_file import SecretFile

if TYPE_CHECKING:
    from headway.jobs.context import Context

MOST_DELIVERIES = 1_000


def endpoint_documents(
    context: Context, found: Sequence[Endpoint] | None = None
) -> list[dict[str, Any]]:
    """Of these, or of all by their ids."""
    with context.store.read() as tx:
        if found is None:
            found = [each for each in tx.webhooks.endpoints().values() if each.id != JOBS]
        counts = tx.webhooks.counts() if found else {}
    here = SecretFile(context.home).all() if found else {}
    return [
        endpoint_document(each, counts.get(each.id, {}), signs_here=each.fingerprint in here)
        for each in found
    ]


def endpoint_document(
    endpoint: Endpoint, counts: Mapping[DeliveryState, int], *, signs_here: bool
) -> dict[str, Any]:
    return {
        "id": endpoint.shown,
        "name": endpoint.name,
        "url": endpoint.url,
        "origin": origin_of(endpoint.url),
        "types": list(endpoint.types),
        "state": endpoint.state.value,
        "reason": endpoint.reason,
        "schedule": endpoint.schedule,
        "fingerprint": endpoint.fingerprint,
        "overlap_until": show_instant(endpoint.overlap_until),
        "signs_here": signs_here,
        "failures": endpoint.failures,
        "held_until": show_instant(endpoint.held_until),
        **{state.value: counts.get(state, 0) for state in DeliveryState},
        "created_at": show_instant(endpoint.created_at),
        "created_by": endpoint.created_by,
        "changed_at": show_instant(endpoint.changed_at),
    }


class Backlog(NamedTuple):
    """Pending deliveries, by the names of endpoints, and for how many seconds the first waits."""

    pending: Mapping[str, int]
    oldest: float


def backlog(context: Context) -> Backlog:
    with context.store.read() as tx:
        found = tx.webhooks.pending()
        names = tx.webhooks.endpoints()
        now = tx.now()
    pending = {
        each.name: found[id_].number if id_ in found else 0
        for id_, each in names.items()
        if id_ != JOBS or id_ in found
    }
    since = min((each.waiting_since for each in found.values()), default=now)
    return Backlog(pending, max(0, now - since) / SECOND)


class CountedTo(NamedTuple):
    """How far ended deliveries were counted: up to one instant, and none that was made before the
    other can have ended since."""

    ended_at: int
    made_since: int = 0


def count_ended(
    context: Context, known: CountedTo
) -> tuple[CountedTo, Mapping[tuple[str, str], int]]:
    """How many deliveries ended since, by the names of endpoints and their states. Writers take
    turns, so no end is committed later that is of an earlier instant."""
    with context.store.read() as tx:
        found = tx.webhooks.ended(known.ended_at, known.made_since)
        pending = tx.webhooks.pending()
        names = tx.webhooks.endpoints() if found else {}
    ended_at = max((each.last_at for each in found), default=known.ended_at)
    made_since = min((each.made_at for each in pending.values()), default=ended_at)
    counted = {(names[each.endpoint].name, each.state): each.number for each in found}
    return CountedTo(ended_at, made_since), counted


def deliveries(
    context: Context, *, state: str | None, chain: JobId | None, since: int, limit: int
) -> list[dict[str, Any]]:
    """The newest first."""
    if not 1 <= limit <= MOST_DELIVERIES:
        raise InvalidInputError(f"the limit {limit} is not between 1 and {MOST_DELIVERIES}")
    if state is not None and state not in list(DeliveryState):
        raise InvalidInputError(f"--state {state!r} is not one of {', '.join(DeliveryState)}")
    wanted = list(DeliveryState) if state is None else [DeliveryState(state)]
    with context.store.read() as tx:
        if chain is not None:
            found = [each for each in tx.webhooks.of_chain(chain, since) if each.state in wanted]
        else:
            found = [row for each in wanted for row in tx.webhooks.newest(each, since, limit)]
        endpoints = tx.webhooks.endpoints() if found else {}
    found.sort(key=lambda each: (each.created_at, each.seq, each.id), reverse=True)
    return [delivery_document(each, endpoints) for each in found[:limit]]


def delivery_document(delivery: Delivery, endpoints: Mapping[int, Endpoint]) -> dict[str, Any]:
    endpoint = endpoints.get(delivery.endpoint)
    named = endpoint is not None and endpoint.id != JOBS
    pending = delivery.state is DeliveryState.PENDING
    return {
        "id": delivery.id,
        "endpoint": endpoint.name if endpoint is not None and named else None,
        "origin": origin_of(delivery.url or (endpoint.url if endpoint is not None else "")),
        "type": delivery.type,
        "sequence": delivery.seq,
        "job": None if delivery.job_id is None else shown(delivery.job_id),
        "state": delivery.state.value,
        "tries": delivery.tries,
        "status_code": delivery.status_code,
        "error": delivery.error,
        "created_at": show_instant(delivery.created_at),
        "next_at": show_instant(delivery.due_at) if pending else None,
        "last_try_at": show_instant(delivery.tried_at),
        "ended_at": show_instant(delivery.ended_at),
    }


def origin_of(url: str) -> str | None:
    found = destination_of(url)
    return None if isinstance(found, str) else found.origin
