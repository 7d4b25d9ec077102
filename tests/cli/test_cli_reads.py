"""Reads make nothing, and nothing makes a home where others keep their files; every command is
tried, a new one as soon as it is there."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest

from headway.base.home import Home
from headway.base.new_home import make_home
from headway.cli.commands import COMMANDS, LazyGroup
from headway.cli.main import run

# What each command needs to be told.
ARGUMENTS: dict[str, Sequence[str]] = {
    **dict.fromkeys(("jobs show", "jobs status", "jobs wait", "jobs why", "why"), ("job-1",)),
    **dict.fromkeys(("jobs tail", "jobs retry", "jobs cancel", "jobs clean"), ("job-1",)),
    **dict.fromkeys(("jobs approve", "jobs reject", "jobs repin"), ("job-1",)),
    **dict.fromkeys(("show", "logs", "tail", "wait", "approve", "cancel", "retry"), ("job-1",)),
    **dict.fromkeys(("submit", "exec", "direct"), ("--", "true")),
    **dict.fromkeys(("runs show", "runs retry"), ("run-1",)),
    **dict.fromkeys(("groups show", "groups close", "groups cancel"), ("group-1",)),
    "groups wait": ["group-1"],
    **dict.fromkeys(("targets show", "targets remove", "templates show"), ("x",)),
    **dict.fromkeys(("schedules show", "schedules enable", "schedules disable"), ("x",)),
    **dict.fromkeys(("schedules trigger", "schedules remove", "templates archive"), ("x",)),
    "jobs edit": ["job-1", "--priority", "1"],
    "jobs move": ["job-1", "--front"],
    "jobs reorder": ["job-1", "job-2"],
    "artifacts publish": ["custom", "x"],
    "artifacts show": ["custom:x:y"],
    "sling": ["x"],
    "targets add": ["x", "--", "true"],
    "templates add": ["x", "--", "true"],
    "schedules add": ["x", "--every", "1h", "--", "true"],
    "schedules explain": ["--every", "1h"],
    "runners show": ["claude"],
    "runners resume": ["claude"],
    "config get": ["worker.idle"],
    "config set": ["worker.idle", "5s"],
    "config unset": ["worker.idle"],
    "backup": ["copy.db"],
    "restore": ["nothing.db"],
    "completion": ["bash"],
    "jobs schedule": [],
    **dict.fromkeys(("workflows show", "workflows graph", "workflows audit"), ("x",)),
    **dict.fromkeys(("workflows wait", "workflows stop", "workflows retry"), ("wf-1",)),
    **dict.fromkeys(("run", "workflows init"), ("x",)),
    **dict.fromkeys(("webhooks show", "webhooks test", "webhooks pause"), ("x",)),
    **dict.fromkeys(("webhooks resume", "webhooks remove", "webhooks replay"), ("x",)),
    "webhooks add": ["x", "https://x.example/"],
    "tokens add": ["x", "--role", "read"],
    "tokens revoke": ["x"],
}
# What makes a home where none is; all others never do.
MAKES = {
    *("submit", "exec", "direct", "init", "work", "restore"),
    *("groups create", "targets add", "templates add", "schedules add", "config set"),
    *("run", "workflows init", "webhooks add", "serve", "mcp", "tokens add"),
}
# What changes something in a home that is there, and may complete it.
CHANGES = {
    *("jobs retry", "jobs cancel", "jobs edit", "jobs move", "jobs reorder", "jobs gc"),
    *("jobs clean", "jobs approve", "jobs reject", "jobs repin", "runs retry"),
    *("artifacts publish", "groups close", "groups cancel", "sling", "targets remove"),
    *("scheduler clear", "scheduler run", "scheduler pause", "scheduler resume"),
    "runners resume",
    *("scheduler reset", "templates archive", "schedules enable", "schedules disable"),
    *("schedules trigger", "schedules remove", "config unset", "service install"),
    *("webhooks pause", "webhooks resume", "webhooks remove", "webhooks replay"),
    *("webhooks rotate", "webhooks secret", "webhooks import", "tokens revoke", "web login"),
    *("service remove", "trust", "approve", "cancel", "retry", "workflows stop", "workflows retry"),
}
NAMES = [name for name, (place, _) in COMMANDS.items() if place]
READS = [name for name in NAMES if name not in MAKES | CHANGES]
# What tells something where no home is; each needs none.
WITHOUT_HOME = {
    *("runners list", "runners show", "jobsfile schema", "schedules explain", "completion"),
    *("jobs schedule", "doctor", "stop", "help"),
    *("workflows list", "workflows check", "workflows schema"),
}
# Of these, what asks for a home that was named.
NAMED_MUST_BE = {"jobs schedule", "stop", "workflows list", "workflows check"}
NEED_NO_PLACE = {
    *("jobsfile schema", "schedules explain", "completion", "help", "workflows schema"),
}


def command(name: str) -> click.Command:
    context = click.Context(LazyGroup())
    found: click.Command | None = LazyGroup()
    for word in name.split():
        assert isinstance(found, LazyGroup)
        found = found.get_command(context, word)
    assert found is not None
    return found


def ways(name: str) -> list[list[str]]:
    """The command as people give it, and as programs do."""
    words = [*name.split(), *ARGUMENTS.get(name, [])]
    flags = {each for option in command(name).params for each in option.opts}
    at = words.index("--") if "--" in words else len(words)
    with_json = [[*words[:at], "--json", *words[at:]]] if "--json" in flags else []
    return [words, *with_json]


def tree(folder: Path) -> list[tuple[str, int, bytes]]:
    return sorted(
        (str(path.relative_to(folder)), path.lstat().st_mode, path.read_bytes())
        if path.is_file()
        else (str(path.relative_to(folder)), path.lstat().st_mode, b"")
        for path in folder.rglob("*")
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a home, in which commands are given."""
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "README.md").write_text("mine\n")
    (project / "empty").mkdir()
    monkeypatch.chdir(project)
    for name in ("HEADWAY_HOME", "HEADWAY_STORE", "HEADWAY_CLAIM", "HEADWAY_TRUST"):
        monkeypatch.delenv(name, raising=False)
    return project


