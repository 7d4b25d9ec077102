"""A home that an earlier Headway left in the middle of its work opens and runs on.

`left_by_b7429f4/` has the rows and files of such a home as text, with a placeholder for whatever
names a machine; its `make.py` says how it came about. Nothing of it is lost, nothing runs twice,
and the names of modules in stored command lines still lead to a program.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import apsw
import pytest

import headway
import warm
from harness import Bench
from headway.core.states import TERMINAL

LEFT = Path(__file__).with_name("left_by_b7429f4")
DAY = 86_400_000_000
HOST = "0123456789abcdef"
BASE = "aba8ae40ea5b42d83f65306a5e7de7fc1956a441"
COMMIT = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a"), ("EMAIL", "a@example.org"), ("DATE", "1770000000 +0000"))
}

# What had ended when it was left, and stays as it is.
BEFORE = {
    "ended-ok": "succeeded",
    "ended-retried": "failed",
    "ended-skipped": "skipped",
    "ended-cancelled": "cancelled",
    "ended-patch": "succeeded",
    "ended-call": "succeeded",
    "group-first": "succeeded",
    "group-failed": "failed",
    "group-stopped": "cancelled",
}
# What becomes of the rest as soon as a worker is there: those that did not succeed, and why.
LOST = {
    "left-call": ("failed", "its host died: it was killed together with its supervisor"),
    "left-rebooted": ("failed", "Scheduler crash recovery: host_rebooted"),
    "left-alone": ("failed", "Scheduler crash recovery: outcome_unknown"),
    "waits-lost-job": ("blocked_by_dependency", "dependency failed for job job-14 (failed)"),
}
STILL_WAITING = {"waits-time": "time", "waits-approval": "approval"}
# What is made meanwhile: a retry, and the jobs of three schedules and of an entry with a cron rule.
MADE = ("left-retried 2", "once", "often", "daily", "tidy")
# What writes a line when it runs, beside those that had run before.
LINES = (
    *("left-claimed", "waits-place", "waits-retried-job", "waits-done-job", "waits-lock"),
    *("waits-delay", "waits-artifact", "makes-artifact", "waits-call", "report june"),
    *("group-second", "slung gt-1", "sweep", "review 2", *MADE),
)


class LeftHome:
    """The home in a folder of this test, and what is known of it."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.home = project / ".headway"
        about = json.loads((LEFT / "about.json").read_text())
        self.left_at: int = about["left_at"]
        self.before: str = about["ran"]
        self.ids: dict[str, int] = about["jobs"]
        last = max(self.ids.values())
        self.ids |= {"slung": last + 1, "sweep": last + 2, "review": last + 3}

    def build(self) -> None:
        shutil.copy(LEFT / "chores.py", self.project)
        shutil.copytree(LEFT / "home", self.home)
        self.home.chmod(0o700)
        self._git("init", "-q", "-b", "main")
        self._git("add", "chores.py")
        self._git("commit", "-q", "-m", "first")
        assert self._git("rev-parse", "HEAD") == BASE, "chores.py is part of the fixture"
        worktree = str(self.home / "worktrees" / "job-5")
        self._git("worktree", "add", "-q", "-b", "headway/job-5", worktree, BASE)
        (self.project / "ran").write_text(self.before)
        for name, content in json.loads((LEFT / "files.json").read_text()).items():
            path = self.home / name
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            path.write_text(self._filled(content))
            path.chmod(0o600)
        self._write_host_id()
        connection = apsw.Connection(str(self.home / "headway.db"))
        connection.execute("pragma journal_mode = wal")
        rows = self._moved(self._filled((LEFT / "store.sql").read_text()))
        connection.execute(f"begin; {rows} commit;")
        connection.close()
        (self.home / "headway.db").chmod(0o600)

    def _moved(self, rows: str) -> str:
        """The same, left between one and two days ago: by whole days, for the sake of cron."""
        by = (time.time_ns() // 1000 - DAY - self.left_at) // DAY * DAY

        def moved(found: re.Match[str]) -> str:
            instant = int(found[0])
            return str(instant + by if abs(instant - self.left_at) < 2 * DAY else instant)

        return re.sub(r"\b\d{16}\b", moved, rows)

    def _filled(self, text: str) -> str:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        for placeholder, value in (
            ("@PROJECT@", str(self.project)),
            ("@PYTHON@", sys.executable),
            ("@SOURCE@", str(Path(headway.__file__).parents[1])),
            ("@HOST@", HOST),
            ("@BOOT@", boot),
        ):
            text = text.replace(placeholder, value)
        return text

    def _write_host_id(self) -> None:
        """As the earlier Headway would have written it in this very folder."""
        try:
            machine = Path("/etc/machine-id").read_text().strip()
        except OSError:
            machine = ""
        status = self.home.stat()
        made_for = [machine, status.st_dev, status.st_ino]
        (self.home / "host-id").write_text(json.dumps({"id": HOST, "made_for": made_for}))

    def _git(self, *words: str) -> str:
        environ = {**os.environ, **COMMIT}
        argv = ["git", *words]
        done = subprocess.run(
            argv, cwd=self.project, env=environ, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.strip()

    def headway(self, *words: str) -> str:
        arguments = ("--home", str(self.home), *words)
        done = warm.headway(("-P",), arguments, cwd=self.project, env=os.environ, timeout=60)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def jobs(self) -> dict[int, str]:
        """The status of each job that there is."""
        connection = apsw.Connection(str(self.home / "headway.db"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return dict(connection.execute("select id, status from jobs").fetchall())
        finally:
            connection.close()

    def active(self) -> set[int]:
        return {job for job, status in self.jobs().items() if status not in TERMINAL}

    def ran(self) -> Counter[str]:
        """How often each line was written since it was left."""
        lines = Counter((self.project / "ran").read_text().splitlines())
        lines.subtract(self.before.splitlines())
        return +lines


@pytest.fixture
def left(tmp_path: Path) -> LeftHome:
    made = LeftHome(tmp_path)
    made.build()
    return made


@pytest.fixture
def opened(left: LeftHome, make_bench: Callable[..., Bench]) -> Bench:
    """Today's Headway on it."""
    bench = make_bench(settings={"app.modules": ["chores"]})
    left.headway("trust", "--yes")  # there was no trust yet; its modules are imported
    return bench


@pytest.mark.long
def test_a_home_that_was_left_opens_and_runs_on(left: LeftHome, opened: Bench) -> None:
    jobs = left.jobs()

    # Each is judged by its evidence, and each that may run does, once.
    opened.engine.recover()
    waiting = {left.ids[name] for name in STILL_WAITING}
    opened.until(lambda: left.active() == waiting and left.ran().total() >= len(LINES))
    ends = {name: opened.last(job) for name, job in left.ids.items()}
    assert {name: str(ends[name].status) for name in BEFORE} == BEFORE
    assert {name: (str(ends[name].status), ends[name].reason) for name in LOST} == LOST
    others = left.ids.keys() - {*BEFORE, *LOST, *STILL_WAITING}
    assert {str(ends[name].status) for name in others} == {"succeeded"} and len(others) == 17
    assert left.ran() == Counter(LINES)
    assert len(left.jobs()) == len(jobs) + len(MADE)
    assert (left.project / "head").read_text().strip() == BASE
    for name, kind in STILL_WAITING.items():
        told = json.loads(left.headway("why", f"job-{left.ids[name]}", "--json"))
        assert [each["kind"] for each in told["objections"]] == [kind]

    # New work joins the old.
    for words in (
        ("jobs", "approve", f"job-{left.ids['waits-approval']}"),
        ("submit", "--group", "release", "--last", "--", "sh", "-c", "echo group-third >> ran"),
        ("submit", "--template", "report", "--param", "month=july"),
        ("sling", "gt-1"),
        ("schedules", "trigger", "daily"),
    ):
        left.headway(*words)
    opened.until(lambda: left.active() == {left.ids["waits-time"]})
    later = ("waits-approval", "group-third", "report july", "slung gt-1", "daily")
    assert left.ran() == Counter([*LINES, *later])
    assert "COMPLETED" in left.headway("groups", "show", "release")


def test_each_module_in_a_stored_command_line_is_there() -> None:
    rows = (LEFT / "store.sql").read_text()
    names = {*re.findall(r'"-m","(headway[\w.]*)"', rows)}
    assert names == {"headway.jobsfile.script"}
    assert all(find_spec(name) for name in names)
