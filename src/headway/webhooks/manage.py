"""The verbs of webhooks: add, pause, resume, rotate and remove endpoints, and replay deliveries.

A secret is written to this home's file before the row that has its fingerprint is committed: a
crash in between leaves a secret that nobody uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.base.units import parse_duration, show_instant
from headway.core.webhooks import (
    ALL_TYPES,
    ENDS,
    JOBS,
    SCHEDULES,
    TEST,
    Endpoint,
    EndpointState,
    unknown_types,
)
from headway.jobs.webhook_urls import allowed_by, checked, refuse
from headway.store.new_jobs import Event
from headway.store.records import HostRecord
from headway.store.transaction import ReadTx, WriteTx
from headway.webhooks.secret_file import SecretFile, fingerprint_of, new_secret
from headway.webhooks.views import delivery_document, endpoint_document

if TYPE_CHECKING:
    from headway.core.destinations import Destination
    from headway.jobs.context import Context
    from headway.jobs.settings import Config

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_REFERENCE = re.compile(r"endpoint-([1-9][0-9]{0,17})")
LONGEST_OVERLAP = 30 * 86_400_000_000
JOBS_WORDS = "jobs' own URLs"


def add_endpoint(
    context: Context, name: str, url: str, types: Sequence[str], schedule: str
) -> dict[str, Any]:
    """Its document, with the secret."""
    check_endpoint(context.config, name, url, types, schedule)
    with context.store.read() as tx:
        _refuse_taken(tx, name)
    secret = new_secret()
    fingerprint = SecretFile(context.home).add(secret)

    def transaction(tx: WriteTx) -> Endpoint:
        _refuse_taken(tx, name)
        host = context.host
        if context.store.shared:
            tx.hosts.know(HostRecord(host.id, host.name, host.home))
        added = Endpoint(
            id=tx.webhooks.take_id(),
            name=name,
            url=url,
            types=tuple(dict.fromkeys(types)) or ENDS,
            schedule=schedule,
            state=EndpointState.ACTIVE,
            reason=None,
            since=tx.events.last(),
            fingerprint=fingerprint,
            old_fingerprint=None,
            overlap_until=None,
            holders=frozenset({host.id}),
            failures=0,
            failing_since=None,
            held_until=None,
            created_at=tx.now(),
            created_by=context.actor,
            changed_at=tx.now(),
        )
        tx.webhooks.add(added)
        tx.events.add([Event("webhook_added", None, _named(added))], actor=context.actor)
        return added

    added = context.store.transact(transaction)
    return {**endpoint_document(added, {}, signs_here=True), "secret": secret}


def pause_endpoint(context: Context, reference: str) -> bool:
    """Send nothing to it until it is resumed; False if a person had paused it before."""

    def transaction(tx: WriteTx) -> bool:
        endpoint = require_endpoint(tx, reference)
        _refuse_disabled(endpoint)
        if endpoint.state is EndpointState.PAUSED and not endpoint.on_trial:
            return False
        reason = f"paused by {context.actor}"
        paused = endpoint._replace(state=EndpointState.PAUSED, reason=reason, held_until=None)
        tx.webhooks.change(paused)
        data = {**_named(paused), "reason": reason}
        tx.events.add([Event("webhook_paused", None, data)], actor=context.actor)
        return True

    return context.store.transact(transaction)


def resume_endpoint(context: Context, reference: str) -> bool:
    """Send to it again; False if it was active. One that was disabled has missed what came since
    then."""

    def transaction(tx: WriteTx) -> bool:
        endpoint = require_endpoint(tx, reference)
        if endpoint.state is EndpointState.ACTIVE:
            return False
        missed = endpoint.state is EndpointState.DISABLED
        resumed = endpoint._replace(
            state=EndpointState.ACTIVE,
            reason=None,
            since=tx.events.last() if missed else endpoint.since,
            failures=0,
            failing_since=None,
            held_until=None,
        )
        tx.webhooks.begin()
        tx.webhooks.change(resumed)
        tx.events.add([Event("webhook_resumed", None, _named(resumed))], actor=context.actor)
        return True

    resumed = context.store.transact(transaction)
    context.wake()
    return resumed


def rotate_secret(context: Context, reference: str | None, overlap: str) -> dict[str, Any]:
    """A new secret; the one before signs as well until the overlap is over."""
    length = parse_duration(overlap, "--overlap")
    if length > LONGEST_OVERLAP:
        raise InvalidInputError(f"--overlap {overlap} is longer than 30d")
    with context.store.read() as tx:
        before = _endpoint_or_jobs(tx, reference)
    secret = new_secret()
    file = SecretFile(context.home)
    fingerprint = file.add(secret)

    def transaction(tx: WriteTx) -> Endpoint:
        endpoint = _endpoint_or_jobs(tx, reference)
        overlaps = bool(length) and file.get(endpoint.fingerprint) is not None
        rotated = endpoint._replace(
            fingerprint=fingerprint,
            old_fingerprint=endpoint.fingerprint if overlaps else None,
            overlap_until=tx.now() + length if overlaps else None,
            holders=frozenset({context.host.id}),
        )
        tx.webhooks.change(rotated)
        tx.events.add([Event("webhook_rotated", None, _named(rotated))], actor=context.actor)
        return rotated

    rotated = context.store.transact(transaction)
    kept = {rotated.fingerprint, rotated.old_fingerprint}
    file.forget(*{before.fingerprint, before.old_fingerprint} - kept)
    return {
        "name": _name(rotated),
        "secret": secret,
        "fingerprint": fingerprint,
        "overlap_until": show_instant(rotated.overlap_until),
    }


def remove_endpoint(context: Context, reference: str) -> Endpoint:
    def transaction(tx: WriteTx) -> Endpoint:
        endpoint = require_endpoint(tx, reference)
        tx.webhooks.remove(endpoint.id)
        tx.webhooks.end()
        tx.events.add([Event("webhook_removed", None, _named(endpoint))], actor=context.actor)
        return endpoint

    removed = context.store.transact(transaction)
    SecretFile(context.home).forget(removed.fingerprint, removed.old_fingerprint)
    return removed


def secret_of(context: Context, reference: str | None) -> str:
    """That of jobs' own URLs is made if there is none."""
    file = SecretFile(context.home)
    with context.store.read() as tx:
        endpoint = _endpoint_or_jobs(tx, reference)
    if not endpoint.fingerprint:
        endpoint = _with_secret_of_jobs(context, file)
    found = file.get(endpoint.fingerprint)
    if found is None:
        raise NotFoundError(
            f"{file.path} does not have the secret of {_name(endpoint)}; bring it from the home "
            "that has it with `headway webhooks import`, or make another with "
            "`headway webhooks rotate`"
        )
    return found


