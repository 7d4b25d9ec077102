"""A worker's life: one at a time, started when needed, gone when idle, nothing lost in between."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import warm
from harness import Site, wait_for
from headway.base.worker_lock import STAYS
from headway.core.states import Status
from headway.supervise.evidence import Evidence

QUICK = "[worker]\nidle = '400ms'\n"
PATIENT = "[worker]\nidle = '10m'\n"


def start_record(site: Site, job: int) -> object:
    def record() -> object:
        with site.client.context.store.read() as tx:
            claim = tx.claims.of_job(job)
        return claim and Evidence(claim.folder, claim.token).read_started()

    return wait_for(record, what=f"job-{job} to start")


def workers(site: Site) -> list[tuple[str, str | None]]:
    with site.client.context.store.read() as tx:
        return [
            (each.mode, each.ending)
            for each in tx.hosts.recent_workers(site.client.context.host.id, 50)
        ]


@pytest.mark.parametrize(
    "store_url", [None], ids=["sqlite"]
)  # on a store that hosts share a worker stays
def test_a_submit_starts_a_worker_which_leaves_when_idle(make_site: Callable[..., Site]) -> None:
    site = make_site(config=QUICK)
    assert site.run("exec", "--", "sh", "-c", "exit 7", check=False).returncode == 7
    wait_for(lambda: not site.processes(), what="nothing to be left running")
    assert workers(site) == [("background", "idle")]


def test_a_worker_whose_home_is_removed_leaves(make_site: Callable[..., Site]) -> None:
    site = make_site(config=PATIENT)
    site.run("exec", "--", "true")
    assert site.processes(), "it stays"
    shutil.rmtree(site.home.path)
    wait_for(lambda: not site.processes(), what="it to leave")


@pytest.mark.parametrize("store_url", [None], ids=["sqlite"])
def test_a_worker_knows_the_conditions_of_the_configuration(
    make_site: Callable[..., Site], tmp_path: Path
) -> None:
    site = make_site(config=QUICK + f"[conditions]\ngo = ['test', '-e', '{tmp_path}/go']\n")
    (tmp_path / "go").touch()
    site.run("exec", "--require", "custom:go", "--", "true")


@pytest.mark.parametrize(
    "store_url", [None], ids=["sqlite"]
)  # on a store that hosts share a worker stays
def test_a_worker_stays_while_a_schedule_is_to_fire(make_site: Callable[..., Site]) -> None:
    site = make_site(config="[worker]\nidle = '50ms'\n")
    site.client.schedules.add(name="tick", every="1s", argv=["true"])
    site.run("exec", "--", "true")
    wait_for(lambda: len(site.client.schedules.slots("tick")) == 2, what="two slots to fire")
    assert workers(site) == [("background", None)], "it was idle in between, and stayed"
    site.client.schedules.remove("tick")
    wait_for(lambda: not site.processes(), what="nothing to be left running")
    assert workers(site) == [("background", "idle")]


@pytest.mark.parametrize("store_url", [None], ids=["sqlite"])
def test_a_worker_stays_for_the_jobs_file_and_follows_it(make_site: Callable[..., Site]) -> None:
    """It hears of a change without being told, and leaves once nothing in it is enabled."""
    site = make_site(config=QUICK)
    file = Path(site.home.path, "jobs.yaml")
    entry = "{type: command, run: [/bin/true], interval: 1s}"
    file.write_text(f"jobs:\n  first: {entry}\n")
    site.run("submit", "--", "true")

    def made(name: str) -> int:
        with site.client.context.store.read() as tx:
            jobs = tx.jobs.by_id(range(1, tx.settings.marks()["next_job_id"]))
        return sum(job.name == name for job in jobs.values())

    wait_for(lambda: made("first") >= 2, what="the entry to run twice")
    file.write_text(f"jobs:\n  second: {entry}\n")
    wait_for(lambda: made("second") >= 1, what="the other entry to run")
    assert workers(site) == [("background", None)]
    file.write_text("jobs: {}\n")
    wait_for(lambda: not site.processes(), what="nothing to be left running")
    assert workers(site) == [("background", "idle")]


def test_fifty_submits_start_one_worker(make_site: Callable[..., Site]) -> None:  # fault C9
    site = make_site(config=PATIENT)
    command = ["submit", "--", "true"]
    submits = [warm.start([], command, cwd=site.folder, env=site.env) for _ in range(50)]
    assert [submit.wait(timeout=120) for submit in submits] == [0] * 50
    site.until_ended(*range(1, 51), deadline=60)
    assert workers(site) == [("background", None)]


@pytest.mark.parametrize(
    "store_url", [None], ids=["sqlite"]
)  # on a store that hosts share a worker stays
def test_a_submit_during_the_idle_leave_is_not_forgotten(make_site: Callable[..., Site]) -> None:
    site = make_site(
        config="[worker]\nidle = '50ms'\n", env={"HEADWAY_POINTS": "worker.gave_up=stop"}
    )
    site.run("submit", "--", "true")
    pid = wait_for(lambda: site.lock.read_pid())
    wait_for(lambda: _state(pid) == "T", what="the worker to stop inside its leaving transaction")
    late = subprocess.Popen(
        [sys.executable, "-m", "headway", "submit", "--", "true"],
        cwd=site.folder,
        env={**site.env, "HEADWAY_POINTS": ""},
        stdout=subprocess.DEVNULL,
    )
    os.kill(pid, signal.SIGCONT)
    assert late.wait(timeout=60) == 0
    site.until_ended(1, 2)
    assert site.status(2) is Status.SUCCEEDED


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_an_autostarted_worker_inherits_nothing(
    make_site: Callable[..., Site],
) -> None:  # fault B12
    site = make_site(config=PATIENT, env={"SECRET": "x"})
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    subprocess.run(
        [sys.executable, "-m", "headway", "submit", "--", "true"],
        cwd=site.folder,
        env=site.env,
        close_fds=False,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    os.close(writer)
    pid = wait_for(site.background_pid)
    assert os.read(reader, 1) == b"", "nobody holds the pipe that the command had open"
    os.close(reader)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) != os.getsid(0)
    assert b"SECRET" not in Path(f"/proc/{pid}/environ").read_bytes()
    ours = (site.home.path, "/dev/", "/proc/")

    def foreign() -> set[str]:
        files = {each for each in _open_files(pid) if each.startswith("/")}
        return {each for each in files if not each.startswith(ours)}

    # A module that it is just importing is closed again; what it inherited never is.
    wait_for(lambda: not foreign(), what="no file to be open that is not the home's")


def _open_files(pid: int) -> set[str]:
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # it comes and goes
            found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


@pytest.mark.req("D3", "V17")
def test_a_second_worker_is_refused_with_the_pid_of_the_first(site: Site) -> None:  # fault C9, C10
    first = site.worker()
    second = site.start_worker()
    _, message = second.communicate(timeout=30)
    assert second.returncode == 4
    assert f"pid {first.pid}" in message
    first.kill()
    first.wait()
    third = site.worker()  # no stale file stands in its way
    assert third.poll() is None


INTERNET = ("tcp", "tcp6", "udp", "udp6", "raw", "raw6", "sctp/assocs")


def _internet_sockets(pid: int) -> set[str]:
    """The inodes of what this process has open towards a network, be it only to listen."""
    open_ = {each.split("[")[1][:-1] for each in _open_files(pid) if each.startswith("socket:")}
    for table in INTERNET:
        with suppress(FileNotFoundError):
            rows = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
            found = open_ & {word for row in rows for word in row.split()}
            if found:
                return found
    return set()


@pytest.mark.req("D20")
def test_on_one_machine_nothing_but_files_and_kernel_locks_is_needed(tmp_path: Path) -> None:
    """With its own store: no process of it has a network, and who locks anything locks a file of
    the home or of the jobs' evidence, in the kernel, which lets go when the process dies."""
    site = Site(tmp_path)
    try:
        site.client.set_setting("scheduler.max_active", 3)
        locks = ("--lock", "repo")
        site.run("submit", *locks, "--", "sleep", "60")
        site.run("submit", *locks, "--", "true")
        site.run("submit", "--", "sleep", "60")
        worker = site.worker()
        wait_for(lambda: [site.status(each) for each in (1, 3)] == [Status.RUNNING] * 2)
        site.run("jobs", "list")
        wait_for(lambda: len(site.processes()) >= 5, what="parent, supervisors and commands")
        ours = {worker.pid: "worker", **site.processes()}
        assert [pid for pid in ours if _internet_sockets(pid)] == []
        files = {each.lstat().st_ino for each in Path(site.home.path).rglob("*") if each.exists()}
        held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        mine = {row[5].split(":")[2] for row in held if row[1] != "->" and int(row[4]) in ours}
        assert mine, "the worker's lock and those of the supervisors"
        assert {each for each in mine if int(each) not in files} == set()
        assert site.status(2) is Status.WAITING_ON_LOCKS, "a row of the store, no lock of its own"
        site.run("jobs", "cancel", "1", "3")
        site.until_ended(2)
        assert site.status(2) is Status.SUCCEEDED
    finally:
        site.close()


