"""The queue that is shown is the order in which jobs start, with an estimate from past runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import headway
from harness import Bench
from headway.core.model import Claim
from headway.core.order import Place, Side
from headway.core.states import Status
from headway.jobs.order import move, reorder
from headway.jobs.specification import parse_lock
from headway.jobs.views.queue import line_up
from headway.jobs.views.search import SearchQuery
from headway.store.records import Finish
from headway.testing import drain, using
from headway.testing.clock import FakeClock

HOUR = 3_600_000_000

app = headway.App()


@app.task
def nothing() -> None:
    pass


STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("submit"), some.integers(-1, 1), some.integers(0, 4)),
        some.tuples(some.sampled_from(list(Side)), some.integers(0, 30), some.integers(0, 30)),
        some.tuples(some.just("reorder"), some.integers(0, 30), some.integers(0, 30)),
        some.tuples(some.just("later"), some.integers(1, 5), some.just(0)),
        some.tuples(some.just("ageing"), some.sampled_from(["0s", "1h"]), some.just(0)),
    ),
    min_size=8,
    max_size=30,
)


def lined_up(client: Any, **asked: Any) -> list[dict[str, Any]]:
    return line_up(client.context, SearchQuery(**asked), limit=1000, most=1000).documents


def tell(client: Any, clock: FakeClock, step: tuple[Any, Any, Any]) -> None:
    what, one, other = step
    waiting = [int(each["id"][4:]) for each in lined_up(client)]
    if what == "submit":
        nothing.submit(priority=one, **({"position": other} if other else {}))
    elif what == "later":
        clock.advance(1800 * one)
    elif what == "ageing":
        client.set_setting("scheduler.ageing", one)
    elif len(waiting) > 1:
        job, beside = waiting[one % len(waiting)], waiting[other % len(waiting)]
        number = other + 1 if what is Side.POSITION else beside
        try:
            if what == "reorder":
                reorder(client.context, [job, beside])
            else:
                move(client.context, job, Place(what, number))
        except headway.HeadwayError:
            pass  # itself, or one of another level


@pytest.mark.long
@pytest.mark.req("D4")
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_the_order_shown_is_the_order_of_starts(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, Any, Any]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("home")
    with using(app, home=folder) as clock:
        for step in steps:
            tell(app.client, clock, step)
        shown = [each["id"] for each in lined_up(app.client)]
        assert [each.id for each in drain(app)] == shown


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(clock=FakeClock())


def finished(bench: Bench, name: str, seconds: float) -> None:
    """One more job of this name has run so long."""
    job = bench.job(bench.submit("true", name=name))
    at = bench.clock.now()
    claim = Claim(job.id, f"t-{job.id}", 1, "worker", "host", "/", "boot", "/", at)
    with bench.store.write() as tx:
        tx.claims.begin([(job, claim)])
        end = at + int(seconds * 1e6)
        word = Finish(claim.token, job.id, Status.SUCCEEDED, None, end, 0, None, True, True)
        tx.claims.finish([word])


def test_the_wait_is_estimated_from_past_runs_of_the_same_name(bench: Bench) -> None:
    for name, seconds in (("short", 10), ("short", 30), ("long", 100)):
        finished(bench, name, seconds)
    running = bench.submit("sleep", "60", name="long", grace=0)
    bench.until(lambda: bench.job(running).started_at is not None)
    bench.clock.advance(40)  # type: ignore[attr-defined]
    for name in ("short", "unknown", "short"):
        bench.submit("true", name=name)
    waits = [each["estimated_wait_seconds"] for each in lined_up(bench.client)]
    assert waits[:2] == pytest.approx([60, 80], abs=3)
    assert waits[2] is None, "how long the unknown one takes is not known"
    bench.clock.advance(70)  # type: ignore[attr-defined]
    overdue = [each["estimated_wait_seconds"] for each in lined_up(bench.client)]
    assert overdue == [None] * 3, "what runs takes longer than ever"


def test_what_nobody_can_know_has_no_estimate(bench: Bench) -> None:
    finished(bench, "n", 10)
    first = bench.submit("true", name="n")
    ids = {
        "approval": bench.submit("true", name="n", require_approval=True),
        "after": bench.submit("true", name="n", after=(first,)),
        "time": bench.submit("true", name="n", delay=HOUR),
        "last": bench.submit("true", name="n", locks=(parse_lock("k"),)),
    }
    bench.client.pause("look first")
    bench.step()
    assert [each["estimated_wait_seconds"] for each in lined_up(bench.client)] == [None] * 5
    bench.client.resume()
    waits = {each["id"]: each["estimated_wait_seconds"] for each in lined_up(bench.client)}
    assert waits[f"job-{first}"] == 0
    assert waits[f"job-{ids['approval']}"] is None
    assert waits[f"job-{ids['after']}"] == pytest.approx(10, abs=1)
    assert waits[f"job-{ids['time']}"] == pytest.approx(3600, abs=5)
    assert waits[f"job-{ids['last']}"] == pytest.approx(20, abs=1)
