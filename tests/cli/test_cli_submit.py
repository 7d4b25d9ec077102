"""`headway submit`: what it prints, what it stores, and what it refuses without a trace."""

import json
import os
from pathlib import Path

import pytest
from commandline import CommandLine

METACHARACTERS = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "a b",
    "*",
    "\n",
    "'",
    '"',
    "",
]


@pytest.mark.req("E1")
def test_prints_the_id_of_a_stored_job_and_nothing_else(still: CommandLine) -> None:
    done = still("submit", "--", "echo", "hi")
    assert (done.stdout, done.stderr) == ("job-1\n", "")
    document = still.json("jobs", "show", "1")["job"]
    assert (document["state"], document["status"], document["position"]) == (
        "queued",
        "QUEUED",
        100,
    )


def test_a_time_that_has_passed_is_named(still: CommandLine) -> None:
    done = still("submit", "--at", "2020-01-01T00:00", "--", "true")
    assert done.stdout == "job-1\n"
    assert done.stderr == "headway: the time of --at has passed; job-1 starts at once\n"
    assert "passed" not in still("submit", "--at", "+1h", "--", "true").stderr
    assert "passed" not in still("submit", "--at", "22:30", "--", "true").stderr


def test_first_use_makes_the_home_in_the_repository(bare: CommandLine) -> None:
    (bare.folder / ".git").mkdir()
    inner = bare.folder / "inner"
    inner.mkdir()
    outer, bare.folder = bare.folder, inner
    assert bare.submit("true") == "job-1"
    bare("jobs", "wait", "1")
    assert (outer / ".headway" / "headway.db").exists()
    assert not (inner / ".headway").exists()


def test_json_says_whether_it_was_created(still: CommandLine) -> None:
    first = json.loads(still.out("submit", "--json", "--name", "one", "--", "true"))
    assert first["created"] is True
    assert first["job"]["name"] == "one"


def test_key_seen_before_gives_the_old_job_and_another_specification_conflicts(
    still: CommandLine,
) -> None:
    still("submit", "--key", "k", "--", "echo", "1")
    again = still("submit", "--key", "k", "--", "echo", "1")
    assert again.stdout == "job-1\n"
    assert (
        "key 'k' belongs to job-1"
        in still("submit", "--key", "k", "--", "echo", "2", code=4).stderr
    )
    assert still.count() == 1


def test_options_reach_the_job(still: CommandLine) -> None:
    still("submit", "--", "true")
    still(
        *["submit", "--name", "n", "--slug", "s.1", "--label", "a=b", "--label", "c="],
        *["--priority", "-3", "--after", "#1", "--lock", "repo", "--lock", "db:shared"],
        *["--delay", "1h", "--timeout", "1h30m", "--grace", "2s", "--retries", "2"],
        *["--retry-base", "5s", "--retry-on", "3,signal", "--skip-exit-code", "7"],
        *["--env", "TOKEN=secret", "--env", "USER", "--cwd", "/", "--shell", "exit 1"],
        *["--on-finish", "echo 'all done'", "--no-check"],
    )
    shown = still.json("jobs", "show", "2")
    job = shown["job"]
    assert job["labels"] == {"a": "b", "c": ""}
    assert job["after"] == ["job-1"]
    assert job["locks"] == [{"key": "db", "mode": "shared"}, {"key": "repo", "mode": "exclusive"}]
    assert job["params"] == {
        "cwd": "/",
        "env": ["TOKEN", "USER"],
        "grace_seconds": 2.0,
        "shell": "exit 1",
        "skip_exit_codes": [7],
        "timeout_seconds": 5400.0,
    }
    assert (job["slug"], job["priority"], job["max_attempts"]) == ("s.1", -3, 2)
    assert "secret" not in json.dumps(shown)


def test_options_end_where_the_command_begins(headway: CommandLine) -> None:
    assert headway.out("exec", "echo", "--name", "-n", "--", "x") == "--name -n -- x"


