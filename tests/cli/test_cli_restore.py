"""`headway restore`: back to a backup on both stores, whatever happened since and meanwhile."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from harness import Site, wait_for
from headway.client import Client
from headway.clock import SystemClock
from headway.config import Config
from headway.core.states import Status
from headway.errors import StoreReplacedError
from headway.store import open_store
from headway.store.base import Store
from headway.submission import Request
from headway.supervise.workerlock import START, STAYS, WorkerLock


def reopen(site: Site) -> Client:
    """A client of the store that is there now."""
    site.client.close()
    url = site.home.store_url or f"sqlite://{site.home.database}"
    site.client = Client(
        site.home,
        Config({"worker.autostart": False}),
        open_store(url, SystemClock()),
        SystemClock(),
        environ=site.env,
        actor="tester",
    )
    return site.client


def backup(site: Site, name: str = "backup.db") -> Path:
    path = site.folder / name
    site.run("backup", str(path))
    return path


def restore(site: Site, file: Path, *options: str) -> Any:
    document = json.loads(site.run("restore", str(file), "--json", *options).stdout)
    reopen(site)
    return document


def step(site: Site) -> None:
    site.run("scheduler", "run")


def outcome(site: Site, job_id: int) -> bool:
    return any(Path(site.home.job(job_id)).glob("outcome.*.json"))


def run_to_its_end(site: Site, job_id: int) -> None:
    """Start it, wait for its outcome, and settle it."""
    step(site)
    wait_for(lambda: outcome(site, job_id), what="the outcome")
    step(site)
    assert site.status(job_id) is Status.SUCCEEDED


def counting(site: Site, *, blocked: bool = False) -> str:
    """A command that leaves a line for each time that it is run."""
    wait = "; while [ ! -e go ]; do sleep 0.02; done" if blocked else ""
    return f"echo x >> {site.folder}/ran{wait}"


def times_run(site: Site) -> int:
    ran = site.folder / "ran"
    return len(ran.read_text().splitlines()) if ran.exists() else 0


def names(store: Store) -> list[str]:
    with store.read() as tx:
        return sorted(job.name for job in [*tx.active_jobs(), *tx.finished_jobs(0, 100)])


def leftovers(site: Site) -> list[str]:
    return sorted(each for each in os.listdir(site.home.path) if ".new" in each)


def kept(site: Site) -> list[str]:
    return sorted(each for each in os.listdir(site.home.path) if "before-restore" in each)


def red(site: Site) -> list[dict[str, Any]]:
    findings = json.loads(site.run("doctor", "--json", check=False).stdout)["findings"]
    return [each for each in findings if each["level"] == "red"]


@pytest.fixture
def file_site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, config="[worker]\nautostart = false\n")
    yield made
    made.close()


# -- what a restore means for each job ------------------------------------------------------------


def test_a_job_that_finished_after_the_backup_is_not_run_again(site: Site) -> None:
    job = site.submit(shell=counting(site))
    file = backup(site)
    run_to_its_end(site, job)
    assert restore(site, file, "--force")["taken_up"] == [f"job-{job}"]
    assert site.status(job) is Status.RUNNING
    step(site)
    assert site.status(job) is Status.SUCCEEDED and times_run(site) == 1
    assert red(site) == []


def test_a_job_that_was_running_at_the_backup_and_finished_since_is_taken_in(site: Site) -> None:
    job = site.submit(shell=counting(site, blocked=True), cwd=str(site.folder))
    step(site)
    wait_for(lambda: times_run(site))
    file = backup(site)
    (site.folder / "go").touch()
    wait_for(lambda: outcome(site, job))
    step(site)
    assert site.status(job) is Status.SUCCEEDED
    assert restore(site, file, "--force")["taken_up"] == []
    assert site.status(job) is Status.RUNNING
    step(site)
    assert site.status(job) is Status.SUCCEEDED and times_run(site) == 1


def test_a_job_that_was_started_since_and_still_runs_is_watched_again(site: Site) -> None:
    job = site.submit(shell=counting(site, blocked=True), cwd=str(site.folder))
    file = backup(site)
    step(site)
    wait_for(lambda: times_run(site))
    restore(site, file, "--force")
    step(site)
    assert "readopted" in site.kinds(job) and site.status(job) is Status.RUNNING
    (site.folder / "go").touch()
    wait_for(lambda: outcome(site, job))
    step(site)
    assert site.status(job) is Status.SUCCEEDED and times_run(site) == 1


def test_a_claim_that_was_undone_since_gives_way_to_the_one_that_ran(site: Site) -> None:
    job = site.submit(shell=counting(site))
    killed = site.run(
        "scheduler", "run", env={"HEADWAY_POINTS": "engine.claimed=kill"}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    file = backup(site)  # running, by a claim that nobody was told of
    run_to_its_end(site, job)
    assert "unclaimed" in site.kinds(job)
    assert restore(site, file, "--force")["taken_up"] == [f"job-{job}"]
    step(site)
    assert site.status(job) is Status.SUCCEEDED and times_run(site) == 1


def test_a_claim_that_was_never_started_is_undone_after_a_restore_too(site: Site) -> None:
    job = site.submit(shell=counting(site))
    file = backup(site)
    site.run("scheduler", "run", env={"HEADWAY_POINTS": "engine.claimed=kill"}, check=False)
    restore(site, file, "--force")
    assert site.status(job) is Status.RUNNING
    run_to_its_end(site, job)
    assert "unclaimed" in site.kinds(job) and times_run(site) == 1


def test_locks_of_a_job_that_is_taken_up_are_held(site: Site) -> None:
    job = site.submit(
        shell=counting(site, blocked=True), cwd=str(site.folder), locks=_locks("repo")
    )
    file = backup(site)
    step(site)
    wait_for(lambda: times_run(site))
    restore(site, file, "--force")
    with site.client.store.read() as tx:
        assert [each.job_id for each in tx.lock_views(["repo"])["repo"].holders] == [job]
    (site.folder / "go").touch()
    wait_for(lambda: outcome(site, job))


def _locks(*keys: str) -> Any:
    from headway.core.model import Lock

    return tuple(Lock(key) for key in keys)


def test_jobs_submitted_since_are_lost_and_their_ids_are_not_given_out_again(site: Site) -> None:
    site.submit("true")
    file = backup(site)
    late = [site.submit(shell=counting(site)), site.submit("true", delay=3_600_000_000)]
    run_to_its_end(site, 1)
    run_to_its_end(site, late[0])
    document = restore(site, file, "--force")
    assert document["jobs"] == 1 and document["lost"] == 2
    assert document["unknown"] == [f"job-{late[0]}"] and document["next_id"] == "job-4"
    assert site.submit("true") == 4
    assert outcome(site, late[0])  # its files stay


def test_no_id_of_a_folder_is_given_out_again(site: Site) -> None:
    site.submit("true")
    file = backup(site)
    os.makedirs(site.home.job(41), 0o700)
    document = restore(site, file, "--force")
    assert document["unknown"] == ["job-41"]
    assert site.submit("true") == 42
    told = site.run("restore", str(file), "--force").stderr
    assert "41 jobs submitted since the backup: lost to the store; 1 folder" in told
    reopen(site)


def test_a_lost_job_that_still_runs_is_not_forgotten_silently(site: Site) -> None:
    file = backup(site)
    job = site.submit(shell=counting(site, blocked=True), cwd=str(site.folder))
    step(site)
    wait_for(lambda: times_run(site))
    refused = site.run("restore", str(file), check=False)
    assert refused.returncode == 4 and f"job-{job} still run" in refused.stderr
    assert site.status(job) is Status.RUNNING
    assert restore(site, file, "--force")["unwatched"] == [f"job-{job}"]
    (site.folder / "go").touch()
    wait_for(lambda: outcome(site, job))


def test_a_pause_in_force_outlives_a_restore_and_the_restore_is_on_record(site: Site) -> None:
    file = backup(site)
    site.run("scheduler", "pause", "--reason", "restoring")
    restore(site, file)
    with site.client.store.read() as tx:
        pause = tx.pause_in_force()
        assert pause is not None and pause.reason == "restoring"
        assert [event.kind for event in tx.events_since(0, 10)][-1] == "restored"


def test_settings_and_history_come_back(site: Site) -> None:
    site.run("config", "set", "scheduler.max_active", "3")
    job = site.submit("true", labels={"n": "é"}, key="once")
    run_to_its_end(site, job)
    then = site.kinds(job)
    file = backup(site)
    site.run("config", "set", "scheduler.max_active", "5")
    restore(site, file, "--force")
    assert site.run("config", "get", "scheduler.max_active").stdout == "3\n"
    assert site.kinds(job) == then and site.client.job(job).labels == {"n": "é"}
    assert site.submit("true", labels={"n": "é"}, key="once") == job
    site.client.pause("new events get new numbers")
    with site.client.store.read() as tx:
        seqs = [event.seq for event in tx.events_since(0, 100)]
        assert seqs == sorted(set(seqs))


def test_a_backup_of_another_home_does_not_leave_its_jobs_running_for_ever(tmp_path: Path) -> None:
    for name in ("other", "here"):
        (tmp_path / name).mkdir()
    other = Site(tmp_path / "other", config="[worker]\nautostart = false\n")
    job = other.submit(shell=counting(other, blocked=True), cwd=str(other.folder))
    step(other)
    wait_for(lambda: times_run(other))
    file = backup(other)
    here = Site(tmp_path / "here", config="[worker]\nautostart = false\n")
    try:
        restore(here, file)
        step(here)
        assert here.status(job) is Status.FAILED
        assert str(here.client.job(job).reason).endswith("host_rebooted")
        (other.folder / "go").touch()
        wait_for(lambda: outcome(other, job))
        step(other)
        assert other.status(job) is Status.SUCCEEDED  # it was left alone
    finally:
        here.close()
        other.close()


# -- between the stores ---------------------------------------------------------------------------


@pytest.mark.req("D8")
def test_a_backup_of_one_store_restores_into_the_other(site: Site, postgres_url: str) -> None:
    """In one home, which keeps the environments that the jobs need."""
    into = None if site.home.store_url else postgres_url
    target = Site(site.folder, config="[worker]\nautostart = false\n", store_url=into)
    if into is None:
        target.env.pop("HEADWAY_STORE", None)
    try:
        first = site.submit("true")
        run_to_its_end(site, first)
        second = site.submit("echo", "later", after=(first,))
        document = restore(target, backup(site))
        assert document["jobs"] == 2 and document["taken_up"] == []
        assert target.status(first) is Status.SUCCEEDED
        assert target.client.job(second) == site.client.job(second)
        assert target.kinds(first) == site.kinds(first)
        run_to_its_end(target, second)
        assert red(target) == []
    finally:
        target.close()


def test_what_waiting_jobs_need_and_is_not_in_a_backup_is_named(site: Site, tmp_path: Path) -> None:
    job = site.submit("true")
    file = backup(site)
    for each in Path(site.home.environments).iterdir():
        each.rename(tmp_path / each.name)
    done = site.run("restore", str(file), "--force")
    assert f"env/ and are not there: job-{job}" in done.stderr
    reopen(site)


# -- refusals -------------------------------------------------------------------------------------


def text_file(path: Path, sound: Path) -> None:
    path.write_text("not a database\n" * 500)


def empty_file(path: Path, sound: Path) -> None:
    path.touch()


def folder(path: Path, sound: Path) -> None:
    path.mkdir()


def nothing(path: Path, sound: Path) -> None:
    return None


def other_application(path: Path, sound: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("create table jobs (id); pragma user_version = 7")
    connection.close()


def newer_schema(path: Path, sound: Path) -> None:
    path.write_bytes(sound.read_bytes())
    connection = apsw.Connection(str(path))
    connection.execute("pragma user_version = 999")
    connection.close()


def flipped_bytes(path: Path, sound: Path) -> None:
    content = bytearray(sound.read_bytes())
    for at in range(4096, len(content), 4096):
        content[at : at + 8] = bytes(byte ^ 0xFF for byte in content[at : at + 8])
    path.write_bytes(content)


def cut_off(path: Path, sound: Path) -> None:
    path.write_bytes(sound.read_bytes()[: 3 * 4096])


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (nothing, 3, "there is no"),
        (folder, 5, "is not a file"),
        (text_file, 5, "no backup of a store"),
        (empty_file, 5, "no backup of a store"),
        (other_application, 5, "not of a Headway store"),
        (newer_schema, 6, "upgrade Headway"),
        (flipped_bytes, 6, "damaged"),
        (cut_off, 6, "damaged"),
    ],
)
def test_what_is_no_backup_is_refused_and_nothing_is_changed(
    site: Site, make: Any, code: int, words: str
) -> None:
    """# fault C4"""
    site.submit("true", name="kept")
    sound = backup(site)
    path = site.folder / "given.db"
    make(path, sound)
    before = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    done = site.run("restore", str(path), "--force", check=False)
    assert done.returncode == code and words in done.stderr
    assert len(done.stderr.splitlines()) == 1 and str(path) in done.stderr
    assert before is None or hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert names(site.client.store) == ["kept"]  # the very same store, still open
    assert leftovers(site) == [] and kept(site) == []
    assert sorted(each.name for each in site.folder.glob("given*")) == (
        ["given.db"] if path.exists() else []
    )