def _with_secret_of_jobs(context: Context, file: SecretFile) -> Endpoint:
    fingerprint = file.add(new_secret())

    def transaction(tx: WriteTx) -> Endpoint:
        jobs = _endpoint_or_jobs(tx, None)
        if jobs.fingerprint:  # another was quicker
            return jobs
        made = jobs._replace(fingerprint=fingerprint, holders=frozenset({context.host.id}))
        tx.webhooks.change(made)
        return made

    return context.store.transact(transaction)


def import_secret(context: Context, reference: str | None, secret: str) -> dict[str, Any]:
    """Keep a secret that another home made."""
    fingerprint = fingerprint_of(secret)
    with context.store.read() as tx:
        _check_fingerprint(_endpoint_or_jobs(tx, reference), fingerprint)
    SecretFile(context.home).add(secret)

    def transaction(tx: WriteTx) -> Endpoint:
        endpoint = _endpoint_or_jobs(tx, reference)
        _check_fingerprint(endpoint, fingerprint)
        if fingerprint == endpoint.fingerprint or not endpoint.fingerprint:
            holders = endpoint.holders | {context.host.id}
            tx.webhooks.change(endpoint._replace(fingerprint=fingerprint, holders=holders))
        return endpoint

    endpoint = context.store.transact(transaction)
    context.wake()
    return {"name": _name(endpoint), "fingerprint": fingerprint}


def try_endpoint(context: Context, reference: str) -> dict[str, Any]:
    """Send one request now, and say what came of it."""
    return prepared_test(context, reference)()


def prepared_test(context: Context, reference: str) -> Callable[[], dict[str, Any]]:
    """What sends it; that needs no store any more, so it may be done in another thread."""
    import json
    import os

    from headway.webhooks.courier import request_of
    from headway.webhooks.transport import Sending

    with context.store.read() as tx:
        endpoint = require_endpoint(tx, reference)
    body = {
        "type": TEST,
        "timestamp": show_instant(context.now()),
        "data": {"endpoint": endpoint.name},
    }
    secrets = [secret_of(context, reference)]
    test_id = f"test-{os.urandom(8).hex()}-{endpoint.id}"
    request = request_of(test_id, endpoint.url, json.dumps(body).encode(), secrets, context)
    clock, allowed = context.clock, allowed_by(context.config)

    def send() -> dict[str, Any]:
        begun = clock.monotonic()
        reply = Sending(request, allowed, clock).make_in_time()
        return {
            "delivered": reply.is_success,
            "status_code": reply.status_code,
            "error": reply.error,
            "seconds": round(clock.monotonic() - begun, 3),
        }

    return send


