"""Programs that end with the process that asked for them."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.base import tether
from headway.base.programs import end, ended

DEADLINE = 20.0
LIVES_ON = "sleep 600 & echo $$ $! > told; wait"  # with a child of its own
ASKS = {
    "a condition": """
import sys
from headway.integrations.probes.conditions import ask
ask("c", sys.argv[1], {"c": ["sh", "-c", sys.argv[2]]})
""",
    "a command of a jobs file": """
import shlex, sys
from headway.jobs.settings import Config
from headway.base.home import Home
from headway.schedules.jobsfile.questions import Asking, EntryQuestions
condition = "command:" + shlex.join(["sh", "-c", sys.argv[2]])
asking = Asking(Home(sys.argv[1] + "/.headway"), Config())
asking.ask([EntryQuestions("a", "local", None, (condition,))])
""",
    "a function": """
import sys
from headway.jobs.settings import Config
from headway.base.home import Home
from headway.schedules.jobsfile.questions import Asking, EntryQuestions
open(sys.argv[1] + "/shop.py", "w").write(
    "import headway, subprocess\\n"
    "@headway.condition('hangs')\\n"
    f"def hangs(): subprocess.run(['sh', '-c', {sys.argv[2]!r}])\\n"
)
asking = Asking(Home(sys.argv[1] + "/.headway"), Config({"app.modules": ("shop",)}))
asking.ask([EntryQuestions("a", "local", None, ("hangs",))])
""",
}


def run(argv: list[str], given: int | None = None, seconds: float | None = None) -> tuple[int, str]:
    quiet = subprocess.DEVNULL
    process = tether.start(argv, given=given, seconds=seconds, stdout=quiet, stderr=quiet)
    try:
        assert ended(process, DEADLINE)
        return process.wait(), tether.why_not_started(process) or ""
    finally:
        end(process)


@pytest.mark.parametrize(
    ("argv", "code", "trouble"),
    [
        (["true"], 0, ""),
        (["sh", "-c", "exit 127"], 127, ""),
        (["sh", "-c", "kill -TERM $$"], -signal.SIGTERM, ""),
        (["sh", "-c", "kill -KILL $$"], -signal.SIGKILL, ""),
        (["sh", "-c", "test -z \"$(cat)\""], 0, ""),
        (["no-such-program"], 127, "No such file or directory"),
        (["/etc/passwd"], 127, "Permission denied"),
    ],
)  # fmt: skip
def test_it_ends_as_the_program_does(argv: list[str], code: int, trouble: str) -> None:
    assert run(argv) == (code, trouble)


def test_what_it_is_given_is_its_standard_input(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("hello\n")
    with open(tmp_path / "words") as file:
        assert run(["grep", "-q", "hello"], given=file.fileno()) == (0, "")


def test_it_ends_when_its_time_is_up() -> None:
    assert run(["sleep", "600"], seconds=0.1) == (-signal.SIGKILL, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("asks", ASKS)
def test_nothing_outlives_who_asked(tmp_path: Path, asks: str, number: int) -> None:
    (tmp_path / ".headway").mkdir()
    os.mkfifo(tmp_path / "told")
    argv = [sys.executable, "-c", ASKS[asks], str(tmp_path), LIVES_ON]
    with subprocess.Popen(argv) as asking:
        try:
            started = [int(word) for word in (tmp_path / "told").read_text().split()]
            watched = [os.pidfd_open(pid) for pid in started]
        finally:
            asking.send_signal(number)
    assert asking.returncode == -number and len(started) == 2
    for fd in watched:
        assert select.select([fd], [], [], DEADLINE)[0], "it lives on"
        os.close(fd)
