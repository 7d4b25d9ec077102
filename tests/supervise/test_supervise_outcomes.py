"""How a command ends, and that its outcome says so."""

import errno
import json
import os
import pty
import re
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest
from supervised import PATH, Home, is_alive, kill, wait_for

from headway.base import proc
from headway.supervise import rescue


@pytest.mark.parametrize("code", [0, 1, 42, 126, 127, 255])
def test_exit_code_is_recorded(home: Home, code: int) -> None:
    outcome = home.run_shell(f"exit {code}").outcome()
    assert (outcome.reason, outcome.exit_code, outcome.signal) == ("exited", code, None)
    assert outcome.wait_status == code << 8
    assert outcome.tree == "gone"
    assert outcome.job == 24
    assert outcome.started_at <= outcome.finished_at


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGTERM", "SIGABRT"])
def test_death_by_signal_is_not_an_exit_code(home: Home, name: str) -> None:  # fault B13
    number = signal.Signals[name].value
    outcome = home.run_shell(f"kill -{number} $$").outcome()
    assert (outcome.reason, outcome.exit_code, outcome.signal) == ("signalled", None, name)
    assert outcome.wait_status is not None
    assert os.WTERMSIG(outcome.wait_status) == number
    assert outcome.core_dumped is False


def test_exit_128_plus_n_is_not_a_signal(home: Home) -> None:  # fault B13
    outcome = home.run_shell("exit 139").outcome()
    assert (outcome.reason, outcome.exit_code, outcome.signal) == ("exited", 139, None)


def test_usage_is_measured(home: Home) -> None:
    outcome = home.claim(sys.executable, "-c", "sum(range(3000000))").launch().outcome()
    assert outcome.usage["user_seconds"] > 0.01
    assert outcome.usage["max_rss_kb"] > 1000


def test_timeout_ends_a_command_that_ignores_term(home: Home, cgroup: str) -> None:  # fault B1
    script = "trap '' TERM; echo up; while :; do sleep 1; done"
    claim = home.run_shell(script, timeout_seconds=0.5, grace_seconds=0.2, cgroup=cgroup)
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code, outcome.tree) == ("timed_out", 124, "gone")
    assert outcome.wait_status is not None
    assert os.WTERMSIG(outcome.wait_status) == signal.SIGKILL


def test_a_command_that_falls_silent_is_ended(home: Home) -> None:
    script = "for i in 1 2 3 4; do echo $i; sleep 0.2; done; exec sleep 1000"
    claim = home.run_shell(script, idle_seconds=0.5, grace_seconds=0.2)
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code) == ("timed_out", 124)
    assert outcome.error == "no output for 0.5 s"
    assert outcome.logs["stdout"]["bytes"] == 8, "each line begins the time anew"


def test_a_silent_command_may_be_cancelled_or_late_as_well(home: Home) -> None:
    claim = home.run_shell("exec sleep 1000", idle_seconds=60.0, timeout_seconds=0.3)
    outcome = claim.outcome()
    assert (outcome.reason, outcome.error) == ("timed_out", None)


def test_deadline_holds_though_worker_and_parent_are_dead(home: Home) -> None:  # fault B1
    launcher = home.launcher()
    claim = home.run_shell("echo up; sleep 1000", timeout_seconds=1.0, launcher=launcher)
    claim.says(b"up")
    launcher.stop(kill=True)
    assert claim.outcome().reason == "timed_out"


def test_cancel_sends_term_and_records_143(home: Home, cgroup: str) -> None:
    claim = home.run_shell(
        "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done", cgroup=cgroup
    )
    claim.says(b"up")
    claim.cancel()
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code, outcome.signal) == ("cancelled", 143, "SIGTERM")
    assert outcome.wait_status == 0
    assert b"bye" in claim.log()


def test_cancel_ends_a_stopped_command(home: Home, cgroup: str) -> None:
    claim = home.run_shell("echo up; kill -STOP $$; sleep 1000", cgroup=cgroup)
    claim.says(b"up")
    claim.cancel()
    assert claim.outcome(seconds=5).reason == "cancelled"


