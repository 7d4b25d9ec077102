"""The pages about graphs and groups do what they say, in an empty folder, with a real worker."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_tour import run
from test_tutorial import BLOCK, write

from harness import Site

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, env={"HEADWAY_ACTOR": "ada"})
    yield site
    site.close()


@pytest.mark.parametrize(("page", "shown_commands"), [("graphs.md", 5), ("groups.md", 8)])
def test_the_examples_show_what_happens(
    site: Site, tmp_path_factory: pytest.TempPathFactory, page: str, shown_commands: int
) -> None:
    program = tmp_path_factory.mktemp("bin") / "headway"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m headway "$@"\n')
    program.chmod(0o755)
    env = {**site.env, "PATH": f"{program.parent}{os.pathsep}{site.env['PATH']}"}
    commands = 0
    for kind, options, content in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        if kind == "json":
            write(site, options.strip(), content)
        elif kind == "console":
            for entry in re.split(r"^\$ ", content, flags=re.M)[1:]:
                command, _, shown = entry.partition("\n")
                run(site, env, command, shown)
                commands += 1
    assert commands == shown_commands
