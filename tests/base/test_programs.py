"""Programs with a time limit: through when it is over, whatever they and their children do."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import wait_for
from headway.base import programs
from headway.base.programs import ProgramResult, end, ended, run_program

LONG = 600.0  # longer than any test may take
# A child that has left the session, with the input, output and error of the program in its hands.
LEAVE = """
setsid sh -c 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 600' sh "$1" &
until [ -e "$1" ]; do :; done
"""


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """Where a script writes the pid of what it leaves behind."""
    file = tmp_path / "left"
    yield file
    os.kill(int(file.read_text()), signal.SIGKILL)


def script(text: str, *words: object) -> Callable[[int, int, int], "subprocess.Popen[bytes]"]:
    argv = ["sh", "-c", text, "sh", *map(str, words)]

    def start(given: int, out: int, err: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(argv, stdin=given, stdout=out, stderr=err, start_new_session=True)

    return start


def test_a_program_is_asked_and_heard() -> None:
    question = b"x" * 1_000_000 + b"\n"
    heard = run_program(script("cat; echo no >&2; exit 3"), LONG, question=question)
    assert heard == ProgramResult(3, question, b"no\n")
    assert run_program(script("cat"), LONG) == ProgramResult(0, b"", b""), "nothing was asked"


def test_an_answer_is_whole_when_the_program_ends_whoever_left_it(left: Path) -> None:
    assert run_program(script(LEAVE + "echo here", left), LONG) == ProgramResult(0, b"here\n", b"")


@pytest.mark.parametrize("politely", [False, True])
def test_a_child_that_left_does_not_lengthen_the_limit(
    left: Path, politely: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "GRACE_SECONDS", 0.2)
    # Politeness is for nothing here: the program does not hear it.
    start = script("trap '' TERM; " + LEAVE + "while :; do sleep 600; done", left)
    assert run_program(start, 3.0, politely=politely) is None


def test_one_that_is_ended_politely_may_clean_up(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    trap = 'trap "rm $1; exit 0" TERM; touch "$1"; '
    assert run_program(script(trap + "sleep 600 & wait", mark), 3.0, politely=True) is None
    assert not mark.exists()


def test_all_of_its_session_is_ended_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    process = script('sleep 600 & echo $$ $! > "$1.new"; mv "$1.new" "$1"; wait', pids)(0, 1, 2)
    wait_for(pids.exists, what="both run")
    assert not ended(process, 0)
    end(process)
    assert process.returncode == -signal.SIGKILL
    for pid in map(int, pids.read_text().split()):
        wait_for(lambda pid=pid: not _runs(pid), what=f"{pid} is gone")


def test_one_that_has_ended_is_ended_for_good() -> None:
    process = script("exit 4")(0, 1, 2)
    assert ended(process, LONG)
    end(process)
    assert process.returncode == 4 and ended(process, 0)
    end(process)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