def test_cancel_without_a_poke_is_found_by_the_backstop(home: Home) -> None:
    claim = home.run_shell("echo up; sleep 1000")
    claim.says(b"up")
    claim.evidence.request_cancel()
    assert claim.outcome(seconds=9).reason == "cancelled"


def test_cancel_after_the_end_leaves_the_true_outcome(home: Home) -> None:
    claim = home.run_shell("sleep 1000 & echo up; exit 3", leftovers="wait", timeout_seconds=60)
    claim.says(b"up")
    wait_for(lambda: not is_alive(claim.started().child_pid))
    claim.cancel()
    outcome = claim.outcome(seconds=5)
    assert (outcome.reason, outcome.exit_code, outcome.tree) == ("exited", 3, "gone")


def test_early_signals_do_not_end_a_supervisor(home: Home) -> None:
    claim = home.run_shell("sleep 0.2; echo done")
    assert claim.pidfd is not None
    for sig in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        proc.signal_pidfd(claim.pidfd, sig)
    assert claim.outcome().exit_code == 0
    assert claim.log() == b"done\n"


def _spawn_errors(path: Path) -> dict[str, tuple[tuple[str, ...], dict[str, object], str, str]]:
    no_right, no_format = path / "no-right", path / "no-format"
    no_right.write_text("#!/bin/sh\n")
    no_format.write_bytes(b"\x01\x02\x03")
    no_format.chmod(0o755)
    broken = path / "broken-env"
    broken.write_text('{"env": 3')
    long = ("true", *["x" * 100_000] * 40)
    return {
        "ENOENT": (("nosuchprog",), {}, "ENOENT", "exec nosuchprog: No such file or directory"),
        "interpreter": ((str(path / "nope" / "x"),), {}, "ENOENT", "exec"),
        "EACCES": ((str(no_right),), {}, "EACCES", "exec"),
        "ENOEXEC": ((str(no_format),), {}, "ENOEXEC", "exec"),
        "E2BIG": (long, {}, "E2BIG", "exec true"),
        "no argv": ((), {}, "ENOENT", "exec"),
        "NUL": (("true", "a\0b"), {}, "EINVAL", "exec true"),
        "cwd": (("true",), {"cwd": str(path / "nodir")}, "ENOENT", f"directory {path}/nodir"),
        "cwd file": (("true",), {"cwd": str(broken)}, "ENOTDIR", "directory"),
        "stdin": (("true",), {"stdin": str(path / "nofile")}, "ENOENT", f"stdin {path}/nofile"),
        "no env": (("true",), {"env_file": str(path / "noenv")}, "ENOENT", "environment file"),
        "bad env": (("true",), {"env_file": str(broken)}, "EINVAL", "environment file"),
    }


@pytest.mark.parametrize("case", [
    "ENOENT", "interpreter", "EACCES", "ENOEXEC", "E2BIG", "no argv", "NUL", "cwd", "cwd file",
    "stdin", "no env", "bad env",
])  # fmt: skip
def test_what_keeps_a_command_from_starting_is_named(home: Home, case: str) -> None:  # fault B10
    argv, changes, code, text = _spawn_errors(home.path)[case]
    outcome = home.claim(*argv, **changes).launch().outcome()
    assert (outcome.reason, outcome.exit_code) == ("spawn_error", None)
    assert outcome.errno is not None
    assert errno.errorcode[outcome.errno] == code
    assert outcome.error is not None
    assert outcome.error.startswith(text)
    assert outcome.tree == "gone"


