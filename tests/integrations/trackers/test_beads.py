"""The export of a beads tracker, read and never written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headway.base.errors import SourceError
from headway.core.subjects import Item, ItemKind, ItemState
from headway.integrations.trackers import Seen, beads
from headway.integrations.trackers.beads import Beads


def edge(name: str, other: str, kind: str) -> dict[str, str]:
    return {"issue_id": name, "depends_on_id": other, "type": kind}


def issue(name: str, *edges: tuple[str, str], **fields: Any) -> str:
    record = {"id": name, "title": f"Title of {name}", "status": "open", "issue_type": "task"}
    listed = [edge(name, other, kind) for other, kind in edges]
    return json.dumps({**record, **({"dependencies": listed} if listed else {}), **fields})


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return tmp_path / "issues.jsonl"


def look(export: Path, *names: str) -> Seen:
    return Beads(str(export)).look(names)


def write(export: Path, *lines: str) -> None:
    export.write_text("\n".join(lines) + "\n")


def test_an_item_is_told_with_its_state(export: Path) -> None:
    write(
        export,
        issue("gt-1"),
        issue("gt-2", status="in_progress"),
        issue("gt-3", status="hooked"),
        issue("gt-4", status="closed"),
    )
    items = look(export, "gt-1", "gt-2", "gt-3", "gt-4", "gt-5").items
    assert items["gt-1"] == Item("gt-1", "Title of gt-1")
    assert [items[f"gt-{n}"].state for n in (2, 3, 4)] == [
        ItemState.IN_PROGRESS,
        ItemState.IN_PROGRESS,
        ItemState.CLOSED,
    ]
    assert "gt-5" not in items
    assert items["gt-1"].prefix == "gt-"


@pytest.mark.req("G27")
@pytest.mark.parametrize(
    ("edges", "blockers"),
    [
        ((("gt-open", "blocks"),), ("gt-open",)),
        ((("gt-open", "waits-for"), ("gt-busy", "conditional-blocks")), ("gt-open", "gt-busy")),
        ((("gt-done", "blocks"), ("gt-deleted", "blocks")), ()),
        ((("gt-elsewhere", "blocks"),), ("gt-elsewhere",)),
        ((("gt-open", "related"), ("gt-open", "discovered-from"), ("gt-open", "tracks")), ()),
        ((("gt-held", "parent-child"),), ("gt-open",)),
        ((("gt-epic", "parent-child"),), ()),
    ],
)
def test_what_is_open_of_what_it_depends_on_blocks(
    export: Path, edges: tuple[tuple[str, str], ...], blockers: tuple[str, ...]
) -> None:
    write(
        export,
        issue("gt-open"),
        issue("gt-busy", status="in_progress"),
        issue("gt-done", status="closed"),
        issue("gt-deleted", status="tombstone"),
        issue("gt-epic", issue_type="epic"),
        issue("gt-held", ("gt-open", "blocks"), issue_type="epic"),
        issue("gt-1", *edges),
    )
    assert look(export, "gt-1").items["gt-1"].blockers == blockers


def test_parents_in_a_circle_are_walked_once(export: Path) -> None:
    write(
        export,
        issue("gt-1", ("gt-2", "parent-child"), ("gt-3", "blocks")),
        issue("gt-2", ("gt-1", "parent-child")),
        issue("gt-3"),
    )
    assert look(export, "gt-2").items["gt-2"].blockers == ("gt-3",)


def test_trees_have_children_and_groups_what_they_track(export: Path) -> None:
    write(
        export,
        issue("gt-e", issue_type="epic"),
        issue("gt-1", ("gt-e", "parent-child")),
        issue("gt-2", ("gt-e", "parent-child")),
        issue("hq-c", ("gt-1", "tracks"), ("gt-2", "tracks"), issue_type="convoy"),
    )
    items = look(export, "gt-e", "hq-c", "gt-1").items
    assert (items["gt-e"].kind, items["gt-e"].children) == (ItemKind.TREE, ("gt-1", "gt-2"))
    assert (items["hq-c"].kind, items["hq-c"].children) == (ItemKind.GROUP, ("gt-1", "gt-2"))
    assert (items["gt-1"].kind, items["gt-1"].children) == (ItemKind.TASK, ())


@pytest.mark.parametrize("status", ["blocked", "deferred", "pinned"])
def test_a_status_that_holds_is_told_in_words(export: Path, status: str) -> None:
    write(export, issue("gt-1", status=status))
    item = look(export, "gt-1").items["gt-1"]
    assert (item.state, item.hold) == (ItemState.OPEN, f"gt-1 is {status}")


def test_a_deleted_item_is_not_there(export: Path) -> None:
    write(export, issue("gt-1", status="tombstone"))
    assert look(export, "gt-1") == Seen({})


def test_of_two_lines_about_one_item_the_later_counts(export: Path) -> None:
    write(export, issue("gt-1"), issue("gt-1", status="closed"))
    assert look(export, "gt-1").items["gt-1"].state is ItemState.CLOSED


@pytest.mark.parametrize(
    "line",
    [
        "garbage",
        "[]",
        "7",
        '{"title": "x"}',
        '{"id": 7}',
        '{"id": "--rm"}',
        '{"id": "a b"}',
        "[" * 100_000,
        '{"id": "\\ud800"}',
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_concerns_nobody_else(
    export: Path, line: str
) -> None:
    write(export, issue("gt-1"), line, issue("gt-2"))
    seen = look(export, "gt-1", "gt-2")
    assert set(seen.items) == {"gt-1", "gt-2"}
    assert len(seen.troubles) == 1 and f"line 2 of {export} cannot be read" in seen.troubles[0]


@pytest.mark.parametrize(
    "fields", [{"status": "weird"}, {"status": 7}, {"status": ["open"]}, {"title": 7}]
)
def test_an_item_that_is_not_understood_is_in_trouble_by_itself(
    export: Path, fields: dict[str, Any]
) -> None:
    write(export, issue("gt-1", **fields), issue("gt-2"))
    items = look(export, "gt-1", "gt-2").items
    assert "is not understood" in str(items["gt-1"].trouble)
    assert items["gt-2"].trouble is None


def test_broken_edges_are_passed_over(export: Path) -> None:
    write(export, issue("gt-1", dependencies=[7, {"type": "blocks"}, {"depends_on_id": 3}]))
    assert look(export, "gt-1").items["gt-1"].blockers == ()


def test_other_records_of_the_export_are_no_items(export: Path) -> None:
    write(export, json.dumps({"_type": "memory", "id": "gt-1"}), issue("gt-2", _type="issue"))
    assert set(look(export, "gt-1", "gt-2").items) == {"gt-2"}


def test_a_title_is_one_printable_line(export: Path) -> None:
    write(export, issue("gt-1", title="two\nlines\x1b[2J " + "x" * 500))
    title = look(export, "gt-1").items["gt-1"].title
    assert title.startswith("two lines [2J x") and title.isprintable() and len(title) <= 200


def test_what_is_not_there_or_no_file_is_an_error_that_names_it(export: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        look(export, "gt-1")
    os.mkfifo(export)
    with pytest.raises(SourceError, match="no plain file"):
        look(export, "gt-1")


def test_reading_is_bounded(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(export, issue("gt-1"), issue("gt-2"))
    monkeypatch.setattr(beads, "MOST_LINES", 2)
    with pytest.raises(SourceError, match="more than 2 lines"):
        look(export, "gt-1")
    monkeypatch.setattr(beads, "MOST_BYTES", 50)
    with pytest.raises(SourceError, match="larger than"):
        look(export, "gt-1")
