"""`headway jobs ...` and `headway why`."""

import json
import sqlite3

import pytest
from commandline import CommandLine, wait_for

from headway.core.states import Status

DOCUMENT = """
id name slug type state status reason priority position params after needs produces locks
pinned_head preconditions approval wait waited_on group_id sequence_number template_id
schedule_id workflow subject target resources retry_of attempt max_attempts created_at
not_before started_at finished_at execution_root run
"""


def test_list_fits_80_columns_and_says_that_no_worker_is_there(still: CommandLine) -> None:
    still("submit", "--name", "漢字" * 40, "--lock", "x", "--", "true")
    still("submit", "--name", "n" * 200, "--after", "1", "--", "true")
    done = still("jobs", "list")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["Job", "Name", "State", "Wait/Result", "Age"]
    assert len(lines) == 3
    assert all(_columns(line) <= 80 for line in lines)
    assert "no worker is there" in done.stderr
    narrow = still("jobs", "list", env={"COLUMNS": "60"}).stdout.splitlines()
    assert all(_columns(line) <= 60 for line in narrow)


def _columns(line: str) -> int:
    return sum(2 if "\u4e00" <= char <= "\u9fff" else 1 for char in line)


def test_list_filters(headway: CommandLine) -> None:
    headway("exec", "--label", "team=a", "--", "true")
    headway("exec", "--label", "team=b", "--", "false", code=1)

    def ids(*argv: str) -> list[str]:
        return [job["id"] for job in headway.json("jobs", "list", *argv)["jobs"]]

    assert ids() == ids("--all") == ["job-1", "job-2"]
    assert ids("--state", "failed") == ids("--status", "FAILED") == ["job-2"]
    assert ids("--label", "team=a") == ["job-1"]
    assert ids("--limit", "1") == ["job-2"]
    assert ids("--state", "running") == []


@pytest.mark.parametrize(
    "argv", [["--state", "done"], ["--status", "queued"], ["--limit", "0"], ["--label", "x"]]
)
def test_list_refuses_what_it_does_not_know(still: CommandLine, argv: list[str]) -> None:
    assert argv[0] in still("jobs", "list", *argv, code=5).stderr


def test_the_help_of_list_is_short_and_a_wrong_word_names_the_choices(still: CommandLine) -> None:
    told = still.out("jobs", "list", "--help")
    assert "waiting_on_locks" not in told and all(len(line) <= 80 for line in told.splitlines())
    assert ", ".join(Status) in still("jobs", "list", "--state", "done", code=5).stderr
    assert "COMPLETED, FAILED" in still("jobs", "list", "--status", "done", code=5).stderr


@pytest.mark.req("V81")
def test_document_has_every_field(still: CommandLine) -> None:
    still("submit", "--", "true")
    listed = still.json("jobs", "list")["jobs"][0]
    shown = still.json("jobs", "show", "job-1")["job"]
    assert set(DOCUMENT.split()) <= set(listed)
    assert set(listed) == set(shown)
    assert shown["run"] is None
    assert still.json("jobs", "status", "1") == {
        "version": 1,
        "id": "job-1",
        "state": "queued",
        "status": "QUEUED",
        "exit_code": None,
    }


def test_show_tells_the_chain_and_the_events(headway: CommandLine) -> None:
    headway("exec", "--retries", "1", "--retry-base", "50ms", "--", "false", code=1)
    shown = headway("jobs", "show", "1").stdout
    assert "failed: exit code 1" in shown
    assert all(word in shown for word in ("Chain", "job-2", "Events", "submitted", "retried"))
    assert all(len(line) <= 80 or "/" in line for line in shown.splitlines())
    chain = headway.json("jobs", "show", "2")["chain"]
    assert [each["id"] for each in chain] == ["job-1", "job-2"]


@pytest.mark.parametrize("verb", ["show", "status", "wait", "why", "tail", "retry", "cancel"])
def test_unknown_jobs_are_not_found(still: CommandLine, verb: str) -> None:
    assert "job-999" in still("jobs", verb, "999", code=3).stderr
    assert "'../x'" in still("jobs", verb, "../x", code=3).stderr


def test_wait_takes_the_first_code_that_is_not_0(headway: CommandLine) -> None:
    for code in (0, 5, 6):
        headway("submit", "--", "sh", "-c", f"exit {code}")
    headway("jobs", "wait", "1", "3", "2", code=6)
    document = headway.json("jobs", "wait", "job-1", "#2", code=5)
    assert [job["state"] for job in document["jobs"]] == ["succeeded", "failed"]


