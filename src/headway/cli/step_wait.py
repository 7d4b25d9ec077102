"""Wait for the worker's step after a change, and say what it started."""

from headway.base.worker_lock import COMING, WorkerLock
from headway.client import Client
from headway.jobs.wait import STEP_WITHIN, await_step

MOST_NAMED = 8
_LOOK_AGAIN = 0.02


def listed(ids: list[str]) -> str:
    """The ids, or the first of them and how many more there are."""
    if len(ids) <= MOST_NAMED:
        return ", ".join(ids)
    return ", ".join(ids[:MOST_NAMED]) + f" and {len(ids) - MOST_NAMED} more"


def started_by(client: Client, seq: int) -> list[str]:
    """The jobs started since the event `seq`, once the worker's next step is over (2 s at most)."""
    give_up_at = client.clock.monotonic() + STEP_WITHIN
    coming = WorkerLock(client.home.worker_lock)
    while not await_step(client.context) and client.clock.monotonic() < give_up_at:
        if not client.context.worker_is_there():
            break
        if coming.is_held(COMING):
            client.clock.sleep(_LOOK_AGAIN)
    return client.events.started_since(seq)
