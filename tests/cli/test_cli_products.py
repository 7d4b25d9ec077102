"""What a job was to make and did not, and what nobody makes, is said where people look."""

import json

import pytest
from commandline import CommandLine


def test_a_success_without_its_file_says_so_everywhere(headway: CommandLine) -> None:
    file = f"file:{headway.folder / 'plan.md'}"
    done = headway("exec", "--produces", "file:plan.md", "--", "true")
    assert done.stderr == f"headway: job-1 succeeded without making {file}\n"
    assert headway("jobs", "wait", "1").stderr == done.stderr
    document = headway.json("jobs", "show", "1")
    assert document["job"]["run"]["not_produced"] == [file]
    (event,) = [each for each in document["events"] if each["kind"] == "not_produced"]
    assert event["data"] == {"artifacts": [file]}
    assert "not made" in headway.out("jobs", "show", "1")
    blocked = headway("exec", "--needs", "file:plan.md", "--", "true", code=10)
    assert f"missing {file}" in blocked.stderr
    said = "its producer succeeded without making it: correct that and retry it (job-1)"
    assert f"headway: job-2: {said}\n" in blocked.stderr
    assert said in headway.out("why", "2")


def test_a_file_that_is_made_needs_no_word(headway: CommandLine) -> None:
    done = headway("exec", "--produces", "file:plan.md", "--", "touch", "plan.md")
    assert done.stderr == ""
    assert headway.json("jobs", "show", "1")["job"]["run"]["not_produced"] == []
    assert "not_produced" not in headway("jobs", "show", "1").stdout


def test_a_failure_says_only_that(headway: CommandLine) -> None:
    done = headway("exec", "--produces", "file:plan.md", "--", "false", code=1)
    assert done.stderr == ""


def test_what_nobody_makes_is_said_at_submit(still: CommandLine) -> None:
    text = f"file:{still.folder / 'plan.md'}"
    done = still("submit", "--needs", "file:plan.md", "--", "true")
    assert done.stdout == "job-1\n"
    assert done.stderr == (
        f"headway: job-1 needs {text}, which no job makes, so it is blocked; submit one with "
        f"--produces {text}, then `headway jobs retry job-1`\n"
    )
    still("submit", "--produces", "file:plan.md", "--", "true")
    assert still("submit", "--needs", "file:plan.md", "--", "true").stderr == ""
    (still.folder / "there").touch()
    assert still("submit", "--needs", "file:there", "--", "true").stderr == ""


def test_what_nobody_makes_yet_is_waited_for_if_that_is_set(still: CommandLine) -> None:
    still("config", "set", "scheduler.missing_producer", "wait")
    done = still("submit", "--needs", "custom:report:june", "--", "true")
    assert "so it waits; submit one with --produces custom:report:june" in done.stderr
    assert "retry" not in done.stderr


def test_a_blocked_job_is_retried_once_its_file_has_a_producer(headway: CommandLine) -> None:
    headway("submit", "--needs", "file:plan.md", "--", "true")
    headway("jobs", "wait", "1", code=None)
    told = " ".join(headway.out("why", "1").split())
    assert "submit its producer" in told and "then headway jobs retry job-1" in told
    headway("submit", "--produces", "file:plan.md", "--", "touch", "plan.md")
    headway("jobs", "retry", "1")
    headway("jobs", "wait", "1")


@pytest.mark.parametrize("command", [["submit"], ["groups", "create"]])
def test_what_no_job_of_a_graph_makes_is_said_at_submit(
    still: CommandLine, command: list[str]
) -> None:
    jobs = [
        {"id": "plan", "argv": ["true"], "produces": ["file:plan.md"]},
        {"id": "build", "argv": ["true"], "needs": ["file:plan.md", "file:tools"]},
        {"id": "test", "argv": ["true"], "needs": ["file:tools", "custom:cases:all"]},
    ]
    (still.folder / "graph.json").write_text(json.dumps(jobs))
    done = still(*command, "--graph", "graph.json")
    tools = f"file:{still.folder / 'tools'}"
    assert done.stderr.splitlines() == [
        f"headway: job-2 needs {tools}, which no job makes, so it is blocked; "
        f"submit one with --produces {tools}, then `headway jobs retry job-2`",
        "headway: job-3 needs custom:cases:all, which no job makes, so it is blocked; "
        "submit one with --produces custom:cases:all, then `headway jobs retry job-3`",
    ]


def test_of_many_artifacts_that_nobody_makes_the_first_are_named(still: CommandLine) -> None:
    jobs = [{"id": f"j{n}", "argv": ["true"], "needs": [f"custom:a:{n}"]} for n in range(12)]
    (still.folder / "graph.json").write_text(json.dumps(jobs))
    told = still("submit", "--graph", "graph.json").stderr.splitlines()
    assert len(told) == 11
    assert told[-1] == "headway: and 2 more artifacts are made by no job"


def test_a_whole_graph_needs_no_word(still: CommandLine) -> None:
    jobs = [
        {"id": "plan", "argv": ["true"], "produces": ["file:plan.md"]},
        {"id": "build", "argv": ["true"], "needs": ["file:plan.md"]},
    ]
    (still.folder / "graph.json").write_text(json.dumps(jobs))
    assert still("submit", "--graph", "graph.json").stderr == ""
