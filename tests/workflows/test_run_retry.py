"""`workflows retry`: what failed of a run is run again, in one transaction."""

from pathlib import Path

import pytest
from started import Started

from harness import Bench
from headway.base.errors import ConflictError, NotFoundError
from headway.workflows.runs import stop_run

TWO_CAUSES = """
finally = ["report"]
[nodes.a]
shell = 'test -e {folder}/go'
[nodes.b]
argv = ["true"]
after = ["a"]
[nodes.c]
shell = 'test -e {folder}/go'
[nodes.good]
argv = ["true"]
[nodes.lint]
shell = "exit 1"
tolerate = ["failed"]
[nodes.report]
argv = ["echo", "${{{{ run.state }}}}"]
"""


def test_every_cause_and_all_after_it_runs_again(bench: Bench, tmp_path: Path) -> None:
    run = Started(bench, TWO_CAUSES.format(folder=tmp_path))
    assert run.ended()["state"] == "failed"
    before = {name: run.job(name) for name in ("good", "lint")}
    planned = bench.client.workflows.retry(run.run, dry_run=True)
    assert planned.nodes == ("a", "b", "c", "report") and run.document["ended_at"]
    (tmp_path / "go").touch()
    retried = bench.client.workflows.retry(run.run)
    assert retried.start == ("a", "c") and retried.nodes == planned.nodes
    assert run.document["state"] == "running"
    assert run.ended()["state"] == "succeeded"
    assert run.log("report") == "succeeded\n"
    assert {name: run.job(name) for name in before} == before
    assert run.node("a")["pass"] == 2 and run.node("good")["pass"] == 1


def test_a_retry_that_cannot_be_changes_nothing(bench: Bench) -> None:
    run = Started(bench, '[nodes.a]\nargv = ["true"]\n[nodes.b]\nargv = ["true"]\n')
    with pytest.raises(ConflictError, match="wf-1 has failed nowhere; there is nothing to retry"):
        bench.client.workflows.retry(run.run)
    run.ended()
    with pytest.raises(ConflictError, match="wf-1 succeeded; there is nothing to retry"):
        bench.client.workflows.retry(run.run)
    with pytest.raises(NotFoundError, match="wf-1 has no node 'x'; there are a, b"):
        bench.client.workflows.retry(run.run, from_node="x")
    with pytest.raises(NotFoundError, match="there is no wf-7"):
        bench.client.workflows.retry(7)
    assert run.document["state"] == "succeeded"


def test_from_a_node_all_of_its_instances_run_again(bench: Bench) -> None:
    text = """
        [nodes.test]
        argv = ["true"]
        matrix = { n = [1, 2] }
        [nodes.after]
        argv = ["true"]
        after = ["test"]
        [nodes.beside]
        argv = ["true"]
        """
    run = Started(bench, text)
    run.ended()
    retried = bench.client.workflows.retry(run.run, from_node="test")
    assert retried.nodes == ("test[n=1]", "test[n=2]", "after")
    run.ended()
    one = bench.client.workflows.retry(run.run, from_node="test[n=2]")
    assert one.nodes == ("test[n=2]", "after")
    assert run.ended()["state"] == "succeeded"
    passes = {each["id"]: each["pass"] for each in run.document["nodes"]}
    assert passes == {"test[n=1]": 2, "test[n=2]": 3, "after": 3, "beside": 1}


def test_a_stop_is_forgotten(bench: Bench, tmp_path: Path) -> None:
    run = Started(
        bench,
        f"""
        timeout = "1h"
        [nodes.a]
        shell = 'test -e {tmp_path}/go || sleep 60'
        [nodes.b]
        argv = ["true"]
        after = ["a"]
        """,
    )
    first = run.document["deadline"]
    bench.until(lambda: run.node("a")["state"] == "running", "it to run")
    stop_run(bench.client.context, run.run)
    assert run.ended()["reason"] == "stopped by tester"
    (tmp_path / "go").touch()
    bench.client.workflows.retry(run.run)
    assert run.document["stopped_by"] is None and run.document["deadline"] > first
    assert run.ended()["state"] == "succeeded"


def test_loops_may_go_back_as_often_as_at_first(bench: Bench, tmp_path: Path) -> None:
    run = Started(
        bench,
        f"""
        [nodes.code]
        argv = ["true"]
        on.succeeded = ["ci"]
        [nodes.ci]
        shell = 'echo x >> {tmp_path}/n; test $(wc -l < {tmp_path}/n) -ge 4'
        loop = {{ to = "code", on = ["failed"], times = 1 }}
        on.succeeded = ["done"]
        [nodes.done]
        argv = ["true"]
        """,
    )
    assert run.ended()["state"] == "blocked"
    bench.client.workflows.retry(run.run)
    assert run.ended()["state"] == "succeeded"
    assert run.node("ci")["pass"] == 4 and run.outcomes()["done"] == "succeeded"


def test_what_stands_behind_a_loop_goes_on_when_a_node_inside_is_retried(
    bench: Bench, tmp_path: Path
) -> None:
    """`done` follows `merge`, not `resolve`; but it waits for the loop of both."""
    run = Started(
        bench,
        f"""
        [nodes.ci]
        argv = ["true"]
        on.succeeded = ["merge"]
        [nodes.merge]
        shell = 'test -e {tmp_path}/resolved'
        on.succeeded = ["done"]
        on.failed = ["resolve"]
        [nodes.resolve]
        shell = 'test -e {tmp_path}/person && touch {tmp_path}/resolved'
        loop = {{ to = "ci", on = ["succeeded"], times = 2 }}
        [nodes.done]
        argv = ["true"]
        """,
    )
    assert run.ended()["state"] == "failed"
    assert run.outcomes()["done"] == "unreached"
    (tmp_path / "person").touch()
    bench.client.workflows.retry(run.run, from_node="resolve")
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes()["done"] == "succeeded"


def test_what_runs_is_not_rewound(bench: Bench, tmp_path: Path) -> None:
    text = f"""
        [nodes.a]
        shell = "exit 1"
        [nodes.b]
        shell = 'while ! test -e {tmp_path}/go; do sleep 0.05; done'
        after = [{{ node = "a", on = ["ended"] }}]
        """
    run = Started(bench, text)
    bench.until(lambda: run.node("b")["state"] == "running", "b to run")
    with pytest.raises(ConflictError, match="job-2 is running; cancel it or wait for its end"):
        bench.client.workflows.retry(run.run)
    (tmp_path / "go").touch()
    run.ended()
