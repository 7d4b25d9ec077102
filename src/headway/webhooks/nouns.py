"""What `headway.Client` offers for webhooks.

An *endpoint* is a URL with a name that gets told what happens. A *delivery* is one event for one
endpoint, or for a URL that a job brought along; its `id` is the header `webhook-id`.

The document of an endpoint:

    id            "endpoint-3"
    name          "ci"
    url           the whole URL, which may itself be a secret; who may not see it gets `origin`
    origin        "https://ci.example.org"
    types         ["job.completed", "job.failed"], ["job.*"], or ["*"] for all
    state         "active"; "paused": nothing is sent; "disabled": it answered 410
    reason        why it is paused or disabled, or null
    schedule      "quick" (4 tries in about 4 minutes) or "standard" (10 tries in 75 hours)
    fingerprint   of its secret, "sha256:..."
    overlap_until until when the secret before signs as well, or null
    signs_here    whether this home has its secret
    failures      tries that failed in a row
    held_until    nothing is sent before: it asked for that, or it paused itself; or null
    pending, delivered, failed    how many deliveries are kept in each state
    created_at, created_by, changed_at

The document of a delivery:

    id            "9f3c51a20b7e-1812-3"
    endpoint      "ci", or null for a job's own URL
    origin        of the URL
    type          "job.completed"
    sequence      the number of its event
    job           "job-24", or null
    state         "pending", "delivered" or "failed"
    tries         how often it was sent; status_code and error are of the last time
    status_code   of the last answer, or null
    error         why the last try failed, or null
    created_at, next_at (null unless pending), last_try_at, ended_at
    body          only from `delivery`: the bytes that are sent, as text

Instants are texts like `2026-11-15T22:30:00.000000Z`, as in all documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.jobs.nouns import ClientNoun


class Webhooks(ClientNoun):
    """`client.webhooks`. An endpoint is known by its name or its id."""

    def add(
        self, name: str, url: str, *, types: Sequence[str] = (), schedule: str = "quick"
    ) -> dict[str, Any]:
        """Tell a URL what happens from now on; without types, the ends of jobs. Its document, and
        once, under `secret`, the secret that signs. Raises InvalidInputError for a URL that may not
        be sent to; the text has the line of config.toml that would allow it. ConflictError if the
        name is taken."""
        from headway.webhooks.manage import add_endpoint

        return add_endpoint(self._context, name, url, types, schedule)

    def list(self) -> Sequence[dict[str, Any]]:
        """The documents of all endpoints, by their ids."""
        from headway.webhooks.views import endpoint_documents

        return endpoint_documents(self._context)

    def show(self, reference: str) -> dict[str, Any]:
        """NotFoundError if there is none."""
        from headway.webhooks.manage import require_endpoint
        from headway.webhooks.views import endpoint_documents

        with self._context.store.read() as tx:
            found = require_endpoint(tx, reference)
        return endpoint_documents(self._context, [found])[0]

    def test(self, reference: str) -> dict[str, Any]:
        """Send one signed request of type `webhook.test` now, whatever the endpoint's state, and
        wait for the answer (20 s at most). `{"delivered", "status_code", "error", "seconds"}`;
        nothing is recorded."""
        from headway.webhooks.manage import try_endpoint

        return try_endpoint(self._context, reference)

    def pause(self, reference: str) -> bool:
        """Send nothing to it until it is resumed; deliveries wait, for 7 days at most. False if it
        was paused before."""
        from headway.webhooks.manage import pause_endpoint

        return pause_endpoint(self._context, reference)

    def resume(self, reference: str) -> bool:
        """Send to it again, also to one that was disabled; False if it was active."""
        from headway.webhooks.manage import resume_endpoint

        return resume_endpoint(self._context, reference)

    def rotate(self, reference: str | None = None, *, overlap: str = "24h") -> dict[str, Any]:
        """Give it a new secret; until the overlap is over the one before signs as well. Without an
        endpoint: that of jobs' own URLs. `{"name", "secret", "fingerprint", "overlap_until"}`."""
        from headway.webhooks.manage import rotate_secret

        return rotate_secret(self._context, reference, overlap)

    def remove(self, reference: str) -> dict[str, Any]:
        """With its deliveries and its secret; the document that it had."""
        from headway.webhooks.manage import remove_endpoint

        document = self.show(reference)
        remove_endpoint(self._context, document["id"])
        return document

    def secret(self, reference: str | None = None) -> str:
        """The secret that signs, `whsec_...`; without an endpoint, that of jobs' own URLs, which is
        made if there is none. NotFoundError if this home does not have it."""
        from headway.webhooks.manage import secret_of

        return secret_of(self._context, reference)

    def import_(self, reference: str | None, secret: str) -> dict[str, Any]:
        """Bring a secret that another home has to this one; InvalidInputError unless it has the
        fingerprint that the store knows. `{"name", "fingerprint"}`."""
        from headway.webhooks.manage import import_secret

        return import_secret(self._context, reference, secret)

    # -- deliveries ----------------------------------------------------------------------------

    def deliveries(
        self,
        *,
        state: str | None = None,
        job: int | str | None = None,
        since: int | None = None,
        limit: int = 50,
    ) -> Sequence[dict[str, Any]]:
        """The newest first. `job` finds those of the whole chain; `since` is an instant in
        microseconds; up to 1,000."""
        from headway.webhooks.views import deliveries

        chain = None if job is None else self._chain(job)
        since = 0 if since is None else since
        return deliveries(self._context, state=state, chain=chain, since=since, limit=limit)

    def delivery(self, delivery_id: str) -> dict[str, Any]:
        """With its `body`."""
        from headway.webhooks.manage import unknown_delivery
        from headway.webhooks.views import delivery_document

        with self._context.store.read() as tx:
            found = tx.webhooks.delivery(delivery_id)
            if found is None:
                raise unknown_delivery(delivery_id)
            return {**delivery_document(found, tx.webhooks.endpoints()), "body": found.body}

    def replay(self, delivery_id: str) -> dict[str, Any]:
        """Send it once more, with the same id and bytes; all tries begin anew. ConflictError while
        it is pending, or its endpoint disabled."""
        from headway.webhooks.manage import replay_delivery

        return replay_delivery(self._context, delivery_id)

    def replay_since(self, since: int) -> int:
        """The same for all that failed of those made since then, but those of endpoints that are
        disabled; how many those are."""
        from headway.webhooks.manage import replay_failed

        return replay_failed(self._context, since)

    def _chain(self, job: int | str) -> int:
        from headway.jobs.nouns import Jobs

        return Jobs(self._context).get(job).chain
