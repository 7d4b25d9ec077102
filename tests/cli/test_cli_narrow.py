"""60 columns: no line wraps, paths are cut in front, and `why` has one grid."""

import pytest
from commandline import Run

from harness import Site
from headway.base.clock import SECOND
from headway.base.text import cells, fitted
from headway.cli.render import table
from headway.jobs.request import Request
from headway.jobs.specification import default_name, parse_lock

ECHO = ("echo", *map(str, range(40)))
NAME = "a long name that goes on and on, and then a little further"


@pytest.fixture
def narrow(said: Run, file_site: Site, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "60")
    first = file_site.submit("true", name=NAME)
    file_site.submit(
        *ECHO,
        after=(first,),
        locks=(parse_lock("repository:main"),),
        require_approval=True,
        delay=3600 * SECOND,
        labels={"area": "night", "other": "thing"},
        needs=("file:out/some/rather/long/path/of/an/artifact/in/a/folder.txt",),
    )
    file_site.client.pause("because someone has to look at all of this before it may go on")
    return said


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "--queue"],
        ["status"],
        [],
        ["why", "2"],
        ["show", "2"],
        ["scheduler", "status"],
        ["jobs", "approvals"],
    ],
)
def test_no_line_is_wider_than_the_terminal(narrow: Run, words: list[str]) -> None:
    told = narrow(*words)
    assert told.code == 0
    assert told.out
    assert [line for line in told.out.splitlines() if cells(line) > 60] == []


def test_the_words_of_why_are_in_one_column(narrow: Run) -> None:
    _, *lines = narrow("why", "2").out.splitlines()
    column = len("  dependencies  ")
    listed = [line for line in lines if line.startswith("  ")]
    assert len(listed) > 6
    assert all(line[column - 1] == " " and line[column] != " " for line in listed)


def test_a_path_in_a_table_is_cut_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    path = "/srv/" + "deep/" * 30 + "the-end.txt"
    _, line = table(["Path", "State"], [[path, "queued"]], flexible=(0,))
    assert line.startswith("...") and "the-end.txt" in line
    assert cells(line) == 60


def test_titles_give_way_before_what_stands_below_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    header = ["Priority", "State", "Starts in", "Result"]
    title, line = table(header, [["0", "waiting_on_approval", "?", "x" * 50]], flexible=(3,))
    assert cells(title) <= 40 and cells(line) <= 40
    assert "waiting_on_approval" in line


def test_the_state_gives_way_before_little_is_left_of_name_and_wait(
    said: Run, file_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = file_site.submit("false", name="build the website")
    file_site.submit("true", name="deploy the website", after=(first,), require_approval=True)
    said("jobs", "cancel", "1")
    said("scheduler", "run")
    monkeypatch.setenv("COLUMNS", "80")
    assert "blocked_by_dependency" in said("list").out, "where there is room"
    monkeypatch.setenv("COLUMNS", "60")
    _, _, line = said("list").out.splitlines()
    assert cells(line) <= 60
    assert line.split("  ")[1:4] == ["deploy the we...", "blocked_b...", "blocked by job-1"]


@pytest.mark.parametrize(
    ("text", "room", "cut"),
    [
        ("missing file:/tmp/newuser/nothere.txt", 30, "missing file:...er/nothere.txt"),
        ("/tmp/newuser/nothere.txt", 15, ".../nothere.txt"),
        ("missing file:/tmp/newuser/nothere.txt", 16, "missing file:..."),
        ("dependency failed for job-2", 20, "dependency failed..."),
        ("short /a", 20, "short /a"),
    ],
)
def test_a_path_behind_a_few_words_is_cut_in_front(text: str, room: int, cut: str) -> None:
    assert fitted(text, room) == cut
    assert cells(fitted(text, room)) <= room


def test_what_events_say_is_not_cut(narrow: Run) -> None:
    told = " ".join(narrow("show", "2").out.partition("Events")[2].split())
    assert f"name {default_name(Request(argv=ECHO))} " in told
