"""A run about a subject holds it for all its jobs, from its start to its end."""

from pathlib import Path

import pytest
from started import Started

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError
from headway.workflows.runs import stop_run

TWO = """
[nodes.a]
shell = 'echo "$HEADWAY_SUBJECT/$HEADWAY_TARGET"'
[nodes.b]
shell = 'test -e {folder}/go'
after = ["a"]
target = "own"
"""


def refused(bench: Bench, holder: str) -> None:
    """Neither a job nor a run about the subject can begin."""
    with pytest.raises(ConflictError, match=f"^{holder} is about gt-1 and has not ended; wait for"):
        bench.submit("true", subject="gt-1")
    with pytest.raises(ConflictError, match=f"^{holder} is about gt-1 and has not ended; wait for"):
        Started(bench, '[nodes.a]\nargv = ["true"]\n', subject="gt-1")


@pytest.mark.req("G17")
def test_all_jobs_of_a_run_have_its_subject_and_nobody_else(bench: Bench, tmp_path: Path) -> None:
    run = Started(bench, TWO.format(folder=tmp_path), subject="gt-1")
    assert (run.document["subject"], run.document["target"]) == ("gt-1", None)
    assert [bench.job(each).subject for each in run.made.jobs] == ["gt-1", "gt-1"]
    assert [bench.job(each).target for each in run.made.jobs] == [None, "own"]
    bench.until_ended(run.job("a"))
    refused(bench, "wf-1")
    assert run.ended()["state"] == "failed"
    assert run.log("a") == "gt-1/\n"
    assert bench.submit("true", subject="gt-1"), "the run holds it no more"
    assert len(bench.client.listing(everything=True)) == 3, "what was refused left nothing"


@pytest.mark.req("G17")
def test_an_open_job_keeps_its_subject_from_a_run(bench: Bench) -> None:
    job = bench.submit("true", subject="gt-1", delay=10**12)
    refused(bench, f"job-{job}")
    with pytest.raises(ConflictError, match="wait for it, or cancel it"):
        Started(bench, '[nodes.a]\nargv = ["true"]\n', subject="gt-1")
    assert bench.client.workflows.runs(everything=True) == []
    bench.client.cancel(job)
    assert Started(bench, '[nodes.a]\nargv = ["true"]\n', subject="gt-1").ended()["subject"]


def test_a_subject_is_one_line(bench: Bench) -> None:
    with pytest.raises(InvalidInputError, match=r"subject 'a.+b' must be 1 to 200 printable"):
        Started(bench, '[nodes.a]\nargv = ["true"]\n', subject="a\nb")


@pytest.mark.req("G17")
def test_a_retry_takes_the_subject_again_if_nobody_has_it(bench: Bench, tmp_path: Path) -> None:
    run = Started(bench, TWO.format(folder=tmp_path), subject="gt-1")
    run.ended()
    other = bench.submit("true", subject="gt-1", delay=10**12)
    for retry in (
        lambda: bench.client.workflows.retry(run.run),
        lambda: bench.client.workflows.retry(run.run, from_node="a"),
        lambda: bench.client.retry(run.job("b")),
    ):
        with pytest.raises(ConflictError, match=f"^job-{other} is about gt-1 and has not ended"):
            retry()
    assert run.document["ended_at"] and run.node("b")["pass"] == 1
    bench.client.cancel(other)
    second = Started(bench, '[nodes.a]\nargv = ["sleep", "60"]\n', subject="gt-1")
    with pytest.raises(ConflictError, match=r"^wf-2 is about gt-1 .* wait for it, or stop it"):
        bench.client.workflows.retry(run.run)
    stop_run(bench.client.context, second.run)
    second.ended()
    bench.client.workflows.retry(run.run)
    refused(bench, "wf-1")
    (tmp_path / "go").touch()
    assert run.ended()["state"] == "succeeded"


@pytest.mark.req("G17")
def test_a_node_is_retried_while_its_run_is_open(bench: Bench, tmp_path: Path) -> None:
    text = TWO.format(folder=tmp_path) + '[nodes.c]\nargv = ["true"]\napproval = true\n'
    run = Started(bench, text, subject="gt-1")
    bench.until(lambda: run.outcomes()["b"] == "failed")
    (tmp_path / "go").touch()
    bench.client.retry(run.job("b"))
    bench.until(lambda: run.outcomes()["b"] == "succeeded")
    assert bench.job(run.job("b")).subject == "gt-1"
    refused(bench, "wf-1")


def test_a_rewind_is_refused_that_would_work_twice_on_one_thing(bench: Bench) -> None:
    """A job that follows a run may be about the same once the run has ended, and not before."""
    run = Started(bench, '[nodes.a]\nargv = ["true"]\n', subject="gt-1")
    run.ended()
    later = bench.submit("true", after=(run.job("a"),), subject="gt-1")
    bench.until_ended(later)
    with pytest.raises(ConflictError, match="two of these jobs are about gt-1; each subject may"):
        bench.client.workflows.retry(run.run, from_node="a")
    assert run.document["ended_at"]


LOOP_AND_FAN = """
[nodes.list]
shell = 'echo "shards:=[1,2]" >> "$HEADWAY_OUTPUTS"'
outputs = ["shards"]
[nodes.each]
argv = ["echo", "${{{{ item }}}}"]
after = ["list"]
each = {{ in = "${{{{ nodes.list.outputs.shards }}}}", max = 3 }}
[nodes.ci]
shell = 'echo x >> {folder}/n; test $(wc -l < {folder}/n) -ge 3'
after = ["each"]
loop = {{ to = "list", on = ["failed"], times = 3 }}
"""


@pytest.mark.req("G17")
def test_loops_and_fans_stay_about_the_subject(bench: Bench, tmp_path: Path) -> None:
    run = Started(bench, LOOP_AND_FAN.format(folder=tmp_path), subject="gt-1")
    for number in (2, 3):
        bench.until(lambda number=number: run.node("ci")["pass"] == number)  # type: ignore[misc]
        refused(bench, "wf-1")
    assert run.ended()["state"] == "succeeded"
    jobs = bench.client.listing(everything=True)
    assert len(jobs) == 3 * 5 and {job["subject"] for job in jobs} == {"gt-1"}
    assert bench.submit("true", subject="gt-1")


def test_a_run_that_was_stopped_gives_its_subject_back(bench: Bench) -> None:
    run = Started(bench, '[nodes.a]\nargv = ["sleep", "60"]\n', subject="gt-1")
    stop_run(bench.client.context, run.run)
    run.ended()
    assert bench.submit("true", subject="gt-1")
