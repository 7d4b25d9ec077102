"""`headway doctor`: real damage is found and named, the next step too, and nothing is changed."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine
from examining import everything, examined, execute, one, printed, red

from harness import Site, wait_for
from headway.admin.doctor import contents, surroundings
from headway.admin.doctor.finding import CheckedHome, Finding, OpenedHome
from headway.base.clock import SECOND, SystemClock
from headway.jobs.settings import Config
from headway.store import open_store
from headway.store.inspect import inspect
from headway.store.queries import schema_version
from headway.store.records import NewDelivery, WorkerRecord
from headway.webhooks.secret_file import SecretFile, fingerprint_of

CHECKS = {
    *("system", "sqlite", "cgroup", "home", "config", "file system", "space", "leftovers"),
    *("store", "schema", "integrity", "clock", "folders", "environments", "worker", "pause"),
    "launching",
    "groups",
}


@pytest.fixture
def server_site(tmp_path: Path, postgres_url: str) -> Iterator[Site]:
    made = Site(tmp_path, config="[worker]\nautostart = false\n", store_url=postgres_url)
    yield made
    made.close()


# -- a sound store --------------------------------------------------------------------------------


def test_all_is_looked_at_and_nothing_is_changed(site: Site) -> None:
    Path(site.home.config).write_text("")  # with the default, which is to start workers
    site.submit("true")
    site.client.close()
    before = everything(site.home.path)
    findings = printed(site)
    assert {each["check"] for each in findings} >= CHECKS
    assert [each["check"] for each in findings if each["level"] == "red"] == []
    assert one(site, "worker", "yellow")["next"] == "headway work"
    assert everything(site.home.path) == before
    assert site.processes() == {}
    if site.home.store_url:
        told = next(each["detail"] for each in findings if each["check"] == "server")
        assert "PostgreSQL" in told and "psycopg" in told
    else:
        assert "wal" in {each["check"] for each in findings}


def test_schedules_and_a_jobs_file_need_a_worker(site: Site) -> None:
    assert one(site, "worker", "green")["detail"] == "none, and none is needed"
    site.client.schedules.add(every="1h", argv=["true"], name="hourly")
    assert "headway service install" in one(site, "worker", "yellow")["next"]
    site.client.schedules.remove("hourly")
    assert one(site, "worker", "green")
    file = Path(site.home.path) / "jobs.yaml"
    file.write_text("jobs: {sweep: {type: command, run: [tidy], interval: 60, enabled: false}}")
    assert one(site, "jobs file", "green")["detail"] == "0 of 1 entries are enabled"
    assert one(site, "worker", "yellow")
    file.write_text("jobs:\n  sweep: {type: command, run: [tidy], interval: often, enabled: 7}")
    broken = one(site, "jobs file", "yellow")
    assert "line 2: " in broken["detail"] and broken["detail"].endswith(", and 1 more")
    assert broken["next"] == "headway jobsfile check"


def test_a_worker_and_its_running_job_are_found_well(site: Site) -> None:
    job = site.submit(shell="while [ ! -e go ]; do sleep 0.02; done", cwd=str(site.folder))
    site.worker()
    wait_for(lambda: site.status(job) == "running")
    assert one(site, "worker", "green")["detail"] == "there"
    assert red(site) == []
    (site.folder / "go").touch()
    site.until_ended(job)


def test_without_a_home_none_is_made(bare: CommandLine) -> None:
    findings = bare.json("doctor")["findings"]
    assert (findings[-1]["level"], findings[-1]["next"]) == ("yellow", "headway init")
    assert list(bare.folder.iterdir()) == []


def test_a_home_without_a_store_gets_none(bare: CommandLine) -> None:
    bare.home.mkdir(mode=0o700)
    (bare.home / "config.toml").write_text("[worker]\n")
    findings = bare.json("doctor", code=1)["findings"]
    assert (findings[-1]["check"], findings[-1]["next"]) == ("store", "headway init")
    assert [each.name for each in bare.home.iterdir()] == ["config.toml"]
    (bare.home / "jobs" / "3").mkdir(parents=True)
    assert bare.json("doctor", code=1)["findings"][-1]["next"] == "headway trust"
    bare("trust", "--yes")
    assert "restore" in bare.json("doctor", code=1)["findings"][-1]["next"]


# -- the database ---------------------------------------------------------------------------------


def test_flipped_bytes_in_a_page_are_found(file_site: Site) -> None:
    """# fault C4"""
    for _ in range(30):
        file_site.submit("true")
    file_site.client.close()
    database = Path(file_site.home.database)
    content = bytearray(database.read_bytes())
    for at in range(4096, len(content), 4096):
        content[at : at + 8] = bytes(byte ^ 0xFF for byte in content[at : at + 8])
    database.write_bytes(content)
    assert "headway restore" in one(file_site, "store", "red")["next"]
    assert database.read_bytes() == content


