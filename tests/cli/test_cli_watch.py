"""`headway jobs schedule --watch` on a real terminal."""

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, wait_for
from screen import Opener, Screen

from harness import Bench, Site
from headway.cli.jobs.last_line import MOST_BYTES, LastLine, last_line
from headway.cli.jobs.watch import WatchedView
from headway.testing.clock import FakeClock

WATCH = ("jobs", "schedule", "--watch", "--interval-ms", "100")
PRINTING = "trap 'exit 0' TERM; echo compiling; echo oops >&2; while :; do sleep 0.05; done"


def rows(screen: Screen) -> list[list[str]]:
    """The cells of the table's rows."""
    found = [line for line in screen.lines if re.match(r"\s*\d+ ", line)]
    return [re.split(r"\s{2,}", line.strip()) for line in found]


@pytest.mark.req("V91")
@pytest.mark.parametrize("columns", [80, 160])
def test_a_frame_has_header_counts_table_and_pane(
    headway: CommandLine, terminal: Opener, columns: int
) -> None:
    headway("submit", "--name", "build", "--slug", "b1", "--shell", PRINTING)
    headway("submit", "--name", "漢字 🚀 ❤️ wide", "--after", "1", "--", "true")
    headway("submit", "--name", "n" * 200, "--slug", "s" * 60, "--lock", "x", "--", "true")
    headway.until_running("1")
    wait_for(lambda: headway.state("2") == "waiting_on_deps")
    watch = terminal(*WATCH, columns=columns)
    screen = watch.shows("[std", "job-3", "terminal 0")
    watch.next_frame()
    assert re.match(
        r"Schedule  \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  every 100ms +q leaves$", screen.lines[0]
    )
    counts = " ".join(screen.lines[1].split())
    assert counts == "queued 1 waiting 1 running 1 blocked 0 terminal 0"
    assert screen.lines[3].split() == ["#", "Slug", "Name", "Status", "Wait", "Job"]
    table = rows(screen)
    assert [row[-1] for row in table] == ["job-1", "job-2", "job-3"]
    assert table[0] == ["1", "b1", "build", "running", "-", "job-1"]
    assert table[1][3:5] == ["waiting_on_deps", "waiting on job job-1"]
    first = next(at for at, line in enumerate(screen.lines) if line.startswith("1 "))
    starts = {screen.column_of(first + at, f"job-{at + 1}") for at in range(3)}
    assert starts == {columns - len("job-1")}, "wide characters keep the table aligned"
    pane = next(line for line in screen.lines if "─ job-1" in line)
    assert "build  for " in pane
    assert any(re.match(r"│ \[std(out|err)\] (compiling|oops) ", line) for line in screen.lines)
    assert not screen.overflowed and screen.alternate and screen.cursor_hidden
    watch.press(b"q")
    assert watch.ended() == 0
    assert watch.restored()


@pytest.mark.req("V91")
def test_what_changes_is_seen_and_nothing_else_is_left(
    headway: CommandLine, terminal: Opener
) -> None:
    watch = terminal(*WATCH)
    watch.shows("Outcome: No scheduled jobs", "nothing is running")
    headway("submit", "--name", "first", "--shell", PRINTING)
    watch.shows("first", "running 1", "[std")
    headway("submit", "--name", "second", "--after", "1", "--", "true")
    watch.shows("second", "waiting 1", "waiting on job job-1")
    headway("jobs", "cancel", "1")
    screen = watch.shows("running 0", "blocked 1", "terminal 1", "blocked_by_dependency")
    watch.until(lambda screen: "nothing is running" in screen.text)
    assert [row[-1] for row in rows(screen)] == ["job-1", "job-2"]
    assert watch.raw.count(b"\x1b[2J") == 0, "a screen that is cleared flickers"
    watch.press(b"xyz")  # other keys do nothing
    watch.next_frame()
    watch.press(b"Q")
    assert watch.ended() == 0


def test_a_job_that_failed_is_named_below_the_pane(headway: CommandLine, terminal: Opener) -> None:
    watch = terminal(*WATCH)
    watch.shows("No scheduled jobs")
    assert "failed:" not in watch.screen.text
    headway("exec", "--name", "build", "--", "sh", "-c", "exit 2", code=2)
    headway("exec", "--name", "deploy", "--after", "1", "--", "true", code=10)
    line = "failed: job-1 build (exit 2), job-2 deploy (blocked by job-1)"
    screen = watch.shows("blocked 1", line)
    assert screen.lines.index(line) > next(
        at for at, line in enumerate(screen.lines) if "nothing is running" in line
    )
    headway("exec", "--name", "n" * 200, "--", "false", code=1)
    watch.shows("failed: job-3 nnn", "terminal 2")
    watch.next_frame()
    assert not screen.overflowed
    watch.press(b"q")
    assert watch.ended() == 0


