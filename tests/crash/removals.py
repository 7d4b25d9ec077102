"""Scenes of the visiting test in which ended jobs are removed."""

import os
from collections.abc import Callable

from stage import Part, Stage, work

from harness import wait_for
from headway.core.retention import RetentionRule
from headway.core.states import Status
from headway.jobs.retention import Collector


def collector(part: Part) -> Collector:
    client = part.client()
    return Collector(
        client.context.store,
        client.context.home,
        client.context.host.id,
        actor=client.context.actor,
        rule=RetentionRule(0, None),
    )


def collect(part: Part) -> None:
    one = collector(part)
    while one.step() is not None:
        pass


def clean(part: Part, job: int) -> None:
    collector(part).clean(job)


def collector_dies(stage: Stage, point: str) -> None:
    """Somebody removes all that has ended."""
    _remove(stage, lambda: stage.dies_at(point, collect))


def cleaner_dies(stage: Stage, point: str) -> None:
    """Somebody removes one job."""
    _remove(stage, lambda: stage.dies_at(point, clean, stage.number("old")))


def worker_dies_collecting(stage: Stage, point: str) -> None:
    """The worker removes what is too old; here that is after microseconds."""

    def die() -> None:
        stage.patches["headway.core.retention.DAY"] = 1
        stage.dies_at(point, work)
        del stage.patches["headway.core.retention.DAY"]

    _remove(stage, die)


def _remove(stage: Stage, die: Callable[[], None]) -> None:
    """`old` goes; `kept` stays, because `held` comes after it and has not ended. Whatever the
    dead one left of `old` is gone after the next round, and `held` is none the worse for it."""
    old = stage.job("old", "echo output")
    kept = stage.job("kept")
    stage.finish()
    held = stage.job("held", stage.gate("held"), after=(kept,), delay=1_000)
    stage.client.pause("nobody is to start it yet")
    die()
    assert stage.rows(f"select id from jobs where id = {old}") == [], "it died after the commit"
    assert stage.rows(f"select seq from events where job_id = {old}") == []
    noted = stage.rows("select job_id from removals") == [(old,)]
    assert noted or not os.path.exists(stage.home.job(old)), "nobody would ever remove it"
    stage.actor(collect).join(30)
    assert sorted(os.listdir(stage.home.jobs)) == [str(kept)]
    assert stage.rows("select * from removals") == []
    assert stage.rows("select value from marks where name = 'log_bytes'") == [(0,)]
    stage.names.pop(old)
    stage.client.resume()
    stage.open_gate("held")
    stage.finish()
    stage.check_settled()
    assert [stage.status(each) for each in (kept, held)] == [Status.SUCCEEDED] * 2
    wait_for(lambda: not stage.processes())
