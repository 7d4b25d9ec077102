"""Make deliveries of events: the events are the outbox, and a cursor says how far it was read.

Bodies are made in a read transaction, which holds up nobody. Then one short write transaction adds
the deliveries and moves the cursor, unless another courier has moved it since: then it does
nothing. After a crash in between the cursor is where it was, and the same ids are made again. Only
kinds of events that somebody wants are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway.base.epoch import epoch_of
from headway.base.errors import DataError
from headway.core.destinations import destination_of
from headway.core.model import Job, JobId, shown
from headway.core.webhooks import (
    CURSOR,
    ENDS,
    JOBS,
    NOBODY,
    TYPES,
    Endpoint,
    EndpointState,
    delivery_id,
    is_wanted,
)
from headway.jobs.context import Context
from headway.jobs.views.details import describe
from headway.store.new_jobs import Event
from headway.store.records import JobUrl, NewDelivery
from headway.store.tables.webhooks import receiver_of
from headway.store.transaction import ReadTx, WriteTx
from headway.webhooks.bodies import body_of

EVENTS_AT_ONCE = 500
_ENDS = tuple(kind for kind, type_ in TYPES.items() if type_ in ENDS)


class Page(NamedTuple):
    """Deliveries of the events after `at`, up to `to`; `over` are chains with URLs of their own
    that may have come to their end. `is_last`: there are no more events."""

    at: int
    to: int
    made: tuple[NewDelivery, ...]
    over: tuple[JobId, ...]
    is_last: bool


def read_page(context: Context, most: int = EVENTS_AT_ONCE) -> Page | None:
    """What is to be made of the next events; None: nothing."""
    with context.store.read() as tx:
        marks = tx.settings.marks()
        cursor, last = marks[CURSOR], tx.events.last()
        if cursor == NOBODY or last <= cursor:
            return None
        endpoints = [
            each
            for each in tx.webhooks.endpoints().values()
            if each.id != JOBS and each.state is not EndpointState.DISABLED
        ]
        any_urls = tx.webhooks.any_urls()
        kinds = _kinds(endpoints, any_urls)
        events = tx.events.of_kinds(kinds, after=cursor, limit=most) if kinds else []
        chains = _chains(tx, events)
        urls = tx.webhooks.urls_of(sorted(set(chains.values()))) if any_urls and chains else {}
        drafts = [each for event in events for each in _drafts(event, endpoints, chains, urls)]
        documents = _documents(context, tx, {each.event.job_id for each in drafts})
    is_last = len(events) < most
    to = last if is_last else events[-1].seq
    return Page(cursor, to, tuple(_made(drafts, documents, marks)), tuple(sorted(urls)), is_last)


def apply_page(tx: WriteTx, page: Page) -> bool:
    """Add its deliveries; False, and nothing is done, if another courier was quicker."""
    if not tx.webhooks.move_cursor(page.at, page.to):
        return False
    if page.made:
        there = tx.webhooks.endpoints()
        tx.webhooks.add_deliveries(each for each in page.made if each.endpoint in there)
    if page.over:
        tx.webhooks.close_urls(page.over, page.to)
    return True


def _kinds(endpoints: Sequence[Endpoint], any_urls: bool) -> list[str]:
    """Those that somebody wants."""
    wanted = {each for endpoint in endpoints for each in endpoint.types}
    of_urls = _ENDS if any_urls else ()
    return sorted(
        kind
        for kind, type_ in TYPES.items()
        if type_ is not None and (kind in of_urls or is_wanted(type_, wanted))
    )


def _made(
    drafts: Sequence["_Draft"],
    documents: Mapping[JobId, dict[str, Any]],
    marks: Mapping[str, int],
) -> Iterator[NewDelivery]:
    """One body for all who get the same event."""
    bodies: dict[int, str] = {}
    for draft in drafts:
        event = draft.event
        epoch = epoch_of(marks, event.seq) or "0"
        if event.seq not in bodies:
            job = None if event.job_id is None else documents[event.job_id]
            bodies[event.seq] = body_of(TYPES[event.kind] or "", event, epoch, job)
        yield draft.delivery(epoch, bodies[event.seq])


class _Draft(NamedTuple):
    """A delivery without its body: an event for an endpoint, or for the URL of a job, by place."""

    event: Event
    endpoint: int
    chain: JobId | None
    url: str | None = None
    place: int = 0

    def delivery(self, epoch: str, body: str) -> NewDelivery:
        event = self.event
        return NewDelivery(
            id=delivery_id(epoch, event.seq, self.endpoint, self.chain, self.place),
            endpoint=self.endpoint,
            receiver=receiver_of(self.endpoint) if self.url is None else _origin(self.url),
            url=self.url,
            type=TYPES[event.kind] or "",
            seq=event.seq,
            job_id=event.job_id,
            chain=self.chain,
            body=body,
        )


def _drafts(
    event: Event,
    endpoints: Sequence[Endpoint],
    chains: Mapping[JobId, JobId],
    urls: Mapping[JobId, Sequence[JobUrl]],
) -> Iterator[_Draft]:
    type_ = TYPES[event.kind] or ""
    chain = chains.get(event.job_id) if event.job_id is not None else None
    for endpoint in endpoints:
        if event.seq <= endpoint.since or not is_wanted(type_, endpoint.types):
            continue
        if event.kind == "webhook_failed" and event.data.get("endpoint") == endpoint.name:
            continue  # one that failed is not told of it
        yield _Draft(event, endpoint.id, chain)
    for place, each in enumerate(urls.get(chain or 0, ())):
        if is_wanted(type_, each.types):
            yield _Draft(event, JOBS, chain, each.url, place)


def _chains(tx: ReadTx, events: Sequence[Event]) -> dict[JobId, JobId]:
    """The chain of each job that these events are about."""
    ids = sorted({event.job_id for event in events if event.job_id is not None})
    return tx.graph.chains_of(ids) if ids else {}


def _documents(context: Context, tx: ReadTx, ids: set[JobId | None]) -> dict[JobId, dict[str, Any]]:
    """As `jobs show` has them. One that is gone, or cannot be read, holds up nobody else."""
    wanted = sorted(each for each in ids if each is not None)
    jobs: dict[JobId, Job] = tx.jobs.readable(wanted) if wanted else {}
    found = {each: {"id": shown(each), "error": "its record cannot be read"} for each in wanted}
    try:
        described = describe(context, tx, list(jobs.values())) if jobs else []
        return {**found, **dict(zip(jobs, described, strict=True))}
    except DataError:
        for job in jobs.values():
            with suppress(DataError):
                found[job.id] = describe(context, tx, [job])[0]
    return found


def _origin(url: str) -> str:
    found = destination_of(url)
    return "" if isinstance(found, str) else found.origin