def test_failures_of_a_watch_are_of_its_job_and_of_the_last_minutes(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    bench.client.pause("look")
    one, other = bench.submit("true"), bench.submit("true")
    bench.client.cancel([one, other])
    options: dict[str, Any] = {"everything": False, "top": 10, "interval": 1.0}
    whole = WatchedView(bench.client, focus=None, **options)
    whole.refresh()
    assert {job.id for job in whole.frame().failures} == {one, other}
    focused = WatchedView(bench.client, focus=one, **options)
    focused.refresh()
    assert [job.id for job in focused.frame().failures] == [one]
    clock.advance(9 * 60)
    assert whole.frame().failures
    clock.advance(2 * 60)
    assert not whole.frame().failures, "also if nothing has changed since"


@pytest.mark.req("V91")
def test_ctrl_c_leaves_with_130_and_the_terminal_as_it_was(
    headway: CommandLine, terminal: Opener
) -> None:
    watch = terminal(*WATCH)
    watch.shows("No scheduled jobs")
    watch.press(b"\x03")
    assert watch.ended() == 130
    assert watch.restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(terminal: Opener, number: signal.Signals) -> None:
    watch = terminal(*WATCH)
    watch.shows("No scheduled jobs")
    watch.process.send_signal(number)
    assert watch.ended() == 128 + number
    assert watch.restored()


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(terminal: Opener) -> None:
    watch = terminal(*WATCH)
    watch.shows("No scheduled jobs")
    watch.process.send_signal(signal.SIGTSTP)
    watch.until(lambda screen: not screen.alternate)
    stat = Path(f"/proc/{watch.process.pid}/stat")
    watch.until(lambda _: stat.read_text().rpartition(")")[2].split()[0] == "T")
    watch.until(lambda _: watch.restored())  # what it wrote before it stopped may be unread
    watch.process.send_signal(signal.SIGCONT)
    watch.until(lambda screen: screen.alternate)
    watch.next_frame()
    watch.press(b"q")
    assert watch.ended() == 0
    assert watch.restored()


def test_another_size_of_the_terminal_is_drawn_at_once(terminal: Opener) -> None:
    watch = terminal(*WATCH[:-1], "600000")
    watch.shows("No scheduled jobs", "q leaves")
    watch.resize(columns=120, lines=30)
    screen = watch.shows("No scheduled jobs", "q leaves")
    assert screen.lines[0].endswith("q leaves") and len(screen.lines[0]) == 120
    watch.press(b"q")
    assert watch.ended() == 0


@pytest.mark.req("V93")
def test_the_pane_shows_the_chosen_job_or_the_first_visible_that_runs(
    headway: CommandLine, terminal: Opener
) -> None:
    headway("config", "set", "scheduler.max_active", "3")
    for name in ("one", "two", "three"):
        headway("submit", "--name", name, "--shell", f"echo I am {name}; {PRINTING[22:]}")
    for job in ("1", "2", "3"):
        headway.until_running(job)
    watch = terminal(*WATCH, "--top", "2")
    screen = watch.shows("─ job-1", "not shown")
    watch.next_frame()
    assert [row[-1] for row in rows(screen)] == ["job-1", "job-2"]
    headway("jobs", "cancel", "1")
    watch.shows("─ job-2")
    watch.press(b"q")
    assert watch.ended() == 0
    chosen = terminal(*WATCH, "--job", "3")
    screen = chosen.shows("─ job-3", "running 1   ")
    assert [row[-1] for row in rows(screen)] == ["job-3"]
    headway("jobs", "cancel", "3")
    chosen.shows("nothing is running", "terminal 1")
    chosen.press(b"q")
    assert chosen.ended() == 0


def test_rows_give_way_to_the_pane_on_a_low_terminal(
    headway: CommandLine, terminal: Opener
) -> None:
    headway("submit", "--shell", PRINTING)
    headway.until_running("1")
    for _ in range(6):
        headway("submit", "--after", "1", "--", "true")
    watch = terminal(*WATCH, lines=13)
    screen = watch.shows("─ job-1", "[std", "not shown")
    watch.next_frame()
    assert len(rows(screen)) == 3 and not screen.overflowed
    watch.press(b"q")
    assert watch.ended() == 0


@pytest.mark.req("V92", "V95")
def test_unless_told_otherwise_ten_jobs_are_shown_twice_a_second(
    headway: CommandLine, terminal: Opener
) -> None:
    headway("scheduler", "pause")
    lines = (json.dumps({"id": f"n{each}", "argv": ["true"]}) for each in range(12))
    (headway.folder / "graph").write_text("\n".join(lines))
    headway("submit", "--graph", "graph")
    watch = terminal("jobs", "schedule", "--watch", lines=30)
    screen = watch.shows("queued 12", "not shown")
    assert "  every 500ms " in screen.lines[0]
    assert [row[-1] for row in rows(screen)] == [f"job-{number}" for number in range(1, 11)]
    watch.press(b"q")
    assert watch.ended() == 0


@pytest.mark.req("V92", "V95")
def test_the_least_that_may_be_asked_for_is_taken(headway: CommandLine, terminal: Opener) -> None:
    headway("scheduler", "pause")
    for _ in range(2):
        headway("submit", "--", "true")
    watch = terminal("jobs", "schedule", "--watch", "--top", "1", "--interval-ms", "100")
    screen = watch.shows("queued 2", "not shown", "every 100ms")
    assert [row[-1] for row in rows(screen)] == ["job-1"]
    watch.press(b"q")
    assert watch.ended() == 0
    assert "job-2" not in headway.out("jobs", "schedule", "--top", "1")


@pytest.mark.req("V95")
@pytest.mark.parametrize("away", ["stdout", "stderr"])
def test_both_streams_must_be_a_terminal(terminal: Opener, away: str) -> None:
    watch = terminal(*WATCH, away=away)
    assert watch.ended() == 5
    told = b"--watch needs stdout and stderr on a terminal" in watch.raw
    assert told is (away == "stdout") and not watch.screen.alternate


@pytest.mark.req("V95")
@pytest.mark.parametrize("words", [("--format", "dag"), ("--format", "json"), ("--json",)])
def test_on_a_terminal_too_only_the_summary_can_be_watched(
    terminal: Opener, words: tuple[str, ...]
) -> None:
    watch = terminal(*WATCH, *words)
    assert watch.ended() == 5
    assert b"--watch shows the summary; leave --format" in watch.raw


@pytest.mark.req("V95")
@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_move_its_cursor_is_refused(terminal: Opener, term: str) -> None:
    watch = terminal(*WATCH, TERM=term)
    assert watch.ended() == 5
    assert b"--watch needs a terminal that can move its cursor" in watch.raw


def test_an_unknown_job_is_said_before_the_screen_is_taken(terminal: Opener) -> None:
    watch = terminal(*WATCH, "--job", "999")
    assert watch.ended() == 3
    assert b"there is no job-999" in watch.raw and b"\x1b[?1049h" not in watch.raw


def test_no_colour_is_used_where_none_is_wanted(headway: CommandLine, terminal: Opener) -> None:
    headway("submit", "--shell", PRINTING)
    headway.until_running("1")
    watch = terminal(*WATCH, NO_COLOR="1")
    watch.shows("[std")
    watch.press(b"q")
    assert watch.ended() == 0
    assert not re.search(rb"\x1b\[[0-9;]*(3[0-7]|38)[;m]", watch.raw)


def test_the_store_is_read_only_when_something_changed(site: Site) -> None:
    look = WatchedView(site.client, everything=False, focus=None, top=10, interval=0.1)
    assert look.refresh()
    assert not look.refresh()
    assert look.frame().schedule.rows == ()
    site.run("submit", "--", "true")
    wait_for(look.refresh)
    assert [row.id for row in look.frame().schedule.rows] == [1]
    assert not look.refresh()


# -- the last line of output ----------------------------------------------------------------------


def write(folder: Path, name: str, data: bytes, at: int) -> None:
    (folder / name).write_bytes(data)
    os.utime(folder / name, (at, at))


@pytest.mark.req("V94")
def test_the_stream_that_was_written_to_last_wins(tmp_path: Path) -> None:
    write(tmp_path, "stdout.log", b"one\ntwo\n", 10)
    write(tmp_path, "stderr.log", b"three", 9)
    assert last_line(str(tmp_path)) == LastLine("stdout", "two")
    write(tmp_path, "stderr.log", b"three", 11)
    assert last_line(str(tmp_path)) == LastLine("stderr", "three")
    write(tmp_path, "stderr.log", b"", 12)
    assert last_line(str(tmp_path)) == LastLine("stdout", "two")
    write(tmp_path, "stderr.log", b"\n \n", 13)
    assert last_line(str(tmp_path)) == LastLine("stdout", "two")


@pytest.mark.req("V94")
def test_only_the_end_of_the_newest_file_is_read(tmp_path: Path) -> None:
    write(tmp_path, "stdout.log", b"old\n", 10)
    write(tmp_path, "stdout.log.100000", b"x" * 100_000 + b"\nnew\n", 11)
    assert last_line(str(tmp_path)) == LastLine("stdout", "new")
    write(tmp_path, "stdout.log.100000", b"y" * 100_000, 11)
    assert last_line(str(tmp_path)) == LastLine("stdout", "y" * MOST_BYTES)


@pytest.mark.req("V94")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b]0;title\x07\x1b[31mred\x1b[0m\x1b[2J\n", "red"),
        (b"10%\r50%\r90%", "90%"),
        (b"a\tb\x00c\x9b2J\n", "a bc\ufffd2J"),
        ("grün 漢字\n".encode(), "grün 漢字"),
        (b"\xff\xfe\n", "\ufffd\ufffd"),
        ("\u202eevil\n".encode(), "\\u202eevil"),
    ],
)
def test_the_line_is_harmless_text(tmp_path: Path, data: bytes, text: str) -> None:  # fault H9
    write(tmp_path, "stdout.log", data, 10)
    assert last_line(str(tmp_path)) == LastLine("stdout", text)


@pytest.mark.req("V94")
def test_without_output_there_is_no_line(tmp_path: Path) -> None:
    assert last_line(str(tmp_path)) is None
    assert last_line(str(tmp_path / "missing")) is None
    (tmp_path / "stdout.log.tmp").write_bytes(b"x\n")
    assert last_line(str(tmp_path)) is None
    (tmp_path / "stdout.log").symlink_to("/etc/passwd")
    assert last_line(str(tmp_path)) is None