REFUSED = {
    "priority": (["--priority", "high", "--", "true"], 5, "--priority 'high'"),
    "timeout": (["--timeout", "soon", "--", "true"], 5, "--timeout 'soon'"),
    "no time at all": (["--timeout", "0s", "--", "true"], 5, "timeout"),
    "time": (["--at", "teatime", "--", "true"], 5, "'teatime'"),
    "label": (["--label", "x", "--", "true"], 5, "--label 'x'"),
    "variable": (["--env", "NO_SUCH_VARIABLE", "--", "true"], 5, "NO_SUCH_VARIABLE"),
    "variable's name": (["--env", "1=2", "--", "true"], 5, "'1'"),
    "quotes": (["--on-finish", "echo '", "--", "true"], 5, "--on-finish"),
    "retries": (["--retries", "-1", "--", "true"], 5, "retries"),
    "retry word": (["--retry-on", "always", "--", "true"], 5, "'always'"),
    "exit code": (["--skip-exit-code", "0", "--", "true"], 5, "--skip-exit-code 0"),
    "both": (["--shell", "true", "--", "true"], 5, "not both"),
    "program": (["--", "no-such-program"], 5, "'no-such-program'"),
    "directory": (["--cwd", "nowhere", "--", "true"], 5, "nowhere"),
    "stdin": (["--stdin", "nothing.txt", "--", "true"], 5, "nothing.txt"),
    "unknown job": (["--after", "job-999", "--", "true"], 3, "job-999"),
    "not a job": (["--after", "../x", "--", "true"], 3, "'../x'"),
    "no command": ([], 2, "What is to run"),
    "unknown option": (["--frobnicate", "--", "true"], 2, "--frobnicate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_names_the_thing_and_leaves_nothing(bare: CommandLine, case: str) -> None:
    argv, code, named = REFUSED[case]
    done = bare("submit", *argv, code=code)
    assert named in done.stderr
    assert done.stdout == ""
    assert list(bare.folder.iterdir()) == []


def test_bad_input_adds_no_job(still: CommandLine) -> None:
    for argv, code, _ in list(REFUSED.values())[::4]:
        still("submit", *argv, code=code)
    still("submit", "--after", "999", "--", "true", code=3)
    assert still.count() == 0


@pytest.mark.parametrize(
    "name", ["../../x", "a\nb", "x" * 300, "\u202egnp.exe", "\x1b[2J", "a\0b"[:1]]
)
def test_hostile_names_reach_no_path_and_no_terminal(  # fault H4
    still: CommandLine, name: str
) -> None:
    done = still("submit", "--name", name, "--", "true", code=None)
    assert done.returncode in (0, 5)
    listed = still("jobs", "list", "--all").stdout
    assert "\x1b" not in listed + done.stderr
    assert "\u202e" not in listed + done.stderr
    assert sorted(path.name for path in still.folder.iterdir()) == [".headway"]
    assert not (still.folder.parent / "x").exists()
    assert len(done.stderr.splitlines()) <= 1


@pytest.mark.parametrize("slug", ["../x", "a b", "x" * 65, "", "\n"])
def test_slugs_are_plain_words(bare: CommandLine, slug: str) -> None:  # fault H4
    assert "slug" in bare("submit", "--slug", slug, "--", "true", code=5).stderr


def test_metacharacters_stay_one_argument(headway: CommandLine) -> None:  # fault H5
    script = "import sys, json; print(json.dumps(sys.argv[1:]))"
    done = headway("exec", "--", "python3", "-c", script, *METACHARACTERS)
    assert json.loads(done.stdout) == METACHARACTERS
    assert not list(Path(headway.folder).glob("pwned*"))


def test_a_shell_string_is_only_run_when_asked_for(headway: CommandLine) -> None:  # fault H5
    assert headway.out("exec", "--shell", "echo a; echo b | tr b c") == "a\nc"


def test_follow_prints_the_id_first_and_exits_with_the_code(headway: CommandLine) -> None:
    done = headway("submit", "--follow", "--", "sh", "-c", "echo out; exit 4", code=4)
    assert done.stdout == "job-1\nout\n"


def test_submitter_is_recorded(still: CommandLine) -> None:
    still("--as", "grace", "submit", "--", "true")
    still("submit", "--", "true")
    jobs = still.json("jobs", "list")["jobs"]
    assert [job["submitted_by"] for job in jobs] == ["grace", "ada"]


def test_home_option_goes_before_everything(still: CommandLine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "config.toml").write_text("[worker]\nautostart = false\n")
    still("--home", str(other), "submit", "--", "true")
    assert still.count() == 0
    assert still.out("jobs", "status", "1", env={"HEADWAY_HOME": str(other)}) == "queued"
    assert os.stat(other / "headway.db").st_mode & 0o077 == 0


@pytest.mark.parametrize("line", ["", "  "])
@pytest.mark.parametrize(
    "command",
    [
        ("submit",),
        ("exec",),
        ("direct",),
        ("templates", "add", "zz"),
        ("schedules", "add", "--every", "1h"),
    ],
    ids=" ".join,
)
def test_an_empty_command_is_refused(
    command: tuple[str, ...], line: str, still: CommandLine
) -> None:
    """As of a script in which a variable is not set."""
    for words in (("--shell", line), ("--no-check", "--", line)):
        done = still(*command, *words, code=5)
        assert "is empty" in done.stderr
    assert not still.out("jobs", "list", "--all", "--fields", "id").strip()


def test_an_empty_command_of_a_graph_is_refused(still: CommandLine) -> None:
    (still.folder / "graph.json").write_text('[{"id": "a", "shell": " "}]')
    assert "is empty" in still("submit", "--graph", "graph.json", code=5).stderr


def test_an_empty_command_of_a_job_that_waits_is_refused(still: CommandLine) -> None:
    still.submit("true")
    assert "is empty" in still("jobs", "edit", "1", "--shell", "", code=5).stderr


@pytest.mark.parametrize("option", ["--cwd", "--stdin"])
def test_an_empty_path_is_refused(option: str, still: CommandLine) -> None:
    assert f"{option} is empty" in still("submit", option, "", "--", "true", code=5).stderr


@pytest.mark.parametrize("option", ["--home", "--store", "--as"])
def test_an_empty_global_option_is_refused(option: str, still: CommandLine) -> None:
    assert f"{option} is empty" in still(option, "", "jobs", "list", code=5).stderr


@pytest.mark.parametrize(
    "words",
    [
        ("submit", "--lock"),
        ("submit", "--name"),
        ("submit", "--slug"),
        ("submit", "--after"),
        ("exec", "--label", "a=b", "--resource"),
        ("templates", "add", "t", "--name"),
        ("targets", "add", "t", "--lock"),
        ("schedules", "add", "--every", "1h", "--name"),
        ("jobs", "edit", "1", "--name"),
        ("--as",),
    ],
    ids=" ".join,
)
def test_the_dashes_are_never_the_value_of_an_option(
    words: tuple[str, ...], still: CommandLine
) -> None:
    done = still(*words, "--", "true", code=2)
    told = " ".join(done.stderr.split())
    assert "needs a value before the --" in told or "requires an argument" in told


def test_dashes_in_a_command_and_options_without_a_value_are_left_alone(still: CommandLine) -> None:
    still("submit", "grep", "--name", "--", "x")
    assert still.json("jobs", "show", "1")["job"]["name"] == "grep --name -- x"
    assert "a value" not in still("submit", "--pin-head", "--", "true", code=None).stderr


@pytest.mark.parametrize("options", [("--", "nosuch"), ("--cwd", "nosuch", "--", "true")])
def test_who_has_the_option_is_told_of_it(headway: CommandLine, options: tuple[str, ...]) -> None:
    for command in (("submit",), ("templates", "add", "t"), ("exec",), ("direct",)):
        assert "(--no-check skips this)" in headway(*command, *options, code=5).stderr
    graph = {"id": "a", "argv": ["true"], "cwd": "nosuch"}
    (headway.home / "graph.json").write_text(json.dumps([graph]))
    told = headway("submit", "--graph", str(headway.home / "graph.json"), code=5).stderr
    assert "(no_check skips this)" in told