def test_a_store_with_jobs_is_replaced_only_by_force_and_then_kept(site: Site) -> None:
    file = backup(site)
    site.submit("true", name="old")
    run_to_its_end(site, 1)
    site.submit("true", name="older")
    refused = site.run("restore", str(file), check=False)
    assert refused.returncode == 4
    assert "2 jobs, 1 of them active" in refused.stderr and "--force" in refused.stderr
    assert names(site.client.store) == ["old", "older"] and kept(site) == []
    document = restore(site, file, "--force")
    assert document["replaced"] == {"jobs": 2, "active": 1}
    assert names(site.client.store) == []
    assert [os.path.join(site.home.path, each) for each in kept(site)] == [document["kept"]]
    back = restore(site, Path(document["kept"]))  # an empty store needs no force
    assert back["kept"] is None and names(site.client.store) == ["old", "older"]


def test_the_store_itself_is_no_backup(file_site: Site) -> None:
    file_site.submit("true", name="there")
    link = file_site.folder / "link.db"
    link.symlink_to(file_site.home.database)
    for name in (file_site.home.database, str(link)):
        done = file_site.run("restore", name, "--force", check=False)
        assert done.returncode == 5 and "the store itself" in done.stderr
    assert names(file_site.client.store) == ["there"]


def test_a_worker_that_is_there_forbids_it_and_none_comes_up_meanwhile(site: Site) -> None:
    file = backup(site)
    worker = site.worker()
    refused = site.run("restore", str(file), check=False)
    assert refused.returncode == 4 and f"pid {worker.pid}" in refused.stderr
    worker.send_signal(signal.SIGTERM)
    worker.wait()
    stopped = start(site, file, "restore.prepared=stop")
    try:
        wait_for(lambda: is_stopped(stopped.pid))
        lock = WorkerLock(site.home.worker_lock)
        assert lock.is_held(STAYS) and lock.is_held(START)
        occupied = site.run("work", check=False)
        assert occupied.returncode == 4 and f"pid {stopped.pid}" in occupied.stderr
    finally:
        stopped.send_signal(signal.SIGCONT)
        stopped.communicate()
    assert stopped.returncode == 0
    assert not WorkerLock(site.home.worker_lock).is_held(STAYS)