def test_wait_gives_up_after_its_timeout(still: CommandLine) -> None:
    still("submit", "--", "true")
    assert "still queued" in still("jobs", "wait", "1", "--timeout", "50ms", code=124).stderr
    still("jobs", "wait", "1", "--timeout", "later", code=5)


def test_wait_follows_the_chain_unless_told_otherwise(headway: CommandLine) -> None:
    script = 'test "$HEADWAY_ATTEMPT" = 2'
    headway("submit", "--retries", "1", "--retry-base", "50ms", "--", "sh", "-c", script)
    headway("jobs", "wait", "1")
    headway("jobs", "wait", "--this", "1", code=1)


def test_why_names_every_objection_and_the_place(still: CommandLine) -> None:
    still("submit", "--", "true")
    still("submit", "--after", "1", "--delay", "1h", "--", "true")
    still("scheduler", "pause", "--reason", "lunch")
    done = still("why", "2")
    for told in ("waiting for its time", "waiting on job job-1", "paused by ada: lunch", "->"):
        assert told in done.stdout
    assert "no worker is there" in done.stderr
    assert "place 1 of " in still("jobs", "why", "1").stdout
    document = still.json("why", "2")
    assert [each["kind"] for each in document["objections"]] == ["time", "dependencies", "paused"]


def test_why_of_a_running_and_an_ended_job(headway: CommandLine) -> None:
    headway("submit", "--", "sleep", "60")
    headway.until_running("1")
    assert "job-1 is running" in headway.out("why", "1")
    headway("jobs", "cancel", "1")
    assert headway.out("why", "1") == "job-1 has ended: cancelled by ada"


def test_tail_shows_the_last_lines_of_each_stream(headway: CommandLine) -> None:
    headway("exec", "--", "sh", "-c", "seq 100; echo oops >&2")
    done = headway("jobs", "tail", "-n", "2", "1")
    assert (done.stdout, done.stderr) == ("99\n100\n", "oops\n")
    assert headway("jobs", "tail", "-n", "2", "--stderr", "1").stdout == ""
    assert headway("jobs", "tail", "-n", "2", "--stdout", "1").stderr == ""
    assert len(headway("jobs", "tail", "1").stdout.splitlines()) == 20
    assert len(headway("jobs", "tail", "-n", "1000", "1").stdout.splitlines()) == 100
    assert headway("jobs", "tail", "-n", "0", "1").stdout == ""
    headway("jobs", "tail", "-n", "-1", "1", code=5)


def test_tail_follows_until_the_end(headway: CommandLine) -> None:
    headway("submit", "--", "sh", "-c", "echo one; until test -e go; do :; done; echo two")
    following = headway.start("jobs", "tail", "-f", "1")
    assert following.stdout is not None
    assert following.stdout.readline() == b"one\n"
    (headway.folder / "go").touch()
    out, _ = following.communicate(timeout=60)
    assert (following.returncode, out) == (0, b"two\n")


def test_tail_shows_the_last_of_the_chain(headway: CommandLine) -> None:
    script = "echo try $HEADWAY_ATTEMPT; exit 1"
    headway("submit", "--retries", "1", "--retry-base", "50ms", "--", "sh", "-c", script)
    headway("jobs", "wait", "1", code=1)
    assert headway.out("jobs", "tail", "1") == "try 2"
    assert headway.out("jobs", "tail", "--this", "1") == "try 1"


def test_retry_prints_the_new_job_and_what_was_started(headway: CommandLine) -> None:
    headway("exec", "--", "false", code=1)
    done = headway("jobs", "retry", "1")
    assert done.stdout == "job-2\n"
    assert "queued again: job-2; started job-2" in done.stderr
    headway("jobs", "wait", "1", code=1)


