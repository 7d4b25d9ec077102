"""Waiting for one's turn to write to a file: often enough to find it, and not for ever."""

import pytest
from stocked import Opener, add, only_a_file

from headway.base.errors import StoreBusyError, StoreReplacedError
from headway.store import patience
from headway.store.store import Store


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(patience, "sleep", pauses.append)
    return pauses


def test_it_looks_again_soon_and_gives_up_after_ten_seconds(paused: list[float]) -> None:
    tries = 0
    while patience.wait(tries):
        tries += 1
    assert len(paused) == tries and sum(paused) == pytest.approx(patience.SECONDS, rel=0.01)
    assert paused == sorted(paused)
    assert paused[0] < 0.001 and paused[-1] <= 0.005, "a gap is short, and others wait for it, too"
    assert not patience.wait(tries + 1)


@only_a_file
def test_who_never_gets_a_turn_is_told(store: Store, opener: Opener, paused: list[float]) -> None:
    other = opener()
    with (
        store.write() as tx,
        pytest.raises(StoreBusyError, match="locked by another process for 10 s; try again"),
        other.write(),
    ):
        add(tx)
    assert len(paused) > 1000
    with other.write() as tx:
        assert add(tx).id == 1, "nothing was left of it"


@only_a_file
def test_the_turn_is_taken_as_soon_as_it_is_free(
    store: Store, opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, theirs = opener(), store.write()
    add(theirs.__enter__())
    tries = 0

    def done_by_then(seconds: float) -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            theirs.__exit__(None, None, None)

    monkeypatch.setattr(patience, "sleep", done_by_then)
    with other.write() as tx:
        assert add(tx).id == 2
    assert tries == 3


@only_a_file
def test_nobody_waits_for_a_file_that_was_replaced(
    store: Store, opener: Opener, paused: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = opener()
    path = other.database.path  # type: ignore[attr-defined]
    aside = tmp_path_factory.mktemp("aside") / "headway.db"
    with store.write(), pytest.raises(StoreReplacedError, match="deleted or replaced"):
        (type(aside)(path)).rename(aside)
        with other.write():
            pass
    assert paused == []
