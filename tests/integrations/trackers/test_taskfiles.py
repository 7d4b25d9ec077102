"""Task files: Markdown with front matter, and TOML."""

import os
from pathlib import Path

import pytest

from headway.base.errors import SourceError
from headway.core.subjects import Item, ItemKind, ItemState
from headway.integrations.trackers import taskfiles
from headway.integrations.trackers.taskfiles import TaskFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    return tmp_path / "tasks"


def item(folder: Path, name: str) -> Item:
    return TaskFiles(str(folder)).look([name]).items[name]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("login.md", "---\ntitle: Log in\nstate: in_progress\ndepends_on: [base, done]\n---\nText"),
        (
            "login.md",
            "---\ntitle: 'Log in'\nstate: in-progress\ndepends_on:\n- base\n- done\n---",
        ),
        (
            "login.md",
            "---\nstate: in_progress # x\nat:\n  b: c\ndepends_on: base\n---\n# Log in\n",
        ),
        ("login.md", '+++\ntitle = "Log in"\nstate = "in_progress"\ndepends_on = ["base"]\n+++\n'),
        ("login.toml", 'title = "Log in"\nstate = "in_progress"\ndepends_on = ["base", "done"]\n'),
    ],
)
def test_a_task_is_told_whichever_way_it_is_written(folder: Path, file: str, text: str) -> None:
    (folder / file).write_text(text)
    (folder / "base.md").write_text("# Base\n")
    (folder / "done.md").write_text("---\nstate: done\n---\n")
    assert item(folder, "login") == Item(
        "login", "Log in", ItemState.IN_PROGRESS, blockers=("base",)
    )


def test_a_plain_text_is_an_open_task(folder: Path) -> None:
    (folder / "a.md").write_text("Only words.\n")
    assert item(folder, "a") == Item("a", "a")


def test_parents_and_children_make_trees(folder: Path) -> None:
    (folder / "all.toml").write_text('children = ["one"]\n')
    (folder / "one.md").write_text("x")
    (folder / "two.md").write_text("---\nparent: all\n---\n")
    (folder / "some.toml").write_text('kind = "group"\nchildren = ["two"]\n')
    assert (item(folder, "all").kind, item(folder, "all").children) == (
        ItemKind.TREE,
        ("one", "two"),
    )
    assert item(folder, "some").kind is ItemKind.GROUP


@pytest.mark.parametrize(
    ("file", "text", "trouble"),
    [
        ("a.toml", "title = ", "a.toml"),
        ("a.toml", "title = 7", "its title is no text"),
        ("a.toml", "depends_on = [7]", "no list of ids"),
        ("a.toml", "depends_on = { x = 1 }", "no list of ids"),
        ("a.md", "---\nstate: odd\n---\n", "its state 'odd' is not one of"),
        ("a.md", "---\nkind: odd\n---\n", "its kind 'odd' is not one of"),
        ("a.md", "---\ntitle: x\n", "does not end"),
        ("a.md", "---\ndepends_on: [nothing]\n---\n", "names nothing, which is not there"),
    ],
)
def test_a_task_that_cannot_be_read_is_in_trouble_by_itself(
    folder: Path, file: str, text: str, trouble: str
) -> None:
    (folder / file).write_text(text)
    (folder / "other.md").write_text("x")
    assert trouble in str(item(folder, "a").trouble)
    assert item(folder, "other").trouble is None


@pytest.mark.req("G23")
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.md", "---\ntitle: [broken\nstate: bogus\nparent: all\n---\n"),
        ("a.md", "---\nstate: bogus\nparent: 'all'  # so far\n---\n"),
        ("a.md", "---\nparent: all\n"),
        ("a.toml", 'parent = "all"\ntitle = \n'),
    ],
)
def test_a_broken_file_stays_the_child_of_the_parent_it_names(
    folder: Path, file: str, text: str
) -> None:
    (folder / "all.md").write_text("---\nkind: tree\n---\n")
    (folder / file).write_text(text)
    assert item(folder, "all").children == ("a",)
    seen = TaskFiles(str(folder)).look(["a"])
    assert seen.items["a"].trouble and seen.troubles == ()


def test_a_broken_file_that_belongs_to_nobody_is_named_whatever_is_asked(folder: Path) -> None:
    (folder / "all.toml").write_text('children = ["kept"]\n')
    (folder / "kept.md").write_bytes(b"\xff")
    (folder / "lost.md").write_bytes(b"\xff")
    [trouble] = TaskFiles(str(folder)).look(["all"]).troubles
    assert str(folder / "lost.md") in trouble


def test_bytes_that_are_no_text_and_pipes_are_trouble(folder: Path) -> None:
    (folder / "a.md").write_bytes(b"\xff\xfe")
    os.mkfifo(folder / "b.md")
    os.symlink("/etc/passwd", folder / "c.md")
    for name in ("a", "b", "c"):
        assert item(folder, name).trouble, name


def test_two_files_for_one_task_are_trouble(folder: Path) -> None:
    (folder / "a.md").write_text("x")
    (folder / "a.toml").write_text("")
    assert item(folder, "a").trouble == "there are two files for a"
    (folder / "a.toml").write_text('parent = "b"\n')
    (folder / "b.md").write_text("x")
    assert item(folder, "b").children == ("a",)


def test_other_files_are_no_tasks(folder: Path) -> None:
    for name in ("a.txt", ".b.md", "--c.md", "d e.md"):
        (folder / name).write_text("x")
    assert TaskFiles(str(folder)).look(["a", "b", ".b", "--c", "d e"]).items == {}


def test_a_folder_that_is_gone_or_too_large_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceError, match="No such file"):
        TaskFiles(str(folder / "none")).look(["a"])
    (folder / "a.md").write_text("x")
    (folder / "b.md").write_text("x")
    monkeypatch.setattr(taskfiles, "MOST_FILES", 1)
    with pytest.raises(SourceError, match="more than 1 task files"):
        TaskFiles(str(folder)).look(["a"])
