"""Draws docs/night.svg, the picture of the README, from real output: `python docs/night.py`.

A night in a few seconds: `agent` and the other programs are scripts that only take their time, but
Headway, its worker, the kill of that worker and all that is shown are real. Needs the virtual
environment of `make test`. What it printed is also printed here.
"""

import io
import os
import pty
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pictures import drawn
from rich.console import Console
from rich.text import Text

from headway.base.worker_lock import WorkerLock, worker_is_there

DOCS = Path(__file__).parent
COLUMNS = 92
PROGRAMS = {
    "agent": '[ "$1$HEADWAY_ATTEMPT" != cart.md1 ] || { sleep 3; exit 1; }; sleep 9',
    "build": "sleep 1",
    "ask": "sleep 1",
    "ship": "true",
}
EVENING = (
    "headway submit --name login --worktree -- agent login.md",
    "headway submit --name cart --retries 2 --worktree -- agent cart.md",
    "headway submit --name build --after job-1 --after job-2 -- build",
    "headway submit --name notes --after job-3 --rate claude -- ask notes.md",
    "headway submit --name ship --after job-3 --require-approval -- ship",
)
NIGHT = "kill -9 of the worker: its jobs run on, and the next worker takes them up"
MORNING = ("headway jobs list", "headway why job-5", "headway jobs approve job-5")


def shown(command: str) -> Text:
    """What a command prints on a terminal, with its colours."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        shlex.split(command), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    printed = b""
    try:
        while piece := os.read(ours, 65536):
            printed += piece
    except OSError:  # a terminal without a writer ends so
        pass
    os.close(ours)
    if running.wait() != 0:
        sys.exit(f"{command}: {printed.decode()}")
    return Text.from_ansi(printed.decode().replace("\r\n", "\n").rstrip("\n"))


def quietly(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


def prepare(folder: Path) -> None:
    """A repository with a home, and the programs on the PATH."""
    programs = folder / "bin"
    programs.mkdir()
    for name, script in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    project = folder / "shop"
    project.mkdir()
    os.chdir(project)
    os.environ |= {
        "COLUMNS": str(COLUMNS),
        "HEADWAY_ACTOR": "ada",
        "HEADWAY_HOME": str(project / ".headway"),
        "PATH": os.pathsep.join(
            [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "TERM": "xterm-256color",
    }
    git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    quietly("git", "init", "-q", "-b", "main")
    quietly(*git, "commit", "-q", "--allow-empty", "-m", "one")
    quietly("headway", "init")
    quietly("headway", "config", "set", "worker.idle", "1s")
    quietly("headway", "config", "set", "scheduler.limits.rate.claude", "10/min")
    quietly("headway", "config", "set", "scheduler.max_active", "2")


def kill_the_worker(home: Path) -> None:
    lock = WorkerLock(str(home / "run" / "worker.lock"))
    pid = lock.read_pid()
    if pid is None or not worker_is_there(str(home / "run" / "worker.lock")):
        sys.exit("there is no worker that could be killed")
    os.kill(pid, signal.SIGKILL)
    lock.close()


def draw(console: Console, folder: Path) -> None:
    def enter(command: str) -> None:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(shown(command))

    for command in EVENING:
        enter(command)
    time.sleep(4)  # one agent is at work, and the first try of the other has failed
    kill_the_worker(folder / "shop" / ".headway")
    console.print(Text(f"# {NIGHT}", "bold red"))
    quietly("headway", "jobs", "wait", "job-4")
    for command in MORNING:
        enter(command)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        console = Console(
            record=True,
            width=COLUMNS,
            file=io.StringIO(),
            force_terminal=True,
            highlight=False,
            markup=False,
            emoji=False,
            color_system="truecolor",
        )
        draw(console, Path(name))
        quietly("headway", "jobs", "wait", "job-5")
        print(console.export_text(clear=False))
        (DOCS / "night.svg").write_text(drawn(console, "a night with Headway"))


if __name__ == "__main__":
    main()