def test_environment_directory_and_umask_are_the_submitters(home: Home) -> None:
    (home.path / "there").mkdir()
    env = {"PATH": PATH, "A": "file", "B": "file", "ODD": "caf\udce9"}
    env_file = home.env_file({"env": env, "umask": 0o027, "cwd": str(home.path / "there")})
    claim = home.claim(
        "sh", "-c", "pwd; umask; env", env_file=env_file, env={"B": "spec"}, cwd=None
    )
    assert claim.launch().outcome().exit_code == 0
    lines = claim.log().split(b"\n")
    assert lines[:2] == [bytes(home.path / "there"), b"0027"]
    assert {b"A=file", b"B=spec", b"ODD=caf\xe9", b"HEADWAY_JOB_ID=job-24"} < set(lines)
    assert {b"HEADWAY_RUN_ID=run-24", b"HEADWAY_ATTEMPT=1"} < set(lines)
    assert f"HEADWAY_CLAIM={claim.evidence.token}".encode() in lines
    assert b"HEADWAY_HOME=" + bytes(home.path) in lines


def test_stdin_is_dev_null_without_a_terminal(home: Home) -> None:  # fault B15
    claim = home.run_shell("read x; echo $?; readlink /proc/self/fd/0; (: </dev/tty) || echo none")
    assert claim.outcome().exit_code == 0
    assert claim.log() == b"1\n/dev/null\nnone\n"


def test_stdin_is_read_from_the_given_file(home: Home) -> None:
    (home.path / "in").write_text("hello")
    claim = home.claim("cat", stdin=str(home.path / "in")).launch()
    claim.outcome()
    assert claim.log() == b"hello"


def test_command_starts_with_default_signals_no_core_and_oom_preference(home: Home) -> None:
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ulimit -c; cat /proc/self/oom_score_adj"
    claim = home.run_shell(script)
    claim.outcome()
    *masks, core, oom = claim.log().split(b"\n")[:-1]
    of_libc = 0b11 << 31  # 32 and 33 are the C library's own; nobody else can change them
    assert [int(mask.split()[1], 16) & ~of_libc for mask in masks] == [0, 0]
    assert (core, oom) == (b"0", b"500")


def test_children_inherit_no_descriptor(home: Home) -> None:  # fault B12
    script = "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1])"
    outer = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(outer, True)
    claim = home.claim(sys.executable, "-c", script, launcher=home.launcher()).launch()
    claim.outcome()
    os.close(outer)
    assert claim.log() == b"['0', '1', '2']\n"


def test_supervisor_holds_only_its_own_descriptors(home: Home) -> None:  # fault B12
    first = home.run_shell("sleep 1000")
    second = home.run_shell("sleep 1000")
    second.started()
    wait_for(lambda: len(os.listdir(f"/proc/{second.pid}/fd")) <= 9)
    targets = [
        os.readlink(f"/proc/{second.pid}/fd/{n}") for n in os.listdir(f"/proc/{second.pid}/fd")
    ]
    assert not any("socket" in target for target in targets)
    assert not any(first.evidence.token in target for target in targets)
    own = f"lock.{second.evidence.token}"
    assert sum(target.endswith(own) for target in targets) == 1


def test_parent_leaks_no_descriptor_over_many_jobs(home: Home) -> None:  # fault B12
    launcher = home.launcher()
    claims = [home.claim("true", launcher=launcher) for _ in range(40)]
    claims[0].launch().ended()
    pid = _pid_of(launcher.pidfd)
    before = len(os.listdir(f"/proc/{pid}/fd"))
    for claim in claims[1:]:
        claim.launch()
    for claim in claims[1:]:
        claim.ended()
    assert len(os.listdir(f"/proc/{pid}/fd")) == before
    wait_for(lambda: not Path(f"/proc/{pid}/task/{pid}/children").read_text())  # all reaped


def test_job_is_beyond_the_reach_of_the_starting_session(home: Home) -> None:  # fault B16
    claim = home.run_shell("echo up; sleep 1000")
    claim.says(b"up")
    started = claim.started()
    sessions = {os.getsid(0), os.getsid(started.supervisor_pid), os.getsid(started.child_pid)}
    assert len(sessions) == 3
    assert os.getpgid(started.child_pid) == started.child_pid


