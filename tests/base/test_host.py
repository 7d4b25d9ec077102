"""Which host this is: the same for as long as the home is the same, another for any copy."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headway.base.home import Home
from headway.base.host import this_host
from headway.base.new_home import make_home

SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(str(tmp_path / ".headway"))
    make_home(made)
    return made


def test_the_same_home_is_the_same_host(home: Home) -> None:
    first = this_host(home)
    written = Path(home.host_id).read_bytes()
    assert this_host(home) == first
    assert Path(home.host_id).read_bytes() == written
    assert len(first.id) == 16 and first.home == home.path and first.boot_id
    assert os.stat(home.host_id).st_mode & 0o777 == 0o600
    assert not list(Path(home.path).rglob("*.tmp"))


def test_two_homes_are_two_hosts(home: Home, tmp_path: Path) -> None:
    other = Home(str(tmp_path / "other"))
    make_home(other)
    assert this_host(other).id != this_host(home).id


def test_a_copied_home_is_another_host_and_the_original_stays(home: Home, tmp_path: Path) -> None:
    original = this_host(home).id
    copy = Home(str(tmp_path / "copy"))
    shutil.copytree(home.path, copy.path)
    assert this_host(copy).id not in (original, None)
    assert this_host(copy).id == this_host(copy).id
    assert this_host(home).id == original


def test_a_moved_home_is_the_same_host(home: Home, tmp_path: Path) -> None:
    original = this_host(home).id
    moved = Home(str(tmp_path / "moved"))
    os.rename(home.path, moved.path)
    assert this_host(moved).id == original


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"id": "00000000000000',
        b"[]",
        b"null",
        b"17",
        b"{}",
        b'{"id": "aaaaaaaaaaaaaaaa"}',
        b'{"id": "aaaaaaaaaaaaaaaa", "made_for": null}',
        b"\xff\xfe\x00",
        b"\0" * 100,
    ],
)
def test_a_torn_file_gets_a_new_id_that_stays(home: Home, content: bytes) -> None:
    before = this_host(home).id
    Path(home.host_id).write_bytes(content)
    fresh = this_host(home).id
    assert fresh not in (before, "aaaaaaaaaaaaaaaa")
    assert this_host(home).id == fresh
    assert json.loads(Path(home.host_id).read_bytes())["id"] == fresh


def test_what_a_killed_process_left_behind_is_no_obstacle(home: Home) -> None:
    """In a container the next process often has the same id."""
    Path(f"{home.host_id}.{os.getpid()}.tmp").write_text("half")
    assert this_host(home).id == this_host(home).id


RACE = """
import sys, time
from headway.base.home import Home
from headway.base.host import this_host
start = float(sys.stdin.readline())
for number, path in enumerate(sys.argv[1:]):
    while time.monotonic() < start + 0.004 * number:
        pass
    print(this_host(Home(path)).id)
"""


# Not strict: a race is not lost every time.
def test_those_who_come_first_at_once_agree(tmp_path: Path) -> None:
    """Else a worker holds claims under an id that nobody judges after it."""
    homes = [Home(str(tmp_path / str(number))) for number in range(50)]
    for home in homes:
        make_home(home)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, *(home.path for home in homes)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCES)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    start = time.monotonic() + 0.3
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{start}\n")
        racer.stdin.flush()
    said = [racer.communicate(timeout=30)[0].split() for racer in racers]
    assert said[0] == said[1] == [this_host(home).id for home in homes]