def _rests(pid: int) -> None:
    """Wait until it has slept for a while, without having been woken in between."""
    before, alike = "", 0

    def unchanged() -> bool:
        nonlocal before, alike
        status = Path(f"/proc/{pid}/status").read_text()
        alike = alike + 1 if status == before and "(sleeping)" in status else 0
        before = status
        return alike > 12  # more would take longer than the second between its looks

    wait_for(unchanged, what="the worker to rest")


@pytest.mark.req("E3")
def test_a_worker_with_nothing_to_do_keeps_looking_and_complains_of_nothing(site: Site) -> None:
    """Nobody wakes it: each of these submits goes to the store alone."""
    site.client.context.wake = lambda *said, **more: True  # type: ignore[method-assign]
    worker = site.worker()
    for code in (3, 0):  # what fails is no reason to stop, either
        _rests(worker.pid)
        job = site.submit("sh", "-c", f"exit {code}")
        site.until_ended(job, deadline=20.0)  # it looks every second
        assert site.client.document(job)["run"]["exit_code"] == code
        assert worker.poll() is None
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate(timeout=30)
    assert worker.returncode == 0 and "cannot" not in said and "Traceback" not in said


def test_of_ten_workers_at_once_one_stays(site: Site) -> None:  # fault C9
    started = [site.start_worker() for _ in range(10)]
    wait_for(lambda: sum(each.poll() is not None for each in started) == 9, deadline=60)
    assert sorted(each.poll() for each in started if each.poll() is not None) == [4] * 9
    assert site.lock.is_held(STAYS)


