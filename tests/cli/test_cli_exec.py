"""`headway exec`: the output, the exit code, and Ctrl-C."""

import os
import pty
import signal
import subprocess

import pytest
from commandline import CommandLine, wait_for

from headway.base.worker_lock import WorkerLock


@pytest.mark.req("V76")
@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_exits_with_the_jobs_code(headway: CommandLine, code: int) -> None:
    done = headway("exec", "--", "sh", "-c", f"echo out; echo err >&2; exit {code}", code=code)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert headway.json("jobs", "status", "1")["exit_code"] == code


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--", "sh", "-c", "kill -SEGV $$"], 139, "killed by SIGSEGV"),
        (["--timeout", "200ms", "--", "sleep", "60"], 124, "timed out"),
        (["--skip-exit-code", "7", "--", "sh", "-c", "exit 7"], 0, "skipped: exit code 7"),
    ],
)
def test_ends_that_are_no_exit_code(
    headway: CommandLine, argv: list[str], code: int, said: str
) -> None:
    assert said in headway("exec", *argv, code=code).stderr


@pytest.mark.req("V81")
def test_blocked_is_10_and_has_no_exit_code(headway: CommandLine) -> None:
    headway("exec", "--", "false", code=1)
    done = headway("exec", "--after", "1", "--", "true", code=10)
    assert "dependency failed for job job-1 (failed)" in done.stderr
    assert headway.json("jobs", "status", "2")["exit_code"] is None


@pytest.mark.req("V78")
def test_cancelled_is_143(headway: CommandLine) -> None:
    running = headway.start("exec", "--", "sleep", "60")
    wait_for(lambda: headway("jobs", "status", "1", code=None).stdout == "running\n")
    headway("jobs", "cancel", "1")
    _, err = running.communicate(timeout=60)
    assert running.returncode == 143
    assert b"cancelled by ada" in err
    assert headway.json("jobs", "status", "1")["exit_code"] == 143


def test_follows_the_chain_over_retries(headway: CommandLine) -> None:
    script = 'echo try $HEADWAY_ATTEMPT; test "$HEADWAY_ATTEMPT" = 2'
    done = headway("exec", "--retries", "1", "--retry-base", "50ms", "--", "sh", "-c", script)
    assert done.stdout == "try 1\ntry 2\n"
    assert "job-1 failed: exit code 1; attempt 2 is job-2" in done.stderr


def test_a_retry_that_comes_before_the_first_look_hides_nothing(headway: CommandLine) -> None:
    script = 'echo try $HEADWAY_ATTEMPT; test "$HEADWAY_ATTEMPT" = 2'
    options = ("--key", "once", "--retries", "1", "--retry-base", "50ms")
    headway("submit", *options, "--", "sh", "-c", script)
    headway("jobs", "wait", "job-1")
    done = headway("exec", *options, "--", "sh", "-c", script)
    assert done.stdout == "try 1\ntry 2\n"
    assert "job-1 failed: exit code 1; attempt 2 is job-2" in done.stderr


def test_says_once_why_it_waits(headway: CommandLine) -> None:
    headway("scheduler", "pause", "--reason", "lunch")
    waiting = headway.start("exec", "--", "echo", "go")
    assert waiting.stderr is not None
    assert b"job-1 waits: paused by ada: lunch" in waiting.stderr.readline()
    headway("scheduler", "resume")
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out, err) == (0, b"go\n", b"")


def test_a_worker_that_died_is_replaced(headway: CommandLine) -> None:
    headway("submit", "--", "sleep", "60")
    headway.until_running("1")
    waiting = headway.start("exec", "--", "echo", "go")
    wait_for(lambda: headway("jobs", "status", "2", code=None).returncode == 0)
    pid = WorkerLock(str(headway.home / "run" / "worker.lock")).read_pid()
    assert pid in headway.processes()
    os.kill(pid, signal.SIGKILL)
    assert waiting.stderr is not None
    assert b"job-2 waits" in waiting.stderr.readline()
    headway("jobs", "cancel", "1")
    assert waiting.communicate(timeout=60)[0] == b"go\n"


@pytest.mark.parametrize(("choice", "state"), [("ask", "running"), ("cancel", "cancelled")])
def test_interrupt_without_a_terminal(headway: CommandLine, choice: str, state: str) -> None:
    running = headway.start("exec", "--on-interrupt", choice, "--", "sh", "-c", "echo up; sleep 60")
    assert running.stdout is not None
    assert running.stdout.readline() == b"up\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == (143 if choice == "cancel" else 130)
    assert headway.state("1") == state
    if choice == "ask":
        assert b"headway jobs tail -f job-1" in err


@pytest.mark.parametrize(("answer", "code"), [(b"c\n", 143), (b"\n", 130)])
def test_interrupt_on_a_terminal_asks(headway: CommandLine, answer: bytes, code: int) -> None:
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        headway.argv("exec", "--", "sh", "-c", "echo up; sleep 60"),
        cwd=headway.folder,
        env={**headway.env, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    _read_until(ours, b"up")
    running.send_signal(signal.SIGINT)
    _read_until(ours, b"[d]")
    os.write(ours, answer)
    assert running.wait(60) == code
    os.close(ours)


def _read_until(terminal: int, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        seen += os.read(terminal, 4096)
    return seen


def test_a_job_that_waits_for_another_lends_it_its_slot(headway: CommandLine) -> None:
    inner = " ".join(headway.argv("exec", "--", "echo", "inner"))
    assert headway.out("exec", "--shell", inner) == "inner"


def test_waiting_for_ones_own_lock_is_refused(headway: CommandLine) -> None:
    inner = " ".join(headway.argv("exec", "--lock", "repo", "--", "true"))
    done = headway("exec", "--lock", "repo", "--shell", inner, code=4)
    assert "job-2 needs lock repo, which job-1 holds" in done.stderr


def test_a_reader_that_leaves_is_no_error_worth_a_word(headway: CommandLine) -> None:
    running = headway.start("exec", "--", "seq", "200000")
    assert running.stdout is not None
    running.stdout.close()
    assert running.stderr is not None
    assert running.wait(60) == 141
    assert b"Traceback" not in running.stderr.read()
    running.stderr.close()


def test_output_to_a_pipe_is_byte_for_byte(headway: CommandLine) -> None:
    done = subprocess.run(
        headway.argv("exec", "--", "printf", r"\033]52;c;aGk=\007\200\377\n"),
        cwd=headway.folder,
        env=headway.env,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == b"\x1b]52;c;aGk=\x07\x80\xff\n"


def test_a_failure_that_is_not_among_those_to_retry_says_so(headway: CommandLine) -> None:
    done = headway("exec", "--retries", "3", "--retry-on", "75", "--shell", "exit 3", code=3)
    told = "exit code 3; not retried: it is not among --retry-on 75"
    assert done.stderr == f"headway: job-1 failed: {told}\n"
    assert told in " ".join(headway.out("jobs", "show", "1").split())


def test_a_policy_without_retries_is_told(headway: CommandLine) -> None:
    done = headway("exec", "--retry-base", "1s", "--retry-on", "75", "--", "true")
    words = "nothing is retried without --retries N; this has no effect: --retry-base, --retry-on"
    assert done.stderr == f"headway: {words}\n"
    assert headway("exec", "--retries", "1", "--retry-base", "1s", "--", "true").stderr == ""


def test_a_blocked_job_has_the_next_step(headway: CommandLine) -> None:
    headway("submit", "--", "false")
    done = headway("exec", "--after", "1", "--", "true", code=None)
    assert "job-2: headway jobs retry job-1 runs it again" in " ".join(done.stderr.split())
