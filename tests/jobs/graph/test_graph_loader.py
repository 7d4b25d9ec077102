"""What the schedule is made of: real jobs in a real store."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from drawn import ids

from harness import Bench
from headway.base.errors import NotFoundError
from headway.core.states import Status
from headway.jobs.groups import Plan, create
from headway.jobs.views.graph.dag import dag
from headway.jobs.views.graph.formats import document
from headway.jobs.views.graph.loader import count_buckets, load_schedule
from headway.jobs.views.graph.model import Edge


def shown(bench: Bench, **options: object) -> list[int]:
    return ids(load_schedule(bench.client.context, **options))  # type: ignore[arg-type]


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(max_active=8)


@pytest.mark.req("V87")
def test_active_jobs_are_shown_and_those_that_ended_only_if_asked_for(bench: Bench) -> None:
    done = bench.submit("true")
    bench.until_ended(done)
    running = bench.submit("sleep", "60")
    waiting = bench.submit("true", after=(running,))
    bench.until(lambda: bench.status(running) is Status.RUNNING)
    assert shown(bench) == [running, waiting]
    assert shown(bench, everything=True) == [done, running, waiting]
    drawn = load_schedule(bench.client.context)
    assert [row.wait for row in drawn.rows] == [None, f"waiting on job job-{running}"]
    assert count_buckets(bench.client.context) == {
        "queued": 0,
        "waiting": 1,
        "running": 1,
        "blocked": 0,
        "terminal": 1,
    }


def test_around_a_member_of_a_sequential_group_stand_the_others(bench: Bench) -> None:
    bench.client.pause("look")
    create(bench.client.context, Plan(name="g"))
    members = [bench.submit("true", group="g") for _ in range(3)]
    after = bench.submit("true", after=(members[2],))
    create(bench.client.context, Plan(name="beside", mode="parallel"))
    beside = [bench.submit("true", group="beside") for _ in range(2)]
    assert sorted(shown(bench, focus=members[1])) == [*members, after]
    assert shown(bench, focus=beside[0]) == beside[:1]
    bench.step()
    drawn = load_schedule(bench.client.context, focus=members[1])
    assert drawn.rows[0].wait == f"waiting for its turn in group-1, after job-{members[0]}"


@pytest.mark.req("V87")
def test_a_blocked_job_is_shown_with_what_blocks_it_and_why(bench: Bench) -> None:
    failed = bench.submit("false")
    blocked = bench.submit("true", after=(failed,))
    alone = bench.submit("false")
    bench.until_ended(failed, blocked, alone)
    drawn = load_schedule(bench.client.context)
    assert [(row.id, row.status) for row in drawn.rows] == [
        (failed, Status.FAILED),
        (blocked, Status.BLOCKED_BY_DEPENDENCY),
    ]
    assert drawn.rows[1].wait == f"dependency failed for job job-{failed} (failed)"
    counts = count_buckets(bench.client.context)
    assert (counts["blocked"], counts["terminal"]) == (1, 2)


def test_of_a_retried_chain_the_last_job_is_shown_and_the_edge_keeps_the_declared_one(
    bench: Bench,
) -> None:
    first = bench.submit("false", retries=1, retry_base=3_600_000_000)
    waiting = bench.submit("true", after=(first,))
    bench.until(lambda: bench.status(first) is Status.FAILED)
    again = bench.last(first).id
    assert shown(bench) == [waiting, again]
    assert shown(bench, everything=True) == [first, waiting, again]
    assert shown(bench, focus=waiting) == [waiting, again]
    assert shown(bench, focus=first) == [first, waiting, again]
    drawn = load_schedule(bench.client.context)
    assert drawn.edges[waiting] == (Edge(waiting, first, again, Status.QUEUED),)


@pytest.mark.req("V88", "V89")
@pytest.mark.parametrize("kind", ["plan_branch", "plan_doc", "plan_commits"])
def test_an_artifact_of_a_plan_has_its_branch_in_parentheses(
    bench: Bench, tmp_path: Path, kind: str
) -> None:
    checkout = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", "-b", "main", checkout], check=True)
    bench.client.pause("so that nothing starts")
    made = bench.submit("true", produces=(f"{kind}:login",), cwd=str(checkout))
    taker = bench.submit("true", needs=(f"{kind}:login", "custom:a:b"), cwd=str(checkout))
    drawn = load_schedule(bench.client.context)
    told = f"{kind}:login (draft/login)"
    assert [edge.artifact for edge in drawn.edges[taker]] == [told, "custom:a:b"]
    assert drawn.edges[taker][0].target == made
    assert f"  {told} [missing] -> job-{made} queued" in dag(drawn, max_depth=3)
    assert document(drawn)["edges"][0]["artifact"] == told


@pytest.mark.req("V86")
def test_the_neighbourhood_is_all_before_and_all_behind(bench: Bench) -> None:
    bench.client.pause("so that nothing starts")
    root = bench.submit("true", produces=("custom:a:b",))
    middle = bench.submit("true", after=(root,))
    leaf = bench.submit("true", after=(middle,))
    other = bench.submit("true")
    taker = bench.submit("true", needs=("custom:a:b",))
    sibling = bench.submit("true", after=(root, other))
    assert shown(bench, focus=middle) == [middle, root, leaf]
    assert shown(bench, focus=root) == [root, middle, leaf, taker, sibling]
    assert shown(bench, focus=leaf) == [leaf, root, middle]
    assert shown(bench, focus=taker) == [taker, root]
    assert shown(bench, focus=other) == [other, sibling]
    with pytest.raises(NotFoundError):
        shown(bench, focus=999)


@pytest.mark.req("V86")
def test_a_focused_job_that_ended_is_shown_and_its_relatives_as_always(bench: Bench) -> None:
    root = bench.submit("true")
    bench.until_ended(root)
    leaf = bench.submit("sleep", "60", after=(root,))
    done = bench.submit("true", after=(root,))
    bench.until_ended(done)
    assert shown(bench, focus=root) == [root, leaf]
    assert shown(bench, focus=root, everything=True) == [root, leaf, done]
    assert shown(bench, focus=leaf) == [leaf]


@pytest.mark.req("V88", "V89")
def test_an_artifact_is_present_when_it_was_published_or_is_there(
    bench: Bench, tmp_path: Path
) -> None:
    path = tmp_path / "data.csv"
    maker = bench.submit("true", produces=("custom:a:b", f"file:{path}"))
    bench.until_ended(maker)
    bench.client.pause("so that nothing starts")
    taker = bench.submit("true", needs=("custom:a:b", f"file:{path}", "custom:no:body"))

    def states() -> list[tuple[str | None, str, str]]:
        edges = document(load_schedule(bench.client.context))["edges"]
        return [(each["to"], each["artifact"], each["state"]) for each in edges]

    published = (f"job-{maker}", "custom:a:b", "present")
    nobody = (None, "custom:no:body", "missing")
    assert states() == [published, (f"job-{maker}", f"file:{path}", "missing"), nobody]
    path.touch()
    assert states() == [published, (f"job-{maker}", f"file:{path}", "present"), nobody]
    assert shown(bench) == [taker]


@pytest.mark.req("V88")
def test_an_artifact_of_a_repository_is_looked_up_there(bench: Bench, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", "-b", "main", repo], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    commit = ["git", "-C", repo, *identity, "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, check=True)
    bench.client.pause("so that nothing starts")
    needs = ("target_branch:main", "target_branch:other")
    taker = bench.submit("true", needs=needs, cwd=str(repo))
    edges = load_schedule(bench.client.context).edges[taker]
    assert [edge.state for edge in edges] == ["present", "missing"]
    shutil.rmtree(repo)  # what cannot be looked at is missing, and stops nobody
    edges = load_schedule(bench.client.context).edges[taker]
    assert [edge.state for edge in edges] == ["missing", "missing"]


@pytest.mark.req("V88")
def test_dependencies_are_followed_as_deep_as_was_asked_for(bench: Bench) -> None:
    jobs = [bench.submit("true")]
    for _ in range(4):
        jobs.append(bench.submit("true", after=(jobs[-1],)))
    bench.until_ended(*jobs)
    last = bench.submit("sleep", "60", after=(jobs[-1],))
    for depth in (1, 3):
        drawn = load_schedule(bench.client.context, depth=depth)
        assert ids(drawn) == [last]
        assert sorted(drawn.nodes) == sorted([last, *jobs[-depth:]])


def test_rows_are_cut_and_it_is_known_that_they_were(bench: Bench) -> None:
    bench.client.pause("so that nothing starts")
    made = [bench.submit("true") for _ in range(4)]
    drawn = load_schedule(bench.client.context, top=2)
    assert (ids(drawn), drawn.hidden) == (made[:2], 1)
    assert load_schedule(bench.client.context, top=4).hidden == 0
    assert ids(load_schedule(bench.client.context, top=2, everything=True)) == made[:2]


@pytest.mark.req("V90")
def test_an_empty_store_is_an_empty_schedule(bench: Bench) -> None:
    drawn = load_schedule(bench.client.context)
    assert (drawn.rows, drawn.hidden) == ((), 0)
    assert document(drawn) == {"ordering": "created_at_then_job_id", "jobs": [], "edges": []}
