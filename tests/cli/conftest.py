"""The fixtures of these tests; what they hand out is in commandline.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine

from harness import Site


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


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    """For what is proven on both stores; None is the home's own."""
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def site(tmp_path: Path, store_url: str | None) -> Iterator[Site]:
    """A home in which no worker is started, on either store."""
    made = Site(tmp_path, config="[worker]\nautostart = false\n", store_url=store_url)
    yield made
    made.close()


@pytest.fixture
def file_site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, config="[worker]\nautostart = false\n")
    yield made
    made.close()
