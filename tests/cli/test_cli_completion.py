"""Completion: a shell is offered jobs, templates, settings and runners; nothing is made."""

import pytest
from commandline import CommandLine, Run

from harness import Site


def offered(line: CommandLine, *words: str) -> list[str]:
    """What bash is offered for the last of these words."""
    asked = {
        "_HEADWAY_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["headway", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = line(env=asked)
    assert done.stderr == ""
    return [each.partition(",")[2] for each in done.stdout.split()]


@pytest.fixture
def full(still: CommandLine) -> CommandLine:
    still.submit("--", "true")
    still.submit("--", "false")
    still("templates", "add", "nightly", "--", "true")
    return still


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["show", ""], ["job-2", "job-1"]),
        (["jobs", "cancel", "job-1", "job-"], ["job-2", "job-1"]),
        (["submit", "--after", "job-2"], ["job-2"]),
        (["submit", "--template", ""], ["nightly"]),
        (["templates", "show", "n"], ["nightly"]),
        (["templates", "add", "n"], []),
        (["config", "set", "scheduler.max"], ["scheduler.max_active"]),
        (["config", "unset", "app.m"], ["app.modules"]),
        (["runners", "show", "cl"], ["claude"]),
        (["submit", "--runner", "co"], ["codex", "command"]),
        (["list", "--state", "r"], ["running"]),
        (["list", "--status", "F"], ["FAILED"]),
        (["list", "--format", ""], ["block", "table", "json"]),
        (["show", "--format", "b"], ["block"]),
        (["jobs", "schedule", "--format", "s"], ["summary", "svg"]),
        (["stat"], ["status"]),
    ],
)
def test_a_shell_is_offered_what_is_there(
    full: CommandLine, words: list[str], names: list[str]
) -> None:
    assert offered(full, *words) == names


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["jobs", "cancel"],
        ["submit", "--after"],
        ["jobs", "move", "job-1", "--before"],
        ["jobs", "schedule", "--job"],
    ],
)
def test_a_shell_is_offered_the_slugs_of_jobs(still: CommandLine, words: list[str]) -> None:
    still.submit("--slug", "build", "--", "true")
    for _ in range(2):
        still.submit("--slug", "twice", "--", "true")
    assert offered(still, *words, "") == ["job-3", "job-2", "job-1", "build"]
    assert offered(still, *words, "b") == ["build"]


def test_where_no_home_is_nothing_is_offered_and_made(bare: CommandLine) -> None:
    assert offered(bare, "show", "") == []
    assert not bare.home.exists()


def test_what_cannot_be_read_is_offered_nothing(said: Run, file_site: Site) -> None:
    line = CommandLine(file_site.folder)
    (line.home / "config.toml").write_text("[worker\n")
    assert offered(line, "show", "") == []


@pytest.mark.req("V13")
def test_the_command_of_a_workflows_node_is_shown_nowhere(still: CommandLine) -> None:
    assert "workflow-node" not in still("--help").stdout
    assert offered(still, "__") == [] and offered(still, "") != []
    done = still("__workflow-node", "--job-id", "7", code=4)
    assert done.stderr == "headway: job-7 does not run here\n"


def test_a_shell_is_offered_workflows_and_their_runs(still: CommandLine) -> None:
    folder = still.home / "workflows"
    folder.mkdir()
    (folder / "hello.toml").write_text('[nodes.a]\nargv = ["true"]\n')
    still("run", "hello")
    assert offered(still, "run", "h") == ["hello"]
    for verb in ("wait", "stop", "retry"):
        assert offered(still, "workflows", verb, "") == ["wf-1"]
    for verb in ("show", "graph"):
        assert offered(still, "workflows", verb, "") == ["hello", "wf-1"]
    assert offered(still, "why", "") == ["wf-1", "job-1"]
    assert offered(still, "submit", "--after", "w") == ["wf-1"]
    assert offered(still, "jobs", "list", "--run", "") == ["wf-1"]
    assert "blocked" in offered(still, "workflows", "runs", "--state", "")
    assert offered(still, "schedules", "add", "--workflow", "") == ["hello"]
