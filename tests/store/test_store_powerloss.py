"""Power loss: what was acknowledged is on the disk, and the file opens, wherever the cut is.

torture/powercut.py records what happens to a store's files and replays it up to a cut. Everything
acknowledged before the cut must be there. What a server syncs is its own; that Headway believes
only its word is tested in test_store_postgres.py.
"""

from pathlib import Path

import apsw
import pytest

from torture.powercut import Log, cuts, record, since_creation


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Everything that happened to the files of a store."""
    return record(tmp_path_factory.mktemp("recorded"))


def _ids(path: Path) -> set[int]:
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        return {row[0] for row in connection.execute("select id from jobs")}
    finally:
        connection.close()


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_no_acknowledged_job_is_lost_wherever_the_power_goes(  # fault A4
    recorded: Log, tmp_path: Path, kept: int
) -> None:
    disk, _ = since_creation(recorded)
    assert not disk.pending.get("headway.db"), "the new file was synced as a whole"
    number, acknowledged = 0, 0
    for number, (acknowledged, path) in enumerate(cuts(recorded, tmp_path, kept=kept), 1):
        present = _ids(path)
        assert set(range(1, acknowledged + 1)) <= present, f"lost after operation {number}"
        assert len(present) % 3 == 0, "a transaction is there whole or not at all"
    assert acknowledged == 36 and number > 100


def test_the_recording_would_show_a_store_that_does_not_sync(recorded: Log, tmp_path: Path) -> None:
    """The check can fail: without the syncs, acknowledged jobs are lost."""
    disk, rest = since_creation(recorded)
    for entry in rest:
        if entry[0] != "sync":
            disk.apply(*entry)
    assert _ids(disk.lose_power(tmp_path, kept=0) / "headway.db") == set()
