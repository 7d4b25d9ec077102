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


def make_torture(
    folder: Path, *options: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `make torture` runs."""
    try:
        return subprocess.run(
            [sys.executable, "-m", "torture", "--seed", "1", *options],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "TMPDIR": str(folder),
                **(env or {}),
            },
            capture_output=True,
            text=True,
            timeout=400,
        )
    finally:
        for each in folder.glob("headway-torture-*"):
            end_all(str(each))


@pytest.mark.req("E24", "D25")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_random_kills_violate_nothing(  # fault A1 A3
    store: str, tmp_path: Path, postgres_server: str
) -> None:
    server = {"HEADWAY_TEST_POSTGRES": postgres_server}
    done = make_torture(tmp_path, "--kills", str(KILLS), "--store", store, env=server)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    looked_at = re.findall(r"^  \D+?(\d+) +0$", done.stdout, re.M)
    assert len(looked_at) == len(CHECKS) and "0" not in looked_at, done.stdout
    killed = re.search(r"^  killed .*$", done.stdout, re.M)
    assert killed is not None
    for kind in ("worker", "parent", "supervisor", "child"):
        assert f" {kind}" in killed[0], done.stdout
    assert not list(tmp_path.iterdir()), "nothing is kept"


def test_random_kills_find_a_missing_start_record_and_keep_the_evidence(tmp_path: Path) -> None:
    done = make_torture(tmp_path, "--kills", "30", "--store", "sqlite", "--without", "start record")
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    (kept,) = tmp_path.iterdir()
    assert done.stdout.endswith(f"everything is kept in {kept}\n")
    assert re.search(r"^nothing runs twice: [1-9]", done.stdout, re.M)
    assert re.search(r"^    ledger \d+: start", done.stdout, re.M)
    assert re.search(r"^    strike \d+ .*supervisor of claim", done.stdout, re.M)
    assert re.search(r"^    event unclaimed by worker", done.stdout, re.M)


@pytest.fixture
def make_arena(tmp_path: Path, store_url: str | None) -> Iterator[Callable[[str], Arena]]:
    made: list[Arena] = []

    def make(without: str) -> Arena:
        made.append(Arena(tmp_path / "arena", store_url=store_url, without=without))
        return made[-1]

    yield make
    for arena in made:
        arena.close()


# Those of the supervisor's side know no store.
WITHOUT_A_STORE = {"start record", "getppid check"}
on_its_stores = pytest.mark.parametrize(
    ("store_url", "safeguard"),
    [
        (store, safeguard)
        for safeguard in SCENARIOS
        for store in ("sqlite", "postgres")
        if store == "sqlite" or safeguard not in WITHOUT_A_STORE
    ],
    indirect=["store_url"],
)


def verdict(arena: Arena, scenario: str) -> dict[str, list[str]]:
    play(arena, scenario)
    return red(check(gather(arena.files.folder, arena.url)))


@on_its_stores
def test_with_the_safeguard_the_checker_is_green(  # fault A1 A2 A3
    make_arena: Callable[[str], Arena], safeguard: str
) -> None:
    assert verdict(make_arena("nothing"), safeguard) == {}


EXPECTED = {
    "claim token": "every outcome is true",
    "start record": "nothing runs twice",
    "lock before evidence": "every outcome is true",
    "getppid check": "nothing survives",
}


@on_its_stores
def test_without_the_safeguard_the_checker_turns_red(
    make_arena: Callable[[str], Arena], safeguard: str
) -> None:
    found = verdict(make_arena(safeguard), safeguard)
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
