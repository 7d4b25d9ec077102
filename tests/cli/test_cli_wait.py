"""What `headway jobs wait` and `groups wait` say, on a terminal and without one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine
from screen import Opener

from harness import Site
from headway.base.text import cells
from headway.cli.wait_lines import waiting_lines
from headway.core.model import Job
from headway.core.states import Status
from headway.jobs.views.awaited import AwaitedJob, AwaitedJobs

NOW = 1_000_000_000
SECOND = 1_000_000


def gated(headway: CommandLine, *, code: int) -> tuple[list[str], Path]:
    """A command that ends when a file appears, and the file."""
    gate = headway.folder / "go"
    return ["sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done; exit {code}"], gate


def test_a_terminal_shows_how_far_each_is_and_then_only_what_failed(
    headway: CommandLine, terminal: Opener
) -> None:
    command, gate = gated(headway, code=2)
    headway("config", "set", "scheduler.max_active", "2")
    headway("submit", "--name", "n" * 90, "--", *command)
    headway("submit", "--name", "deploy", "--after", "1", "--", "true")
    headway("submit", "--name", "other", "--", "true")
    waits = terminal("jobs", "wait", "1", "2", "3", columns=60, lines=10)
    screen = waits.shows("[###.......] 1/3  1 succeeded, 1 running, 1 waiting")
    first, second, third = screen.lines[:3]
    assert first.startswith("job-1  nnnnnnnn...  running    ") and first.endswith("s")
    assert second.startswith("job-2  deploy       waiting    ")
    assert second.endswith("s  waiting on job job-1")
    assert third.startswith("job-3  other        succeeded  ")
    gate.touch()
    assert waits.ended() == 2
    assert [line for line in screen.lines if line] == [
        "headway: job-1 failed: exit code 2; headway jobs tail job-1",
        "headway: job-2 blocked_by_dependency: dependency failed for",
        "  job job-1 (failed); headway why job-2",
        "headway: 3 jobs: 1 succeeded, 1 failed, 1 blocked",
    ]
    assert not screen.overflowed
    narrow = terminal("jobs", "wait", "1", columns=46)
    assert narrow.ended() == 2
    assert narrow.screen.lines[:3] == [
        *("headway: job-1 failed: exit code 2;", "  headway jobs tail job-1", "")
    ]


def test_more_jobs_than_lines_are_counted_and_ctrl_c_clears_them(
    headway: CommandLine, terminal: Opener
) -> None:
    jobs = [headway.submit("--delay", "1h", "--", "true") for _ in range(9)]
    waits = terminal("jobs", "wait", *jobs, lines=6)
    screen = waits.shows("0/9  9 waiting")
    assert [line[:6].strip() for line in screen.lines] == [
        *("job-1", "job-2", "job-3", "and 6", "[.....", "")
    ]
    waits.press(b"\x03")
    assert waits.ended() == 130
    assert [line for line in screen.lines if line] == [
        "headway: waits no longer; the jobs go on (9 waiting)"
    ]
    assert not screen.overflowed and waits.restored()


def test_quiet_says_nothing_even_on_a_terminal(headway: CommandLine, terminal: Opener) -> None:
    headway("submit", "--", "sh", "-c", "exit 4")
    headway("submit", "--delay", "1h", "--", "true")
    done = terminal("jobs", "wait", "--quiet", "1")
    assert done.ended() == 4
    assert done.raw == b""
    late = headway("jobs", "wait", "-q", "1", "2", "--timeout", "50ms", code=124)
    assert late.stdout == late.stderr == ""


def test_without_a_terminal_only_the_end_is_said(headway: CommandLine) -> None:
    headway("submit", "--", "true")
    headway("submit", "--", "sh", "-c", "exit 2")
    headway("submit", "--after", "2", "--", "true")
    assert headway("jobs", "wait", "1").stderr == ""
    told = headway("jobs", "wait", "1", "2", "3", "2", code=2)
    assert told.stdout == ""
    assert told.stderr.splitlines() == [
        "headway: job-2 failed: exit code 2; headway jobs tail job-2",
        "headway: job-3 blocked_by_dependency: dependency failed for job job-2 (failed); "
        "headway why job-3",
        "headway: 3 jobs: 1 succeeded, 1 failed, 1 blocked",
    ]
    headway("submit", "--delay", "1h", "--", "true")
    late = headway("jobs", "wait", "1", "4", "--timeout", "50ms", code=124)
    assert late.stderr.startswith(
        "headway: 2 jobs: 1 succeeded, 1 waiting\nheadway: job-4 is still"
    )


def test_waiting_without_a_terminal_loads_nothing_for_one() -> None:
    program = "import sys, headway.cli.jobs.wait; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"rich", "headway.jobs.views.awaited", "headway.jobs.views.queue"} & {*loaded}


# -- lines ----------------------------------------------------------------------------------------


def lines(*jobs: AwaitedJob, columns: int = 80, height: int = 24, **options: Any) -> list[str]:
    counts: dict[Status, int] = {}
    for each in jobs:
        counts[each.job.status] = counts.get(each.job.status, 0) + 1
    size = os.terminal_size((columns, height))
    usual: dict[str, Any] = {"bar": False, "worker": True}
    return waiting_lines(AwaitedJobs(counts, jobs), NOW, size, **{**usual, **options})


def job(job_id: int, **fields: Any) -> Job:
    usual: dict[str, Any] = {
        "type": "command",
        "status": Status.QUEUED,
        "priority": 0,
        "position": job_id,
        "params": {},
        "chain": job_id,
        "created_at": NOW,
    }
    return Job(id=job_id, **{**usual, **fields})


def running(**fields: Any) -> AwaitedJob:
    started = NOW - 90 * SECOND
    return AwaitedJob(job(1, status=Status.RUNNING, name="build", started_at=started), **fields)


def waiting(**fields: Any) -> AwaitedJob:
    made = job(2, status=Status.QUEUED, name="deploy", created_at=NOW - 5 * SECOND)
    return AwaitedJob(made, **fields)


@pytest.mark.parametrize(
    ("awaited", "told"),
    [
        (running(), "job-1  build  running  1m 30s"),
        (running(progress="40% reading"), "job-1  build  running  1m 30s  40% reading"),
        (
            running(progress="40%", ends_at=NOW + 20 * SECOND),
            "job-1  build  running  1m 30s  40%, about 20s left",
        ),
        (running(ends_at=NOW - 20 * SECOND), "job-1  build  running  1m 30s"),
        (
            waiting(wait="the one slot is in use"),
            "job-2  deploy  waiting  5s  the one slot is in use",
        ),
        (
            waiting(wait="the one slot is in use", starts_at=NOW + 61 * SECOND),
            "job-2  deploy  waiting  5s  the one slot is in use, starts in about 1m 1s",
        ),
    ],
)
def test_a_line_tells_state_time_and_what_is_known(awaited: AwaitedJob, told: str) -> None:
    assert lines(awaited) == [told]


def test_a_line_tells_when_nobody_starts_anything() -> None:
    assert "no worker is there" in lines(waiting(), worker=False)[0]
    assert "no worker" not in lines(running(), worker=False)[0]


@pytest.mark.parametrize("columns", [20, 40, 60, 80])
@pytest.mark.parametrize("height", [3, 5, 9, 24])
def test_lines_fit_every_terminal(columns: int, height: int) -> None:
    named = [
        AwaitedJob(job(each, name="漢字 " * 30, created_at=NOW), wait="waiting on \x1b[2J " * 9)
        for each in range(1, 20)
    ]
    shown = lines(*named, columns=columns, height=height, bar=True)
    assert len(shown) < height
    assert all(cells(line) < columns for line in shown)
    assert not any("\x1b" in line for line in shown)
    assert "0/19" in shown[-1]
    if height < 20:
        assert shown[-2].startswith("and ")


# -- groups ---------------------------------------------------------------------------------------


def test_a_group_is_awaited_and_gives_the_first_code(headway: CommandLine) -> None:
    members = [{"id": f"m{code}", "argv": ["sh", "-c", f"exit {code}"]} for code in (0, 3, 1)]
    (headway.folder / "g.json").write_text(json.dumps(members))
    headway("groups", "create", "--name", "nightly", "--graph", "g.json")
    told = headway("groups", "wait", "nightly", code=3)
    assert told.stderr.splitlines() == [
        "headway: job-2 failed: exit code 3; headway jobs tail job-2",
        "headway: job-3 cancelled: predecessor failed; headway why job-3",
        "headway: group-1: 3 jobs: 1 succeeded, 1 failed, 1 cancelled",
    ]
    found = headway.json("groups", "wait", "1", code=3)["group"]
    assert (found["status"], found["done"]) == ("PARTIAL", 3)
    quiet = headway("groups", "wait", "nightly", "--quiet", code=3)
    assert quiet.stdout == quiet.stderr == ""


def test_a_group_on_a_terminal_has_a_bar(headway: CommandLine, terminal: Opener) -> None:
    command, gate = gated(headway, code=0)
    headway("config", "set", "scheduler.max_active", "2")
    headway("groups", "create", "--mode", "parallel")
    headway("submit", "--group", "1", "--name", "slow", "--", *command)
    waits = terminal("groups", "wait", "1")
    waits.shows("slow  running", "[.............] 0/1  1 running")
    headway("submit", "--group", "1", "--last", "--", "true")
    waits.shows("1/2  1 succeeded, 1 running")
    gate.touch()
    assert waits.ended() == 0
    assert [line for line in waits.screen.lines if line] == [
        "headway: group-1: 2 jobs: 2 succeeded"
    ]


def test_waiting_for_a_group_gives_up_and_knows_an_empty_one(site: Site) -> None:
    site.run("groups", "create", "--name", "g")
    empty = site.run("groups", "wait", "g")
    assert "group-1: 0 jobs\n" in empty.stderr and "group-1 is open" in empty.stderr
    site.submit("true", group="g")
    late = site.run("groups", "wait", "g", "--timeout", "50ms", check=False)
    assert late.returncode == 124
    assert "group-1 (g) has not ended: job-1 is still queued: no worker is there" in late.stderr
    quiet = site.run("groups", "wait", "g", "--timeout", "50ms", "-q", check=False)
    assert (quiet.returncode, quiet.stderr) == (124, "")
    assert site.run("groups", "wait", "h", check=False).returncode == 3