def test_an_index_that_does_not_fit_its_table_is_found(file_site: Site) -> None:
    """What a quick check does not see."""
    file_site.submit("true", key="a-key-to-be-changed")
    file_site.client.close()
    database = Path(file_site.home.database)
    before, key, after = database.read_bytes().rpartition(b"a-key-to-be-changed")
    database.write_bytes(before + key.replace(b"to", b"no") + after)
    found = one(file_site, "store", "red")
    assert "jobs_idempotency_key" in found["detail"] and "restore" in found["next"]


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "is empty"), (b"not a database" * 900, "damaged")]
)
def test_what_is_no_database_is_said_to_be_none(
    file_site: Site, content: bytes, words: str
) -> None:
    """# fault C4"""
    file_site.client.close()
    Path(file_site.home.database).write_bytes(content)
    assert words in one(file_site, "store", "red")["detail"]
    assert Path(file_site.home.database).read_bytes() == content


@pytest.mark.parametrize(
    ("on_file", "on_server", "name"),
    [
        ("drop index jobs_in_line", "drop index jobs_in_line", "jobs_in_line"),
        (
            "drop trigger jobs_terminal_is_final",
            "drop trigger jobs_terminal_is_final on jobs",
            "jobs_terminal_is_final",
        ),
        (
            "drop trigger events_are_append_only",
            "alter table events disable trigger events_are_append_only",
            "events_are_append_only",
        ),
        ("drop table lendings", "drop table lendings", "lendings"),
    ],
)
def test_a_guard_that_is_missing_is_named(
    site: Site, on_file: str, on_server: str, name: str
) -> None:
    execute(site, on_server if site.home.store_url else on_file)
    found = one(site, "schema", "red")
    assert name in found["detail"] and "restore" in found["next"]


@pytest.mark.parametrize("damage", ["drop index jobs_in_line", "drop table lendings"])
def test_a_backup_and_its_restore_bring_back_what_is_missing(file_site: Site, damage: str) -> None:
    """As the doctor advises: the rows are copied to a file that has everything."""
    job = file_site.submit("true")
    execute(file_site, damage)
    copy = file_site.folder / "copy.db"
    file_site.run("backup", str(copy))
    file_site.client.close()
    assert red(file_site)[0] == "schema"
    file_site.run("restore", str(copy), "--force")
    assert red(file_site) == []
    assert file_site.run("jobs", "status", str(job)).stdout == "queued\n"
    assert not list(Path(file_site.home.path).glob("*.new*"))


def test_rows_of_a_server_without_an_index_restore_elsewhere(server_site: Site) -> None:
    server_site.submit("true")
    execute(server_site, "drop index jobs_in_line")
    copy = server_site.folder / "copy.db"
    server_site.run("backup", str(copy))
    del server_site.env["HEADWAY_STORE"]
    server_site.run("restore", str(copy))
    assert red(server_site) == []


def test_a_newer_schema_is_red(site: Site) -> None:
    newer = "update schema_version set version = 99"
    execute(site, newer if site.home.store_url else "pragma user_version = 99")
    found = one(site, "schema", "red")
    assert "99" in found["detail"] and "upgrade" in found["next"]
    assert "integrity" not in {each["check"] for each in printed(site)}


def test_an_older_schema_is_left_to_the_next_command(server_site: Site) -> None:
    execute(server_site, f"update schema_version set version = {schema_version() - 1}")
    found = one(server_site, "schema", "yellow")
    assert "the next command migrates it" in found["next"] and red(server_site) == []


def test_an_empty_server_is_not_filled(server_site: Site, postgres_server: str) -> None:
    from postgres import fresh_schema

    with fresh_schema(postgres_server) as url:
        server_site.env["HEADWAY_STORE"] = url
        assert "migrates" in one(server_site, "schema", "yellow")["next"]
        inspection = inspect(url, SystemClock())
        assert inspection.schema() == 0
        inspection.close()


