"""The README is short, and its first screen and its tour do what they say, with a real shell where
a line needs one."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warm
from harness import Site, wait_for

README = Path(__file__).parents[2] / "README.md"
ACTOR = "ada"
WORDS_ALONE = re.compile(r"headway [^|&;<>()$`\\*?\[\]{}~#\n]*")  # for which no shell is needed
STREAMS: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
NEW_HOME = "headway: made .../.headway\n"


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of every console block with the output that is shown for each."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for entry in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = entry.partition("\n")
            found.append((command, output))
    return found


def matches(shown: str, got: str) -> bool:
    """`...` stands for anything, also for nothing; all else is literal."""
    pattern = ".*".join(re.escape(part) for part in shown.rstrip("\n").split("..."))
    return re.fullmatch(pattern, got.rstrip("\n"), re.S) is not None


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, env={"HEADWAY_ACTOR": ACTOR})
    yield site
    site.close()


@pytest.fixture
def shell_env(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """`headway` is on the PATH and is the program under test."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "headway"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m headway "$@"\n')
    program.chmod(0o755)
    return {**site.env, "PATH": f"{folder}{os.pathsep}{site.env['PATH']}"}


def looked_at(site: Site) -> bool:
    """The worker has looked at everything that was submitted: what is shown will not change."""
    with site.client.context.store.read() as tx:
        return not tx.waits.anything_woken()


def run(site: Site, env: dict[str, str], command: str, shown: str) -> None:
    """Run a command of the docs in the folder of the site; it must show what they say."""
    if WORDS_ALONE.fullmatch(command):
        arguments = shlex.split(command)[1:]
        started = warm.start(["-P"], arguments, cwd=site.folder, env=env, **STREAMS)
    else:
        started = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=site.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            **STREAMS,
        )
    said, _ = started.communicate(timeout=90)
    assert matches(shown, said), f"$ {command}\n{said}\nbut it shows\n{shown}"
    assert started.returncode == 0, command


def test_the_tour_shows_what_happens(site: Site, shell_env: dict[str, str]) -> None:
    for command, shown in commands(README.read_text(encoding="utf-8")):
        run(site, shell_env, command, shown.removeprefix(NEW_HOME))  # the site has one
        wait_for(lambda: looked_at(site), what=f"the worker to look, after: {command}")


def test_the_tour_covers_what_a_newcomer_needs() -> None:
    tour = "\n".join(command for command, _ in commands(README.read_text(encoding="utf-8")))
    for word in (
        *("headway submit", "headway exec", "headway why", "jobs cancel", "jobs list"),
        *("--after", "--retries", "--lock", "scheduler pause", "scheduler resume"),
    ):
        assert word in tour, word


def test_the_four_commands_of_the_first_screen_run(site: Site, shell_env: dict[str, str]) -> None:
    first_screen = README.read_text(encoding="utf-8").partition("\n## ")[0]
    [block] = re.findall(r"^```sh\n(.*?)^```$", first_screen, re.M | re.S)
    *submits, why = block.splitlines()
    for number, command in enumerate(submits, 1):
        run(site, shell_env, command, f"job-{number}\n")
    waits = (
        "job-3 is ...job-2 (test, ... to succeed...-> headway jobs approve job-3, or reject it..."
    )
    run(site, shell_env, why, waits)
    approved = "headway: approved job-3 as ada; it does not start yet: ..."
    run(site, shell_env, "headway jobs approve job-3", approved)


def test_the_longer_examples_of_the_readme_run(site: Site, shell_env: dict[str, str]) -> None:
    git = "git -c user.name=Ada -c user.email=ada@example.org"
    run(site, shell_env, f"git init -q && {git} commit -q --allow-empty -m one", "")
    [section] = re.findall(r"^## Graphs, .*?^## ", README.read_text(encoding="utf-8"), re.M | re.S)
    for block in re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S):
        for command in block.splitlines():
            run(site, shell_env, command, "...")
    assert (site.folder / "login").read_text() == "fixed\n"  # the patch was approved and applied


def test_the_workflows_of_the_readme_are_right_and_run(
    site: Site, shell_env: dict[str, str]
) -> None:
    [section] = re.findall(r"^## Workflows$.*?^## ", README.read_text("utf-8"), re.M | re.S)
    [written] = re.findall(r"^```toml\n(.*?)^```$", section, re.M | re.S)
    [block] = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
    for command in block.splitlines():
        run(site, shell_env, command, "...")
    (Path(site.home.path) / "workflows" / "fix.toml").write_text(written)
    run(site, shell_env, "headway workflows check fix", "...: 4 nodes, nothing is wrong")


def test_the_readme_is_short_and_shows_its_picture_first() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 175
    assert any("](docs/night.svg)" in line for line in lines[:20])


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        ("job-1\n", "job-1\n", True),
        ("job-1\n", "job-10\n", False),
        ("in ...\n", "in 4ms  2s\n", True),
        ("a...\nb\n", "a\nb\n", True),
        ("", "surprise\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_three_dots_match_anything_and_all_else_is_literal(
    shown: str, got: str, same: bool
) -> None:
    assert matches(shown, got) is same
