"""Whether somebody can sign for each endpoint, and which of them get nothing."""

from collections.abc import Iterator

from headway.admin.doctor.finding import GREEN, RED, YELLOW, Finding, OpenedHome
from headway.base.errors import HeadwayError
from headway.base.host import known_host
from headway.core.webhooks import JOBS, DeliveryState, Endpoint, EndpointState
from headway.store.transaction import ReadTx
from headway.webhooks.secret_file import SecretFile

_ROTATE = "headway webhooks rotate"


def webhooks(place: OpenedHome) -> Iterator[Finding]:
    file = SecretFile(place.home)
    try:
        here = file.all()
    except HeadwayError as error:
        here = {}
        step = f"chmod 0600 {file.path}, then {_ROTATE} for each endpoint"
        yield Finding("webhooks", RED, str(error), step)
    with place.store.store.read() as tx:
        endpoints = tx.webhooks.endpoints()
        counts = tx.webhooks.counts()
        own = known_host(place.home).id
        unsigned = [
            each
            for each in endpoints.values()
            if _is_used(tx, each, counts) and each.fingerprint not in here
            if not any(_lives(tx, holder) for holder in each.holders - {own})
        ]
    for each in unsigned:
        yield _unsigned(each)
    named = [each for each in endpoints.values() if each.id != JOBS]
    for each in named:
        if each.state is not EndpointState.ACTIVE:
            detail = f"{each.name} is {each.state}: {each.reason}"
            yield Finding("webhooks", YELLOW, detail, f"headway webhooks resume {each.name}")
    failed = sum(each.get(DeliveryState.FAILED, 0) for each in counts.values())
    if failed:
        detail = f"nobody took {failed} deliveries" if failed > 1 else "nobody took 1 delivery"
        step = "headway webhooks deliveries --state failed; webhooks replay sends them again"
        yield Finding("webhooks", YELLOW, detail, step)
    if named and not unsigned:
        yield Finding("webhooks", GREEN, f"endpoints: {', '.join(each.name for each in named)}")


def _is_used(tx: ReadTx, endpoint: Endpoint, counts: dict[int, dict[DeliveryState, int]]) -> bool:
    """A disabled one gets nothing; jobs' own URLs count while there are any."""
    if endpoint.id != JOBS:
        return endpoint.state is not EndpointState.DISABLED
    pending = counts.get(JOBS, {}).get(DeliveryState.PENDING, 0)
    return bool(endpoint.fingerprint) and bool(pending or tx.webhooks.any_urls())


def _lives(tx: ReadTx, host_id: str) -> bool:
    """Whether a worker of this host has come and not left."""
    newest = tx.hosts.recent_workers(host_id, 1)
    return bool(newest) and newest[0].ended_at is None


def _unsigned(endpoint: Endpoint) -> Finding:
    name = "" if endpoint.id == JOBS else f" {endpoint.name}"
    what = name.strip() or "jobs' own URLs"
    return Finding(
        "webhooks",
        YELLOW,
        f"no live host has the secret of {what} ({endpoint.fingerprint}); nothing is sent",
        f"headway webhooks import{name}, with the secret of a home that has it; or {_ROTATE}{name}",
    )