def test_a_server_that_does_not_answer_is_red_and_its_password_is_not_shown(
    file_site: Site,
) -> None:
    file_site.env["HEADWAY_STORE"] = "postgresql://ann:s3cret@127.0.0.1:1/x"
    found = one(file_site, "store", "red")
    assert "start the server" in found["next"]
    assert "s3cret" not in json.dumps(examined(file_site))


def test_engines_that_are_too_old_are_red(
    server_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.store.sqlite.database.OLDEST_SAFE", (99, 0, 0))
    (found,) = surroundings._sqlite()
    assert found.level == "red" and "pip install" in str(found.next_step)
    monkeypatch.setattr(contents, "OLDEST_SERVER", 990_000)
    (found,) = looked(server_site, contents._server)
    assert found.level == "red" and "14" in str(found.next_step)


def looked(
    site: Site, check: Callable[[OpenedHome], Any], clock: SystemClock | None = None
) -> list[Finding]:
    """One check of an opened store, in this process."""
    url = site.home.store_url or f"sqlite://{site.home.database}"
    path = None if site.home.store_url else site.home.database
    inspection = inspect(url, clock or SystemClock())
    try:
        return list(check(OpenedHome(site.home, url, path, clock or SystemClock(), inspection)))
    finally:
        inspection.close()


def test_a_file_that_comes_into_use_during_the_look_is_looked_at_again(
    file_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that nobody uses is read as one that never changes; then somebody writes."""
    file_site.client.close()
    seen: list[str] = []

    def damaged_once(inspection: Any) -> list[str]:
        seen.append("looked")
        if len(seen) == 1:
            Path(f"{file_site.home.database}-wal").touch()
            return ["a page that was just being written"]
        return []

    monkeypatch.setattr("headway.store.inspect.Inspection.damage", damaged_once)
    (found,) = looked(file_site, contents._store)
    assert found.level == "green" and len(seen) == 2


def test_a_large_log_is_named(file_site: Site) -> None:
    """# fault C2"""
    file_site.client.close()
    log = Path(f"{file_site.home.database}-wal")
    log.touch()
    os.truncate(log, 65 << 20)
    assert "65.0 MiB" in one(file_site, "wal", "yellow")["detail"]


# -- rows that do not fit together ----------------------------------------------------------------

CLAIM = (
    "insert into claims (token, job_id, state, slot, worker_id, host_id, home, boot_id, folder, "
    "claimed_at, probe) values ('t', {}, 'live', 1, 'w', 'h', '/', 'b', '/', 1, 0)"
)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("update jobs set status = 'running', stage = null where id = 1", "holds a claim"),
        ("update jobs set status = 'running', stage = null where id = 1", "record of a run"),
        (CLAIM.format(1), "job-1: claimed, but not running"),
        (CLAIM.format(77), "job-77: claimed, but not running"),
        ("insert into held_locks (key, job_id, mode) values ('k', 2, 'exclusive')", "job-2: hold"),
        ("delete from jobs where id = 1", "job-2: waiting for a job that is not there"),
        ("update jobs set stage = null where id = 2", "job-2: waiting where no planning step"),
        ("update jobs set finished_at = 5 where id = 1", "job-1: ended by status or by time"),
        (
            "insert into runs (job_id, started_at, worker_id, params_snapshot, artifacts) "
            "values (9, 1, 'w', '{}', '[]')",
            "job-9: with a run that contradicts",
        ),
        (
            "insert into workflow_runs (id, name, version, policy_hash, manifest, params, "
            "created_at, created_by, state, subject) "
            "values (1, 'w', '1', 'h', '{}', '{}', 1, 'ann', 'running', 's')",
            "job-2: about a subject that a workflow run is open for",
        ),
        ("update jobs set labels = '{' where id = 2", "job-2 cannot be read"),
    ],
)
def test_rows_that_cannot_be_so_are_named(site: Site, damage: str, words: str) -> None:
    first = site.submit("true")
    site.submit("true", after=(first,), subject="s")
    assert red(site) == []
    execute(site, damage)
    findings = [each for each in examined(site) if each["check"] == "integrity"]
    assert all(each["level"] == "red" and "restore" in each["next"] for each in findings)
    assert any(words in each["detail"] for each in findings), findings


# -- the clock ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "level"), [(20, "yellow"), (3600, "red")])
def test_a_clock_behind_the_newest_event_is_named(site: Site, seconds: int, level: str) -> None:
    at = SystemClock().now() + seconds * SECOND
    execute(
        site, f"insert into events (at, actor, kind, data) values ({at}, 'ann', 'paused', '{{}}')"
    )
    assert "behind the newest event" in one(site, "clock", level)["detail"]


