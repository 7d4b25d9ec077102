"""`headway restore` killed in the middle, and used by others in the middle."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from restored import (
    backup,
    is_stopped,
    kept,
    leftovers,
    names,
    red,
    reopen,
    restore,
    run_to_its_end,
    start,
)

from harness import Site, wait_for
from headway.base.clock import SystemClock
from headway.base.errors import StoreReplacedError
from headway.jobs.request import Request
from headway.store import open_store

# -- killed in the middle, and used in the middle -------------------------------------------------


def test_a_job_submitted_in_the_last_moment_is_not_lost_unseen(site: Site) -> None:
    """Else its id, which someone has read, would be given to another job."""
    file = backup(site)
    stopped = start(site, file, "restore.prepared=stop")
    wait_for(lambda: is_stopped(stopped.pid))
    site.submit("true", name="last")
    stopped.send_signal(signal.SIGCONT)
    _, told = stopped.communicate()
    assert stopped.returncode == 6 and "try again" in told
    assert names(site.client.context.store) == ["last"] and leftovers(site) == []
    assert restore(site, file, "--force")["next_id"] == "job-2"


@pytest.mark.parametrize("point", ["copied", "prepared", "kept", "put", "done"])
def test_killed_at_any_step_either_the_old_or_the_new_store_is_there(
    site: Site, point: str
) -> None:
    if point == "put":  # in place, or about to be committed
        point = "poured" if site.home.store_url else "exchanged"
    site.submit("true", name="then")
    file = backup(site)
    site.submit("true", name="since")
    site.client.close()
    done = site.run(
        *("restore", str(file), "--force"),
        env={"HEADWAY_POINTS": f"restore.{point}=kill"},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    reopen(site)
    expected = ["then"] if point in ("exchanged", "done") else ["since", "then"]
    assert names(site.client.context.store) == expected
    assert red(site) == []
    assert site.submit("true", name="again") == 3
    restore(site, file, "--force")
    assert names(site.client.context.store) == ["then"] and leftovers(site) == []
    assert red(site) == [] and site.submit("true") == 4


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_the_commit_of_a_killed_restore_on_a_server_is_whole(site: Site) -> None:
    """# fault D2"""
    site.submit("true", name="then")
    file = backup(site)
    site.submit("true", name="since")
    site.client.close()
    for visit in range(1, 60):  # every migration is a commit
        points = {"HEADWAY_POINTS": f"store.committed=kill@{visit}"}
        done = site.run("restore", str(file), "--force", env=points, check=False)
        reopen(site)
        assert names(site.client.context.store) in (["since", "then"], ["then"])
        assert red(site) == []
        if done.returncode == 0:
            break
    assert done.returncode == 0 and names(site.client.context.store) == ["then"]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_on_a_server_readers_see_the_old_rows_until_all_new_ones_are_there(site: Site) -> None:
    """And those who wait for news, on whichever host, hear of it; no event number comes again."""
    site.submit("true", name="then")
    file = backup(site)
    site.submit("true", name="since")
    with site.client.context.store.read() as tx:
        last = tx.events.last()
    site.client.context.store.changed()
    assert not site.client.context.store.changed()
    stopped = start(site, file, "restore.poured=stop")
    wait_for(lambda: is_stopped(stopped.pid))
    assert (
        names(site.client.context.store) == ["since", "then"]
        and not site.client.context.store.changed()
    )
    stopped.send_signal(signal.SIGCONT)
    stopped.communicate()
    assert site.client.context.store.changed() and names(site.client.context.store) == ["then"]
    site.client.pause("one more event")
    with site.client.context.store.read() as tx:
        assert tx.events.last() > last
    assert red(site) == []  # the guards are back


def test_an_open_client_of_the_old_file_is_told(file_site: Site) -> None:
    """# fault C5"""
    file = backup(file_site)
    old = file_site.client
    assert names(old.context.store) == []
    file_site.run("restore", str(file))
    for act in (
        old.context.store.check,
        lambda: names(old.context.store),
        lambda: file_site.submit("true"),
    ):
        with pytest.raises(StoreReplacedError):
            act()
    new = reopen(file_site)  # the old one is closed now, and has left the new one's log alone
    file_site.submit("true", name="new")
    old.close()
    assert names(new.context.store) == ["new"]
    assert "new" in file_site.run("jobs", "list").stdout and red(file_site) == []


