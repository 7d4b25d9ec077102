"""The schema: what it is, that it is made whole or not at all, and by one process among many."""

import os
import re
import signal
from pathlib import Path

import apsw
import pytest
from others import another, words
from stocked import START, add

from headway.errors import InvalidInputError, SchemaTooNewError
from headway.store import open_store
from headway.store.queries import schema_version
from headway.testing import FakeClock

SCHEMA = Path(__file__).with_name("schema.txt")


def schema_of(path: Path) -> str:
    """The schema of a database, one statement per paragraph, without comments or line breaks.

    After a wanted change of the schema, write the new one down, so that it is seen in review:
    `cd tests/store && PYTHONPATH=../../src:.. python -c
    'import test_store_migrations as t; t.write_down()'`
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        version = connection.execute("pragma user_version").fetchall()[0][0]
        rows = connection.execute(
            "select sql from sqlite_schema where sql is not null order by type, name"
        ).fetchall()
    finally:
        connection.close()
    statements = [re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", str(row[0]))) for row in rows]
    return "\n\n".join([f"-- version {version}", *statements]) + "\n"


def write_down() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        open_store(f"sqlite://{folder}/headway.db", FakeClock(START), create=True).close()
        SCHEMA.write_text(schema_of(Path(folder, "headway.db")))


def test_migrating_from_nothing_gives_the_schema_that_was_reviewed(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    assert os.listdir(tmp_path) == ["headway.db"]
    assert schema_of(path) == SCHEMA.read_text()


def test_a_new_store_is_for_its_owner_alone_and_durable(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    store = open_store(f"sqlite://{path}", FakeClock(START), create=True)
    try:
        assert path.stat().st_mode & 0o777 == 0o600
        database = store.database  # type: ignore[attr-defined]
        assert database.execute("pragma journal_mode", {}) == [("wal",)]
        assert database.execute("pragma synchronous", {}) == [(2,)]
    finally:
        store.close()


def test_a_killed_creation_leaves_no_store_and_the_next_one_works(tmp_path: Path) -> None:
    """# fault A9"""
    path = tmp_path / "headway.db"
    killed = another("opened()", path, environ={"HEADWAY_POINTS": "store.migrated=kill"})
    assert words(killed) == [] and killed.returncode == -signal.SIGKILL
    assert not path.exists()
    store = open_store(f"sqlite://{path}", FakeClock(START), create=True)
    try:
        with store.write() as tx:
            assert add(tx).id == 1
        assert store.database.quick_check() == []  # type: ignore[attr-defined]
    finally:
        store.close()
    assert schema_of(path) == SCHEMA.read_text()


def test_what_a_killed_creation_left_behind_is_no_obstacle_and_goes(tmp_path: Path) -> None:
    """# fault A9: in a container the next process may well have the same number."""
    path = tmp_path / "headway.db"
    killed = another("opened()", path, environ={"HEADWAY_POINTS": "store.migrated=kill"})
    assert words(killed) == []
    for left in tmp_path.iterdir():
        left.rename(tmp_path / left.name.replace(str(killed.pid), str(os.getpid())))
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    assert os.listdir(tmp_path) == ["headway.db"]


def test_a_killed_migration_of_a_store_in_use_leaves_it_as_it_was(tmp_path: Path) -> None:
    """# fault A9"""
    path = tmp_path / "headway.db"
    connection = apsw.Connection(str(path))
    connection.execute(
        "pragma journal_mode = wal; create table mine (x); insert into mine values (1)"
    )
    connection.close()
    before = schema_of(path)
    killed = another("opened()", path, environ={"HEADWAY_POINTS": "store.migrated=kill"})
    assert words(killed) == [] and killed.returncode == -signal.SIGKILL
    connection = apsw.Connection(str(path))
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert schema_of(path) == before
    open_store(f"sqlite://{path}", FakeClock(START)).close()
    assert "create table jobs" in schema_of(path).lower()


def test_a_newer_schema_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    connection = apsw.Connection(str(path))
    connection.execute(f"pragma user_version = {schema_version() + 1}")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(SchemaTooNewError, match="Upgrade Headway") as error:
        open_store(f"sqlite://{path}", FakeClock(START), create=True)
    assert error.value.exit_code == 6
    assert path.read_bytes() == content


def test_opening_once_more_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    content = path.read_bytes()
    open_store(f"sqlite://{path}", FakeClock(START)).close()
    assert path.read_bytes() == content


CREATE = """
sys.stdin.readline()
store = opened()
with store.write() as tx:
    print(add(tx).id)
"""


def test_ten_processes_that_create_one_store_make_one(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    makers = [another(CREATE, path) for _ in range(10)]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    numbers = [int(line) for maker in makers for line in words(maker)]
    assert sorted(numbers) == list(range(1, 11))
    open_store(f"sqlite://{path}", FakeClock(START)).close()
    assert os.listdir(tmp_path) == ["headway.db"]
    assert schema_of(path) == SCHEMA.read_text()


@pytest.mark.parametrize("url", ["", "headway.db", "sqlite://relative.db", "mysql:///srv/x.db"])
def test_an_unknown_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="use sqlite:///absolute") as error:
        open_store(url, FakeClock(START))
    assert error.value.exit_code == 5
