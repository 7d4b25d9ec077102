"""`--after wf-7`: a job, or another run, waits for a whole run."""

from pathlib import Path

import pytest
from started import Started

from harness import Bench
from headway.base.errors import NotFoundError
from headway.cli.run_view import next_step
from headway.core.states import Status
from headway.jobs.request import Request
from headway.workflows.start import RunRequest, start_repeated

SINKS = """
finally = ["tidy"]
[nodes.build]
shell = 'while ! test -e {folder}/go; do sleep 0.02; done; exit {code}'
on.failed = ["alarm"]
on.succeeded = ["publish"]
[nodes.publish]
argv = ["true"]
when = ["1 == 2"]
[nodes.lint]
shell = "exit 1"
tolerate = ["failed"]
[nodes.alarm]
argv = ["true"]
[nodes.tidy]
shell = "exit 1"
"""


def after(bench: Bench, run: Started, **more: str) -> int:
    request = Request(argv=("true",), after=(f"wf-{run.run}",), **more)  # type: ignore[arg-type]
    return bench.client.submit(request).job_id


@pytest.mark.req("V99")
def test_a_job_waits_for_each_success_sink(bench: Bench, tmp_path: Path) -> None:
    """`publish` and `alarm` are skipped and `lint` is tolerated; `tidy` is in `finally`."""
    run = Started(bench, SINKS.format(folder=tmp_path, code=0))
    job = after(bench, run)
    sinks = {run.job(name) for name in ("publish", "lint", "alarm")}
    assert set(bench.client.job(job).after) == sinks
    bench.until(lambda: run.node("build")["state"] == "running", "it to build")
    assert bench.status(job) is Status.WAITING_ON_DEPS
    (tmp_path / "go").touch()
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED
    run.ended()
    late = after(bench, run)
    bench.until_ended(late)
    assert bench.status(late) is Status.SUCCEEDED