def test_folders_of_other_jobs_are_not_given_to_those_of_the_backup(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = Site(tmp_path / "elsewhere", config="[worker]\nautostart = false\n")
    try:
        other.submit("echo", "something else")
        file = backup(other)
    finally:
        other.close()
    run_to_its_end(site, site.submit("true"))
    refused = site.run("restore", str(file), "--force", check=False)
    assert refused.returncode == 4 and "another store" in refused.stderr
    assert site.status(1) is Status.SUCCEEDED and leftovers(site) == []


def test_restore_makes_a_home_where_none_is(file_site: Site, tmp_path: Path) -> None:
    site = file_site
    site.submit("true", name="there")
    file = backup(site)
    new = tmp_path / "new"
    done = site.run("--home", str(new), "restore", str(file))
    assert "restored 1 job" in done.stderr
    assert "there" in site.run("--home", str(new), "jobs", "list").stdout
    missing = site.run("--home", str(tmp_path / "none"), "restore", "/nowhere", check=False)
    assert missing.returncode == 3 and not (tmp_path / "none").exists()


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
    assert names(site.client.store) == ["last"] and leftovers(site) == []
    assert restore(site, file, "--force")["next_id"] == "job-2"


def start(site: Site, file: Path, points: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "headway", "restore", str(file), "--force"],
        cwd=site.folder,
        env={**site.env, "HEADWAY_POINTS": points},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def is_stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


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
    assert names(site.client.store) == expected
    assert red(site) == []
    assert site.submit("true", name="again") == 3
    restore(site, file, "--force")
    assert names(site.client.store) == ["then"] and leftovers(site) == []
    assert red(site) == [] and site.submit("true") == 4


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_the_commit_of_a_killed_restore_on_a_server_is_whole(site: Site) -> None:
    """# fault D2"""
    site.submit("true", name="then")
    file = backup(site)
    site.submit("true", name="since")
    site.client.close()
    for visit in range(1, 20):
        points = {"HEADWAY_POINTS": f"store.committed=kill@{visit}"}
        done = site.run("restore", str(file), "--force", env=points, check=False)
        reopen(site)
        assert names(site.client.store) in (["since", "then"], ["then"])
        assert red(site) == []
        if done.returncode == 0:
            break
    assert done.returncode == 0 and names(site.client.store) == ["then"]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_on_a_server_readers_see_the_old_rows_until_all_new_ones_are_there(site: Site) -> None:
    """And those who wait for news, on whichever host, hear of it; no event number comes again."""
    site.submit("true", name="then")
    file = backup(site)
    site.submit("true", name="since")
    with site.client.store.read() as tx:
        last = tx.last_event()
    site.client.store.changed()
    assert not site.client.store.changed()
    stopped = start(site, file, "restore.poured=stop")
    wait_for(lambda: is_stopped(stopped.pid))
    assert names(site.client.store) == ["since", "then"] and not site.client.store.changed()
    stopped.send_signal(signal.SIGCONT)
    stopped.communicate()
    assert site.client.store.changed() and names(site.client.store) == ["then"]
    site.client.pause("one more event")
    with site.client.store.read() as tx:
        assert tx.last_event() > last
    assert red(site) == []  # the guards are back


def test_an_open_client_of_the_old_file_is_told(file_site: Site) -> None:
    """# fault C5"""
    file = backup(file_site)
    old = file_site.client
    assert names(old.store) == []
    file_site.run("restore", str(file))
    for act in (old.store.check, lambda: names(old.store), lambda: file_site.submit("true")):
        with pytest.raises(StoreReplacedError):
            act()
    new = reopen(file_site)  # the old one is closed now, and has left the new one's log alone
    file_site.submit("true", name="new")
    old.close()
    assert names(new.store) == ["new"]
    assert "new" in file_site.run("jobs", "list").stdout and red(file_site) == []


def test_a_writer_that_waits_for_its_turn_does_not_write_to_the_old_file(file_site: Site) -> None:
    """# fault C5: an acknowledged job would be lost with the file that is moved aside."""
    file = backup(file_site)
    file_site.submit("true", name="old")
    stopped = start(file_site, file, "restore.kept=stop")
    wait_for(lambda: is_stopped(stopped.pid))
    looked, failed = threading.Event(), []
    database = file_site.client.store.database  # type: ignore[attr-defined]
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
    assert names(file_site.client.store) == []
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
    assert names(reopen(file_site).store) == ["good"] and red(file_site) == []
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
    assert names(reopen(file_site).store) == ["good"]
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
    assert names(file_site.client.store) == ["in the log"]


def test_backup_names_restore(file_site: Site) -> None:
    assert "headway restore" in file_site.run("backup", "--help").stdout
