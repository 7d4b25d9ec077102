"""`headway top` on a real terminal, and without one."""

import json
import signal
import sys
from pathlib import Path

import pytest
from commandline import CommandLine, Run, wait_for
from screen import Opener, Screen, Terminal

from harness import Site
from headway.cli.panes.actions import do
from headway.cli.panes.documents import PanesReader, lines_of
from headway.cli.panes.model import (
    Approve,
    CancelNow,
    PreviewOfRetry,
    Reject,
    RetryNow,
    SendAgain,
    SetPaused,
    ViewState,
)
from headway.cli.scope import Scope

TOP = ("top", "--interval", "250ms")
WAITING = "trap 'exit 0' TERM; echo compiling; while :; do sleep 0.05; done"


def shows_question(screen: Screen, title: str) -> bool:
    return screen.lines[0] == title and screen.lines[-1] == "y yes  n no"


def leave(top: Terminal) -> None:
    top.press(b"q")
    assert top.ended() == 0
    assert top.restored()


def test_a_job_is_approved_by_keys_after_its_whole_command_was_shown(
    headway: CommandLine, terminal: Opener
) -> None:
    command = "\n".join(["set -e", *(f"true step {n}" for n in range(30)), "echo done"])
    headway("submit", "--name", "deploy", "--require-approval", "--shell", command)
    top = terminal(*TOP)
    top.shows("NEEDS YOU  1", "approve?", "job-1", "deploy", "a approve")
    top.press(b"a")
    screen = top.shows("approve job-1?", "true step 5", "more below")
    assert "y yes" not in screen.text
    top.press(b"y")
    top.shows("look at all of it first")
    assert headway.state("1") == "waiting_on_approval"
    top.press(b"\x1b[F")
    top.until(
        lambda screen: shows_question(screen, "approve job-1?") and "echo done" in screen.text
    )
    top.press(b"y")
    top.shows("approved job-1 as", "1 succeeded")
    assert headway.state("1") == "succeeded"
    leave(top)


def test_what_was_edited_since_it_was_asked_is_not_approved(
    headway: CommandLine, terminal: Opener
) -> None:
    headway("submit", "--name", "deploy", "--require-approval", "--", "echo", "one")
    wait_for(lambda: headway.state("1") == "waiting_on_approval")
    top = terminal(*TOP)
    top.shows("approve?")
    top.press(b"a")
    top.until(lambda screen: shows_question(screen, "approve job-1?"))
    headway("jobs", "edit", "1", "--name", "another")
    top.press(b"y")
    top.shows("refused: job-1 has changed since you looked at it")
    assert headway.state("1") == "waiting_on_approval"
    leave(top)


def test_a_failure_stays_until_it_is_retried_by_keys(
    headway: CommandLine, terminal: Opener
) -> None:
    headway("exec", "--name", "build", "--", "sh", "-c", "echo no space; exit 2", code=2)
    headway("exec", "--name", "deploy", "--after", "1", "--", "true", code=10)
    top = terminal(*TOP)
    top.shows("NEEDS YOU  2", "exit code 2", "blocked by job-1")
    top.press(b"\r")
    top.shows("no space", "[stdout]", "exit code 2", "esc back")
    top.press(b"\x1b")
    top.shows("NEEDS YOU")
    top.press(b"r")
    top.until(
        lambda screen: shows_question(screen, "retry job-1?") and "job-1, job-2" in screen.text
    )
    top.press(b"n")
    top.shows("nothing was changed")
    assert headway.count() == 2
    top.press(b"r")
    top.until(lambda screen: shows_question(screen, "retry job-1?"))
    top.press(b"y")
    top.shows("queued again: job-3, job-4")
    top.until(lambda screen: failures(screen) == ["job-3", "job-4"])
    leave(top)


def failures(screen: Screen) -> list[str]:
    """The jobs of the first pane."""
    pane = screen.text.partition("NEEDS YOU  2\n")[2].partition("\nRUNNING  ")[0]
    return [line.split()[0] for line in pane.splitlines()]


def test_what_runs_is_cancelled_by_keys_and_its_log_followed(
    headway: CommandLine, terminal: Opener
) -> None:
    noisy = f"printf 'bad \\033[2J\\033]0;x\\007 line\\n'; {WAITING}"
    headway("submit", "--name", "loop", "--shell", noisy)
    headway.until_running("1")
    top = terminal(*TOP, columns=60, lines=15)
    top.shows("RUNNING  1", "job-1", "compiling")
    top.press(b"f")
    top.shows("[stdout]", "bad  line", "compiling", "esc back")
    top.press(b"c")
    top.until(lambda screen: shows_question(screen, "cancel job-1?") and "printf" in screen.text)
    top.press(b"y")
    top.shows("job-1 is told to end")
    wait_for(lambda: headway.state("1") == "cancelled")
    assert b"\x1b[2J" not in top.raw and b"\x1b]" not in top.raw
    leave(top)


