"""Power loss: what was acknowledged is on the disk, and the file opens, wherever the cut is.

A virtual file system under SQLite writes down every write, truncation and sync. A cut keeps of each
file only what had been synced (the disk forgot the rest), or additionally any prefix of what had
not (it wrote some of it). Everything acknowledged before the cut must be there. What a server syncs
is its own; that Headway believes only its word is tested in test_store_postgres.py.
"""

import base64
import json
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

RECORD = """
import base64, json, os, sys
import apsw

log = []

class File(apsw.VFSFile):
    def __init__(self, filename, flags):
        name = filename.filename() if hasattr(filename, "filename") else filename
        self.label = os.path.basename(name)
        super().__init__("unix", filename, flags)
    def xWrite(self, data, offset):
        log.append(["write", self.label, offset, base64.b64encode(bytes(data)).decode()])
        super().xWrite(data, offset)
    def xTruncate(self, size):
        log.append(["truncate", self.label, size, ""])
        super().xTruncate(size)
    def xSync(self, flags):
        super().xSync(flags)
        log.append(["sync", self.label, 0, ""])

class Recorder(apsw.VFS):
    def __init__(self):
        super().__init__("recorder", "unix", makedefault=True)
    def xOpen(self, name, flags):
        return File(name, flags)

keep = Recorder()
from headway.clock import SystemClock
from headway.core.model import Job
from headway.core.states import Status
from headway.store import open_store
from headway.store.base import Event

path = sys.argv[1]
store = open_store("sqlite://" + path, SystemClock(), create=True)
log.append(["created", "", 0, ""])
for turn in range(12):
    with store.write() as tx:
        first = tx.take_ids(3)
        jobs = [
            Job(each, "j", "command", Status.QUEUED, 0, 100, {"argv": ["true"]}, 1, each)
            for each in range(first, first + 3)
        ]
        tx.add_jobs(jobs)
        tx.add_events([Event("submitted", job.id) for job in jobs], actor="x")
    log.append(["acknowledged", "", first + 2, ""])
    if turn == 6:
        store.tidy()
json.dump(log, sys.stdout)
"""

Log = list[tuple[str, str, int, bytes]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Everything that happened to the files of a store."""
    folder = tmp_path_factory.mktemp("recorded")
    path = folder / "headway.db"
    done = subprocess.run(
        [sys.executable, "-c", RECORD, str(path)],
        env={"PYTHONPATH": ":".join(each for each in sys.path if each)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        (kind, label, at, base64.b64decode(data))
        for kind, label, at, data in json.loads(done.stdout)
    ]


class Disk:
    """The files as they would be found after a cut."""

    def __init__(self) -> None:
        self.synced: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[str, int, bytes]]] = {}

    def apply(self, kind: str, label: str, at: int, data: bytes) -> None:
        if kind in ("write", "truncate"):
            self.pending.setdefault(label, []).append((kind, at, data))
        elif kind == "sync":
            content = self.synced.setdefault(label, bytearray())
            for each in self.pending.pop(label, []):
                _change(content, *each)

    def lose_power(self, folder: Path, *, kept: int) -> Path:
        """Write the files down, with `kept` of the unsynced writes of each."""
        for label in {*self.synced, *self.pending}:
            content = bytearray(self.synced.get(label, b""))
            for each in self.pending.get(label, [])[:kept]:
                _change(content, *each)
            (folder / label).write_bytes(content)
        return folder


def _change(content: bytearray, kind: str, at: int, data: bytes) -> None:
    if kind == "truncate":
        del content[at:]
        return
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    content[at : at + len(data)] = data


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
    label = next(
        label for kind, label, _, _ in recorded if kind == "write" and label.endswith(".new")
    )
    created = next(n for n, entry in enumerate(recorded) if entry[0] == "created")
    disk = Disk()
    for entry in recorded[:created]:
        disk.apply(*entry)
    # The new file was synced as a whole and then linked to its name.
    assert not disk.pending.get(label)
    disk.synced["headway.db"] = bytearray(disk.synced.pop(label))
    acknowledged = 0
    cuts = 0
    for number, entry in enumerate(recorded[created:]):
        disk.apply(*entry)
        if entry[0] == "acknowledged":
            acknowledged = entry[2]
        folder = tmp_path / str(number)
        folder.mkdir()
        present = _ids(disk.lose_power(folder, kept=kept) / "headway.db")
        assert set(range(1, acknowledged + 1)) <= present, f"lost after operation {number}"
        assert len(present) % 3 == 0, "a transaction is there whole or not at all"
        cuts += 1
    assert acknowledged == 36 and cuts > 100


def test_the_recording_would_show_a_store_that_does_not_sync(recorded: Log, tmp_path: Path) -> None:
    """The check can fail: without the syncs, acknowledged jobs are lost."""
    created = next(n for n, entry in enumerate(recorded) if entry[0] == "created")
    disk = Disk()
    for entry in recorded[:created]:
        disk.apply(*entry)
    (label,) = [each for each in disk.synced if each.endswith(".new")]
    disk.synced["headway.db"] = bytearray(disk.synced.pop(label))
    for entry in recorded[created:]:
        if entry[0] != "sync":
            disk.apply(*entry)
    assert _ids(disk.lose_power(tmp_path, kept=0) / "headway.db") == set()
