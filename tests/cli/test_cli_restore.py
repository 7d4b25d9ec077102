"""`headway restore` on both stores: what it means for each job, and what it refuses."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from restored import (
    backup,
    counting,
    is_stopped,
    kept,
    leftovers,
    names,
    outcome,
    red,
    reopen,
    restore,
    run_to_its_end,
    start,
    step,
    times_run,
)

from harness import Site, wait_for
from headway.base.epoch import EPOCH
from headway.base.worker_lock import START, STAYS, WorkerLock
from headway.core.states import Status

# A worker that waits for its place as any other does, only less long.
SOON_TIRED = """
import sys
from headway.cli.main import run
from headway.worker import process
process.COMES_UP_WITHIN = 0.2
sys.exit(run(sys.argv[1:]))
"""

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
    killed = site.run(  # its first step only takes in what has ended
        "scheduler", "run", env={"HEADWAY_POINTS": "engine.claimed=kill@2"}, check=False
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
    site.run("scheduler", "run", env={"HEADWAY_POINTS": "engine.claimed=kill@2"}, check=False)
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
    with site.client.context.store.read() as tx:
        assert [each.job_id for each in tx.claims.lock_views(["repo"])["repo"].holders] == [job]
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
    with site.client.context.store.read() as tx:
        pause = tx.settings.pause_in_force()
        assert pause is not None and pause.reason == "restoring"
        assert [event.kind for event in tx.events.since(0, 10)][-1] == "restored"


def test_each_restore_begins_another_epoch_of_event_numbers(site: Site) -> None:
    """Those that came after the backup are given again, to other events."""

    def epoch() -> int:
        with site.client.context.store.read() as tx:
            return tx.settings.marks()[EPOCH]

    site.submit("true")
    first = epoch()
    file = backup(site)
    site.submit("true")
    assert first > 0 and epoch() == first
    found = {first}
    for _ in range(2):
        restore(site, file, "--force")
        reopen(site)
        found.add(epoch())
    assert len(found) == 3
    assert red(site) == []


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
    with site.client.context.store.read() as tx:
        seqs = [event.seq for event in tx.events.since(0, 100)]
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
        queue = (
            "" if into is None else target.client.context.host.id
        )  # the host that has its environment
        assert target.client.job(second) == site.client.job(second)._replace(queue=queue)
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
    assert names(site.client.context.store) == ["kept"]  # the very same store, still open
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
    assert names(site.client.context.store) == ["old", "older"] and kept(site) == []
    document = restore(site, file, "--force")
    assert document["replaced"] == {"jobs": 2, "active": 1}
    assert names(site.client.context.store) == []
    assert [os.path.join(site.home.path, each) for each in kept(site)] == [document["kept"]]
    back = restore(site, Path(document["kept"]))  # an empty store needs no force
    assert back["kept"] is None and names(site.client.context.store) == ["old", "older"]


def test_the_store_itself_is_no_backup(file_site: Site) -> None:
    file_site.submit("true", name="there")
    link = file_site.folder / "link.db"
    link.symlink_to(file_site.home.database)
    for name in (file_site.home.database, str(link)):
        done = file_site.run("restore", name, "--force", check=False)
        assert done.returncode == 5 and "the store itself" in done.stderr
    assert names(file_site.client.context.store) == ["there"]


def test_a_worker_that_is_there_forbids_it_and_none_comes_up_meanwhile(site: Site) -> None:
    file = backup(site)
    worker = site.worker()
    refused = site.run("restore", str(file), check=False)
    assert refused.returncode == 4
    assert f"(pid {worker.pid}); `headway stop` ends it, or kill {worker.pid}" in refused.stderr
    worker.send_signal(signal.SIGTERM)
    worker.wait()
    stopped = start(site, file, "restore.prepared=stop")
    try:
        wait_for(lambda: is_stopped(stopped.pid))
        lock = WorkerLock(site.home.worker_lock)
        assert lock.is_held(STAYS) and lock.is_held(START)
        occupied = subprocess.run(
            [sys.executable, "-c", SOON_TIRED, "work"],
            cwd=site.folder,
            env=site.env,
            capture_output=True,
            text=True,
        )
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
