"""`headway direct`: a command in the next slot, with this terminal, that ends with its caller."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import warm
from harness import Site, wait_for
from headway.base import proc
from headway.core.reservations import Reservation
from headway.core.states import Status

# It leaves behind a process with another parent, group and session, and says which, before it
# ends itself.
DAEMON = """
import os, sys, time
path = sys.argv[1]
said, say = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(path + ".tmp", "w") as file:
            file.write(str(os.getpid()))
        os.rename(path + ".tmp", path)
        os.write(say, b".")
        while True:
            time.sleep(60)
    os._exit(0)
os.wait()
os.read(said, 1)
if "ends" not in sys.argv:
    time.sleep(600)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """Start `headway direct` in the test's site; none of them outlives the test."""
    name = "file_site" if "file_site" in request.fixturenames else "site"
    site: Site = request.getfixturevalue(name)
    started = []

    def start(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
        options = {
            "env": site.env,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            **options,
        }
        if "stdin" in options:
            argv = [sys.executable, "-m", "headway", "direct", *arguments]
            process = subprocess.Popen(argv, cwd=site.folder, **options)
        else:
            process = warm.start([], ["direct", *arguments], cwd=site.folder, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def standing(site: Site) -> list[Reservation]:
    with site.client.context.store.read() as tx:
        return tx.reservations.all()


def lives(pid: int) -> bool:
    return proc.read_stat(pid) is not None


def pid_in(path: Path) -> int:
    wait_for(path.exists, what=f"{path} to appear")
    return int(path.read_text())


def overseer_of(caller: int) -> int:
    """The small process between the caller and its command."""
    children = Path(f"/proc/{caller}/task/{caller}/children")
    (pid,) = wait_for(lambda: children.read_text().split())
    return int(pid)


@pytest.mark.req("E13")
@pytest.mark.req("D10")
def test_the_command_has_our_streams_and_its_code_is_ours(site: Site, start: Start) -> None:
    process = start("--", "sh", "-c", "cat; echo oops >&2; exit 7", stdin=subprocess.PIPE)
    out, err = process.communicate("hello\n", timeout=60)
    assert (out, err, process.returncode) == ("hello\n", "oops\n", 7)
    assert standing(site) == []
    assert site.client.listing() == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--shell", "kill -9 $$"], 137, ""),
        (["--shell", "echo $PLACE; pwd", "--env", "PLACE=here", "--cwd", "/"], 0, ""),
        (["--timeout", "100ms", "--", "sleep", "60"], 124, "longer than --timeout"),
        (["--no-check", "--", "nosuchprogram"], 127, "nosuchprogram"),
        (["--no-check", "--", "/etc/passwd"], 126, "/etc/passwd: Permission denied"),
        (["--no-check", "--cwd", "/nosuch", "--", "true"], 127, "/nosuch"),
        (["--", "nosuchprogram"], 5, "program 'nosuchprogram' was not found"),
        (["--cwd", "/nosuch", "--", "true"], 5, "there is no directory /nosuch"),
        (["--resource", "a b", "--", "true"], 5, "resource 'a b'"),
        (["--timeout", "soon", "--", "true"], 5, "--timeout 'soon'"),
        (["--env", "HEADWAY_NOT_THERE", "--", "true"], 5, "you have no such variable"),
        ([], 2, "What is to run?"),
        (["--shell", "true", "--", "true"], 5, "and not both"),
    ],
)
def test_exit_codes(file_site: Site, arguments: list[str], code: int, words: str) -> None:
    done = file_site.run("direct", *arguments, check=False)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    if "PLACE=here" in arguments:
        assert done.stdout.split() == ["here", "/"]
    assert standing(file_site) == []


