"""The fixtures of these tests; what they hand out is in commandline.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[CommandLine]:
    """A folder without a home."""
    folder = tmp_path / "work"
    folder.mkdir()
    line = CommandLine(folder)
    yield line
    line.close()


@pytest.fixture
def headway(bare: CommandLine) -> CommandLine:
    """A folder with a home whose worker leaves after one idle second."""
    bare.configure()
    return bare


@pytest.fixture
def still(bare: CommandLine) -> CommandLine:
    """A home in which no worker is started."""
    bare.configure("[worker]\nautostart = false\n")
    bare("init")
    return bare
