"""The fixtures of these tests; what they hand out is in commandline.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, Run, Said
from screen import Opener, Terminal

from harness import Site
from headway.cli.main import run


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
    bare.make_store()
    return bare


@pytest.fixture
def terminal(headway: CommandLine) -> Iterator[Opener]:
    """Opens terminals with a command of that folder on them."""
    opened: list[Terminal] = []

    def open_one(*argv: str, **options: Any) -> Terminal:
        opened.append(Terminal(headway, *argv, **options))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


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


@pytest.fixture
def said(
    file_site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command line in this process, against a home without worker."""
    monkeypatch.chdir(file_site.folder)
    monkeypatch.setenv("COLUMNS", "80")
    # The test runner's streams cannot be set up anew, and need not be.
    monkeypatch.setattr("sys.stdout.reconfigure", lambda **_: None, raising=False)
    monkeypatch.setattr("sys.stderr.reconfigure", lambda **_: None, raising=False)

    def say(*argv: str) -> Said:
        code = run(["--home", file_site.home.path, "--as", "ada", *argv])
        return Said(code, *capsys.readouterr())

    return say