def test_work_takes_over_from_a_background_worker_and_jobs_go_on(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(config=PATIENT)
    gate = site.folder / "gate"
    site.run("submit", "--shell", f"while ! test -e {gate}; do sleep 0.02; done; exit 3")
    start_record(site, 1)
    old = site.background_pid()
    foreground = site.worker()
    wait_for(lambda: site.lock.read_pid() == foreground.pid)
    assert old is not None
    wait_for(lambda: _state(old) in ("", "Z"), what="the old worker to be gone")
    gate.touch()
    site.until_ended(1)
    assert site.client.document(1)["run"]["exit_code"] == 3
    assert workers(site) == [("foreground", None), ("background", "handover")]


@pytest.mark.req("D22")
def test_sigterm_lets_running_jobs_finish_and_starts_no_more(site: Site) -> None:  # fault A6
    gate = site.folder / "gate"
    job = site.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.02; done; exit 3")
    queued = site.submit("true")
    worker = site.worker()
    start_record(site, job)
    worker.send_signal(signal.SIGTERM)
    wait_for(lambda: not site.lock.is_held(STAYS), what="it to give up its place")
    gate.touch()
    worker.wait(timeout=30)
    assert worker.returncode == 0
    assert site.client.document(job)["run"]["exit_code"] == 3
    assert site.status(queued) is Status.QUEUED
    assert os.path.exists(site.home.worker_stopped)
    modes = {os.stat(path).st_mode & 0o077 for path in Path(site.home.run).iterdir()}
    assert modes == {0}, "nobody else reads or writes there"


def _said(worker: subprocess.Popen[str]) -> str:
    assert worker.stderr is not None
    os.set_blocking(worker.stderr.fileno(), False)
    try:
        return os.read(worker.stderr.fileno(), 65536).decode()
    except BlockingIOError:
        return ""


def test_a_second_signal_leaves_at_once_and_the_job_goes_on(site: Site) -> None:  # fault A6
    gate = site.folder / "gate"
    job = site.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.02; done; exit 3")
    worker = site.worker()
    start_record(site, job)
    worker.send_signal(signal.SIGINT)
    wait_for(lambda: "stopping" in _said(worker))
    worker.send_signal(signal.SIGINT)
    assert worker.wait(timeout=10) == 0
    assert site.status(job) is Status.RUNNING
    gate.touch()
    site.worker()
    site.until_ended(job)
    assert site.client.document(job)["run"]["exit_code"] == 3


def test_a_supervisor_that_ends_without_a_worker_starts_one(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(config=PATIENT)
    gate = site.folder / "gate"
    site.run("submit", "--shell", f"while ! test -e {gate}; do sleep 0.02; done; exit 3")
    site.run("submit", "--after", "1", "--", "true")
    start_record(site, 1)
    pid = site.background_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not site.lock.is_held(STAYS))
    gate.touch()
    site.until_ended(1, 2)
    assert site.client.document(1)["run"]["exit_code"] == 3
    assert site.status(2) is Status.BLOCKED_BY_DEPENDENCY


@pytest.mark.req("D22")
def test_after_a_signal_nobody_starts_a_worker_unasked(make_site: Callable[..., Site]) -> None:
    site = make_site(config=PATIENT + "grace = '0s'\n")
    gate = site.folder / "gate"
    site.run("submit", "--shell", f"while ! test -e {gate}; do sleep 0.02; done")
    start_record(site, 1)
    pid = site.background_pid()
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not site.lock.is_held(STAYS))
    gate.touch()
    wait_for(lambda: not site.processes(), what="the job to end, and no worker to come")
    assert site.status(1) is Status.RUNNING
    site.run("submit", "--", "true")  # asked: the command clears the mark and starts one
    site.until_ended(1, 2)
    assert site.status(1) is Status.SUCCEEDED