def test_a_refused_first_call_makes_no_home(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headway", "direct", "--", "nosuchprogram"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("E11")
@pytest.mark.req("E15")
def test_it_says_behind_whom_it_waits_and_gives_up_when_told(site: Site, start: Start) -> None:
    site.worker()
    busy = site.submit("sleep", "60")
    wait_for(lambda: site.status(busy) is Status.RUNNING)
    process = start("--wait", "300ms", "--", "true")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 124
    assert f"headway: direct-1 waits: the one slot is in use: job-{busy}\n" in err
    assert "direct-1 got no slot in time" in err
    assert standing(site) == []
    waits = start("--note", "a look", "--", "echo", "now")
    wait_for(lambda: standing(site))
    text = " ".join(site.run("scheduler", "status").stdout.split())
    assert "direct direct-2 of " in text
    assert "(a look), waiting for " in text
    assert f"; the one slot is in use: job-{busy}" in text
    told = json.loads(site.run("scheduler", "status", "--json").stdout)
    assert [each["id"] for each in told["reservations"]] == ["direct-2"]
    assert told["reason"].startswith("direct-2 of ")
    queued = site.submit("true")
    assert "direct-2 of" in site.run("why", f"job-{queued}").stdout
    site.client.cancel([busy])
    out, _ = waits.communicate(timeout=60)
    assert (out, waits.returncode) == ("now\n", 0)
    site.until_ended(queued)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_waits_leaves_the_line(
    file_site: Site, start: Start, number: signal.Signals
) -> None:
    with file_site.client.reserve():
        process = start("--", "true")
        wait_for(lambda: len(standing(file_site)) == 2)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert len(standing(file_site)) == 1


def test_a_signal_to_the_caller_is_passed_on_to_the_command(site: Site, start: Start) -> None:
    line = "trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    process = start("--shell", line)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("got it\n", 9)
    assert standing(site) == []


COUNTS = """
import os, signal, sys
def heard(number, frame):
    os.write(1, b"interrupted\\n")  # it may come in the middle of a print
signal.signal(signal.SIGINT, heard)
print("ready", flush=True)
print(sys.stdin.readline().strip(), flush=True)
sys.exit(3)
"""


def test_at_a_terminal_ctrl_c_reaches_the_command_once(file_site: Site) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(file_site.folder)
        argv = [sys.executable, "-m", "headway", "direct", "--", sys.executable, "-c", COUNTS]
        os.execve(sys.executable, argv, file_site.env)
    heard = b""

    def until(words: bytes) -> None:
        nonlocal heard
        while words not in heard:
            assert select.select([terminal], [], [], 30)[0], heard
            heard += os.read(terminal, 4096)

    until(b"ready")
    os.write(terminal, b"\x03")
    until(b"interrupted")
    os.write(terminal, b"\x1a")  # Ctrl-Z: who has a slot does not stand still
    os.write(terminal, b"typed\n")
    until(b"typed\r\ntyped")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 3
    assert heard.count(b"interrupted") == 1
    assert standing(file_site) == []


@pytest.mark.parametrize("groups", ["auto", "off"])
def test_what_the_command_leaves_behind_ends_with_it(
    file_site: Site, start: Start, tmp_path: Path, groups: str
) -> None:
    Path(file_site.home.config).write_text(f'[processes]\ncgroup = "{groups}"\n')
    process = start("--", sys.executable, "-c", DAEMON, str(tmp_path / "pid"), "ends")
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not lives(pid_in(tmp_path / "pid"))


@pytest.mark.req("C12")
@pytest.mark.parametrize("groups", ["auto", "off"])
def test_a_caller_killed_with_9_takes_its_tree_along_and_the_queue_goes_on(
    site: Site, start: Start, tmp_path: Path, groups: str
) -> None:
    Path(site.home.config).write_text(f'[processes]\ncgroup = "{groups}"\n')
    site.client.set_setting("scheduler.reservation_expiry", "3s")
    site.worker()
    process = start("--", sys.executable, "-c", DAEMON, str(tmp_path / "pid"))
    daemon = pid_in(tmp_path / "pid")
    queued = site.submit("true")
    process.kill()
    wait_for(lambda: not lives(daemon), what="the whole tree to end")
    site.until_ended(queued)
    assert site.status(queued) is Status.SUCCEEDED
    assert standing(site) == []


def test_if_its_overseer_is_killed_too_the_worker_ends_what_is_left(
    site: Site, start: Start, tmp_path: Path
) -> None:
    site.client.set_setting("scheduler.reservation_expiry", "3s")
    site.worker()
    process = start("--", sys.executable, "-c", DAEMON, str(tmp_path / "pid"))
    daemon = pid_in(tmp_path / "pid")
    overseer = overseer_of(process.pid)
    os.kill(overseer, signal.SIGSTOP)  # so that it does not hear of the caller's end
    process.kill()
    os.kill(overseer, signal.SIGKILL)
    wait_for(lambda: not lives(daemon), what="the worker to end the tree")
    wait_for(lambda: standing(site) == [])


def silence(process: "subprocess.Popen[str]") -> None:
    """Kill the caller and its overseer at once, so that neither can end the tree."""
    overseer = overseer_of(process.pid)
    os.kill(overseer, signal.SIGSTOP)  # so that it does not hear of the caller's end
    process.kill()
    os.kill(overseer, signal.SIGKILL)


def test_without_a_worker_the_next_in_line_ends_what_is_left_before_it_has_the_slot(
    site: Site, start: Start, tmp_path: Path
) -> None:
    Path(site.home.config).write_text("[worker]\nautostart = false\n")
    site.client.set_setting("scheduler.reservation_expiry", "3s")
    process = start("--", sys.executable, "-c", DAEMON, str(tmp_path / "pid"))
    daemon = pid_in(tmp_path / "pid")
    silence(process)
    assert lives(daemon)
    look = f"grep -qs '^State:.[^Z]' /proc/{daemon}/status && echo lives || echo gone"
    following = start("--shell", look)
    out, _ = following.communicate(timeout=60)
    assert out == "gone\n"
    assert standing(site) == []


def test_a_worker_that_dies_once_it_has_ended_what_is_left_leaves_the_row_to_the_next(
    site: Site, start: Start, tmp_path: Path
) -> None:
    site.client.set_setting("scheduler.reservation_expiry", "3s")
    process = start("--", sys.executable, "-c", DAEMON, str(tmp_path / "pid"))
    daemon = pid_in(tmp_path / "pid")
    queued = site.submit("true")
    silence(process)
    point = "left_ended"
    worker = site.start_worker(env={"HEADWAY_POINTS": f"direct.{point}=kill"})
    worker.communicate(timeout=60)
    assert not lives(daemon)
    assert [each.name for each in standing(site)] == ["direct-1"]
    assert site.status(queued) is Status.QUEUED
    site.worker()
    site.until_ended(queued)
    assert standing(site) == []


@pytest.mark.parametrize("point", ["overseen", "forked", "begins", "tree_gone", "told"])
def test_whoever_dies_whenever_nothing_is_left_of_a_direct_call(
    site: Site, start: Start, tmp_path: Path, point: str
) -> None:
    site.client.set_setting("scheduler.reservation_expiry", "4s")
    site.worker()
    env = {**site.env, "HEADWAY_POINTS": f"direct.{point}=kill"}
    process = start("--", sys.executable, "-c", DAEMON, str(tmp_path / "pid"), "ends", env=env)
    process.communicate(timeout=60)
    queued = site.submit("true")
    site.until_ended(queued)
    assert standing(site) == []
    began = (tmp_path / "pid").exists()
    assert began is (point in ("tree_gone", "told"))
    assert not began or not lives(pid_in(tmp_path / "pid"))


def test_if_only_its_overseer_is_killed_the_caller_ends_the_tree(
    file_site: Site, start: Start, tmp_path: Path
) -> None:
    process = start("--", sys.executable, "-c", DAEMON, str(tmp_path / "pid"))
    daemon = pid_in(tmp_path / "pid")
    os.kill(overseer_of(process.pid), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "watches over the command was killed" in err
    assert not lives(daemon)
    assert standing(file_site) == []


def test_a_caller_that_stands_still_loses_its_slot_and_its_command(
    site: Site, start: Start, tmp_path: Path
) -> None:
    site.client.set_setting("scheduler.reservation_expiry", "3s")
    site.worker()
    process = start("--", sys.executable, "-c", DAEMON, str(tmp_path / "pid"))
    daemon = pid_in(tmp_path / "pid")
    queued = site.submit("true")
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: not lives(daemon), what="the tree to end with the slot")
    site.until_ended(queued)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "direct-1 was not renewed" in err


def test_a_command_that_runs_a_job_and_waits_for_it_does_not_wait_for_itself(
    site: Site, start: Start
) -> None:
    site.worker()
    inner = f"{sys.executable} -m headway exec -- echo inside"
    process = start("--shell", inner)
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("inside\n", 0), err


SUBMIT = f"{sys.executable} -m headway submit -- sleep 600"
NESTED = f"{sys.executable} -m headway direct -- {SUBMIT}"


@pytest.mark.parametrize(
    ("line", "groups", "store_url"),
    [
        pytest.param(SUBMIT, "auto", "sqlite", id="within one-auto"),
        pytest.param(SUBMIT, "off", "sqlite", id="within one-off"),
        pytest.param(NESTED, "auto", "sqlite", id="within two-auto"),
        pytest.param(NESTED, "off", "sqlite", id="within two-off"),
        pytest.param(NESTED, "auto", "postgres", id="within two-auto-postgres"),
    ],
    indirect=["store_url"],
)
def test_a_worker_that_is_started_inside_outlives_the_call(
    site: Site, start: Start, line: str, groups: str
) -> None:
    Path(site.home.config).write_text(f'[processes]\ncgroup = "{groups}"\n')
    site.client.set_setting("scheduler.max_active", 3)
    process = start("--shell", f"{line} && read line", stdin=subprocess.PIPE)
    wait_for(lambda: running(site) == 1, what="the job to run")
    worker = site.background_pid()
    out, err = process.communicate("go on\n", timeout=60)
    assert (process.returncode, err) == (0, ""), out
    assert standing(site) == []
    assert worker is not None and lives(worker)
    assert site.background_pid() == worker
    assert site.status(1) is Status.RUNNING
    site.client.cancel([1])
    site.until_ended(1)
    assert site.kinds(1).count("running") == 1


def running(site: Site) -> int:
    with site.client.context.store.read() as tx:
        return len(tx.claims.live())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_worker_that_is_started_inside_outlives_the_end_of_the_whole_group(
    site: Site, start: Start, number: signal.Signals
) -> None:
    site.client.set_setting("scheduler.max_active", 3)
    site.client.set_setting("scheduler.reservation_expiry", "3s")
    Path(site.home.config).write_text("")  # so that a worker starts by itself
    process = start("--shell", f"{SUBMIT} && sleep 600", start_new_session=True)
    wait_for(lambda: running(site) == 1)
    worker = site.background_pid()
    os.killpg(process.pid, number)
    process.communicate(timeout=60)
    wait_for(lambda: standing(site) == [])
    assert worker is not None and lives(worker)
    assert site.background_pid() == worker
    assert site.status(1) is Status.RUNNING
    site.client.cancel([1])
    site.until_ended(1)


def test_who_dies_once_it_has_asked_for_a_worker_has_asked(site: Site, start: Start) -> None:
    point = "worker_wanted"
    site.client.set_setting("scheduler.max_active", 2)
    Path(site.home.config).write_text("")
    line = f"HEADWAY_POINTS=direct.{point}=kill {SUBMIT}; read line"
    start("--shell", line, stdin=subprocess.PIPE)
    wait_for(lambda: running(site) == 1, what="the job to run")
    site.client.cancel([1])
    site.until_ended(1)


def test_inside_a_job_it_does_not_wait_for_that_jobs_slot(site: Site) -> None:
    site.worker()
    job = site.submit(sys.executable, "-m", "headway", "direct", "--", "echo", "inside")
    site.until_ended(job)
    assert Path(site.home.job(job), "stdout.log").read_text() == "inside\n"
    assert site.status(job) is Status.SUCCEEDED