@pytest.mark.parametrize("leftovers", ["kill", "wait", "leave"])
def test_leftovers_follow_the_policy(home: Home, leftovers: str, cgroup: str) -> None:
    script = "(echo $$; exec sleep 1.5) & echo $! >left; exit 0"
    claim = home.run_shell(script, leftovers=leftovers, cgroup=cgroup)
    outcome = claim.outcome()
    left = int((home.path / "left").read_text())
    assert (outcome.reason, outcome.exit_code) == ("exited", 0)
    assert (
        outcome.tree in {"kill": ("gone",), "wait": ("gone",), "leave": ("left", "gone")}[leftovers]
    )
    if leftovers != "leave":
        assert not is_alive(left)


@pytest.mark.parametrize(
    ("leftovers", "end", "asked"),
    [
        ("terminate", "kill -9 $$", True),
        ("terminate", "exit 0", False),
        ("kill", "kill -9 $$", False),
    ],
)
def test_what_a_killed_operation_leaves_is_asked_to_end(
    home: Home, cgroup: str, leftovers: str, end: str, asked: bool
) -> None:
    left = "(trap 'touch asked; exit' TERM; touch up; while :; do sleep 0.02; done) &"
    script = f"{left} until test -e up; do sleep 0.01; done; {end}"
    outcome = home.run_shell(script, leftovers=leftovers, cgroup=cgroup).outcome()
    assert outcome.tree == "gone" and (home.path / "asked").exists() is asked


def test_a_left_process_goes_on(home: Home, cgroup: str) -> None:
    claim = home.run_shell("sleep 1000 >/dev/null 2>&1 & echo $!", leftovers="leave", cgroup=cgroup)
    assert claim.outcome().tree == "left"
    left = int(claim.log())
    assert is_alive(left)
    assert not rescue.tree_is_empty(claim.evidence)
    rescue.end_claim(claim.evidence)
    wait_for(lambda: not is_alive(left))


_DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2): os.close(fd)
        open("daemon", "w").write(str(os.getpid()))
        os.rename("daemon", "daemon.pid")
        time.sleep(1000)
    os._exit(0)