def test_a_worker_started_from_inside_a_job_is_no_part_of_that_job(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(config=PATIENT)
    gate, again = site.folder / "gate", site.folder / "again"
    headway = f"{sys.executable} -m headway"
    script = (
        f"while ! test -e {gate}; do sleep 0.02; done;"
        f"{headway} submit --shell 'while ! test -e {again}; do sleep 0.02; done'"
    )
    site.run("config", "set", "scheduler.max_active", "2")
    site.run("submit", "--shell", script)
    start_record(site, 1)
    pid = site.background_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not site.lock.is_held(STAYS))
    gate.touch()
    site.until_ended(1)
    start_record(site, 2)
    new = site.background_pid()
    assert new is not None and new != pid
    again.touch()
    site.until_ended(2)
    assert [site.status(job) for job in (1, 2)] == [Status.SUCCEEDED] * 2
    assert site.background_pid() == new, "it outlived the job that asked for it"


def test_scheduler_run_makes_one_step_where_no_worker_lives(site: Site) -> None:
    ledger = site.folder / "ledger"
    site.submit("sh", "-c", f"echo 1 >> {ledger}")
    site.submit("sh", "-c", f"echo 2 >> {ledger}")
    done = site.run("scheduler", "run")
    assert "job-1" in done.stdout + done.stderr
    outcomes = Path(site.home.jobs)
    wait_for(lambda: list(outcomes.glob("1/outcome.*.json")), what="the job to end")
    assert site.status(1) is Status.RUNNING, "nobody has taken it in yet"
    assert ledger.read_text() == "1\n"
    site.run("scheduler", "run")
    assert site.status(1) is Status.SUCCEEDED
    wait_for(lambda: list(outcomes.glob("2/outcome.*.json")))
    assert ledger.read_text() == "1\n2\n"
    site.run("scheduler", "run")
    assert site.status(2) is Status.SUCCEEDED


