"""Whole graphs: accepted as one or not at all, and filed at once as a planner would do it."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkouts_of_jobs import git, make_repository
from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.base.worker_lock import STAYS, WAKE, WorkerLock
from headway.core.model import Job, Stage
from headway.core.states import Status
from headway.jobs.approvals import approve
from headway.jobs.graph import GraphError
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock
from headway.store import open_store


def request(local: str | None, *after: int | str, **options: Any) -> Request:
    return Request(argv=("true",), local=local, after=after, **options)


def everything(bench: Bench) -> list[Job]:
    with bench.store.read() as tx:
        return tx.jobs.active()


@pytest.mark.req("V11")
def test_all_that_a_job_is_scheduled_by_is_kept_in_the_store(bench: Bench, tmp_path: Path) -> None:
    """Read by another connection, as after a restart: before and after it had to wait."""
    repo = make_repository(tmp_path)
    gate = bench.folder / "gate"
    first = bench.submit(shell=f"until [ -e {gate} ]; do sleep 0.01; done")
    maker = bench.submit("true", after=(first,), produces=("custom:in:1",))
    job = bench.submit(
        "true",
        after=(first,),
        needs=("custom:in:1", "target_branch:main"),
        produces=("custom:out:1", "custom:out:2"),
        locks=(parse_lock("repo"), parse_lock("docs:shared")),
        pin_head="",
        require_approval=True,
        cwd=str(repo),
    )

    def kept() -> Job:
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        with closing(open_store(url, bench.clock, create=False)) as store, store.read() as tx:
            return tx.jobs.by_id([job])[job]

    def told() -> tuple[object, ...]:
        now = kept()
        assert now.after == (first,)
        assert now.needs == ("custom:in:1", "target_branch:main")
        assert now.produces == ("custom:out:1", "custom:out:2")
        assert {(each.key, each.mode.value) for each in now.locks} == {
            ("repo", "exclusive"),
            ("docs", "shared"),
        }
        head = git(repo, "rev-parse", "HEAD")
        assert now.pinned_head is not None
        assert (now.pinned_head.branch, now.pinned_head.oid) == ("main", head)
        assert now.approval is not None and now.approval.requested_by == "tester"
        wait = now.wait and (now.wait.kind.value, now.wait.detail)
        history = [each for each in now.waited_on if each != "pinned_head"]  # to look takes a step
        return now.status.value, wait, history, now.approval.state.value

    bench.step()
    wait = ("dependencies", f"waiting on job job-{first}")
    assert told() == ("waiting_on_deps", wait, ["dependencies"], "pending")
    gate.touch()
    bench.until_ended(maker)
    bench.until(lambda: bench.status(job) is Status.WAITING_ON_APPROVAL)
    wait = ("approval", "awaiting human approval")
    assert told() == ("waiting_on_approval", wait, ["dependencies", "approval"], "pending")
    approve(bench.client.context, job)
    bench.until_ended(job)
    assert told() == ("succeeded", None, ["dependencies", "approval"], "approved")


@pytest.mark.req("V1")
def test_jobs_name_each_other_forwards_and_backwards_and_run_in_order(bench: Bench) -> None:
    old = bench.submit("true")
    submitted = bench.client.submit_many(
        [request("last", "middle", "first"), request("first", old), request("middle", "first")]
    )
    last, first, middle = (each.job_id for each in submitted)
    assert bench.job(last).after == (middle, first)
    assert bench.job(last).name == "last"
    assert bench.job(first).after == (old,) and bench.job(middle).after == (first,)
    bench.client.set_setting("scheduler.max_active", 8)
    bench.until_ended(last)
    started = {each: bench.job(each).started_at or 0 for each in (old, first, middle, last)}
    assert sorted(started, key=lambda each: started[each]) == [old, first, middle, last]


def test_an_id_may_be_written_as_text(bench: Bench) -> None:
    bench.submit("true")
    submitted = bench.client.submit_many([request(None, "job-1"), request("b", "1")])
    assert [bench.job(each.job_id).after for each in submitted] == [(1,), (1,)]
    with pytest.raises(NotFoundError, match="there is no job-99"):
        bench.client.submit_many([request("a", "job-99")])


# fault H1
@pytest.mark.parametrize(
    ("requests", "told"),
    [
        ([request("a", "a")], ["a cycle: a -> a"]),
        ([request("a", "b"), request("b", "a")], ["a cycle: a -> b -> a"]),
        ([request("a", "nobody")], ["job 'a': after 'nobody' names no job of this graph"]),
        ([request("a"), request("a")], ["another job is called 'a' already"]),
        ([request("job-3")], ["looks like the id of a job"]),
        ([request("a\n")], ["must be 1 to 200 printable characters"]),
        (
            [request("a", "x"), Request(argv=("no-such-program",), local="b"), request("c", "c")],
            ["after 'x'", "job 'b': program", "a cycle: c -> c"],
        ),
        ([request("a", -1)], ["after -1 is not a job"]),
    ],
)
def test_what_is_wrong_with_a_graph_is_told_and_nothing_is_stored(
    bench: Bench, requests: list[Request], told: list[str]
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        bench.client.submit_many([request("good"), *requests])
    assert all(each in str(refused.value) for each in told), refused.value
    assert not everything(bench)
    assert bench.submit("true") == 1, "no id was used up"


def test_the_first_twenty_problems_are_told_and_the_rest_counted(bench: Bench) -> None:
    with pytest.raises(GraphError) as refused:
        bench.client.submit_many([request(f"n{number}", "nobody") for number in range(25)])
    assert len(refused.value.problems) == 20 and refused.value.count == 25
    assert str(refused.value).endswith("and 5 more")


def test_a_graph_beyond_the_limit_is_refused(bench: Bench) -> None:
    bench.client.set_setting("scheduler.graph_limit", 3)
    graph = [request("a"), request("b", "a"), request("c", "a"), request("d", "a")]
    with pytest.raises(InvalidInputError, match=r"more than 3 jobs; .*scheduler\.graph_limit"):
        bench.client.submit_many(graph)
    assert not everything(bench)
    assert len(bench.client.submit_many(graph[:3])) == 3


def test_a_graph_with_keys_is_the_same_when_it_comes_again(bench: Bench) -> None:
    graph = [request("a", key="a"), request("b", "a", key="b")]
    first = bench.client.submit_many(graph)
    again = bench.client.submit_many([*graph, request("c", "b")])
    assert [each.job_id for each in again[:2]] == [each.job_id for each in first]
    assert [each.created for each in again] == [False, False, True]
    assert bench.job(again[2].job_id).after == (first[1].job_id,)
    with pytest.raises(ConflictError, match="key 'b' belongs to job-2"):
        bench.client.submit_many([request("x"), request("b", "x", key="b")])


# -- cycles with what is stored ----------------------------------------------------------------


def artifact(name: str) -> tuple[str, ...]:
    return (f"custom:made:{name}",)


# fault H1
def test_a_job_that_makes_what_its_predecessor_waits_for_is_refused(bench: Bench) -> None:
    bench.client.set_setting("scheduler.missing_producer", "wait")
    first = bench.submit("true", needs=artifact("x"), name="first")
    second = bench.submit("true", after=(first,), name="second")
    with pytest.raises(InvalidInputError) as refused:
        bench.submit("true", after=(second,), produces=artifact("x"), name="third")
    assert "third -> job-2 (second) -> job-1 (first) -> third" in str(refused.value)
    assert bench.submit("true", produces=artifact("x")) == 3, "nothing was stored"


def test_a_cycle_over_artifacts_alone_is_refused(bench: Bench) -> None:
    first = bench.submit("true", needs=artifact("x"), produces=artifact("y"), name="first")
    with pytest.raises(InvalidInputError, match=rf"a cycle: new -> job-{first} \(first\) -> new"):
        bench.submit("true", needs=artifact("y"), produces=artifact("x"), name="new")
    graph = [
        request("a", needs=artifact("p"), produces=artifact("q")),
        request("b", "a", produces=artifact("p")),
    ]
    with pytest.raises(InvalidInputError, match="a cycle: a -> b -> a"):
        bench.client.submit_many(graph)


def test_a_second_maker_or_a_published_artifact_opens_the_circle(bench: Bench) -> None:
    bench.client.set_setting("scheduler.max_active", 4)
    made = bench.submit("true", produces=artifact("x"))
    bench.until_ended(made)
    waits = bench.submit("true", needs=artifact("x"), delay=10**12)
    bench.submit("true", after=(waits,), produces=artifact("x"))
    other = bench.submit("true", produces=artifact("z"), delay=10**12)
    wants = bench.submit("true", needs=artifact("z"))
    bench.submit("true", after=(wants,), produces=artifact("z"))
    assert bench.status(other) is Status.QUEUED


def test_a_retry_counts_for_the_chain_that_is_waited_for(bench: Bench) -> None:
    bench.client.set_setting("scheduler.missing_producer", "wait")
    bench.client.set_setting("scheduler.max_active", 4)
    failing = bench.submit("false", retries=1, retry_base=10**12, name="failing")
    bench.until(lambda: bench.last(failing).id != failing)
    wants = bench.submit("true", after=(failing,), needs=artifact("x"), name="wants")
    with pytest.raises(InvalidInputError, match=rf"new -> job-{wants} \(wants\) -> new"):
        bench.submit("true", after=(wants,), produces=artifact("x"), name="new")
    bench.submit("true", after=(failing,), produces=artifact("x"))


# -- filed at once -----------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> list[Request]:
    made: list[Request] = []
    for number in range(draw(st.integers(2, 6))):
        others = st.lists(st.sampled_from(range(number)), max_size=2) if number else st.just([])
        after: list[int | str] = [f"n{each}" for each in draw(others)]
        if draw(st.booleans()):
            after.insert(0, "job-1")
        made.append(
            request(
                f"n{number}",
                *after,
                delay=draw(st.sampled_from([0, 5_000_000])),
                require_approval=draw(st.booleans()),
                priority=draw(st.integers(0, 1)),
            )
        )
    return draw(st.permutations(made))


def told(bench: Bench, names: dict[int, str]) -> list[Any]:
    """What is known of these jobs once they were looked at, with names for ids."""

    def named(text: str) -> str:
        return re.sub(r"job-(\d+)", lambda match: names[int(match[1])], text)

    bench.step()
    found: list[Any] = []
    with bench.store.read() as tx:
        for job_id, job in sorted(tx.jobs.by_id(list(names)).items()):
            events = [(event.kind, named(str(event.data))) for event in tx.events.of_job(job_id)]
            waits = (job.wait.kind, named(job.wait.detail)) if job.wait else None
            found.append((job.name, job.status, job.stage, waits, job.waited_on, events))
        topics = {f"chain:{job_id}": name for job_id, name in names.items()}
        found.append(sorted(topics[each] for each in tx.waits.topics_waited_for(list(topics))))
    return found


@given(graphs())
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_graph_filed_at_submit_is_as_if_the_planner_had_looked_at_it(
    bench: Bench, graph: list[Request]
) -> None:
    bench.client.pause("only looked at")
    ends = []
    for way in ("filed at once", "looked at"):
        old = bench.submit("true", name="old", delay=10**12)
        bench.step()
        requests = [
            each._replace(after=tuple(old if one == "job-1" else one for one in each.after))
            for each in graph
        ]
        ids = [each.job_id for each in bench.client.submit_many(requests)]
        if way == "looked at":
            with bench.store.write() as tx:
                tx.waits.wake(ids)
        ends.append(told(bench, {old: "old", **{each: bench.job(each).name for each in ids}}))
    assert ends[0] == ends[1]


def test_only_what_may_start_is_left_to_look_at(bench: Bench) -> None:
    bench.client.submit_many([request("c", "b"), request("b", "a"), request("a")])
    with bench.store.read() as tx:
        assert [job.name for job in tx.waits.woken(10, bench.client.context.queues)] == ["a"]
        assert {job.name: job.stage for job in tx.jobs.active()} == {
            "a": Stage.WOKEN,
            "b": Stage.PARKED,
            "c": Stage.PARKED,
        }
    with bench.store.write() as tx:
        tx.waits.wake_everything()
        assert [job.name for job in tx.waits.woken(10, bench.client.context.queues)] == ["a"]


@pytest.mark.parametrize(
    ("status", "stage"),
    [
        (Status.RUNNING, Stage.PARKED),
        (Status.QUEUED, Stage.PARKED),
        (Status.SUCCEEDED, Stage.WOKEN),
        (Status.FAILED, Stage.WOKEN),
    ],
)
def test_what_waits_for_a_job_that_there_is_is_filed_at_once_if_that_has_not_ended(
    bench: Bench, status: Status, stage: Stage
) -> None:
    command = {Status.SUCCEEDED: "true", Status.FAILED: "false"}.get(status, "sleep")
    delay = 10**12 if status is Status.QUEUED else 0
    old = bench.submit(command, *(["60"] if command == "sleep" else []), delay=delay)
    bench.until(lambda: bench.status(old) is status)
    new = bench.submit("true", after=(old,))
    assert bench.job(new).stage is stage
    kinds = ["submitted", "waiting_on_deps"] if stage is Stage.PARKED else ["submitted"]
    assert bench.kinds(new) == kinds
    bench.step()
    assert len(bench.kinds(new)) == (2 if stage is Stage.PARKED else len(bench.kinds(new)))
    ends = {Status.SUCCEEDED: Status.SUCCEEDED, Status.FAILED: Status.BLOCKED_BY_DEPENDENCY}
    if status in ends:
        bench.until(lambda: bench.status(new) is ends[status])


def test_of_several_the_first_that_has_not_ended_is_waited_for(bench: Bench) -> None:
    done, failed = bench.submit("true"), bench.submit("false")
    bench.until_ended(done, failed)
    first, second = bench.submit("sleep", "60"), bench.submit("true", delay=10**12)
    waits = bench.submit("true", after=(done, first, second))
    assert bench.client.document(waits)["wait"]["detail"] == f"waiting on job job-{first}"
    hopeless = bench.submit("true", after=(done, first, failed))
    assert bench.job(hopeless).stage is Stage.WOKEN
    bench.step()
    assert bench.status(hopeless) is Status.BLOCKED_BY_DEPENDENCY


def test_a_chain_that_is_tried_again_is_waited_for_as_a_whole(bench: Bench) -> None:
    """Whichever of its jobs is named, and although that one has failed."""
    old = bench.submit("false", retries=1, retry_base=10**12)
    bench.until(lambda: bench.last(old).id != old)
    again = bench.last(old).id
    for named in (old, again):
        new = bench.submit("true", after=(named,))
        assert bench.job(new).stage is Stage.PARKED
        with bench.store.read() as tx:
            assert tx.waits.topics_waited_for([f"chain:{old}"]) == {f"chain:{old}"}
    bench.client.cancel([again])
    bench.until(lambda: bench.status(new) is Status.BLOCKED_BY_DEPENDENCY)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, None),
        ({"delay": 5_000_000}, WAKE),
        ({"produces": ("custom:t:1",)}, WAKE),
        ({"position": 1}, WAKE),
        ({"key": "seen"}, WAKE),
    ],
    ids=str,
)
def test_a_worker_that_is_there_is_left_alone_by_what_only_waits(
    bench: Bench, options: dict[str, Any], word: bytes | None
) -> None:
    old = bench.submit("sleep", "60")
    if "key" in options:
        bench.submit("true", after=(old,), **options)
    with worker_socket(bench) as worker:
        bench.submit("true", after=(old,), **options)
        bench.submit("true")
        said = [worker.recv(64) for _ in range(2 if word else 1)]
        assert said == [WAKE] * len(said)
        with pytest.raises(BlockingIOError):
            worker.recv(64)


@contextmanager
def worker_socket(bench: Bench) -> Iterator[socket.socket]:
    """Where a worker would hear what it is told."""
    os.makedirs(bench.home.run, exist_ok=True)
    folder = os.open(bench.home.run, os.O_PATH)
    name = os.path.basename(bench.home.worker_socket)
    lock = WorkerLock(bench.home.worker_lock)
    assert lock.take(STAYS)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as worker:
            worker.bind(f"/proc/self/fd/{folder}/{name}")
            yield worker
    finally:
        lock.close()
        os.close(folder)
