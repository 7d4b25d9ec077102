"""Webhooks: endpoints, the URLs of jobs, and deliveries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.core.model import Job, JobId
from headway.core.webhooks import ENDS, JOBS, Delivery, DeliveryState, Endpoint, EndpointState
from headway.store.access import Access, Table
from headway.store.records import EndedDeliveries, JobUrl, NewDelivery, PendingDeliveries, Try
from headway.store.rows import dump, load

_TYPES = dump(list(ENDS))


class WebhooksReader(Table):
    """Webhooks as a read transaction shows them."""

    def cursor(self) -> int:
        """The mark, without the rest of the scheduler's state."""
        row = self._db.one("webhook_cursor")
        return row[0] if row else -1

    def endpoints(self) -> dict[int, Endpoint]:
        """All, by their ids, with the one of jobs' own URLs."""
        return {row[0]: _endpoint(row) for row in self._db.all("all_endpoints")}

    def endpoint(self, endpoint_id: int) -> Endpoint | None:
        row = self._db.one("endpoint_by_id", id=endpoint_id)
        return _endpoint(row) if row else None

    def named(self, name: str) -> Endpoint | None:
        row = self._db.one("endpoint_named", name=name)
        return _endpoint(row) if row else None

    def any_urls(self) -> bool:
        """Whether a job that is not over has a URL of its own."""
        return self._db.one("any_job_webhooks") is not None

    def urls_of(self, chains: Sequence[JobId]) -> dict[JobId, list[JobUrl]]:
        found: dict[JobId, list[JobUrl]] = {}
        for chain, url, types in self._db.all("job_webhooks_of", chains=self._db.json(chains)):
            wanted = tuple(load(types, f"the webhook of job-{chain}"))
            found.setdefault(chain, []).append(JobUrl(url, wanted))
        return found

    def beyond_cursor(self, chains: Sequence[JobId], cursor: int, after: int) -> dict[JobId, JobId]:
        """Of these chains those that ended after this instant and have an event beyond the cursor,
        each with such a job."""
        asked = {"chains": self._db.json(chains), "cursor": cursor, "after": after}
        return dict(self._db.all("chains_beyond_cursor", **asked))

    def receivers(self) -> dict[str, int]:
        """Each receiver with pending deliveries, and when the first of them is due."""
        return dict(self._db.all("receivers_waiting"))

    def delivery(self, delivery_id: str) -> Delivery | None:
        row = self._db.one("delivery", id=delivery_id)
        return _delivery(row) if row else None

    def newest(self, state: DeliveryState, since: int, limit: int) -> list[Delivery]:
        asked = {"state": state.value, "since": since, "limit": limit}
        return [_delivery(row) for row in self._db.all("newest_deliveries", **asked)]

    def of_chain(self, chain: JobId, since: int) -> list[Delivery]:
        """The newest first."""
        rows = self._db.all("deliveries_of_chain", chain=chain, since=since)
        return [_delivery(row) for row in rows]

    def counts(self) -> dict[int, dict[DeliveryState, int]]:
        """How many deliveries each endpoint has in each state."""
        found: dict[int, dict[DeliveryState, int]] = {}
        for endpoint, state, number in self._db.all("count_deliveries"):
            found.setdefault(endpoint, {})[DeliveryState(state)] = number
        return found

    def pending(self) -> dict[int, PendingDeliveries]:
        """Of each endpoint that has some."""
        return {row[0]: PendingDeliveries(*row[1:]) for row in self._db.all("pending_deliveries")}

    def ended(self, after: int, made_since: int) -> list[EndedDeliveries]:
        """Those that ended after one instant, of those made since another."""
        asked = {"after": after, "made_since": made_since}
        return [EndedDeliveries._make(row) for row in self._db.all("ended_deliveries", **asked)]


