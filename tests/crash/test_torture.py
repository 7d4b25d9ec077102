"""Random kills on both stores, and proof that the torture can fail: without a safeguard it does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torture.arena import Arena, torture
from torture.checker import check, gather, red
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