class WrongClock(SystemClock):
    def __init__(self, seconds: float) -> None:
        self._off = int(seconds * SECOND)

    def now(self) -> int:
        return super().now() + self._off


@pytest.mark.parametrize(
    ("seconds", "level", "words"),
    [
        (0, "green", "agrees"),
        (30, "yellow", "ahead of the server's"),
        (-30, "yellow", "behind the server's"),
        (600, "red", "ahead of the server's"),
        (-600, "red", "behind the server's"),
    ],
)
def test_a_clock_that_differs_from_the_servers_is_named(
    server_site: Site, seconds: float, level: str, words: str
) -> None:
    """# fault D9"""
    (found,) = looked(server_site, contents._clock, WrongClock(seconds))
    assert found.level == level and words in found.detail


# -- what lies around -----------------------------------------------------------------------------


def test_folders_without_a_job_are_counted_and_named(site: Site) -> None:
    site.submit("true")
    for number in (1, 7, 12):
        os.makedirs(site.home.job(number), 0o700)
    Path(site.home.job(7), "stdout.log").write_bytes(b"x" * 2048)
    os.utime(site.home.job(12), (0, 0))
    found = one(site, "folders", "yellow")
    assert "2 in" in found["detail"] and "2.0 KiB" in found["detail"]
    assert "1970" in found["detail"] and ": 7, 12" in found["detail"]
    assert "remove" in found["next"]


def test_a_running_job_without_its_folder_is_red(site: Site) -> None:
    job = site.submit(shell="while [ ! -e go ]; do sleep 0.02; done", cwd=str(site.folder))
    site.run("scheduler", "run")
    assert red(site) == []
    os.rename(site.home.job(job), site.folder / "gone")
    assert f"job-{job}" in one(site, "folders", "red")["detail"]
    os.rename(site.folder / "gone", site.home.job(job))
    (site.folder / "go").touch()
    wait_for(lambda: list(Path(site.home.job(job)).glob("outcome.*.json")))


def test_environments_that_are_stale_or_missing_are_named(file_site: Site) -> None:
    file_site.submit("true")
    stale = Path(file_site.home.environments, "0" * 64)
    stale.touch()
    assert red(file_site) == []
    os.utime(stale, (0, 0))
    assert "1 of 2 are stale" in one(file_site, "environments", "yellow")["detail"]
    for each in Path(file_site.home.environments).iterdir():
        each.unlink()
    assert "are gone" in one(file_site, "environments", "red")["detail"]


def test_leftovers_are_named_with_the_command_that_removes_them(site: Site) -> None:
    home = Path(site.home.path)
    dead = home / "headway.db.4194305.new"  # no process can have this number
    living = home / f"headway.db.{os.getpid()}.new"
    old = home / "env" / "abc.12345678.tmp"
    for each in (dead, living, old):
        each.touch()
    os.utime(old, (0, 0))
    found = one(site, "leftovers", "yellow")
    assert found["next"] == f"rm {old} {dead}" or found["next"] == f"rm {dead} {old}"
    aside = home / "headway.db.before-restore-20260101T000000Z"
    aside.write_bytes(b"x" * 1024)
    told = [each["detail"] for each in examined(site) if each["check"] == "leftovers"]
    assert any("1 file kept by restores, 1.0 KiB" in each for each in told)


def test_a_second_name_of_the_store_is_named(file_site: Site) -> None:
    second = f"{file_site.home.database}.before-restore-20260101T000000Z"
    os.link(file_site.home.database, second)
    assert f"rm {second}" in one(file_site, "leftovers", "yellow")["next"]