class WebhooksTable(WebhooksReader):
    """Webhooks as a write transaction changes them."""

    def take_id(self) -> int:
        return int(self._db.all("take_endpoint_id")[0][0])

    def add(self, endpoint: Endpoint) -> None:
        self._db.send("begin_webhooks")
        self._db.send("add_endpoint", **_row(endpoint))

    def begin(self) -> None:
        """If nobody wanted messages before, someone does from the next event on."""
        self._db.send("begin_webhooks")

    def end(self) -> bool:
        """Nobody wants messages any more; False if someone does."""
        return self._db.change("end_webhooks") == 1

    def change(self, endpoint: Endpoint) -> None:
        """All but its name, its URL, its types and its schedule."""
        changed = endpoint._replace(changed_at=self._db.now)
        self._db.send("change_endpoint", **_row(changed))

    def remove(self, endpoint_id: int) -> None:
        """With its deliveries."""
        self._db.send("remove_deliveries_of_endpoint", id=endpoint_id)
        self._db.send("remove_endpoint", id=endpoint_id)

    # -- making deliveries ---------------------------------------------------------------------

    def move_cursor(self, at: int, to: int) -> bool:
        """False: another has moved it since it was read."""
        return self._db.change("move_webhook_cursor", at=at, to=to) == 1

    def add_deliveries(self, made: Iterable[NewDelivery]) -> None:
        """One that is there already stays as it is."""
        at = self._db.now
        self._db.many("add_deliveries", ({**each._asdict(), "at": at} for each in made))

    def close_urls(self, chains: Sequence[JobId], cursor: int) -> None:
        """The URLs of those of these chains that are over, with nothing beyond the cursor."""
        self._db.send("close_job_webhooks", chains=self._db.json(chains), cursor=cursor)

    # -- sending -------------------------------------------------------------------------------

    def lease(self, receiver: str, *, lease: str, until: int, limit: int) -> list[Delivery]:
        """The first that are due; nobody else takes them until then."""
        asked = {
            "receiver": receiver,
            "lease": lease,
            "until": until,
            "limit": limit,
            "now": self._db.now,
        }
        return [_delivery(row) for row in self._db.all("lease_deliveries", **asked)]

    def record_delivered(self, tries: Iterable[Try]) -> None:
        """Those whose leases still hold."""
        at = self._db.now
        self._db.many("record_delivered", ({**_of(each), "at": at} for each in tries))

    def record_failure(self, failed: Try, due_at: int | None) -> bool:
        """To be sent again at that instant, or never; False if its lease holds no more."""
        at = self._db.now
        state = DeliveryState.FAILED if due_at is None else DeliveryState.PENDING
        changed = self._db.change(
            "record_failure",
            **_of(failed),
            error=failed.error,
            state=state.value,
            due_at=at if due_at is None else due_at,
            at=at,
            ended_at=at if due_at is None else None,
        )
        return changed == 1

    def give_back(self, leased: Iterable[tuple[str, str]]) -> None:
        """Deliveries that were leased and not sent, each with its lease."""
        at = self._db.now
        self._db.many(
            "give_back_deliveries", ({"id": each, "lease": by, "at": at} for each, by in leased)
        )

    def fail_all(self, receiver: str, error: str) -> int:
        """What is pending there; how many those are."""
        return self._db.change(
            "fail_deliveries_of_endpoint", receiver=receiver, error=error, at=self._db.now
        )

    def fail_old(self, before: int, error: str) -> list[Delivery]:
        """What has been pending since before then; those that have failed now."""
        asked = {"before": before, "error": error, "at": self._db.now}
        return [_delivery(row) for row in self._db.all("fail_old_deliveries", **asked)]

    def forget(self, state: DeliveryState, before: int, most: int) -> int:
        """So many at most that came to this end before; how many went."""
        return self._db.change("forget_deliveries", state=state.value, before=before, most=most)

    def replay(self, delivery_id: str) -> bool:
        """False while it is pending."""
        return self._db.change("replay_delivery", id=delivery_id, at=self._db.now) == 1

    def replay_failed(self, since: int) -> int:
        return self._db.change("replay_failed", since=since, at=self._db.now)


def add_urls(db: Access, jobs: Sequence[Job]) -> None:
    """Add the URLs that these jobs brought along. Someone wants messages from now on."""
    db.send("begin_webhooks")
    rows = ((job.chain, url) for job in jobs for url in job.webhooks)
    db.many("add_job_webhooks", ({"chain": c, "url": u, "types": _TYPES} for c, u in rows))


def receiver_of(endpoint: int) -> str:
    return f"endpoint-{endpoint}"


def endpoint_of(receiver: str) -> int:
    """Receivers of jobs' own URLs are origins."""
    return int(receiver.removeprefix("endpoint-")) if receiver.startswith("endpoint-") else JOBS


def _endpoint(row: tuple[Any, ...]) -> Endpoint:
    known = Endpoint._make(row)
    what = f"endpoint-{known.id}"
    return known._replace(
        types=tuple(load(row[3], what)),
        state=EndpointState(known.state),
        holders=frozenset(load(row[11], what)),
    )


def _row(endpoint: Endpoint) -> dict[str, Any]:
    return endpoint._asdict() | {
        "types": dump(list(endpoint.types)),
        "state": endpoint.state.value,
        "holders": dump(sorted(endpoint.holders)),
    }


def _delivery(row: tuple[Any, ...]) -> Delivery:
    return Delivery._make((*row, "") if len(row) < len(Delivery._fields) else row)._replace(
        state=DeliveryState(row[8])
    )


def _of(made: Try) -> Mapping[str, Any]:
    return {"id": made.id, "lease": made.lease, "status_code": made.status_code}
