"""Groups of commands for tests, and what became of them."""

from collections.abc import Sequence
from typing import Any

from harness import Bench
from headway.core.states import Status
from headway.jobs.groups import (
    Plan,
    document,
    submit_group,
)
from headway.jobs.request import Request
from headway.store.new_jobs import Event

SECOND = 1_000_000
TRUE, FALSE = ("true",), ("false",)


def group_of(bench: Bench, *commands: Sequence[str], **plan: Any) -> tuple[str, list[int]]:
    """A whole group of these commands."""
    requests = [Request(argv=tuple(each)) for each in commands]
    made, submitted = submit_group(bench.client.context, requests, Plan(**plan))
    return f"group-{made.group}", [each.job_id for each in submitted]


def told(bench: Bench, kind: str) -> list[dict[str, Any]]:
    """What all events of a kind say."""
    with bench.store.read() as tx:
        events: list[Event] = tx.events.since(0, 100_000)
    return [dict(event.data) for event in events if event.kind == kind]


def status(bench: Bench, group: str) -> str:
    return str(document(bench.client.context, group)["status"])


def states(bench: Bench, jobs: Sequence[int]) -> list[Status]:
    return [bench.last(each).status for each in jobs]


def reasons(bench: Bench, jobs: Sequence[int]) -> list[str | None]:
    return [bench.last(each).reason for each in jobs]