@pytest.mark.parametrize(
    "store_url", [None], ids=["sqlite"]
)  # only a file can be exchanged underneath
def test_a_worker_stops_when_its_store_is_replaced(site: Site) -> None:  # fault C5
    worker = site.worker()
    os.rename(site.home.database, site.home.database + ".old")
    Path(site.home.database).write_bytes(b"")
    site.client.context.wake()
    _, message = worker.communicate(timeout=30)
    assert worker.returncode == 6
    assert "deleted or replaced" in message


@pytest.mark.root
def test_a_full_disk_stops_neither_worker_nor_running_jobs(tmp_path: Path) -> None:  # fault A10
    small = tmp_path / "small"
    small.mkdir()
    assert os.system(f"mount -t tmpfs -o size=6m tmpfs {small}") == 0
    site = Site(small, config="[worker]\nautostart = false\n")
    try:
        gate = tmp_path / "gate"
        job = site.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.02; done; exit 3")
        worker = site.worker()
        start_record(site, job)
        filler = small / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        refused = site.run("submit", "--", "true", check=False)
        acknowledged = refused.returncode == 0
        assert acknowledged or (refused.returncode == 6 and "space" in refused.stderr)
        gate.touch()
        with site.client.context.store.read() as tx:
            claim = tx.claims.of_job(job)
        assert claim is not None
        wait_for(lambda: Evidence(claim.folder, claim.token).read_outcome())
        filler.unlink()
        site.until_ended(job)
        assert worker.poll() is None
        assert site.client.document(job)["run"]["exit_code"] == 3
    finally:
        site.close()
        os.system(f"umount -l {small}")


@pytest.mark.parametrize(
    "store_url", [None], ids=["sqlite"]
)  # it is about a file beside the home's own
def test_the_background_worker_serves_the_store_that_was_named(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(config=QUICK)
    elsewhere = f"sqlite://{site.folder}/elsewhere.db"
    named = {"HEADWAY_STORE": elsewhere}
    inside = f'{sys.executable} -m headway jobs list --json | grep -c \'"id": *"job-1"\''
    site.run("init", env=named)
    assert site.run("exec", "--shell", inside, env=named).stdout == "1\n"
    assert site.run("--store", elsewhere, "jobs", "status", "1").stdout == "succeeded\n"
    assert site.run("jobs", "status", "1", check=False).returncode == 3
    wait_for(lambda: not site.processes(), what="its worker to leave")


def test_a_submit_while_the_worker_drains_gets_a_worker_of_its_own(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(config=PATIENT + "grace = '30s'\n")
    gate = site.folder / "gate"
    site.run("submit", "--shell", f"while ! test -e {gate}; do sleep 0.02; done")
    start_record(site, 1)
    old = site.background_pid()
    assert old is not None
    os.kill(old, signal.SIGTERM)
    wait_for(lambda: not site.lock.is_held(STAYS), what="the old worker to give up its place")
    site.run("submit", "--", "true")
    assert not os.path.exists(site.home.worker_stopped)
    gate.touch()
    site.until_ended(1, 2)
    assert [site.status(job) for job in (1, 2)] == [Status.SUCCEEDED] * 2
    assert [ending for _, ending in workers(site)] == [None, "signal"]


@pytest.mark.parametrize("store_url", [None], ids=["sqlite"])  # the store moves with the home
def test_a_home_that_is_moved_while_a_job_runs_keeps_the_job(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(config="[worker]\nautostart = false\n")
    gate = site.folder / "gate"
    job = site.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.02; done; exit 3")
    worker = site.worker()
    start_record(site, job)
    worker.kill()
    worker.wait()
    site.client.close()
    moved = site.folder / "moved"
    moved.mkdir()
    os.rename(site.home.path, moved / ".headway")
    gate.touch()
    there = Site(moved, config="[worker]\nautostart = false\n")
    try:
        there.worker()
        there.until_ended(job)
        assert there.client.document(job)["run"]["exit_code"] == 3
    finally:
        there.close()
        os.rename(moved / ".headway", site.home.path)
