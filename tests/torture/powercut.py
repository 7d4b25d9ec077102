"""A power cut: what a disk would hold of a store, had the power gone at any moment.

A virtual file system under SQLite writes down every write, truncation and sync while jobs are
submitted. A cut keeps of each file only what had been synced (the disk forgot the rest), or
additionally any prefix of what had not (it wrote some of it).
"""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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
from headway.base.clock import SystemClock
from headway.core.model import Job
from headway.core.states import Status
from headway.store import open_store
from headway.store.new_jobs import Event

path, without = sys.argv[1:]
store = open_store("sqlite://" + path, SystemClock(), create=True)
log.append(["created", "", 0, ""])
if without != "nothing":
    from torture.sabotaged import IN_WORKER
    store.close()
    IN_WORKER[without]()
    store = open_store("sqlite://" + path, SystemClock())
for turn in range(12):
    with store.write() as tx:
        first = tx.jobs.take_ids(3)
        jobs = [
            Job(each, "j", "command", Status.QUEUED, 0, 100, {"argv": ["true"]}, 1, each)
            for each in range(first, first + 3)
        ]
        tx.jobs.add(jobs)
        tx.events.add([Event("submitted", job.id) for job in jobs], actor="x")
    log.append(["acknowledged", "", first + 2, ""])
    if turn == 6:
        store.tidy()
json.dump(log, sys.stdout)
"""

Log = list[tuple[str, str, int, bytes]]


def record(folder: Path, *, without: str = "nothing") -> Log:
    """Everything that happened to the files of a store, with every safeguard but that one, which
    is taken out when the store has been made."""
    done = subprocess.run(
        [sys.executable, "-c", RECORD, str(folder / "headway.db"), without],
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

    def rename(self, old: str, new: str) -> None:
        for files in (self.synced, self.pending):
            if old in files:
                files[new] = files.pop(old)  # type: ignore

    def lose_power(self, folder: Path, *, kept: int) -> Path:
        """Write the files down, with `kept` of the unsynced writes of each."""
        for label in {*self.synced, *self.pending}:
            content = bytearray(self.synced.get(label, b""))
            for each in self.pending.get(label, [])[:kept]:
                _change(content, *each)
            (folder / label).write_bytes(content)
        return folder


def _change(content: bytearray, kind: str, at: int, data: bytes) -> None:
    if len(content) < at:
        content.extend(bytes(at - len(content)))  # so does a truncation of a shorter file
    if kind == "truncate":
        del content[at:]
        return
    content[at : at + len(data)] = data


def since_creation(recorded: Log) -> tuple[Disk, Log]:
    """The disk when the store had been made, and what came after. The new file was linked to its
    name; whether it was synced as a whole is the caller's to ask."""
    created = next(n for n, entry in enumerate(recorded) if entry[0] == "created")
    disk = Disk()
    for entry in recorded[:created]:
        disk.apply(*entry)
    (label,) = {each for each in (*disk.synced, *disk.pending) if each.endswith(".new")}
    disk.rename(label, "headway.db")
    return disk, recorded[created:]


def cuts(
    recorded: Log, folder: Path, *, kept: int, after: str | None = None
) -> Iterator[tuple[int, Path]]:
    """After every entry, or those of one kind: the last id that had been acknowledged, and the
    store as a cut leaves it."""
    disk, rest = since_creation(recorded)
    acknowledged = 0
    for number, entry in enumerate(rest):
        disk.apply(*entry)
        if entry[0] == "acknowledged":
            acknowledged = entry[2]
        if after is not None and entry[0] != after:
            continue
        place = folder / str(number)
        place.mkdir()
        yield acknowledged, disk.lose_power(place, kept=kept) / "headway.db"
