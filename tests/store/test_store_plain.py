"""Plain specifications are stored in a quick way, and as the way for all would store them."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stocked import HOST, START

from headway.core.model import JobSpec, Lock, PinnedHead, Rate, RetryPolicy
from headway.jobs.insert import Origin, Submitted, add_jobs, add_plain, model_of
from headway.store.store import Store

ORIGIN = Origin("ann", "/worktrees")
_WORD = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
_SPEC = st.fixed_dictionaries(
    {
        "params": st.dictionaries(_WORD, st.integers() | _WORD, max_size=3),
        "name": st.sampled_from(["one", "two"]),
        "type": st.sampled_from(["command", "function"]),
        "slug": st.none() | st.just("slug"),
        "labels": st.dictionaries(_WORD, _WORD, max_size=1),
        "retry": st.sampled_from([RetryPolicy(), RetryPolicy(2, base=1)]),
        "on_finish": st.just(()) | st.tuples(_WORD),
    }
).map(lambda fields: JobSpec(**fields))
# Another value for every field but those that a plain specification may have.
OTHERS: dict[str, Any] = {
    "after": (1,),
    "locks": (Lock("k"),),
    "delay": 5,
    "at": START,
    "key": "key",
    "env_digest": "digest",
    "needs": ("custom:a",),
    "produces": ("custom:a",),
    "pinned_head": PinnedHead("main", "0" * 40),
    "preconditions": ("clean",),
    "repo": "/repo",
    "workflow_run": 7,
    "node": "build",
    "node_pass": 1,
    "after_runs": (7,),
    "webhooks": ("https://ci.example.org/hook",),
    "require_approval": True,
    "group": "g",
    "last": True,
    "subject": "s",
    "target": "t",
    "template_id": "t",
    "resources": ("r",),
    "rates": (Rate("r", 1, 1),),
    "place": 1,
    "schedule_id": "schedule-1",
}
PLAIN = {"params", "name", "type", "slug", "labels", "priority", "retry", "on_finish"}


@pytest.mark.parametrize("field", JobSpec._fields)
def test_whatever_else_a_specification_says_is_not_plain(field: str) -> None:
    spec = JobSpec({}, "n", "function")
    assert model_of(spec, ORIGIN) is not None
    assert (field in PLAIN) != (field in OTHERS)
    if field in OTHERS:
        assert model_of(spec._replace(**{field: OTHERS[field]}), ORIGIN) is None


def test_a_command_with_a_worktree_or_for_one_host_is_not_plain() -> None:
    assert model_of(JobSpec({"argv": ["true"]}, "n"), ORIGIN) is not None
    assert model_of(JobSpec({"worktree": {}}, "n"), ORIGIN) is None
    assert model_of(JobSpec({}, "n"), ORIGIN._replace(host=HOST)) is None
    assert model_of(JobSpec({}, "n", "function"), ORIGIN._replace(host=HOST)) is not None


@pytest.mark.bulk
def test_plain_specifications_are_stored_as_any_others_are(store: Store) -> None:
    origin = ORIGIN._replace(env_digest="digest")

    @settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.lists(_SPEC, min_size=1, max_size=3), st.integers(-3, 3), st.integers(1, 9))
    def compare(few: list[JobSpec], priority: int, times: int) -> None:
        specs = [spec._replace(priority=priority) for spec in few for _ in range(times)]
        quick = add_plain(store, specs, origin)
        others = store.transact(lambda tx: add_jobs(tx, specs, origin))
        if quick is None:
            assert len(few) > 1
            return
        count = len(specs)
        assert [each.job_id + count for each in quick] == [each.job_id for each in others]
        assert Submitted(quick[0].job_id, created=True) == quick[0]
        with store.read() as tx:
            for one, other in zip(quick, others, strict=True):
                jobs = tx.jobs.by_id([one.job_id, other.job_id])
                further = {"id": other.job_id, "chain": other.job_id}
                further["position"] = jobs[one.job_id].position + 100 * count
                assert jobs[one.job_id]._replace(**further) == jobs[other.job_id]
                told = [
                    [
                        (each.kind, each.data, each.actor, each.at)
                        for each in tx.events.of_job(job_id)
                    ]
                    for job_id in (one.job_id, other.job_id)
                ]
                assert told[0] == told[1] and len(told[0]) == 1
        # Also what no job is made of: whatever columns there are.
        columns, rows = store.database.table("jobs")  # type: ignore[attr-defined]
        by_id = {row[columns.index("id")]: row for row in rows}
        own = {columns.index(name) for name in ("id", "chain", "position", "first_event")}
        for one, other in zip(quick, others, strict=True):
            pair = zip(by_id[one.job_id], by_id[other.job_id], strict=True)
            assert all(a == b for place, (a, b) in enumerate(pair) if place not in own)

    compare()


def test_with_an_ageing_or_several_priorities_the_other_way_is_taken(store: Store) -> None:
    spec = JobSpec({}, "n", "function")
    assert add_plain(store, [spec, spec._replace(priority=1)], ORIGIN) is None
    with store.write() as tx:
        tx.settings.set("scheduler.ageing", "1h", by="ann")
    assert add_plain(store, [spec], ORIGIN) is None
    with store.read() as tx:
        assert tx.jobs.active() == []
