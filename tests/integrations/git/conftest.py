"""Real repositories in the test's own folder, out of reach of the machine's configuration."""

from pathlib import Path

import pytest
from repos import Repo


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit on main: a text, a binary file and a program."""
    return Repo.make(tmp_path / "project")
