"""Where workflow files are found, and which are refused before they are parsed."""

import os
from pathlib import Path

import pytest

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.workflows.files import read_file, workflow_names
from headway.workflows.reader import LARGEST_FILE


@pytest.fixture
def home(tmp_path: Path) -> Home:
    folder = tmp_path / ".headway" / "workflows"
    folder.mkdir(parents=True)
    return Home(str(tmp_path / ".headway"))


def put(home: Home, name: str, content: bytes) -> None:
    Path(home.path, "workflows", name).write_bytes(content)


def test_a_name_is_of_the_home_and_a_path_of_the_folder(home: Home, tmp_path: Path) -> None:
    put(home, "a.toml", b"x = 1")
    (tmp_path / "b.toml").write_text("y = 1")
    folder = str(tmp_path)
    assert read_file(home, "a", folder) == ("a", ".headway/workflows/a.toml", "x = 1", True)
    assert read_file(home, "b.toml", folder) == ("b", "b.toml", "y = 1", False)
    assert read_file(home, "./b.toml", folder) == ("b", "./b.toml", "y = 1", False)


def test_the_mark_that_some_editors_write_is_no_part_of_it(home: Home, tmp_path: Path) -> None:
    put(home, "a.toml", b"\xef\xbb\xbfx = 1")
    assert read_file(home, "a", str(tmp_path)).text == "x = 1"


def test_only_toml_files_with_plain_names_are_workflows(home: Home) -> None:
    for name in ("b.toml", "a.toml", "notes.md", ".hidden.toml", "a b.toml"):
        put(home, name, b"")
    assert workflow_names(home) == ["a", "b"]
    assert workflow_names(Home("/nowhere")) == []


def test_an_unknown_one_is_named_with_those_that_there_are(home: Home, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="has none; `headway workflows init ship` writes one"):
        read_file(home, "ship", str(tmp_path))
    put(home, "release.toml", b"")
    with pytest.raises(
        NotFoundError, match="there is no workflow 'relase'; did you mean 'release'"
    ):
        read_file(home, "relase", str(tmp_path))
    with pytest.raises(NotFoundError, match="there is no workflow 'zzz'; there are release"):
        read_file(home, "zzz", str(tmp_path))
    with pytest.raises(NotFoundError, match="there is no file x/y"):
        read_file(home, "x/y", str(tmp_path))


def test_what_is_too_large_or_no_text_is_refused(home: Home, tmp_path: Path) -> None:
    put(home, "large.toml", b"#" * (LARGEST_FILE + 1))
    with pytest.raises(InvalidInputError, match="is larger than 1024 KiB"):
        read_file(home, "large", str(tmp_path))
    put(home, "just.toml", b"#" * LARGEST_FILE)
    assert len(read_file(home, "just", str(tmp_path)).text) == LARGEST_FILE
    put(home, "binary.toml", b"\xff")
    with pytest.raises(InvalidInputError, match=r"binary\.toml: it is not UTF-8"):
        read_file(home, "binary", str(tmp_path))
    os.mkfifo(Path(home.path, "workflows", "pipe.toml"))
    with pytest.raises(InvalidInputError, match="is not a file"):
        read_file(home, "pipe", str(tmp_path))
