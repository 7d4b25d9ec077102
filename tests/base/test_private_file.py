"""A small file that only its owner may read: refused if others may, changed whole or not at all."""

import json
import os
import threading
from pathlib import Path

import pytest

from headway.base.errors import StoreError
from headway.base.private_file import PrivateFile


@pytest.fixture
def kept(tmp_path: Path) -> PrivateFile:
    return PrivateFile(str(tmp_path / "web" / "kept.json"))


def add(file: PrivateFile, name: str) -> None:
    with file.changing() as document:
        document.setdefault("names", []).append(name)


def test_it_is_made_for_its_owner_alone_whatever_the_umask(kept: PrivateFile) -> None:
    before = os.umask(0)
    try:
        add(kept, "a")
    finally:
        os.umask(before)
    assert os.stat(kept.path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(kept.path)).st_mode & 0o777 == 0o700
    assert kept.read() == {"names": ["a"]}
    assert os.listdir(os.path.dirname(kept.path)) == ["kept.json"]


def test_one_that_is_not_there_is_empty(kept: PrivateFile) -> None:
    assert kept.stamp() == () and kept.read() == {}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o777])
def test_one_that_others_may_read_or_write_is_refused(kept: PrivateFile, mode: int) -> None:
    add(kept, "a")
    os.chmod(kept.path, mode)
    for act in (kept.read, lambda: add(kept, "b")):
        with pytest.raises(StoreError, match="chmod 0600"):
            act()
    os.chmod(kept.path, 0o600)
    assert kept.read() == {"names": ["a"]}


def test_a_link_is_refused(kept: PrivateFile, tmp_path: Path) -> None:  # fault H7
    other = tmp_path / "other.json"
    other.write_text("{}")
    other.chmod(0o600)
    os.mkdir(os.path.dirname(kept.path), 0o700)
    os.symlink(other, kept.path)
    with pytest.raises(StoreError, match="cannot be read"):
        kept.read()
    with pytest.raises(StoreError, match="cannot be read"):
        add(kept, "a")
    assert other.read_text() == "{}"


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_folder_that_others_may_enter_is_refused(kept: PrivateFile, mode: int) -> None:
    add(kept, "a")
    os.chmod(os.path.dirname(kept.path), mode)
    for act in (kept.read, lambda: add(kept, "b")):
        with pytest.raises(StoreError, match="chmod 0700"):
            act()


@pytest.mark.root
def test_one_of_another_user_is_refused(kept: PrivateFile) -> None:
    add(kept, "a")
    os.chown(kept.path, 65534, -1)
    with pytest.raises(StoreError, match="belongs to user 65534"):
        kept.read()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"null", b'{"a": 1'])
def test_a_damaged_one_is_refused_and_left_as_it_is(kept: PrivateFile, content: bytes) -> None:
    add(kept, "a")
    Path(kept.path).write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        kept.read()
    with pytest.raises(StoreError, match="damaged"):
        add(kept, "b")
    assert Path(kept.path).read_bytes() == content


def test_a_change_that_raises_changes_nothing(kept: PrivateFile) -> None:
    add(kept, "a")
    before = kept.stamp()
    with pytest.raises(ValueError), kept.changing() as document:
        document["names"] = []
        raise ValueError
    assert kept.read() == {"names": ["a"]} and kept.stamp() == before


def test_a_change_of_nothing_writes_nothing(kept: PrivateFile) -> None:
    add(kept, "a")
    before = kept.stamp()
    with kept.changing() as document:
        assert len(document) == 1
    assert kept.stamp() == before
    add(kept, "b")
    assert kept.stamp() != before


def test_no_change_of_many_writers_is_lost(kept: PrivateFile) -> None:
    def write(number: int) -> None:
        for each in range(10):
            add(PrivateFile(kept.path), f"{number}-{each}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(kept.read()["names"]) == 40 == len(set(kept.read()["names"]))
    assert json.loads(Path(kept.path).read_text()) == kept.read()
