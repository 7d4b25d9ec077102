"""What is piped into `exec` and `submit --stdin -` is what the job reads."""

import os
import pty
import socket
import subprocess
from typing import Any

import pytest
from commandline import CommandLine


def piped(
    headway: CommandLine, given: bytes, *argv: str, code: int = 0
) -> "subprocess.CompletedProcess[bytes]":
    done = subprocess.run(
        headway.argv(*argv),
        cwd=headway.folder,
        env=headway.env,
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def with_stdin(headway: CommandLine, stdin: Any, *argv: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        headway.argv(*argv),
        cwd=headway.folder,
        env=headway.env,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_exec_hands_on_what_is_piped_into_it(headway: CommandLine) -> None:
    done = piped(headway, b"hi\n\xff", "exec", "--", "cat")
    assert (done.stdout, done.stderr) == (b"hi\n\xff", b"")
    assert "4 B, kept with the job" in headway.out("jobs", "show", "1")
    assert headway.json("jobs", "show", "1")["job"]["params"]["input"]["bytes"] == 4


def test_exec_hands_on_a_file(headway: CommandLine) -> None:
    (headway.folder / "text").write_bytes(b"of a file")
    with open(headway.folder / "text", "rb") as file:
        out, _ = with_stdin(headway, file, "exec", "--", "cat").communicate(timeout=60)
    assert out == b"of a file"


def test_submit_reads_only_when_asked(headway: CommandLine) -> None:
    """A loop over lines that submits a job for each keeps its lines."""
    line = " ".join(headway.argv("submit", "--no-check", "--", "true"))
    script = f"while read x; do echo got $x; {line}; done"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=headway.folder,
        env=headway.env,
        input=b"a\nb\n",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == b"got a\njob-1\ngot b\njob-2\n"
    piped(headway, b"asked", "submit", "--stdin", "-", "--", "cat")
    headway("jobs", "wait", "3")
    assert headway("jobs", "tail", "3").stdout == "asked"


def test_exec_with_a_file_of_its_own_leaves_stdin_alone(headway: CommandLine) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"mine")
    running = with_stdin(headway, reading, "exec", "--stdin", "/dev/null", "--", "cat")
    assert running.communicate(timeout=60) == (b"", b"")
    assert os.read(reading, 10) == b"mine"
    os.close(reading)
    os.close(writing)


def test_exec_on_a_terminal_reads_nothing(headway: CommandLine) -> None:
    ours, theirs = pty.openpty()
    running = with_stdin(headway, theirs, "exec", "--", "cat")
    assert running.communicate(timeout=60) == (b"", b"")
    os.close(ours)
    os.close(theirs)


def test_exec_without_stdin_reads_nothing(headway: CommandLine) -> None:
    line = " ".join(headway.argv("exec", "--", "cat"))
    done = subprocess.run(
        ["sh", "-c", f"{line} <&-"],
        cwd=headway.folder,
        env=headway.env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_pipe_that_stays_open_is_explained(headway: CommandLine) -> None:
    reading, writing = os.pipe()
    running = with_stdin(headway, reading, "exec", "--", "cat")
    os.close(reading)
    assert running.stderr is not None
    assert b"`< /dev/null` gives it none" in running.stderr.readline()
    os.write(writing, b"late")
    os.close(writing)
    assert running.communicate(timeout=60)[0] == b"late"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--any-host"], b"stdin is dropped: another host may run the job"),
        (["--runner", "command", "--prompt", "x"], b"stdin is dropped: an agent reads its prompt"),
    ],
)
def test_what_cannot_be_kept_is_said(headway: CommandLine, options: list[str], said: bytes) -> None:
    done = subprocess.run(
        headway.argv("exec", *options, "--", "true"),
        cwd=headway.folder,
        env=headway.env,
        input=b"lost",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert said in done.stderr


def test_a_socket_is_not_waited_for(headway: CommandLine) -> None:
    """Programs that start others often leave one open for as long as they live."""
    ours, theirs = socket.socketpair()
    assert with_stdin(headway, theirs, "exec", "--", "cat").communicate(timeout=60) == (b"", b"")
    ours.send(b"lost")
    running = with_stdin(headway, theirs, "exec", "--", "cat")
    out, err = running.communicate(timeout=60)
    assert (out, b"stdin is dropped: it is a socket" in err) == (b"", True)
    ours.close()
    theirs.close()


def test_more_than_is_kept_is_refused_and_makes_no_home(headway: CommandLine) -> None:
    folder = headway.folder / "fresh"
    folder.mkdir()
    done = subprocess.run(
        ["sh", "-c", f"head -c 67108865 /dev/zero | {' '.join(headway.argv('exec', 'wc'))}"],
        cwd=folder,
        env={**headway.env, "HEADWAY_HOME": str(folder / ".headway")},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5
    assert b"larger than 64 MiB" in done.stderr
    assert os.listdir(folder) == []


def test_a_template_can_read_it_too(headway: CommandLine) -> None:
    headway("templates", "add", "copy", "--", "cat")
    assert piped(headway, b"x", "exec", "--template", "copy").stdout == b"x"


def test_a_wrong_command_is_refused_before_stdin_is_read(headway: CommandLine) -> None:
    reading, writing = os.pipe()
    running = with_stdin(headway, reading, "exec", "--", "no-such-program")
    running.communicate(timeout=60)
    assert running.returncode == 5
    for end in (reading, writing):
        os.close(end)
