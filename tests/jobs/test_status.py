"""`scheduler status`, field by field, as the store goes from empty to busy."""

from collections.abc import Callable
from typing import Any

import apsw
import pytest

from both_stores import on_a_file
from harness import Bench
from headway.base.units import show_instant
from headway.core.model import HostTrouble, WaitKind
from headway.core.states import Status
from headway.jobs.request import Request
from headway.store.sqlite.database import SqliteDatabase
from headway.testing.clock import FakeClock

NOW = 1_700_000_000_000_000
APPROVAL = Status.WAITING_ON_APPROVAL
EMPTY: dict[str, Any] = {
    "mode": "deferred",
    "paused": False,
    "paused_by": None,
    "paused_at": None,
    "paused_reason": None,
    "max_active": 1,
    "batch_size": 1,
    "active": 0,
    "free": 1,
    "queued_total": 0,
    "queued_ready": 0,
    "waiting": {},
    "last_dispatch_at": None,
    "last_dispatch_count": 0,
    "log_bytes": 0,
    "breaker": None,
    "worker": False,
    "reservations": [],
    "reason": "nothing is queued",
}


def changed(bench: Bench) -> dict[str, Any]:
    """What differs from the status of an empty store."""
    told = bench.client.scheduler.status()
    return {name: told[name] for name, value in EMPTY.items() if told[name] != value}


@pytest.fixture
def quiet(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(clock=FakeClock(NOW))


def test_an_empty_store_has_started_nothing(quiet: Bench) -> None:
    assert changed(quiet) == {}


@pytest.mark.req("G40")
def test_the_last_start_and_what_waits_for_capacity_are_told(quiet: Bench) -> None:
    quiet.client.set_setting("scheduler.max_active", 2)
    quiet.clock.advance(5)  # type: ignore[attr-defined]
    for _ in range(4):
        quiet.submit("sleep", "600")
    quiet.submit("true", delay=3_600_000_000)
    quiet.step()
    quiet.clock.advance(7)  # type: ignore[attr-defined]
    told = changed(quiet)
    reason = told.pop("reason")
    assert told == {
        "max_active": 2,
        "active": 2,
        "free": 0,
        "queued_total": 3,
        "queued_ready": 2,
        "waiting": {"queued": 3},
        "last_dispatch_at": show_instant(NOW + 5_000_000),
        "last_dispatch_count": 2,
    }
    assert reason == "all 2 slots are in use"


@pytest.mark.req("G38")
def test_a_pause_says_by_whom_since_when_and_why(quiet: Bench) -> None:
    quiet.client.pause("night")
    told = changed(quiet)
    assert told.pop("reason") == "paused by tester: night"
    assert told == {
        "paused": True,
        "paused_by": "tester",
        "paused_at": show_instant(NOW),
        "paused_reason": "night",
    }


@pytest.mark.parametrize(("cap", "mode", "free"), [(0, "direct", None), (-1, "direct", None)])
def test_without_a_cap_the_mode_is_direct(
    quiet: Bench, cap: int, mode: str, free: int | None
) -> None:
    quiet.client.set_setting("scheduler.max_active", cap)
    quiet.client.set_setting("scheduler.batch_size", 3)
    assert changed(quiet) == {"mode": mode, "max_active": cap, "free": free, "batch_size": 3}


def test_a_host_in_trouble_is_told_with_its_cause(quiet: Bench) -> None:
    with quiet.store.write() as tx:
        trouble = HostTrouble(WaitKind.STORAGE, "disk full", 3, NOW + 1_000_000)
        tx.hosts.open_breaker(quiet.client.context.host.id, trouble)
        tx.settings.add_to_mark("log_bytes", 77)
    told = changed(quiet)
    told.pop("reason", None)
    assert told == {
        "log_bytes": 77,
        "breaker": {
            "kind": "storage",
            "cause": "disk full",
            "failures": 3,
            "probe_at": show_instant(NOW + 1_000_000),
        },
    }


def test_the_status_by_counts_of_a_moment_ago_is_the_same(quiet: Bench) -> None:
    client = quiet.client
    client.set_setting("scheduler.limits.resource.gpu", 1)
    for number in range(4):
        quiet.submit("sleep", "600", resources=["gpu"] if number else [])
    quiet.submit("true", after=[1])
    quiet.submit("true", require_approval=True)
    quiet.step()
    counts = client.scheduler.counts()
    assert (counts.total, counts.ready, counts.limited) == (5, 3, 0)
    assert client.scheduler.status(counts) == client.scheduler.status()
    client.set_setting("scheduler.max_active", 5)
    quiet.step()
    counts = client.scheduler.counts()
    assert dict(counts.for_limit) == {"resource:gpu": 2} and counts.limited == 2
    assert counts.waiting == {Status.QUEUED: 2, Status.WAITING_ON_DEPS: 1, APPROVAL: 1}
    assert client.scheduler.status(counts) == client.scheduler.status()
    old = client.scheduler.status(counts._replace(waiting={Status.QUEUED: 9}))
    assert (old["queued_total"], old["waiting"]) == (9, {"queued": 9})


@on_a_file
def test_a_status_costs_the_same_however_much_waits(quiet: Bench) -> None:
    """But for its counts."""
    database = quiet.store.database
    assert isinstance(database, SqliteDatabase)
    steps: list[int] = []

    def told(event: dict[str, Any]) -> None:
        steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    def work() -> int:
        """How many steps SQLite's machine makes for a status."""
        counts = quiet.client.scheduler.counts()
        database._connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, told)
        quiet.client.scheduler.status(counts)
        database._connection.trace_v2(0)
        made = sum(steps)
        steps.clear()
        return made

    quiet.client.pause("nothing shall start")
    quiet.client.submit_many([Request(argv=("true",))] * 20)
    few = work()
    quiet.client.submit_many([Request(argv=("true",))] * 2000)
    assert 0 < work() <= 1.2 * few
