"""Damaged files, full disks, missing rights: a plain refusal, never a crash or a lost row.

All of it is about the one file of SQLite: the pages, the space and the rights of a server's files
are the server's own business, and its refusals are tested in test_store_postgres.py.
"""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from others import another, words
from stocked import START, add, finish_of, parking, start

from headway.base.errors import DataError, HeadwayError, StoreCorruptError, StoreError
from headway.core.model import Lock, Pause
from headway.store import open_store
from headway.store.new_jobs import Event
from headway.store.records import Lending
from headway.store.sqlite.database import SqliteDatabase
from headway.store.sqlite.errors import translate
from headway.store.transaction import ReadTx
from headway.testing.clock import FakeClock


def stocked_file(path: Path) -> None:
    """A whole database in one file, with something in every table that is read."""
    store = open_store(f"sqlite://{path}", FakeClock(START), create=True)
    with store.write() as tx:
        for number in range(60):
            job = add(tx, labels={"n": str(number)}, locks=(Lock("k"),), key=f"key-{number}")
            tx.events.add([Event("submitted", job.id, {"name": job.name})], actor="ann")
            if number % 3 == 0:
                claim = start(tx, job, number + 1)
                tx.claims.finish([finish_of(claim, document={"n": number})])
                tx.claims.release_locks([job.id])
            elif number % 3 == 1:
                tx.waits.park([parking(job, "lock:k", reserves=True)])
        add(tx, after=(2, 5))
        start(tx, add(tx))
        tx.settings.set("scheduler.max_active", 3, by="ann")
        tx.settings.pause(Pause("ann", None, START))
        tx.claims.lend("lending", Lending(1, 2, START))
    store.close()
    assert not os.path.exists(f"{path}-wal")


def read_all(tx: ReadTx) -> None:
    jobs = [*tx.jobs.active(), *tx.jobs.finished(0, 1000)]
    numbers = list(range(1, 64))
    tx.jobs.by_id(numbers)
    tx.jobs.runs(numbers)
    tx.waits.woken(1000)
    tx.waits.ready(1000)
    tx.waits.stale(START + 1, 1000)
    tx.waits.predecessors(jobs)
    tx.claims.lock_views(["k"])
    tx.claims.live()
    tx.claims.slots()
    tx.claims.lendings()
    tx.settings.pause_in_force()
    tx.settings.marks()
    tx.jobs.count_active()
    tx.jobs.by_key("key-7")
    tx.jobs.env_digests_in_use(0)
    tx.jobs.evidence(numbers)
    tx.settings.all()
    tx.events.since(0, 1000)
    tx.hosts.recent_workers("host", 5)
    tx.hosts.trouble("host")
    tx.jobs.count_finished(0)
    for number in numbers:
        tx.jobs.last_in_chain(number)
        tx.jobs.chain(number)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "headway.db"
    stocked_file(path)
    return path.read_bytes()


def read_damaged(path: Path) -> HeadwayError | None:
    """Open and read everything; the refusal, or None if all could be read."""
    try:
        store = open_store(f"sqlite://{path}", FakeClock(START))
    except HeadwayError as error:
        return error
    try:
        with store.read() as tx:
            read_all(tx)
    except HeadwayError as error:
        return error
    finally:
        store.close()
    return None


# The header, byte by byte where it matters, and the pages at even distances.
HEADER = (0, 15, 16, 17, 18, 19, 20, 21, 24, 28, 36, 40, 44, 47, 52, 56, 59, 60, 63, 92, 96)
OFFSETS = [*HEADER, *(f"{percent}%" for percent in range(1, 100, 2))]


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_flipped_byte_is_read_over_or_refused(
    whole: bytes, tmp_path: Path, offset: int | str
) -> None:
    """# fault C4"""
    place = offset if isinstance(offset, int) else len(whole) * int(offset[:-1]) // 100
    damaged = bytearray(whole)
    damaged[place] ^= 0xD5  # in a text that is neither the letter nor UTF-8
    path = tmp_path / "headway.db"
    path.write_bytes(damaged)
    error = read_damaged(path)
    if error is not None:
        assert error.exit_code == 6
        assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"\0" * 8192, b"SQLite format 3\0", b"SQLite format 3\0" + b"\xff" * 8000],
    ids=["empty", "text", "zeros", "magic", "magic and noise"],
)
@pytest.mark.parametrize("create", [False, True])
def test_what_is_no_database_is_refused_and_left_as_it_is(
    tmp_path: Path, content: bytes, create: bool
) -> None:
    """# fault C4"""
    path = tmp_path / "headway.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorruptError) as error:
        open_store(f"sqlite://{path}", FakeClock(START), create=create)
    assert error.value.exit_code == 6 and "left as it is" in str(error.value)
    assert path.read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == ["headway.db"]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_cut_file_is_read_over_or_refused(whole: bytes, tmp_path: Path, share: float) -> None:
    """# fault C4"""
    path = tmp_path / "headway.db"
    cut = whole[: int(len(whole) * share)]
    path.write_bytes(cut)
    error = read_damaged(path)
    assert error is not None and error.exit_code == 6
    assert path.read_bytes() == cut