def test_a_network_file_system_is_red_unless_it_was_accepted(
    file_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """# fault C7"""
    monkeypatch.setattr("headway.store.sqlite.filesystems.file_system", lambda folder: "nfs4")
    url = f"sqlite://{file_site.home.database}"
    for accepted, level in ((False, "red"), (True, "yellow")):
        config = Config({"store.unsafe_fs": accepted})
        place = CheckedHome(file_site.home, config, url, SystemClock())
        (found,) = surroundings._file_system(place)
        assert found.level == level and "nfs4" in found.detail


def test_the_file_system_of_a_database_elsewhere_is_looked_at_too(
    file_site: Site, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    url = f"sqlite://{tmp_path}/elsewhere/jobs.db"
    open_store(url, SystemClock(), create=True).close()
    file_site.env["HEADWAY_STORE"] = url
    details = [each["detail"] for each in examined(file_site) if each["check"] == "file system"]
    assert len(details) == 2 and "under the store" in details[1]
    assert red(file_site) == []


def test_pause_and_launch_failures_are_named(site: Site) -> None:
    site.client.pause("because")
    execute(
        site,
        "insert into breakers (host_id, kind, cause, failures, probe_at, opened_at) "
        "values ('elsewhere', 'storage', 'no space', 3, 1, 1)",
    )
    assert "because" in one(site, "pause", "yellow")["detail"]
    found = one(site, "launching", "yellow")
    assert "no space (3 failures) on host elsewhere" in found["detail"]
    assert "scheduler reset" in found["next"]


def test_a_group_whose_end_was_not_told_is_named_and_closing_it_tells(site: Site) -> None:
    site.run("groups", "create", "--name", "g")
    site.submit("true", group="g", last=True)
    assert one(site, "groups", "green")
    site.run("groups", "cancel", "g")
    execute(site, "update job_groups set ended_at = null")
    found = one(site, "groups", "yellow")
    assert "group-1 has ended, but its end was not told" in found["detail"]
    assert "groups close group-1" in found["next"]
    site.run("groups", "close", "group-1")
    assert one(site, "groups", "green")


def test_an_endpoint_that_nobody_can_sign_for_is_named(site: Site) -> None:
    assert "webhooks" not in {each["check"] for each in examined(site)}
    secret = site.client.webhooks.add("ci", "https://ci.example.org/hook")["secret"]
    assert one(site, "webhooks", "green")["detail"] == "endpoints: ci"
    file = SecretFile(site.home)
    file.forget(fingerprint_of(secret))
    found = one(site, "webhooks", "yellow")
    assert "no live host has the secret of ci" in found["detail"]
    assert "webhooks import ci" in found["next"] and "rotate ci" in found["next"]
    with site.client.context.store.write() as tx:
        (endpoint,) = [each for each in tx.webhooks.endpoints().values() if each.name == "ci"]
        tx.webhooks.change(endpoint._replace(holders=frozenset({"another"})))
        came = WorkerRecord("w", 1, "background", tx.now(), None, None, None)
        tx.hosts.add_worker(came, host_id="another", home="/x", boot_id="b")
    assert one(site, "webhooks", "green"), "another host has it, and a worker"
    site.client.webhooks.import_("ci", secret)
    site.client.webhooks.pause("ci")
    assert "ci is paused" in one(site, "webhooks", "yellow")["detail"]
    os.chmod(file.path, 0o644)
    assert "others may know it" in one(site, "webhooks", "red")["detail"]


def test_what_nobody_took_and_urls_that_nobody_signs_for_are_named(site: Site) -> None:
    site.client.webhooks.secret()
    site.submit("true", webhooks=("https://ci.example.org/done",))
    os.unlink(SecretFile(site.home).path)
    assert "jobs' own URLs" in one(site, "webhooks", "yellow")["detail"]
    site.client.webhooks.rotate()
    made = NewDelivery("e-1-job1_0", 0, "https://x", "https://x/", "job.failed", 1, 1, 1, "{}")
    with site.client.context.store.write() as tx:
        tx.webhooks.add_deliveries([made])
        tx.webhooks.fail_all("https://x", "no")
    assert one(site, "webhooks", "yellow")["detail"] == "nobody took 1 delivery"


def test_it_works_beside_a_writer_that_keeps_its_turn(site: Site) -> None:
    with site.client.context.store.write():
        assert red(site) == []


def test_a_store_in_the_midst_of_a_restore_is_waited_for(file_site: Site) -> None:
    import subprocess
    import sys

    copy = file_site.folder / "copy.db"
    file_site.run("backup", str(copy))
    file_site.client.close()
    restoring = subprocess.Popen(
        [sys.executable, "-m", "headway", "restore", str(copy)],
        cwd=file_site.folder,
        env={**file_site.env, "HEADWAY_POINTS": "restore.prepared=stop"},
        stderr=subprocess.DEVNULL,
    )
    stat = Path(f"/proc/{restoring.pid}/stat")
    wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    assert red(file_site) == []
    restoring.send_signal(signal.SIGCONT)
    assert restoring.wait(60) == 0
    assert red(file_site) == []