def replay_delivery(context: Context, delivery_id: str) -> dict[str, Any]:
    def transaction(tx: WriteTx) -> dict[str, Any]:
        found = tx.webhooks.delivery(delivery_id)
        if found is None:
            raise unknown_delivery(delivery_id)
        _refuse_disabled(tx.webhooks.endpoint(found.endpoint))
        if not tx.webhooks.replay(delivery_id):
            raise ConflictError(f"{delivery_id} is pending; it will be sent anyway")
        tx.webhooks.begin()
        data = {"delivery": delivery_id}
        tx.events.add([Event("webhook_replayed", None, data)], actor=context.actor)
        replayed = tx.webhooks.delivery(delivery_id) or found
        return delivery_document(replayed, tx.webhooks.endpoints())

    replayed = context.store.transact(transaction)
    context.wake()
    return replayed


def replay_failed(context: Context, since: int) -> int:
    def transaction(tx: WriteTx) -> int:
        number = tx.webhooks.replay_failed(since)
        if number:
            tx.webhooks.begin()
            data = {"deliveries": number, "since": show_instant(since)}
            tx.events.add([Event("webhook_replayed", None, data)], actor=context.actor)
        return number

    number = context.store.transact(transaction)
    if number:
        context.wake()
    return number


# -- finding -----------------------------------------------------------------------------------


def require_endpoint(tx: ReadTx, reference: str) -> Endpoint:
    """By its name, or by its id as `endpoint-3`."""
    match = _REFERENCE.fullmatch(reference.strip())
    found = tx.webhooks.endpoint(int(match[1])) if match else tx.webhooks.named(reference)
    if found is None or found.id == JOBS:
        raise NotFoundError(
            f"there is no endpoint {reference!r}; `headway webhooks list` shows them"
        )
    return found


def unknown_delivery(delivery_id: str) -> NotFoundError:
    return NotFoundError(
        f"there is no delivery {delivery_id!r}; `headway webhooks deliveries` shows them"
    )


def _endpoint_or_jobs(tx: ReadTx, reference: str | None) -> Endpoint:
    if reference is not None:
        return require_endpoint(tx, reference)
    found = tx.webhooks.endpoint(JOBS)
    if found is None:
        raise NotFoundError("the store has lost its row for jobs' own URLs; run `headway doctor`")
    return found


def _name(endpoint: Endpoint) -> str:
    return endpoint.name if endpoint.id != JOBS else JOBS_WORDS


# -- checks ------------------------------------------------------------------------------------


def check_endpoint(
    config: Config, name: str, url: str, types: Sequence[str], schedule: str
) -> None:
    """Refuse what cannot be added, also before there is a home."""
    if not NAME.fullmatch(name) or _REFERENCE.fullmatch(name):
        raise InvalidInputError(
            f"{name!r} cannot be the name of an endpoint: a letter, then letters, digits, . _ -"
        )
    unknown = unknown_types(types)
    if unknown:
        raise InvalidInputError(
            f"there is no type {unknown[0]!r}; there are *, job.* and the like, and "
            f"{', '.join(ALL_TYPES)}"
        )
    if schedule not in SCHEDULES:
        raise InvalidInputError(f"--schedule {schedule!r} is not one of {', '.join(SCHEDULES)}")
    _check_address(config, checked(url))


def _check_address(config: Config, destination: Destination) -> None:
    """What its name stands for now; one that cannot be resolved here may be so tomorrow."""
    from headway.webhooks.transport import addresses_of

    try:
        addresses = addresses_of(destination)
    except OSError:
        return
    refuse(destination, addresses, allowed_by(config))


def _check_fingerprint(endpoint: Endpoint, fingerprint: str) -> None:
    known = {endpoint.fingerprint, endpoint.old_fingerprint} - {None, ""}
    if known and fingerprint not in known:
        raise InvalidInputError(
            f"this is not the secret of {_name(endpoint)}: its fingerprint is {fingerprint}, and "
            f"the store knows {endpoint.fingerprint}"
        )


def _refuse_disabled(endpoint: Endpoint | None) -> None:
    """It would wait for 7 days and fail again."""
    if endpoint is not None and endpoint.state is EndpointState.DISABLED:
        raise ConflictError(
            f"{endpoint.name} is disabled: {endpoint.reason}; nothing is sent before "
            f"`headway webhooks resume {endpoint.name}`"
        )


def _refuse_taken(tx: ReadTx, name: str) -> None:
    if tx.webhooks.named(name) is not None:
        raise ConflictError(
            f"endpoint {name!r} is there already; remove it first, or use another name"
        )


def _named(endpoint: Endpoint) -> dict[str, str]:
    return {"endpoint": _name(endpoint)}