def test_a_missing_store_is_not_made_unasked(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store at"):
        open_store(f"sqlite://{tmp_path}/headway.db", FakeClock(START))
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match="nowhere"):
        open_store(f"sqlite://{tmp_path}/nowhere/headway.db", FakeClock(START), create=True)


@pytest.mark.parametrize(
    "spoil",
    [
        "update runs set params_snapshot = '{' where job_id = 62",
        "update settings set value = '{'",
        "insert into events (at, actor, kind, data) values (1, 'ann', 'x', '{')",
        "insert into evidence values ('t', 'outcome', 62, 1, '{')",
    ],
    ids=lambda sql: sql.split()[2 if sql.startswith("insert") else 1],
)
def test_a_document_that_is_no_json_is_a_data_error(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "headway.db"
    stocked_file(path)
    connection = apsw.Connection(str(path))
    connection.execute("drop trigger runs_are_audit_records")
    connection.execute(spoil)
    connection.close()
    error = read_damaged(path)
    assert isinstance(error, DataError) and error.exit_code == 6


LEAVE_A_LOG = """
import os, signal
store = opened()
with store.write() as tx:
    for _ in range(300):
        add(tx, params={"argv": ["x" * 500]})
store.database.checkpoint()
with store.write() as tx:
    for _ in range(50):
        add(tx)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_log_of_a_deleted_store_is_not_replayed_into_a_new_one(tmp_path: Path) -> None:
    """# fault C5: SQLite itself does not know that the log belongs to another file."""
    path = tmp_path / "headway.db"
    words(another(LEAVE_A_LOG, path))
    path.unlink()
    try:
        store = open_store(f"sqlite://{path}", FakeClock(START), create=True)
    except StoreError as error:
        assert "-wal" in str(error)
        return
    try:
        with store.read() as tx:
            assert tx.jobs.active() == [] and tx.settings.marks()["next_job_id"] == 1
        assert store.database.quick_check() == []  # type: ignore[attr-defined]
    finally:
        store.close()


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
def test_a_log_that_is_cut_from_outside_is_named(
    tmp_path: Path, share: float, writes: bool
) -> None:
    """# fault C4: nothing fails that the system could tell of; there is only less than before."""
    path = tmp_path / "headway.db"
    store = open_store(f"sqlite://{path}", FakeClock(START), create=True)
    with store.write() as tx:
        for number in range(100):
            add(tx, name="x" * 2000, key=f"key-{number}")
    other = open_store(f"sqlite://{path}", FakeClock(START))
    log = Path(f"{path}-wal")
    size = int(log.stat().st_size * share)
    os.truncate(log, size)
    with (
        pytest.raises(StoreCorruptError) as refused,
        other.write() if writes else other.read() as tx,
    ):
        read_all(tx)
    said = str(refused.value)
    assert f"its log {log} ({size} bytes) ends too early" in said and refused.value.exit_code == 6
    assert "`headway doctor`" in said and "restore" in said and "Success" not in said
    assert isinstance(refused.value.__cause__, apsw.IOError)
    for each in (other, store):
        each.close()


@pytest.mark.parametrize(
    ("result", "number", "told"),
    [
        (apsw.SQLITE_IOERR_FSYNC, errno.EIO, "Input/output error (SQLITE_IOERR_FSYNC)"),
        (apsw.SQLITE_IOERR_FSYNC, 0, ": SQLITE_IOERR_FSYNC"),
        (apsw.SQLITE_IOERR_SHORT_READ, 0, "ends too early"),
        (apsw.SQLITE_CANTOPEN, 0, "cannot open"),
        (apsw.SQLITE_MISUSE, 0, "SQLITE_MISUSE"),
        (apsw.SQLITE_NOMEM, 0, "SQLITE_NOMEM"),
    ],
)
def test_no_error_is_told_as_a_success(result: int, number: int, told: str) -> None:
    """# fault A13"""
    for empty in ("", "not an error"):
        error = apsw.exception_for(result)
        error.args = (empty,)
        said = translate(error, "/a/store", number)
        assert isinstance(said, StoreError) and "/a/store" in str(said) and told in str(said)
        assert "uccess" not in str(said) and "not an error" not in str(said)


# -- full -----------------------------------------------------------------------------------------

FILL = """
from headway.base.errors import StoreFullError
store = opened()
try:
    for number in range(100_000):
        with store.write() as tx:
            made = add(tx, params={"argv": ["x" * 1000]})
            tx.events.add([Event("submitted", made.id)], actor="ann")
        print(made.id, flush=True)
except StoreFullError as error:
    print("full", error.exit_code)
    with store.read() as tx:
        print(len(tx.jobs.active()))
"""
FILL = "from headway.store.new_jobs import Event\n" + FILL


def acknowledged_and_sound(path: Path, said: list[str]) -> None:
    """All that was acknowledged is there, and nothing else."""
    *numbers, full, seen = said
    assert full == "full 6" and len(numbers) > 5
    assert int(seen) == len(numbers)
    store = open_store(f"sqlite://{path}", FakeClock(START))
    try:
        with store.read() as tx:
            assert [job.id for job in tx.jobs.active()] == [int(each) for each in numbers]
        assert isinstance(store.database, SqliteDatabase)  # type: ignore[attr-defined]
        assert store.database.quick_check() == []  # type: ignore[attr-defined]
    finally:
        store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=900k", "headway-test", str(folder)], check=True
    )
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.root
def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    """# fault A10"""
    path = small_disk / "headway.db"
    acknowledged_and_sound(path, words(another(FILL, path)))


