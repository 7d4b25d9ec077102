"""A file that is written whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from headway.base.whole_file import write_whole


def test_a_reader_of_before_keeps_what_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    write_whole(str(path), "before")
    with path.open() as reader:
        write_whole(str(path), "after é")
        assert (reader.read(), path.read_text(encoding="utf-8")) == ("before", "after é")
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize(("mode", "umask", "there"), [(0o600, 0o777, 0o600), (0o644, 0o027, 0o640)])
def test_a_private_file_has_its_mode_whatever_the_umask(
    tmp_path: Path, mode: int, umask: int, there: int
) -> None:
    before = os.umask(umask)
    try:
        write_whole(str(tmp_path / "kept"), "text", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "kept").stat().st_mode & 0o777 == there


def test_nothing_is_left_behind_where_it_cannot_be_put(tmp_path: Path) -> None:
    (tmp_path / "kept" / "inside").mkdir(parents=True)
    with pytest.raises(OSError) as raised:
        write_whole(str(tmp_path / "kept"), "text")
    assert raised.value.errno in (errno.EISDIR, errno.ENOTEMPTY)
    assert os.listdir(tmp_path) == ["kept"]
