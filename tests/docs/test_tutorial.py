"""The tutorial does what it says, in an empty folder, with the real program and a real worker."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_tour import run

from harness import Site

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """What ends the worker afterwards; the folder itself is as empty as a newcomer's."""
    site = Site(tmp_path, env={"HEADWAY_ACTOR": "ada"})
    site.client.close()
    shutil.rmtree(site.home.path)
    yield site
    site.close()


@pytest.fixture
def shell_env(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """`headway` and `python` are those under test."""
    folder = tmp_path_factory.mktemp("bin")
    for name, words in (("headway", "-P -m headway"), ("python", "")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        program.chmod(0o755)
    return {**site.env, "PATH": f"{folder}{os.pathsep}{site.env['PATH']}"}


def write(site: Site, options: str, content: str) -> None:
    _, _, name = options.split()[0].partition("=")
    path = site.folder / name
    before = f"{path.read_text()}\n\n" if "append" in options.split() else ""
    path.write_text(before + content)


def test_the_tutorial_shows_what_happens(site: Site, shell_env: dict[str, str]) -> None:
    assert not list(site.folder.iterdir())
    for kind, options, content in BLOCK.findall(PAGE):
        if kind == "python":
            write(site, options, content)
            continue
        assert kind == "console", kind
        for entry in re.split(r"^\$ ", content, flags=re.M)[1:]:
            command, _, shown = entry.partition("\n")
            run(site, shell_env, command, shown)


def test_the_tutorial_makes_a_newcomers_mistakes() -> None:
    for word in ("headway why", "config set app.modules", "is a str, not", "Traceback"):
        assert word in PAGE, word