@pytest.mark.req("V99")
def test_a_job_after_a_failed_run_is_blocked_and_goes_on_when_that_is_retried(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    text = """
        [nodes.a]
        shell = 'test -e {folder}/fixed'
        [nodes.b]
        argv = ["true"]
        after = ["a"]
        """
    run = Started(bench, text.format(folder=tmp_path))
    job = after(bench, run)
    run.ended()
    bench.until_ended(job)
    assert bench.status(job) is Status.BLOCKED_BY_DEPENDENCY
    assert bench.last(job).reason == "dependency failed for job job-2 (blocked_by_dependency)"
    (tmp_path / "fixed").touch()
    bench.client.workflows.retry(run.run)
    run.ended()
    bench.until_ended(job)
    assert bench.last(job).status is Status.SUCCEEDED


def test_a_plain_edge_to_a_job_of_a_run_keeps_its_policy(bench: Bench, tmp_path: Path) -> None:
    """Only the run as a whole counts a skip as good."""
    (tmp_path / "go").touch()
    run = Started(bench, SINKS.format(folder=tmp_path, code=0))
    plain = bench.submit("true", after=(run.job("publish"),))
    run.ended()
    bench.until_ended(plain)
    assert bench.status(plain) is Status.BLOCKED_BY_DEPENDENCY


def test_a_failure_beside_what_is_tolerated_blocks(bench: Bench, tmp_path: Path) -> None:
    """The first edge that did not succeed is not the one that decides."""
    (tmp_path / "go").touch()
    text = """
        [nodes.lint]
        shell = "exit 1"
        tolerate = ["failed"]
        [nodes.test]
        shell = "exit 1"
        """
    run = Started(bench, text)
    run.ended()
    job = after(bench, run)
    bench.until_ended(job)
    assert bench.last(job).reason == "dependency failed for job job-2 (failed)"


def test_a_job_after_a_loop_waits_until_that_is_over(bench: Bench, tmp_path: Path) -> None:
    text = f"""
        [nodes.code]
        argv = ["true"]
        on.succeeded = ["ci"]
        [nodes.ci]
        shell = 'echo x >> {tmp_path}/n; test $(wc -l < {tmp_path}/n) -ge 2'
        loop = {{ to = "code", on = ["failed"], times = 3 }}
        """
    run = Started(bench, text)
    job = after(bench, run)
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED
    assert run.node("ci")["pass"] == 2


def test_a_run_waits_for_another(bench: Bench, tmp_path: Path) -> None:
    first = Started(bench, SINKS.format(folder=tmp_path, code=0))
    second = Started(bench, '[nodes.a]\nargv = ["true"]\n', after_runs=(first.run,))  # type: ignore[arg-type]
    bench.until(lambda: first.node("build")["state"] == "running", "it to build")
    assert second.node("a")["state"] == "waiting_on_deps"
    (tmp_path / "go").touch()
    assert second.ended()["state"] == "succeeded"


def test_runs_are_repeated_one_after_the_other(bench: Bench, tmp_path: Path) -> None:
    context = bench.client.context
    first = Started(bench, f"[nodes.a]\nshell = 'echo $HEADWAY_WORKFLOW_RUN >> {tmp_path}/n'\n")
    started = start_repeated(context, first.manifest, RunRequest(key="k"), 3)
    assert [each.run for each in started] == [2, 3, 4]
    again = start_repeated(context, first.manifest, RunRequest(key="k"), 3)
    assert [(each.run, each.created) for each in again] == [(2, False), (3, False), (4, False)]
    bench.until(lambda: bench.client.workflows.run(4)["ended_at"], "the last to end")
    assert (tmp_path / "n").read_text() == "wf-1\nwf-2\nwf-3\nwf-4\n"
    states = [bench.client.workflows.run(each)["state"] for each in (2, 3, 4)]
    assert states == ["succeeded"] * 3


def test_graphs_and_names_know_runs(bench: Bench) -> None:
    run = Started(bench, '[nodes.a]\nargv = ["true"]\n')
    first = Request(argv=("true",), local="first", after=(f"wf-{run.run}",))
    second = Request(argv=("true",), local="second", after=("first",))
    made = bench.client.jobs.submit_many([first, second])
    assert bench.client.job(made[0].job_id).after == (run.job("a"),)
    bench.until_ended(*(each.job_id for each in made))
    assert bench.status(made[1].job_id) is Status.SUCCEEDED


@pytest.mark.parametrize("what", ["job", "run"])
def test_a_run_that_is_not_there_is_told_and_nothing_is_made(bench: Bench, what: str) -> None:
    with pytest.raises(NotFoundError, match="there is no wf-9; `headway workflows runs` lists"):
        if what == "job":
            bench.client.submit(Request(argv=("true",), after=("wf-9",)))
        else:
            Started(bench, '[nodes.a]\nargv = ["true"]\n', after_runs=(9,))  # type: ignore[arg-type]
    with bench.store.read() as tx:
        assert tx.jobs.active() == [] and tx.workflows.since(0, 10) == []


def test_what_is_waited_for_is_kept(bench: Bench) -> None:
    run = Started(bench, '[nodes.a]\nargv = ["true"]\n')
    run.ended()
    request = Request(argv=("true",), after=("wf-1",), require_approval=True)
    job = bench.client.submit(request).job_id
    bench.step()
    assert bench.status(job) is Status.WAITING_ON_APPROVAL
    with pytest.raises(Exception, match=f"job-{job}"):
        bench.client.jobs.clean(run.job("a"))


def test_the_next_step_of_a_run_that_another_blocks_is_to_retry_that_one(
    bench: Bench, tmp_path: Path
) -> None:
    first = Started(bench, f"[nodes.a]\nargv = ['test', '-e', '{tmp_path}/there']\n")
    first.ended()
    last = Started(bench, '[nodes.a]\nargv = ["true"]\n', after_runs=(first.run,))  # type: ignore[arg-type]
    assert last.ended()["state"] == "blocked"
    assert next_step(bench.client, last.document) == "headway workflows retry wf-1"
    remedy = "headway workflows retry wf-1 runs it again, and all that follows"
    assert bench.client.workflows.why(last.run)["remedy"] == remedy
    (tmp_path / "there").touch()
    bench.client.workflows.retry(first.run)
    assert first.ended()["state"] == "succeeded" and last.ended()["state"] == "succeeded"


def test_the_next_step_of_a_run_that_a_job_blocks_is_to_retry_that_job(bench: Bench) -> None:
    job = bench.submit("false")
    run = Started(bench, '[nodes.a]\nargv = ["true"]\n', after=(job,))  # type: ignore[arg-type]
    assert next_step(bench.client, run.ended()) == f"headway jobs retry job-{job}"