def test_a_writer_that_waits_for_its_turn_does_not_write_to_the_old_file(file_site: Site) -> None:
    """# fault C5: an acknowledged job would be lost with the file that is moved aside."""
    file = backup(file_site)
    file_site.submit("true", name="old")
    stopped = start(file_site, file, "restore.kept=stop")
    wait_for(lambda: is_stopped(stopped.pid))
    looked, failed = threading.Event(), []
    database = file_site.client.context.store.database  # type: ignore[attr-defined]
    look = database.check

    def look_and_say() -> None:
        look()
        looked.set()

    database.check = look_and_say

    def submit() -> None:
        try:
            file_site.client.submit(Request(argv=("true",), name="too late"))
        except StoreReplacedError as error:
            failed.append(error)

    writer = threading.Thread(target=submit)
    writer.start()
    assert looked.wait(30)  # the old file was still in place, so now it waits for its turn
    stopped.send_signal(signal.SIGCONT)
    stopped.communicate()
    writer.join(30)
    assert stopped.returncode == 0 and len(failed) == 1
    reopen(file_site)
    assert names(file_site.client.context.store) == []
    (aside,) = kept(file_site)
    copy = open_store(f"sqlite://{file_site.home.path}/{aside}", SystemClock())
    assert names(copy) == ["old"]
    copy.close()


def test_a_newcomer_waits_for_the_exchange_and_meets_the_new_store(file_site: Site) -> None:
    file_site.submit("true", name="new")
    file = backup(file_site)
    file_site.submit("true", name="old")
    stopped = start(file_site, file, "restore.exchanged=stop")
    wait_for(lambda: is_stopped(stopped.pid))
    newcomer = subprocess.Popen(
        [sys.executable, "-m", "headway", "jobs", "list"],
        cwd=file_site.folder,
        env=file_site.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: _has_open(newcomer.pid, file_site.home.database))
    assert newcomer.poll() is None
    stopped.send_signal(signal.SIGCONT)
    stopped.communicate()
    told, _ = newcomer.communicate()
    assert newcomer.returncode == 0 and "new" in told and "old" not in told
    reopen(file_site)
    assert red(file_site) == []


def _has_open(pid: int, path: str) -> bool:
    try:
        files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return path in files


@pytest.mark.parametrize("point", ["", "kept", "cut", "exchanged"])
def test_a_damaged_store_is_moved_aside_with_its_log(file_site: Site, point: str) -> None:
    """# fault C4"""
    file_site.submit("true", name="good")
    file = backup(file_site)
    file_site.client.close()
    database = Path(file_site.home.database)
    database.write_bytes(b"damaged " * 2000)
    log = Path(f"{database}-wal")
    log.write_bytes(b"some log" * 1000)
    refused = file_site.run("restore", str(file), check=False)
    assert refused.returncode == 4 and "cannot be read" in refused.stderr
    if point:
        killed = file_site.run(
            *("restore", str(file), "--force"),
            env={"HEADWAY_POINTS": f"restore.{point}=kill"},
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        assert database.exists()
    if point != "exchanged":
        file_site.run("restore", str(file), "--force")
    assert names(reopen(file_site).context.store) == ["good"] and red(file_site) == []
    parts = [Path(file_site.home.path) / each for each in kept(file_site)]
    contents = {each.read_bytes() for each in parts}
    assert b"damaged " * 2000 in contents and b"some log" * 1000 in contents


def test_a_store_that_is_gone_is_put_back(file_site: Site) -> None:
    file_site.submit("true", name="good")
    run_to_its_end(file_site, 1)
    file = backup(file_site)
    file_site.client.close()
    for each in Path(file_site.home.path).glob("headway.db*"):
        each.unlink()
    assert "is gone" in file_site.run("jobs", "list", check=False).stderr
    file_site.run("restore", str(file))
    assert names(reopen(file_site).context.store) == ["good"]
    assert file_site.submit("true") == 2


def test_a_file_with_a_log_beside_it_is_restored_with_what_is_in_the_log(
    file_site: Site, tmp_path: Path
) -> None:
    """# fault C6: as found on the disk of a dead machine."""
    file_site.submit("true", name="in the log")
    found = tmp_path / "found"
    found.mkdir()
    for end in ("", "-wal"):
        content = Path(f"{file_site.home.database}{end}").read_bytes()
        (found / f"headway.db{end}").write_bytes(content)
    assert (found / "headway.db-wal").stat().st_size > 0
    restore(file_site, found / "headway.db", "--force")
    assert names(file_site.client.context.store) == ["in the log"]


def test_backup_names_restore(file_site: Site) -> None:
    assert "headway restore" in file_site.run("backup", "--help").stdout