os.wait()
while not os.path.exists("daemon.pid"): time.sleep(0.01)
"""


def test_daemonized_process_does_not_outlive_the_job(home: Home, cgroup: str) -> None:  # fault B2
    outcome = home.claim(sys.executable, "-c", _DAEMON, cgroup=cgroup).launch().outcome()
    assert (outcome.reason, outcome.exit_code, outcome.tree) == ("exited", 0, "gone")
    assert not is_alive(int((home.path / "daemon.pid").read_text()))


def test_cancel_reaches_a_daemonized_process(home: Home, cgroup: str) -> None:  # fault B2
    script = _DAEMON + "\nprint('up', flush=True); time.sleep(1000)"
    claim = home.claim(sys.executable, "-c", script, cgroup=cgroup).launch()
    claim.says(b"up")
    claim.cancel()
    assert claim.outcome().tree == "gone"
    assert not is_alive(int((home.path / "daemon.pid").read_text()))


def test_a_grandchild_that_keeps_forking_is_killed(home: Home, cgroup: str) -> None:  # fault B2
    script = "(while :; do setsid sleep 0.02 & done) & echo up; sleep 0.3"
    claim = home.run_shell(script, cgroup=cgroup)
    assert claim.outcome().tree == "gone"
    assert not proc.processes_with_claim(claim.evidence.token)


def test_kill_9_of_the_supervisor_ends_the_command(home: Home, cgroup: str) -> None:  # fault B7
    claim = home.run_shell("echo up; exec sleep 1000", cgroup=cgroup)
    claim.says(b"up")
    assert claim.pid is not None
    kill(claim.pid)
    claim.ended()
    wait_for(lambda: not is_alive(claim.started().child_pid))
    assert claim.evidence.read_outcome() is None
    os.close(wait_for(claim.evidence.try_lock))


def test_worker_is_told_over_its_socket(home: Home) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        here = os.open(home.run, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/worker.sock")
        os.close(here)
        listener.settimeout(15)
        claim = home.run_shell("exit 0")
        assert listener.recv(100) == b"ended " + claim.evidence.token.encode()
        assert claim.evidence.read_outcome() is not None  # told only after it is durable


def test_twenty_supervisors_take_two_megabytes_each_at_most(home: Home) -> None:
    claims = [home.run_shell("echo up; exec sleep 1000") for _ in range(20)]
    for claim in claims:
        claim.says(b"up")
    rollups = [Path(f"/proc/{claim.pid}/smaps_rollup").read_text() for claim in claims]
    kilobytes = [int(re.search(r"^Pss: +(\d+)", text, re.M)[1]) for text in rollups]
    assert sum(kilobytes) / 20 <= 2048


_STARTER = f"""
import signal, sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "src")!r})
from headway.supervise.launcher import Launcher
launcher = Launcher()
launcher.start()
launcher.launch(sys.argv[1], sys.argv[2])
signal.pause()
"""


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_ctrl_c_in_the_starting_terminal_does_not_reach_the_job(home: Home) -> None:  # fault B16
    claim = home.claim("sh", "-c", "echo up; while [ ! -e go ]; do sleep 0.05; done; exit 6")
    evidence = claim.evidence
    starter, terminal = pty.fork()
    if starter == 0:
        os.execv(sys.executable, [sys.executable, "-c", _STARTER, evidence.folder, evidence.token])
    claim.says(b"up")
    os.write(terminal, b"\x03")
    wait_for(lambda: not is_alive(starter))
    os.waitpid(starter, 0)
    os.close(terminal)
    (home.path / "go").touch()
    assert wait_for(evidence.read_outcome).exit_code == 6


def test_files_of_a_run_are_private(home: Home) -> None:
    claim = home.run_shell("echo out; echo err >&2")
    claim.outcome()
    assert stat.S_IMODE(claim.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in claim.folder.iterdir()} == {0o600}
    content = json.loads(Path(claim.evidence.outcome).read_text())
    assert content["version"] == 1


def _pid_of(pidfd: int) -> int:
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    raise AssertionError("not a pidfd")


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (
            {"error": "it was denied Bash", "classes": ["permission"]},
            {"error": "it was denied Bash", "classes": ["permission"]},
        ),
        ({"error": "x" * 5000, "classes": list(range(20))}, None),
        ({"error": 3, "classes": []}, None),
        ({"error": "no classes"}, None),
        (["error"], None),
        ("torn", None),
    ],
)
def test_why_it_failed_is_told_by_the_main_process_that_may(
    home: Home, written: object, kept: object
) -> None:
    """Whatever it leaves there: the outcome is whole, and the exit code as it was."""
    claim = home.claim("/bin/sh", "-c", "exit 7", verdict=True)
    content = written if isinstance(written, str) else json.dumps(written)
    (claim.folder / f"verdict.{claim.evidence.token}").write_text(content)
    outcome = claim.launch().outcome()
    assert (outcome.reason, outcome.exit_code) == ("exited", 7)
    if isinstance(written, dict) and len(str(written.get("error"))) > 1000:
        assert outcome.verdict is not None
        assert (len(outcome.verdict["error"]), len(outcome.verdict["classes"])) == (1000, 8)
    else:
        assert outcome.verdict == kept


def test_no_words_make_a_failure_of_a_success_or_speak_for_a_command(home: Home) -> None:
    verdict = json.dumps({"error": "it failed", "classes": []})
    for code, options in ((0, {"verdict": True}), (7, {})):
        claim = home.claim("/bin/sh", "-c", f"exit {code}", **options)
        (claim.folder / f"verdict.{claim.evidence.token}").write_text(verdict)
        outcome = claim.launch().outcome()
        assert (outcome.exit_code, outcome.verdict) == (code, None)