@pytest.mark.root
def test_a_log_that_finds_no_room_stays_as_it_is(small_disk: Path) -> None:
    """# fault A10"""
    path = small_disk / "headway.db"
    words(another(FILL, path))
    script = "store = opened()\ntell(store.database.checkpoint)"
    assert words(another(script, path)) in (["ok"], ["StoreFullError 6"])


@pytest.mark.root
def test_a_store_is_not_half_made_on_a_full_disk(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 840_000)
    path = small_disk / "headway.db"
    assert words(another("tell(opened)", path)) == ["StoreFullError 6"]
    assert os.listdir(small_disk) == ["ballast"]


def test_a_file_size_limit_is_a_full_disk_and_not_damage(tmp_path: Path) -> None:
    """# fault A11"""
    path = tmp_path / "headway.db"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))\n"
    acknowledged_and_sound(path, words(another(limited + FILL, path)))


# -- without rights -------------------------------------------------------------------------------

WITHOUT_RIGHTS = """
import os
import headway.store.sqlite.store, headway.store.transaction  # then closed to it
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
store = None
def open_it():
    global store
    store = opened(create=False)
def read():
    with store.read() as tx:
        assert len(tx.jobs.active()) == 1
def write():
    with store.write() as tx:
        add(tx)
tell(open_it)
if store is not None:
    tell(read)
    tell(write)
"""


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that an ordinary user reaches; pytest's own are closed to others."""
    folder = Path("/tmp") / f"headway-{os.getpid()}-{tmp_path.name}"
    folder.mkdir(mode=0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.user
def test_a_folder_that_cannot_be_written_gets_no_store(open_folder: Path) -> None:
    """# fault C12"""
    open_folder.chmod(0o555)
    script = WITHOUT_RIGHTS.replace("create=False", "create=True")
    assert words(another(script, open_folder / "headway.db")) == ["StoreReadOnlyError 6"]
    assert os.listdir(open_folder) == []


@pytest.mark.user
def test_a_store_that_may_only_be_read_is_read_while_its_owner_has_it_open(
    open_folder: Path,
) -> None:
    """# fault C12"""
    path = open_folder / "headway.db"
    store = open_store(f"sqlite://{path}", FakeClock(START), create=True)
    try:
        with store.write() as tx:
            add(tx)
        for each in open_folder.iterdir():
            each.chmod(0o444)
        open_folder.chmod(0o555)
        assert words(another(WITHOUT_RIGHTS, path)) == ["ok", "ok", "StoreReadOnlyError 6"]
    finally:
        store.close()
