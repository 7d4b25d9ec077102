"""`headway run`, and the commands about runs."""

import json

import pytest
from commandline import CommandLine

FLOW = """\
description = "Say hello."
inputs = ["who"]
[params]
who = { type = "text", help = "whom to greet" }
times = 1
[nodes.hello]
argv = ["echo", "hello", "${{ params.who }}"]
[nodes.count]
argv = ["sh", "-c", "exit ${{ params.times }}"]
tolerate = ["failed"]
after = ["hello"]
[nodes.done]
uses = "control.terminal"
after = ["count"]
"""
BROKEN = '[nodes.a]\nargv = ["true"]\nafter = ["b"]\nretrys = 3\n'


@pytest.fixture
def flows(headway: CommandLine) -> CommandLine:
    folder = headway.home / "workflows"
    folder.mkdir()
    (folder / "hello.toml").write_text(FLOW)
    (folder / "broken.toml").write_text(BROKEN)
    (folder / "red.toml").write_text('[nodes.a]\nshell = "exit 3"\n')
    return headway


@pytest.mark.req("V3")
def test_a_run_is_followed_to_its_end(flows: CommandLine) -> None:
    done = flows("run", "hello", "ada", "--follow")
    assert done.stdout == "wf-1\n"
    said = done.stderr.splitlines()
    assert "headway: hello (job-1) succeeded" in said
    assert "headway: count (job-2) failed: exit code 1" in said
    assert said[-1] == "headway: wf-1 succeeded"
    assert flows.out("logs", "job-1") == "hello ada"


def test_a_failed_run_says_why_and_what_to_do(flows: CommandLine) -> None:
    done = flows("run", "red", "--follow", code=1)
    assert done.stderr.splitlines()[-1] == "headway: wf-1 failed: a (job-1) failed: exit code 3"
    assert flows("workflows", "wait", "wf-1", code=1).stderr.endswith("exit code 3\n")
    shown = flows.out("workflows", "show", "wf-1")
    assert "a (job-1) failed: exit code 3" in shown and "headway jobs retry job-1" in shown
    listed = flows.out("workflows", "runs")
    assert "wf-1" in listed and "red" in listed and "failed" in listed
    assert flows.json("workflows", "runs", "--state", "succeeded")["runs"] == []


@pytest.mark.req("V10", "V12")
def test_the_documents_of_a_run(flows: CommandLine) -> None:
    started = flows.json("run", "hello", "ada", "--set", "times=0")["run"]
    assert started["id"] == "wf-1" and started["params"] == {"who": "ada", "times": 0}
    ended = flows.json("workflows", "wait", "wf-1")["run"]
    assert ended["state"] == "succeeded" and ended["reason"] is None
    assert [each["id"] for each in ended["nodes"]] == ["hello", "count", "done"]
    shown = flows.json("workflows", "show", "wf-1")["run"]
    assert [each["id"] for each in shown["manifest"]["nodes"]] == ["hello", "count", "done"]
    job = json.loads(flows.out("jobs", "show", "job-1", "--json"))["job"]
    assert job["workflow"]["run_id"] == "wf-1" and "workflow" not in job["params"]


@pytest.mark.req("V100")
def test_a_check_writes_nothing(flows: CommandLine) -> None:
    done = flows("run", "hello", "ada", "--check")
    assert done.stdout == "" and "nothing is wrong; 3 jobs" in done.stderr
    flows("run", "broken", "--check", code=5)
    assert flows.json("jobs", "list", "--all")["jobs"] == []
    assert flows.json("workflows", "runs")["runs"] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["hello"], 5, "parameter 'who' has no value; give --set who=VALUE"),
        (["hello", "a", "b"], 5, "hello takes 1 inputs (who); 2 are given"),
        (["hello", "a", "--set", "who=b"], 5, "parameter 'who' is given twice"),
        (
            ["hello", "a", "--set", "time=2"],
            5,
            "no parameter 'time'; there are who, times",
        ),
        (["hello", "a", "--set", "times=two"], 5, "'times' is \"two\"; give a whole number"),
        (["hello", "a", "--set", "times"], 5, "--set 'times' is not K=V"),
        (["helo", "a"], 3, "there is no workflow 'helo'; did you mean 'hello'?"),
        (["./none.toml"], 3, "there is no file ./none.toml"),
        (["broken"], 5, "node 'a': after 'b' names no node"),
        (["broken"], 5, "node 'a': unknown key 'retrys'; did you mean 'retries'?"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_runs(
    flows: CommandLine, words: list[str], code: int, said: str
) -> None:
    assert said in flows("run", *words, code=code).stderr
    assert flows.json("jobs", "list", "--all")["jobs"] == []


def test_a_run_is_stopped(flows: CommandLine) -> None:
    (flows.home / "workflows" / "long.toml").write_text('[nodes.a]\nargv = ["sleep", "60"]\n')
    flows("run", "long")
    assert "wf-1 is stopped" in flows("workflows", "stop", "wf-1").stderr
    flows("workflows", "wait", "wf-1", code=143)
    assert "wf-1 cancelled" in flows("workflows", "stop", "wf-1").stderr
    assert "there is no wf-9" in flows("workflows", "stop", "wf-9", code=3).stderr
    assert "write one like wf-7" in flows("workflows", "wait", "x", code=5).stderr


def test_a_run_waits_for_a_job_and_has_a_key(flows: CommandLine) -> None:
    flows("submit", "--require-approval", "--", "true")
    assert flows.out("run", "hello", "ada", "--after", "job-1", "--key", "k") == "wf-1"
    assert flows.out("run", "hello", "ada", "--after", "job-1", "--key", "k") == "wf-1"
    assert "waiting on job job-1" in flows.out("why", "job-2")
    flows("approve", "job-1")
    flows("workflows", "wait", "wf-1")