def test_pause_and_resume_by_the_same_key(headway: CommandLine, terminal: Opener) -> None:
    headway("scheduler", "pause", "--reason", "backup")
    headway("submit", "--name", "later", "--", "true")
    top = terminal(*TOP)
    top.shows("PAUSED by ada", "backup", "p resume", "later")
    top.press(b"p")
    top.shows("resumed", "1 succeeded")
    top.press(b"p")
    top.shows("paused by ada; what runs goes on", "PAUSED by ada")
    assert headway.json("scheduler", "status")["paused"] is True
    leave(top)


def test_another_size_is_drawn_at_once_and_small_ones_too(
    headway: CommandLine, terminal: Opener
) -> None:
    headway("submit", "--name", "漢字 🚀 ❤️ wide", "--slug", "w", "--require-approval", "--", "true")
    headway("submit", "--name", "n" * 200, "--after", "1", "--", "true")
    top = terminal("top", "--interval", "10m")
    top.shows("approve?", "q quit")
    for columns, lines in ((120, 40), (60, 15), (40, 10), (30, 5), (80, 24)):
        top.resize(columns=columns, lines=lines)
        enough = columns >= 40
        screen = top.shows("q quit" if enough else "40 columns and 10 lines are")
        top.until(lambda screen: screen.frames > 0)
        assert not screen.overflowed
        assert not enough or screen.lines[-1].endswith("q quit")
    leave(top)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(terminal: Opener, number: signal.Signals) -> None:
    top = terminal(*TOP)
    top.shows("q quit")
    top.process.send_signal(number)
    assert top.ended() == 128 + number
    assert top.restored()


def test_ctrl_c_gives_the_terminal_back(terminal: Opener) -> None:
    top = terminal(*TOP)
    top.shows("q quit")
    top.press(b"\x03")
    assert top.ended() == 130
    assert top.restored()


def test_an_error_gives_the_terminal_back(headway: CommandLine, terminal: Opener) -> None:
    headway.make_store()
    top = terminal(*TOP)
    top.shows("nothing to do", "q quit")
    (headway.home / "headway.db").rename(headway.home / "kept.db")
    assert top.ended() == 6
    assert top.restored() and b"was deleted or replaced" in top.raw
    (headway.home / "kept.db").rename(headway.home / "headway.db")


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(terminal: Opener) -> None:
    top = terminal(*TOP)
    top.shows("q quit")
    top.process.send_signal(signal.SIGTSTP)
    top.until(lambda screen: not screen.alternate)
    stat = Path(f"/proc/{top.process.pid}/stat")
    top.until(lambda _: stat.read_text().rpartition(")")[2].split()[0] == "T")
    top.until(lambda _: top.restored())
    top.process.send_signal(signal.SIGCONT)
    top.until(lambda screen: screen.alternate)
    top.shows("q quit")
    leave(top)


def test_where_no_store_is_yet_the_first_job_is_seen(
    headway: CommandLine, terminal: Opener
) -> None:
    top = terminal(*TOP)
    top.shows("no worker", "nothing to do")
    headway("submit", "--name", "first", "--", "true")
    top.shows("first", "1 succeeded")
    leave(top)


def test_without_a_home_it_says_so_before_the_screen_is_taken(bare: CommandLine) -> None:
    assert "there is no .headway/" in bare("top", code=3).stderr


# -- without a terminal ----------------------------------------------------------------------------


def test_without_a_terminal_one_frame_is_printed(said: Run, file_site: Site) -> None:
    file_site.run("submit", "--name", "n" * 200, "--require-approval", "--", "make")
    done = said("top")
    assert done.code == 0 and done.err == "" and "\x1b" not in done.out
    lines = done.out.splitlines()
    assert lines[0].startswith("headway ") and "no worker" in lines[0]
    assert lines[2] == "no worker is there, so nothing starts: headway work"
    assert all(len(line) <= 80 for line in lines) and "QUEUE  1" in lines
    assert said("top", "--once").out == done.out


def test_a_terminal_that_cannot_be_drawn_on_gets_text_too(terminal: Opener) -> None:
    for more, env in (((), {"TERM": "dumb"}), (("--once",), {})):
        top = terminal("top", *more, **env)
        assert top.ended() == 0
        assert b"QUEUE  nothing" in top.raw and b"\x1b[?1049h" not in top.raw


def test_the_document_has_all_that_is_shown(said: Run, file_site: Site) -> None:
    file_site.run("submit", "--name", "deploy", "--require-approval", "--", "make")
    file_site.run("submit", "--name", "build", "--", "make")
    document = json.loads(said("top", "--json").out)
    assert document["version"] == 1
    top = document["top"]
    assert set(top) == {
        *("at", "home", "store", "worker", "scheduler", "states", "last_day"),
        *("ended_per_minute", "needs_you", "running", "workflow_runs", "queue", "ended"),
    }
    assert [each["id"] for each in top["queue"]] == ["job-1", "job-2"]
    assert set(top["needs_you"]) == {"approvals", "failed", "webhooks"}
    assert top["needs_you"]["approvals"][0]["revision"]
    assert top["worker"] is False and top["states"] == {"queued": 2}


