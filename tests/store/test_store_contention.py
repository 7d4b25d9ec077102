"""Several processes and long readers on one store."""

import os
from pathlib import Path

import pytest
from others import another, words
from stocked import Opener, add, job, only_a_file

from headway.base.errors import StoreError, StoreReplacedError
from headway.store.new_jobs import Alike, Model
from headway.store.sqlite.database import open_database
from headway.store.sqlite.filesystems import refuse_network_file_system
from headway.store.store import Store

HAMMER = """
store = opened()
name, slots = sys.argv[2], range(int(sys.argv[3]), int(sys.argv[4]))
sys.stdin.readline()
for number in range(40):
    with store.write() as tx:
        print("added", add(tx, name=f"{name}-{number}", position=tx.jobs.next_places().position).id)
    with store.write() as tx:
        waiting = tx.waits.woken(1)
        slot = next(each for each in slots if each not in tx.claims.slots().used)
        claims = [start(tx, job, slot, worker_id=name, token=f"{name}-{job.id}") for job in waiting]
    for claim in claims:
        print("claimed", claim.job_id)
        with store.write() as tx:
            assert tx.claims.finish([finish_of(claim)]) == [True]
    with store.read() as tx:
        tx.jobs.count_active()
"""


@pytest.mark.req("D27")
def test_processes_that_write_at_once_lose_nothing(store: Store, url: str) -> None:
    """# fault C1"""
    hammers = [
        another(HAMMER, url, name, 10 * place, 10 * place + 10)
        for place, name in enumerate(("one", "two", "three"), 1)
    ]
    said = []
    for hammer in hammers:
        assert hammer.stdin is not None
        hammer.stdin.write("go\n")
        hammer.stdin.flush()
    for hammer in hammers:
        said += words(hammer)
        assert hammer.returncode == 0
    added = [line for line in said if line.startswith("added")]
    claimed = [line for line in said if line.startswith("claimed")]
    assert len(added) == len(set(added)) == 120
    assert len(claimed) == len(set(claimed)) == 120
    with store.read() as tx:
        jobs = tx.jobs.finished(0, 1000)
        assert len({job.name for job in jobs}) == 120 and tx.claims.live() == []
        assert len(tx.jobs.runs([job.id for job in jobs])) == 120
    assert store.database.quick_check() == []  # type: ignore[attr-defined]


def test_a_long_reader_blocks_no_writer_and_keeps_its_instant(store: Store, opener: Opener) -> None:
    """# fault C2"""
    with opener().read() as reader:
        assert reader.jobs.active() == []
        for _ in range(3):
            with store.write() as tx:
                add(tx)
        assert reader.jobs.active() == [] and reader.settings.marks()["next_job_id"] == 1
    with store.read() as tx:
        assert len(tx.jobs.active()) == 3


@only_a_file
def test_the_log_that_a_long_reader_held_up_is_cut_afterwards(store: Store, opener: Opener) -> None:
    """# fault C2. A server cuts its own log, and no reader keeps it from that."""
    database = store.database  # type: ignore[attr-defined]
    with opener().read() as reader:
        assert reader.jobs.active() == []
        for _ in range(30):
            with store.write() as tx:
                add(tx, params={"argv": ["x" * 20_000]})
        database.checkpoint()
        assert database.wal_bytes() > 500_000
    database.checkpoint()
    assert database.wal_bytes() == 0


def test_a_transaction_within_a_transaction_is_refused(store: Store) -> None:
    """The inner one would end the outer one, whose rest would then be written line by line."""
    for inner in (store.read, store.write):
        with pytest.raises(StoreError, match="within a transaction"), store.write() as tx:
            add(tx)
            with inner():
                raise AssertionError("it began")
    with store.read() as tx:
        assert tx.jobs.active() == []


def test_a_connection_is_refused_in_a_forked_process(store: Store, opener: Opener) -> None:
    """# fault C8"""
    other = opener()
    with store.write() as tx:
        add(tx)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = []
        for act in (store.read, store.write, store.check):
            try:
                context = act()
                if context is not None:
                    with context:
                        pass
                answer.append("allowed")
            except StoreError as error:
                answer.append("refused" if "a forked process opens its own" in str(error) else "?")
        store.close()  # harmless there
        os.write(writing, " ".join(answer).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with open(reading) as pipe:
        assert pipe.read() == "refused refused refused"
    with store.write() as tx:
        add(tx)
    with other.read() as tx:
        assert len(tx.jobs.active()) == 2


@pytest.mark.bulk
@only_a_file
@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_store_that_was_exchanged_underneath_is_not_written_to(
    store: Store, tmp_path: Path, what: str
) -> None:
    """# fault C5. The tables of a server have no name that could come to mean another file."""
    path, aside = tmp_path / "headway.db", tmp_path / "aside.db"
    with store.write() as tx:
        add(tx)
    path.rename(aside)
    if what == "replaced":
        elsewhere = tmp_path / "elsewhere.db"
        open_database(str(elsewhere), create=True).close()
        elsewhere.rename(path)
    acts = (
        store.check,
        lambda: store.write().__enter__(),
        lambda: store.add_alike([Alike(Model(job(1)), {0: {}})]),
    )
    for act in acts:
        with pytest.raises(StoreReplacedError, match="deleted or replaced") as error:
            act()
        assert error.value.exit_code == 6
    aside.rename(path)
    store.check()
    with store.write() as tx:
        assert len(tx.jobs.active()) == 1


@only_a_file
def test_nobody_waits_for_the_lock_of_a_store_that_was_exchanged(
    store: Store, opener: Opener, tmp_path: Path
) -> None:
    """# fault C5"""
    with opener().write() as tx:
        add(tx)
        (tmp_path / "headway.db").rename(tmp_path / "aside.db")
        with pytest.raises(StoreReplacedError, match="deleted or replaced"):
            store.write().__enter__()
        (tmp_path / "aside.db").rename(tmp_path / "headway.db")
    with store.write() as tx:
        assert len(tx.jobs.active()) == 1


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [
        (None, True),
        *((kind, True) for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs")),
        *((kind, True) for kind in ("fuseblk", "fuse.fuse-overlayfs")),
        *((kind, False) for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre")),
        *((kind, False) for kind in ("fuse.sshfs", "fuse.glusterfs", "fuse")),
    ],
)
def test_a_network_file_system_is_refused(kind: str | None, allowed: bool) -> None:
    """# fault C7"""
    if allowed:
        refuse_network_file_system("/srv", kind)
        return
    with pytest.raises(StoreError, match=f"/srv is on {kind}, a network file system") as error:
        refuse_network_file_system("/srv", kind)
    assert error.value.exit_code == 6
