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
