"""Makes the pictures of docs/views.md from a real home with real jobs: `python docs/pictures.py`.

Needs the virtual environment of `make test`. What is drawn is what a terminal of 100 columns shows.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from headway.cli.jobs.frame import draw
from headway.cli.jobs.watch import WatchedView
from headway.client import connect

DOCS = Path(__file__).parent
COLUMNS, LINES = 100, 20
HEADWAY = [sys.executable, "-m", "headway"]
COMPILING = """\
i=0; while :; do i=$((i + 1)); echo "[$i/400] compiling src/cart/module_$i.c"; sleep 0.05; done"""
# A picture of ours asks no other site for anything: without the web fonts.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.S)


_SPACED = re.compile(
    r'<text([^>]*) x="([0-9.]+)"([^>]*) textLength="([0-9.]+)"([^>]*)>((?:&#160;)+)'
)
CELL = 12.2  # the width of a character in the picture


def unpadded(match: re.Match[str]) -> str:
    """A text begins where its first letter is: not every viewer draws spaces before it."""
    before, x, middle, length, behind, spaces = match.groups()
    skipped = spaces.count(";") * CELL
    x, length = f"{float(x) + skipped:.1f}", f"{max(0, float(length) - skipped):.1f}"
    return f'<text{before} x="{x}"{middle} textLength="{length}"{behind}>'


def drawn(console: Console, title: str) -> str:
    """What a console recorded, as an SVG."""
    return _SPACED.sub(unpadded, console.export_svg(title=title, code_format=FORMAT))


def headway(*argv: str) -> str:
    done = subprocess.run([*HEADWAY, *argv], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def submit(*argv: str) -> str:
    return headway("submit", *argv)


def fill() -> None:
    """One job for each reason to wait."""
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    headway("config", "set", "worker.idle", "1s")
    headway("config", "set", "scheduler.max_active", "2")
    headway("config", "set", "scheduler.missing_producer", "wait")
    submit(
        "--name",
        "fetch prices",
        "--slug",
        "fetch",
        "--produces",
        "custom:data:prices",
        "--",
        "true",
    )
    headway("jobs", "wait", "1")
    headway("scheduler", "pause")
    submit("--name", "lint", "--slug", "lint", "--", "false")
    submit("--name", "build shop", "--slug", "build", "--lock", "tree", "--shell", COMPILING)
    submit("--name", "publish docs", "--after", "2", "--", "true")
    submit("--name", "unit tests", "--slug", "test", "--after", "3", "--", "true")
    submit(
        "--name",
        "import prices",
        "--needs",
        "custom:data:prices",
        "--needs",
        "custom:data:rates",
        "--",
        "true",
    )
    submit("--name", "nightly report", "--pin-head", "--", "true")
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "two"], check=True)
    submit("--name", "clean the tree", "--lock", "tree", "--", "true")
    submit("--name", "deploy", "--slug", "deploy", "--require-approval", "--", "true")
    submit(
        "--name",
        "announce",
        "--after",
        "5",
        "--after",
        "9",
        "--needs",
        "custom:data:prices",
        "--",
        "true",
    )
    time.sleep(12)  # a probe of the repository counts for some seconds
    headway("scheduler", "resume")


def settled() -> bool:
    states = {
        *("blocked_by_dependency", "running", "waiting_on_approval", "waiting_on_locks"),
    }
    told = headway("jobs", "schedule")
    return all(state in told for state in states) and "pinned head" in told


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ |= {"USER": "ada", "HEADWAY_HOME": f"{folder}/.headway"}
        headway("init")
        try:
            fill()
            give_up_at = time.monotonic() + 60
            while not settled() and time.monotonic() < give_up_at:
                time.sleep(0.1)
            for columns in (80, 160):
                print(watched(columns).export_text())
            picture = drawn(watched(COLUMNS), "headway jobs schedule --watch")
            (DOCS / "watch.svg").write_text(picture)
            (DOCS / "schedule.svg").write_text(headway("jobs", "schedule", "--format", "svg"))
            for form in ("summary", "dag", "mermaid"):
                print(headway("jobs", "schedule", "--format", form))
            print(headway("jobs", "list"))
        finally:
            headway("scheduler", "pause")
            subprocess.run([*HEADWAY, "jobs", "cancel", "job-3"], check=False)


def watched(columns: int) -> Console:
    client = connect()
    view = WatchedView(client, everything=False, focus=None, top=10, interval=0.5)
    view.refresh()
    console = Console(
        record=True,
        width=columns,
        height=LINES,
        file=io.StringIO(),
        force_terminal=True,
        highlight=False,
        markup=False,
        emoji=False,
        color_system="truecolor",
    )
    console.print(draw(view.frame(), console.size))
    client.close()
    return console


if __name__ == "__main__":
    main()
