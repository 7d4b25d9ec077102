"""Random kills on both stores, and proof that the torture can fail: without a safeguard it does."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from torture import database
from torture.arena import Arena
from torture.checker import CHECKS, Evidence, check, gather, nothing_acknowledged_is_lost, red
from torture.powercut import cuts, record
from torture.processes import end_all
from torture.records import Planned
from torture.scenarios import SCENARIOS, play

KILLS = 40


@pytest.fixture
def make_arena(tmp_path: Path, store_url: str | None) -> Iterator[Callable[..., Arena]]:
    made: list[Arena] = []

    def make(*, autostart: bool) -> Arena:
        folder = tmp_path / str(len(made))
        made.append(Arena(folder, store_url=store_url, autostart=autostart))
        return made[-1]

    yield make
    for arena in made:
        arena.close()


@pytest.mark.req("E24", "D20", "D25")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_random_kills_violate_nothing(  # fault A1 A3
    store: str, tmp_path: Path, postgres_server: str
) -> None:
    """`make torture` itself, with few kills."""
    command = [sys.executable, "-m", "torture", "--kills", str(KILLS), "--seed", "1"]
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TMPDIR": str(tmp_path),
        "HEADWAY_TEST_POSTGRES": postgres_server,
    }
    try:
        done = subprocess.run(
            [*command, "--store", store], env=env, capture_output=True, text=True, timeout=400
        )
    finally:
        for folder in tmp_path.glob("headway-torture-*"):
            end_all(str(folder))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    looked_at = re.findall(r"^  \D+?(\d+) +0$", done.stdout, re.M)
    assert len(looked_at) == len(CHECKS) and "0" not in looked_at, done.stdout
    killed = re.search(r"^  killed .*$", done.stdout, re.M)
    assert killed is not None
    for kind in ("worker", "parent", "supervisor", "child"):
        assert f" {kind}" in killed[0], done.stdout


def verdict(arena: Arena, scenario: str, *, without: str) -> dict[str, list[str]]:
    play(arena, scenario, without=without)
    return red(check(gather(arena.files.folder, arena.url)))


@pytest.mark.parametrize("safeguard", SCENARIOS)
def test_with_the_safeguard_the_checker_is_green(  # fault A1 A2 A3
    make_arena: Callable[..., Arena], safeguard: str
) -> None:
    assert verdict(make_arena(autostart=False), safeguard, without="nothing") == {}


EXPECTED = {
    "claim token": "every outcome is true",
    "start record": "nothing runs twice",
    "lock before evidence": "every outcome is true",
    "getppid check": "nothing survives",
}


@pytest.mark.parametrize("safeguard", SCENARIOS)
def test_without_the_safeguard_the_checker_turns_red(
    make_arena: Callable[..., Arena], safeguard: str
) -> None:
    found = verdict(make_arena(autostart=False), safeguard, without=safeguard)
    assert EXPECTED[safeguard] in found, found


def _restart(path: Path) -> None:
    """The first connection after a cut recovers the file; one that only reads could not."""
    connection = apsw.Connection(str(path))
    connection.execute("select count(*) from jobs")
    connection.close()


def lost_in_a_power_cut(folder: Path, *, without: str) -> int:
    """The most acknowledged jobs that any cut loses, in the checker's eyes."""
    made = folder / "made"
    made.mkdir()
    worst = 0
    recorded = record(made, without=without)
    for acknowledged, path in cuts(recorded, folder, kept=0, after="acknowledged"):
        _restart(path)
        with database.opened(f"sqlite://{path}") as select:
            rows = database.read(select)
        planned = [Planned(job, "plain", (0,)) for job in range(1, acknowledged + 1)]
        lost = nothing_acknowledged_is_lost(Evidence(rows, [], planned=planned))
        worst = max(worst, len(lost.violations))
    return worst


def test_only_a_store_that_syncs_survives_a_power_cut(tmp_path: Path) -> None:  # fault A4
    for name, without in (("with", "nothing"), ("without", "full sync")):
        (tmp_path / name).mkdir()
        lost = lost_in_a_power_cut(tmp_path / name, without=without)
        assert (lost > 0) == (without != "nothing"), name
