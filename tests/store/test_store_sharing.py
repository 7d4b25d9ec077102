"""A process has one connection to a store in a file, whatever its threads do."""

import os
import threading
from contextlib import closing
from pathlib import Path

import pytest
from stocked import add

from headway.base.clock import SystemClock
from headway.store import open_store


def open_files(path: Path) -> list[str]:
    """What this process has open of the database: the file itself and the two beside it."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue
        if name.startswith(str(path)):
            found.append(name.removeprefix(str(path)))
    return sorted(found)


@pytest.mark.req("D8")
def test_all_threads_of_a_process_share_one_connection_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    with closing(open_store(f"sqlite://{path}", SystemClock(), create=True)) as store:
        with store.write() as tx:
            add(tx)
        before = open_files(path)
        assert before == ["", "-shm", "-wal"]
        ready = threading.Barrier(8)

        def work() -> None:
            ready.wait()
            for _ in range(10):
                with store.write() as tx:
                    add(tx)
                with store.read() as tx:
                    assert tx.jobs.active()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert open_files(path) == before
        with store.read() as tx:
            assert len(tx.jobs.active()) == 81, "and none was lost"
