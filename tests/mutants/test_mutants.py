"""The lists of mutants keep up with the code. `make mutants` runs them, which takes minutes."""

import ast
from functools import cache
from pathlib import Path

import pytest

from mutants import ALL, ROOMS
from mutants.mutant import MovedOnError, Mutant, patched
from mutants.run import PROJECT, run

LEAST = 120
PROVEN = ("core", "store", "supervise", "worker")


def test_every_mutant_is_where_its_list_says() -> None:
    moved_on = []
    for mutant in ALL:
        try:
            patched(mutant, PROJECT)
        except MovedOnError as error:
            moved_on.append(str(error))
    assert moved_on == []


def test_the_tests_of_every_mutant_are_there() -> None:
    missing = []
    for mutant in ALL:
        assert mutant.ids, mutant
        for test in mutant.ids:
            file, _, name = test.partition("::")
            if name and name.partition("[")[0] not in functions_of(file):
                missing.append(f"{mutant}: {test}")
    assert missing == []


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((PROJECT / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_there_are_enough_of_them() -> None:
    assert sum(len(ROOMS[room]) for room in PROVEN) >= LEAST


def test_each_stands_in_the_list_of_its_room_once() -> None:
    assert [each for room, listed in ROOMS.items() for each in listed if each.room != room] == []
    assert len({(each.place, each.old, each.new) for each in ALL}) == len(ALL)


TEXT = """
class Gate:
    limit = 3

    @property
    def free(self):
        return self.limit > 0

def taken():
    return 1 > 0
"""
QUERIES = "-- name: first (hot)\nselect 1\n\n-- name: first_of_all\nselect 1\n"


@pytest.mark.parametrize(
    ("place", "old", "new", "words"),
    [
        ("core/gate.py:Gate.free", "> 0", ">= 0", None),
        ("core/gate.py:Gate.limit", "3", "4", None),
        ("core/gate.py:Gate", "@property", "@staticmethod", None),
        ("core/queries.sql:first", "select 1", "select 2", None),
        ("core/queries.sql:first_of_all", "select 1", "select 2", None),
        ("core/gate.py:Gate.full", "> 0", ">= 0", "there is no Gate.full"),
        ("core/other.py:taken", "> 0", ">= 0", "there is no src/headway/core/other.py"),
        ("core/queries.sql:last", "select 1", "select 2", "there is no query last"),
        ("core/gate.py:taken", "< 0", ">= 0", "is there 0 times"),
        ("core/gate.py:Gate", "limit", "most", "is there 2 times"),
        ("core/gate.py:taken", "> 0", "> ", "is no Python"),
        ("core/gate.py:taken", "> 0", ">  0", "the program is the same"),
    ],
)
def test_a_mistake_is_made_in_one_place_or_refused(
    tmp_path: Path, place: str, old: str, new: str, words: str | None
) -> None:
    folder = tmp_path / "src" / "headway" / "core"
    folder.mkdir(parents=True)
    (folder / "gate.py").write_text(TEXT)
    (folder / "queries.sql").write_text(QUERIES)
    mutant = Mutant(place, old, new, "tests/core")
    if words is None:
        before = (tmp_path / mutant.file).read_text()
        assert patched(mutant, tmp_path).count(new) == before.count(new) + 1
    else:
        with pytest.raises(MovedOnError, match=words):
            patched(mutant, tmp_path)


KILLED = Mutant(
    "core/backoff.py:probe_delay",
    "failures - 1",
    "failures",
    "tests/core/test_core_settle.py::test_the_host_is_probed_ever_more_rarely",
)
UNNOTICED = KILLED._replace(tests="tests/core/test_shells.py")
NOT_THERE = KILLED._replace(tests="tests/core/test_shells.py::test_nothing")


@pytest.mark.processes
def test_a_run_tells_what_was_killed_from_what_survived(capsys: pytest.CaptureFixture[str]) -> None:
    assert not run([KILLED, UNNOTICED, NOT_THERE], slots=1, baseline=False)
    told = capsys.readouterr().out
    words = [line.split()[1] for line in told.splitlines() if "/3 " in line]
    assert sorted(words) == ["NOT", "SURVIVED", "killed"]
    assert "1 of 3 killed" in told
