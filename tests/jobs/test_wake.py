"""Making sure that somebody looks: what a worker may know of its starter, and who starts one."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Site, wait_for
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.base.worker_lock import COMING, START, STAYS, WorkerLock, worker_is_there
from headway.jobs.wake import WorkerWakeUp, clean_environment, nudge, worker_argv


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(str(tmp_path / ".headway"))
    make_home(made)
    return made


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def held(home: Home) -> list[int]:
    lock = WorkerLock(home.worker_lock)
    return [byte for byte in (START, STAYS, COMING) if lock.is_held(byte)]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("HOME", True),
        ("LANG", True),
        ("LC_ALL", True),
        ("LOGNAME", True),
        ("PATH", True),
        ("TMPDIR", True),
        ("TZ", True),
        ("USER", True),
        ("VIRTUAL_ENV", True),
        ("PYTHONPATH", True),
        ("AWS_SECRET_ACCESS_KEY", False),
        ("SSH_AUTH_SOCK", False),
        ("LD_PRELOAD", False),
        ("PYTHONSTARTUP", False),
        ("HEADWAY_HOME", False),
        ("HEADWAY_STORE", False),
        ("HEADWAY_ACTOR", False),
        ("HEADWAY_JOB_ID", False),
        ("HEADWAY_RUN_ID", False),
        ("HEADWAY_ATTEMPT", False),
        ("HEADWAY_CLAIM", False),
        ("HEADWAY_COMING_FD", False),
        ("path", False),
        ("", False),
    ],
)
def test_a_worker_knows_of_its_starter_only_what_is_listed(name: str, kept: bool) -> None:
    assert clean_environment({name: "/x"}) == ({name: "/x"} if kept else {})


def test_a_worker_is_this_very_program_on_that_home(home: Home) -> None:
    argv = worker_argv(home)
    assert os.access(argv[0], os.X_OK)
    assert argv[argv.index("--home") + 1] == home.path and argv[-2:] == ["work", "--background"]


def test_a_nudge_that_may_not_start_starts_nothing(home: Home) -> None:
    assert nudge(home, os.environ, start=False) is False
    assert held(home) == []
    assert os.listdir(home.run) == []


@pytest.mark.parametrize("byte", [STAYS, COMING])
def test_a_nudge_sees_a_worker_that_stays_or_comes(home: Home, byte: int) -> None:
    lock = WorkerLock(home.worker_lock)
    assert lock.take(byte)
    assert nudge(home, os.environ, start=False) is True
    assert nudge(home, os.environ, start=True) is True
    assert held(home) == [byte], "none was started beside it"
    lock.close()
    assert nudge(home, os.environ, start=False) is False


def test_who_only_starts_processes_is_no_worker_to_rely_on(home: Home) -> None:
    lock = WorkerLock(home.worker_lock)
    assert lock.take(START)
    assert nudge(home, os.environ, start=False) is False
    lock.close()


def test_a_nudge_clears_the_stopped_mark_of_a_worker_that_was_there(home: Home) -> None:
    Path(home.worker_lock).touch()
    Path(home.worker_stopped).touch()
    nudge(home, os.environ, start=False)
    assert not os.path.lexists(home.worker_stopped)
    nudge(home, os.environ, start=False)


def test_a_bell_that_was_rung_finds_whoever_comes_later_and_elsewhere(home: Home) -> None:
    """What it keeps open leads to the folder that is there, not to one that was moved away."""
    wake_up = WorkerWakeUp(home)
    assert wake_up.send(os.environ, start=False) is False
    for moved in ("first", "second"):
        lock = WorkerLock(home.worker_lock)
        assert lock.take(STAYS)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as worker:
            worker.bind(home.worker_socket)
            assert wake_up.send(os.environ, start=False) is True
            assert worker.recv(16) == b"wake"
            os.rename(home.run, f"{home.run}.{moved}")
            assert wake_up.send(os.environ, start=False) is False
            with pytest.raises(BlockingIOError):
                worker.recv(16)
        lock.close()
        os.mkdir(home.run, 0o700)
    wake_up.close()


def test_a_nudge_starts_one_worker_with_a_clean_environment(site: Site) -> None:
    environ = {**site.env, "SECRET_OF_THE_STARTER": "x", "HEADWAY_ACTOR": "me"}
    job = site.submit("true")
    assert nudge(site.home, environ, start=True) is True
    pid = wait_for(site.background_pid, what="a worker to come")
    names = {
        entry.partition(b"=")[0] for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    }
    assert b"PATH" in names
    assert not names & {b"SECRET_OF_THE_STARTER", b"HEADWAY_ACTOR", b"HEADWAY_CLAIM"}
    assert nudge(site.home, environ, start=True) is True
    assert site.background_pid() == pid
    site.until_ended(job)


def test_inside_a_job_of_a_home_that_is_gone_a_worker_is_still_started(site: Site) -> None:
    inside = {
        **site.env,
        "HEADWAY_JOB_ID": "job-1",
        "HEADWAY_CLAIM": "0" * 32,
        "HEADWAY_HOME": str(site.folder / "gone"),
    }
    assert nudge(site.home, inside, start=True) is True
    wait_for(lambda: worker_is_there(site.home.worker_lock), what="a worker to come")
