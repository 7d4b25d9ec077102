"""Wait for the worker's step after a change, and say what it started."""

from headway.client import Client

MOST_NAMED = 8


def listed(ids: list[str]) -> str:
    """The ids, or the first of them and how many more there are."""
    if len(ids) <= MOST_NAMED:
        return ", ".join(ids)
    return ", ".join(ids[:MOST_NAMED]) + f" and {len(ids) - MOST_NAMED} more"


def started_by(client: Client, seq: int) -> list[str]:
    """The jobs started since the event `seq`, once the worker's next step is over (2 s at most)."""
    client.scheduler.await_step()
    return client.events.started_since(seq)
