"""Random kills on both stores, and proof that the torture can fail: without a safeguard it does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from torture import database
from torture.arena import Arena, torture
from torture.checker import Evidence, check, gather, nothing_acknowledged_is_lost, red
from torture.powercut import cuts, record
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
def test_random_kills_violate_nothing(make_arena: Callable[..., Arena]) -> None:  # fault A1 A3
    arena = make_arena(autostart=True)
    tortured = torture(arena, kills=KILLS, seed=1)
    given = gather(arena.files.folder, arena.url)
    results = check(given)
    assert red(results) == {}
    assert tortured.came_to_rest and tortured.strikes >= KILLS
    assert all(result.looked_at for result in results.values()), "each check had something to check"
    killed = {kill.kind for kill in given.kills}
    assert {"worker", "parent", "supervisor", "child"} <= killed


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
    for acknowledged, path in cuts(record(made, without=without), folder, kept=0):
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