@pytest.mark.req("V44")
def test_retry_tells_the_whole_segment(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    headway("submit", "--after", "1", "--", "false")
    headway("submit", "--after", "2", "--", "true")
    headway("jobs", "wait", "3", code=10)
    planned = headway.json("jobs", "retry", "--dry-run", "2")
    assert (planned["retry_set"], planned["restarted"]) == (["job-2", "job-3"], [])
    assert headway.out("jobs", "retry", "--dry-run", "2") == "job-2\njob-3"
    assert headway.count() == 3
    assert headway.json("jobs", "retry", "2") == {
        "version": 1,
        "requested_job": "job-2",
        "retry_root": "job-2",
        "last_successful_point": ["job-1"],
        "retry_set": ["job-2", "job-3"],
        "reset": ["job-4", "job-5"],
        "restarted": ["job-4"],
    }


def test_retry_shows_the_times_that_were_given_and_stay(headway: CommandLine) -> None:
    headway("exec", "--", "false", code=1)
    headway("submit", "--after", "1", "--at", "2050-01-01T10:00:00Z", "--", "true")
    words = "would run again: job-1, job-2; job-2 not before 2050-01-01 10:00:00Z"
    dry = headway("jobs", "retry", "--dry-run", "1")
    assert (dry.stdout, words in dry.stderr) == ("job-1\njob-2\n", True)
    kept = {"job-2": "2050-01-01T10:00:00.000000Z"}
    assert headway.json("jobs", "retry", "--dry-run", "1")["not_before"] == kept
    assert headway.json("jobs", "retry", "1")["not_before"] == kept
    headway("jobs", "wait", "--this", "3", code=1)
    assert headway.json("jobs", "show", "2")["job"]["not_before"] == kept["job-2"]


def test_retry_of_what_succeeded_conflicts(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    assert "nothing to retry" in headway("jobs", "retry", "1", code=4).stderr
    assert headway.count() == 1


@pytest.mark.req("V78")
def test_cancel_waits_for_the_end(headway: CommandLine) -> None:
    headway("submit", "--", "sleep", "60")
    headway("submit", "--", "sleep", "60")
    headway.until_running("1")
    done = headway("jobs", "cancel", "1", "2")
    assert "job-1 is cancelled" in done.stderr
    assert [headway.state(job) for job in ("1", "2")] == ["cancelled", "cancelled"]
    assert headway.json("jobs", "status", "1")["exit_code"] == 143
    assert headway.json("jobs", "status", "2")["exit_code"] is None
    headway("jobs", "wait", "1", code=143)
    headway("jobs", "cancel", "1", code=4)


def test_cancel_reaches_the_later_job_of_the_chain(headway: CommandLine) -> None:
    headway("submit", "--retries", "1", "--retry-base", "1h", "--", "false")
    headway("jobs", "wait", "--this", "1", code=1)
    done = headway("jobs", "cancel", "1")
    assert "job-1 has a later job in its chain, job-2" in done.stderr
    assert headway.state("2") == "cancelled"


def test_cancel_of_several_is_refused_as_one(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    headway("submit", "--delay", "1h", "--", "true")
    headway("jobs", "cancel", "2", "1", code=4)
    assert headway.state("2") == "queued"


def test_a_job_that_catches_the_signal_is_cancelled_all_the_same(headway: CommandLine) -> None:
    script = "trap 'echo caught; exit 9' TERM; echo up; while :; do sleep 0.01; done"
    headway("submit", "--", "sh", "-c", script)
    wait_for(lambda: headway("jobs", "tail", "1", code=None).stdout == "up\n")
    document = json.loads(headway.out("jobs", "cancel", "--json", "1", code=None))
    assert document["jobs"][0]["state"] == "cancelled"
    assert "caught" in headway.out("jobs", "tail", "1")


@pytest.mark.req("E20")
def test_a_run_can_be_retried_by_its_id_however_often_it_was_tried(headway: CommandLine) -> None:
    headway("exec", "--retries", "3", "--retry-base", "0s", "--", "false", code=1)
    assert headway.out("jobs", "retry", "run-4") == "job-5"
    headway("jobs", "wait", "1", code=1)
    assert "attempt 8 of 8" in headway.out("jobs", "show", "1")


def test_cancel_says_when_the_job_ended_by_itself_first(headway: CommandLine) -> None:
    """The worker is stopped while the job ends, so the outcome is there and not yet taken in."""
    import os
    import signal

    from headway.base.worker_lock import WorkerLock

    gate = headway.folder / "gate"
    headway("submit", "--shell", f"while ! test -e {gate}; do sleep 0.02; done; exit 3")
    headway.until_running("1")
    pid = WorkerLock(str(headway.home / "run" / "worker.lock")).read_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        gate.touch()
        wait_for(lambda: list(headway.home.glob("jobs/1/outcome.*.json")))
        cancelling = headway.start("jobs", "cancel", "1")
        wait_for(lambda: list(headway.home.glob("jobs/1/cancel.*")))
    finally:
        os.kill(pid, signal.SIGCONT)
    _, told = cancelling.communicate(timeout=30)
    assert cancelling.returncode == 4
    assert b"job-1 ended by itself first: failed" in told


def test_a_relative_time_under_a_key_is_the_same_request(headway: CommandLine) -> None:
    arguments = ("submit", "--at", "+1h", "--key", "k", "--", "true")
    assert headway.out(*arguments) == headway.out(*arguments) == "job-1"


def test_a_lost_store_is_neither_replaced_nor_read_as_empty(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    wait_for(lambda: not headway.processes())
    for file in headway.home.glob("headway.db*"):
        file.unlink()
    assert "is gone" in headway("jobs", "list", code=6).stderr
    assert "is gone" in headway("submit", "--", "true", code=6).stderr
    assert not (headway.home / "headway.db").exists()


def test_a_backup_can_be_opened_as_a_store(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    copy = headway.folder / "copy.db"
    assert headway.out("backup", str(copy)) == str(copy)
    refused = headway("backup", str(copy), code=4)
    assert f"{copy} exists already; name another file" in refused.stderr
    assert headway.out("--store", f"sqlite://{copy}", "jobs", "status", "1") == "succeeded"


def test_a_backup_takes_the_place_of_an_earlier_one(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    copy = headway.folder / "copy.db"
    for expected in (1, 2):
        assert headway.out("backup", str(copy), "--replace") == str(copy)
        with sqlite3.connect(f"file:{copy}?immutable=1", uri=True) as kept:
            assert kept.execute("select count(*) from jobs").fetchone() == (expected,)
        headway("exec", "--", "true")
    assert [each.name for each in headway.folder.glob("copy.db*")] == ["copy.db"]


def test_only_a_backup_is_replaced(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    text, other = headway.folder / "notes.txt", headway.folder / "other.db"
    text.write_text("mine")
    with sqlite3.connect(other) as made:
        made.execute("create table notes (text)")
    own = headway.home / "headway.db"
    for file, code, words in (
        (text, 5, "is no SQLite file, so it is no backup of a store"),
        (other, 5, "is no backup of a store; name another file"),
        (headway.folder, 5, "is not a file"),
        (own, 4, "is in use as a store, so it is no backup"),
    ):
        before = file.stat().st_ino
        assert words in headway("backup", str(file), "--replace", code=code).stderr
        assert file.stat().st_ino == before
    assert text.read_text() == "mine"


def test_a_retry_of_a_blocked_job_names_the_one_to_retry(headway: CommandLine) -> None:
    headway("submit", "--", "false")
    headway("submit", "--after", "1", "--", "true")
    headway("jobs", "wait", "2", code=None)
    words = "it is blocked again, by job-1; `headway jobs retry job-1` runs both"
    for more in (("--dry-run",), ()):
        assert words in " ".join(headway("retry", "2", *more).stderr.split())


@pytest.mark.parametrize("command", [("tail",), ("tail", "-f"), ("logs",)], ids=" ".join)
def test_output_of_a_job_that_was_not_started_points_to_why(
    headway: CommandLine, command: tuple[str, ...]
) -> None:
    headway("submit", "--", "false")
    headway("submit", "--after", "1", "--", "true")
    headway("jobs", "wait", "2", code=None)
    again = headway("retry", "2").stdout.strip()
    headway("jobs", "wait", "2", code=None)
    told = f"{again} was not started (blocked_by_dependency); `headway why {again}` says why"
    assert headway(*command, "2").stderr == f"headway: {told}\n"


def test_an_earlier_attempt_is_named_only_if_it_has_output(headway: CommandLine) -> None:
    headway("submit", "--", "sh", "-c", "echo out; exit 1")
    headway("jobs", "wait", "1", code=None)
    headway("scheduler", "pause")
    headway("retry", "1")
    told = "job-2 was not started (queued); `headway why job-2` says why"
    done = headway("tail", "1")
    assert done.stderr == f"headway: {told}; see `headway jobs tail --this job-1`\n"
    assert headway.out("tail", "--this", "1") == "out"