def test_too_short_an_interval_is_refused(said: Run) -> None:
    done = said("top", "--interval", "100ms")
    assert (done.code, done.out) == (5, "") and "the least is 250ms" in done.err


# -- reading ---------------------------------------------------------------------------------------


def test_the_store_is_read_only_when_something_changed(site: Site) -> None:
    counted = []
    reader = PanesReader(lambda: site.client)
    reader.refresh(ViewState())
    first = reader.document["scheduler"]
    for _ in range(20):
        counted.append(reader.refresh(ViewState()))
    assert reader.document["scheduler"] is first, "read once"
    site.run("submit", "--", "true")
    wait_for(lambda: reader.refresh(ViewState()) and reader.document["queue"])
    assert reader.document["scheduler"] is not first


def test_a_filter_looks_beyond_the_rows_of_the_screen(site: Site) -> None:
    from headway.jobs.request import Request

    site.client.submit_many([Request(argv=("true",), name=f"n{number}") for number in range(130)])
    reader = PanesReader(lambda: site.client)
    reader.refresh(ViewState())
    assert len(reader.document["queue"]) == 100 and reader.document["totals"]["QUEUE"] == 130
    reader.refresh(ViewState(filter="n129"))
    assert len(reader.document["queue"]) == 130
    reader.refresh(ViewState())
    assert len(reader.document["queue"]) == 100


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("10%\r50%\r90%\n", ["90%"]),
        ("dos\r\nline", ["dos", "line"]),
        ("\x1b[31mred\x1b[0m\ta", ["red a"]),
        ("", []),
    ],
)
def test_lines_of_a_log_are_as_a_terminal_would_leave_them(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


# -- acting ----------------------------------------------------------------------------------------


@pytest.fixture
def scope(file_site: Site, monkeypatch: pytest.MonkeyPatch) -> Scope:
    monkeypatch.chdir(file_site.folder)
    return Scope(file_site.home.path, None, "ada")


def test_actions_are_the_verbs_and_refusals_are_told(scope: Scope, file_site: Site) -> None:
    file_site.run("submit", "--require-approval", "--", "make")
    file_site.run("submit", "--require-approval", "--", "make")
    jobs = file_site.client.jobs
    one, two = jobs.revision(1), jobs.revision(2)
    assert do(scope, Approve("job-1", one)).message == "approved job-1 as ada"
    assert do(scope, Approve("job-1", one)).message.startswith(
        "refused: job-1 was already approved"
    )
    assert do(scope, Reject("job-2", one)).message.startswith("refused: job-2 has changed")
    assert do(scope, Reject("job-2", two)).message == "job-2 is rejected by ada"
    assert do(scope, CancelNow("job-1")).message == "job-1 is cancelled"
    assert do(scope, CancelNow("job-1")).message == "refused: job-1 has already ended (cancelled)"
    preview = do(scope, PreviewOfRetry("job-1"))
    assert preview.question is not None and preview.question.action == RetryNow("job-1")
    assert jobs.last_of_chain(1).id == 1, "a preview changes nothing"
    assert do(scope, RetryNow("job-1")).message == "queued again: job-3"
    assert do(scope, SetPaused(True)).message == "paused by ada; what runs goes on"
    assert do(scope, SetPaused(False)).message == "resumed"
    assert do(scope, SetPaused(False)).message == "it was not paused"
    sent = do(scope, SendAgain("ci", ("d-1",))).message
    assert sent.startswith("ci: 0 requests sent again; refused: ")
    assert do(scope, CancelNow("wf-9")).message.startswith("refused: there is no wf-9")


def test_inside_a_job_nobody_approves(headway: CommandLine, terminal: Opener) -> None:
    headway("config", "set", "scheduler.max_active", "2")
    headway("submit", "--name", "deploy", "--require-approval", "--", "true")
    wait_for(lambda: headway.state("1") == "waiting_on_approval")
    script = (
        "from headway.cli.panes.actions import do\n"
        "from headway.cli.panes.model import Approve\n"
        "from headway.cli.scope import Scope\n"
        "from headway import connect\n"
        "seen = connect().jobs.revision(1)\n"
        "print(do(Scope(None, None, 'ada'), Approve('job-1', seen)).message)\n"
    )
    (headway.folder / "decide.py").write_text(script)
    told = headway.out("exec", "--", sys.executable, "decide.py")
    assert told.startswith("refused: this runs inside job-2, and a job may not approve")
    assert headway.state("1") == "waiting_on_approval"