def test_the_tables_know_every_command() -> None:
    assert set(ARGUMENTS) | MAKES | CHANGES | WITHOUT_HOME <= set(NAMES)


@pytest.mark.processes
@pytest.mark.parametrize("name", [name for name in NAMES if name not in MAKES])
def test_where_no_home_is_none_is_made(
    place: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(place)
    for words in ways(name):
        code = run(words)
        told = capsys.readouterr()
        assert "unexpected" not in told.err, (words, told.err)
        assert code == (0 if name in WITHOUT_HOME else 3), (words, told.err)
        assert tree(place) == before, words


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", [".", "empty", "absent"])
def test_a_folder_that_is_no_home_is_told_apart_and_left_as_it_is(
    place: Path,
    name: str,
    where: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name in NEED_NO_PLACE or (name in MAKES and where != "."):
        return
    before = tree(place)
    for words in ways(name):
        for given in (["--home", where], []):
            monkeypatch.setenv("HEADWAY_HOME", "" if given else where)
            code = run([*given, *words])
            told = capsys.readouterr()
            assert "unexpected" not in told.err, (words, told.err)
            absent = where == "absent" and name in WITHOUT_HOME - NAMED_MUST_BE
            assert code == (0 if absent else 3), (words, told.err)
            if where == ".":
                assert "is no home" in told.err, (words, told.err)
            assert tree(place) == before, words


@pytest.mark.parametrize(
    "words",
    [
        ["webhooks", "add", "ci", "http://127.0.0.1:9/"],
        ["webhooks", "add", "ci", "http://localhost:9000/"],
        ["webhooks", "add", "ci", "ftp://x.example/"],
        ["webhooks", "add", "a b", "https://x.example/"],
        ["webhooks", "add", "ci", "https://x.example/", "--type", "odd"],
        ["tokens", "add", "a b", "--role", "read"],
    ],
)
def test_what_is_refused_makes_no_home(
    place: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(place)
    assert run(words) == 5
    assert tree(place) == before
    assert "made" not in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize("name", READS)
def test_a_read_completes_no_home(
    place: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A clone with the part of a home that people commit."""
    (place / ".headway").mkdir(mode=0o700)
    (place / ".headway" / "config.toml").write_text("[worker]\nidle = '5s'\n")
    before = tree(place)
    about_one = {each for each, words in ARGUMENTS.items() if words and words[0].endswith("-1")}
    missing = {
        "artifacts show",
        "targets show",
        "templates show",
        "schedules show",
        "backup",
        "jobsfile check",
        "workflows show",
        "workflows graph",
        "workflows audit",
        "webhooks show",
        "webhooks test",
    }
    for words in ways(name):
        code = run(words)
        told = capsys.readouterr()
        assert "unexpected" not in told.err, (words, told.err)
        expected = 3 if name in about_one | missing else 1 if name == "doctor" else 0
        assert code == expected, (words, code, told.err)
        assert tree(place) == before, words


@pytest.mark.parametrize("name", READS)
def test_a_read_leaves_a_home_as_it_is(
    place: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init"]) == 0
    (place / ".headway" / "host-id").unlink()  # as in a home of before
    before = [each for each in tree(place) if "headway.db" not in each[0]]
    for words in ways(name):
        run([*words])
        capsys.readouterr()
        (place / "copy.db").unlink(missing_ok=True)
        after = [each for each in tree(place) if "headway.db" not in each[0]]
        assert after == before, words


@pytest.mark.req("V84")
@pytest.mark.parametrize("form", ["summary", "dag", "json", "mermaid", "dot"])
def test_where_no_home_is_the_schedule_is_empty(
    place: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_home(Home(str(place / "other")))
    assert run(["--home", "other", "jobs", "schedule", "--format", form]) == 0
    empty = capsys.readouterr()
    assert run(["jobs", "schedule", "--format", form]) == 0
    told = capsys.readouterr()
    assert told.out == empty.out
    if form == "json":
        assert json.loads(told.out)["jobs"] == []
    assert run(["jobs", "schedule", "--job", "job-1", "--format", form]) == 3


@pytest.mark.parametrize(
    ("holds", "may_be_one"),
    [
        ([], True),
        (["config.toml"], True),
        ([".gitignore", "jobs.yaml", "workflows/", "runners/", "plans/", "tasks/"], True),
        (["run/"], False),
        (["jobs/", "config.toml"], False),
        ([".gitignore", "env/"], False),
        (["config.toml", "src/"], False),
        ([".git/"], False),
        (["README.md"], False),
    ],
)
def test_a_home_is_made_only_where_nothing_else_lies(
    place: Path, holds: list[str], may_be_one: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = place / "there"
    folder.mkdir(mode=0o700)
    for name in holds:
        (folder / name).mkdir() if name.endswith("/") else (folder / name).write_text("")
    before = tree(place)
    assert run(["--home", "there", "init"]) == (0 if may_be_one else 3)
    told = capsys.readouterr()
    if not may_be_one:
        assert "is no home" in told.err and tree(place) == before


def test_a_home_may_be_made_in_an_absent_folder(place: Path) -> None:
    assert run(["--home", "there", "init"]) == 0
    assert run(["--home", "there", "jobs", "list"]) == 0


@pytest.mark.processes
@pytest.mark.parametrize(
    "left",
    [
        lambda home: os.unlink(home / ".gitignore"),
        lambda home: (home / "notes.txt").write_text("mine"),
        lambda home: (home / ".gitignore").write_text("*\n"),
    ],
)
def test_a_home_that_is_used_stays_one(place: Path, left: Callable[[Path], object]) -> None:
    assert run(["--home", "there", "init"]) == 0
    left(place / "there")
    assert run(["--home", "there", "config", "set", "scheduler.max_active", "2"]) == 0
    assert run(["--home", "there", "jobs", "list"]) == 0
