"""`headway schedules`: made, listed, shown, explained, switched, triggered and removed.

In this process and without a worker; tests/schedules/test_schedules.py tests what fires when.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from harness import Site
from headway.base.clock import SECOND
from headway.core.fire import Firing, SlotOutcome

DAY = 86_400 * SECOND


@pytest.mark.parametrize(
    ("rule", "next_slot"),
    [
        (["--cron", "30 2 * * *"], r"... \d{4}-\d\d-\d\d at 02:30 UTC"),
        (["--cron", "30 2 * * *", "--timezone", "Asia/Tokyo"], r"... \S+ at 02:30 Asia/Tokyo"),
        (["--at", "22:30"], r"... \S+ at 22:30 UTC"),
        (["--at", "22:30", "--timezone", "Asia/Tokyo"], r"... \S+ at 22:30 Asia/Tokyo"),
        (["--every", "1h"], r"... \S+ at \d\d:\d\d(:\d\d)? UTC"),
    ],
)
def test_a_new_schedule_says_when_it_fires_next_and_on_whose_clock(
    said: Run, rule: list[str], next_slot: str
) -> None:
    done = said("schedules", "add", *rule, "--", "true")
    assert done.out == "schedule-1\n"
    assert re.search(
        rf"^headway: fires next on {next_slot} \(in \d+\S+( \d+\S+)?\)$", done.err, re.M
    )


def test_a_disabled_schedule_has_no_next_slot(said: Run) -> None:
    assert "fires" not in said("schedules", "add", "--every", "1h", "--disabled", "--", "true").err


def document(said: Run, *argv: str) -> Any:
    done = said(*argv[:2], "--json", *argv[2:])
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["version"] == 1
    return told


BACKUP = ("--name", "backup", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")


@pytest.mark.req("D9", "D16")
def test_a_schedule_is_added_and_shown_as_it_was_written(said: Run) -> None:
    added = said(
        *("schedules", "add", *BACKUP, "--catch-up", "none", "--window", "90m", "--jitter", "30s"),
        *("--lock", "db", "--label", "kind=nightly", "--timeout", "1h", "--retries", "1"),
        *("--env", "SECRET=x", "--", "echo", "a b"),
    )
    assert added[:2] == (0, "schedule-1\n")
    told = document(said, "schedules", "show", "backup")["schedule"]
    assert told["rule"] == {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
    assert told["job"] == {
        "argv": ["echo", "a b"],
        "locks": ["db"],
        "labels": {"kind": "nightly"},
        "timeout": "1h",
        "retries": 1,
        "retry_base": "10s",
        "env": ["SECRET"],
    }
    assert (told["catch_up"], told["window"], told["overlap"]) == ("none", "90m", "skip")
    shown = said("schedules", "show", "#1").out
    for words in (
        "backup  schedule-1",
        "at 02:30 every day, Europe/Berlin, up to 30s later",
        "echo 'a b'",
        "kind=nightly",
        "none, within 90m",
        "by ada",
    ):
        assert words in shown, words
    assert "x" not in shown.split()


def test_intervals_single_times_and_templates_make_schedules(said: Run) -> None:
    assert said("templates", "add", "report", "--param", "month", "--", "echo", "{month}").code == 0
    every = document(said, "schedules", "add", "--every", "90m", "--disabled", "--", "true")
    assert every["schedule"]["rule"]["every"] == "90m" and not every["schedule"]["enabled"]
    once = document(said, "schedules", "add", "--at", "+1h", "--shell", "echo x | cat")
    assert once["schedule"]["in_words"].startswith("once, on ")
    of_template = ("--template", "report", "--param", "month=june", "--priority", "5")
    made = document(said, "schedules", "add", "--cron", "@daily", "--name", "r", *of_template)
    told = made["schedule"]
    assert (told["template"], told["params"], told["job"]) == (
        "report",
        {"month": "june"},
        {"priority": 5},
    )
    shown = said("schedules", "show", "r").out
    assert "month=june" in shown and "report" in shown
    assert [each["id"] for each in document(said, "schedules", "list")["schedules"]] == [
        *("schedule-1", "schedule-2", "schedule-3"),
    ]


def test_an_agent_has_a_schedule_and_no_retries(said: Run) -> None:
    agent = ("--runner", "claude", "--prompt", "tidy up", "--no-check")
    told = document(said, "schedules", "add", "--every", "1h", *agent)["schedule"]
    assert (told["job"]["runner"], told["job"]["retries"]) == ("claude", 0)
    missing = said("schedules", "add", "--every", "1h", "--runner", "claude", "--no-check")
    assert missing.code == 5 and "an agent needs a prompt" in missing.err
    unknown = said("schedules", "add", "--every", "1h", *agent[2:], "--runner", "nobody")
    assert unknown.code == 5 and "nobody" in unknown.err


@pytest.mark.parametrize(
    ("argv", "code", "reason"),
    [
        (["--", "true"], 2, "Give one of --cron EXPR, --every 10m and --at TIME"),
        (["--cron", "@daily", "--every", "1h", "--", "true"], 2, "Give one of --cron"),
        (["--every", "1h"], 2, "What is to run?"),
        (["--every", "1h", "--param", "a=b", "--", "true"], 2, "--param is about a template"),
        (["--every", "1h", "--catch-up", "some", "--", "true"], 2, "'latest', 'all', 'none'"),
        (["--cron", "0 0 31 2 *", "--", "true"], 5, "no month of '2' has a day '31'"),
        (["--cron", "@daily", "--timezone", "Berlin", "--", "true"], 5, "mean Europe/Berlin?"),
        (["--every", "soon", "--", "true"], 5, "'soon' is not a duration"),
        (["--every", "10ms", "--", "true"], 5, "an interval is at least 1s"),
        (
            ["--every", "1h", "--timezone", "Asia/Tokyo", "--", "true"],
            5,
            "an interval has no clock",
        ),
        (["--at", "2020-01-01", "--", "true"], 5, "--at must be a time in the future"),
        (["--every", "1h", "--template", "gone"], 3, "gone"),
        (["--every", "1h", "--after", "3", "--", "true"], 5, "about one job"),
        (["--every", "1h", "--name", "7", "--", "true"], 5, "looks like the id of a schedule"),
        (["--every", "1h", "--", "no-such-program"], 5, "no-such-program"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_made(
    said: Run, argv: list[str], code: int, reason: str
) -> None:
    done = said("schedules", "add", *argv)
    assert done.code == code and done.out == "" and reason in " ".join(done.err.split())
    assert document(said, "schedules", "list")["schedules"] == []


def test_a_bad_expression_makes_no_home(said: Run, file_site: Site) -> None:
    shutil.rmtree(file_site.home.path)
    assert said("schedules", "add", "--cron", "61 * * * *", "--", "true").code == 5
    assert not Path(file_site.home.path).exists()
    assert said("schedules", "explain", "--cron", "@daily").code == 0
    assert not Path(file_site.home.path).exists()


def test_the_list_tells_what_was_missed_and_that_no_worker_is_there(
    said: Run, file_site: Site
) -> None:
    none = said("schedules", "list")
    assert none.out == "" and "headway schedules add" in none.err
    said("schedules", "add", *BACKUP, "--", "true")
    said("schedules", "add", "--name", "idle", "--every", "1h", "--disabled", "--", "true")
    missed(file_site, 1, slots=4319)
    listed = said("schedules", "list")
    header, backup, idle = listed.out.splitlines()
    assert header.split() == ["Name", "When", "Last", "Next", "Outcome", "Missed"]
    assert backup.startswith("backup  at 02:30") and backup.endswith("4319")
    assert "disabled" in idle and all(len(line) <= 80 for line in listed.out.splitlines())
    assert "no worker is there" in listed.err and "headway service install" in listed.err
    told = document(said, "schedules", "list")
    assert told["worker"] is False and told["schedules"][0]["missed"]["slots"] == 4319
    shown = said("schedules", "show", "backup")
    assert "4319 slots, the last" in shown.out and "nobody looked" in shown.out
    [slot] = document(said, "schedules", "show", "backup")["slots"]
    assert (slot["outcome"], slot["slots"], slot["job"]) == ("skipped", 4319, None)
    assert said("schedules", "show", "backup", "--slots", "0").code == 5


def missed(site: Site, schedule_id: int, *, slots: int) -> None:
    with site.client.context.store.write() as tx:
        now = tx.now()
        tx.schedules.add_firings(
            [
                Firing(
                    schedule_id=schedule_id,
                    slot=now - 3 * DAY,
                    last_slot=now - DAY,
                    slots=slots,
                    outcome=SlotOutcome.SKIPPED,
                    reason="missed: nobody looked",
                    job_id=None,
                    at=now,
                )
            ]
        )


def test_a_schedule_is_switched_triggered_and_removed(said: Run, file_site: Site) -> None:
    said("schedules", "add", *BACKUP, "--", "true")
    off = said("schedules", "disable", "backup")
    assert off == (0, "", "headway: backup is disabled\n")
    assert "was already disabled" in said("schedules", "disable", "1").err
    assert "is disabled: nothing of this fires" in said("schedules", "explain", "backup").err
    assert said("schedules", "trigger", "schedule-1") == (0, "job-1\n", "")
    job = file_site.client.job(1)
    assert (job.schedule_id, job.name, job.retry.max_attempts) == ("schedule-1", "backup", 3)
    again = said("schedules", "trigger", "backup")
    assert again.code == 4 and "job-1" in again.err
    assert "job-1 is active" in said("schedules", "list").out
    on = said("schedules", "enable", "backup")
    assert "backup is enabled; its next slot is " in on.err
    assert document(said, "schedules", "enable", "backup")["schedule"]["enabled"]
    removed = said("schedules", "remove", "backup")
    assert removed.err == "headway: backup is removed; job-1 goes on\n"
    assert file_site.client.job(1).finished_at is None
    for verb in ("show", "enable", "disable", "trigger", "remove", "explain"):
        gone = said("schedules", verb, "backup")
        assert gone.code == 3 and "there is no schedule 'backup'" in gone.err


def test_replacing_needs_a_word(said: Run) -> None:
    said("schedules", "add", *BACKUP, "--", "true")
    refused = said("schedules", "add", *BACKUP, "--", "false")
    assert refused.code == 4 and "--replace" in refused.err
    assert said("schedules", "add", *BACKUP, "--replace", "--", "false").out == "schedule-1\n"
    [told] = document(said, "schedules", "list")["schedules"]
    assert told["job"]["argv"] == ["false"]


@pytest.mark.req("D16")
def test_explain_tells_the_rule_and_what_is_odd(said: Run) -> None:
    # faults E1 and E2
    rule = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    done = said("schedules", "explain", *rule, "--from", "2026-03-28T12:00Z", "--count", "2")
    assert done.out.splitlines() == [
        "at 02:30 every day, Europe/Berlin",
        "  Sun 2026-03-29 03:00 +02:00   2026-03-29 01:00Z",
        "      02:30 does not exist on this day: fires at 03:00, right after the clocks",
        "      go forward",
        "  Mon 2026-03-30 02:30 +02:00   2026-03-30 00:30Z",
    ]
    told = document(said, "schedules", "explain", *rule, "--from", "2026-10-25T00:00Z")
    assert told["schedule"] is None and len(told["slots"]) == 10
    assert told["slots"][0] == {
        "local": "2026-10-25T02:30:00+02:00",
        "utc": "2026-10-25T00:30:00.000000Z",
        "odd": "02:30 comes twice on this day: fires the first time only",
    }


def test_explain_knows_schedules_intervals_and_single_times(said: Run) -> None:
    said("schedules", "add", "--name", "poll", "--every", "10m", "--jitter", "5s", "--", "true")
    done = said("schedules", "explain", "poll", "--count", "1")
    assert done.out.startswith("every 10 minutes\n") and "up to 5s later" in done.err
    told = document(said, "schedules", "explain", "poll", "--count", "1")
    assert told["slots"][0]["utc"] == told["schedule"]["next_slot"]
    every = said("schedules", "explain", "--every", "90s", "--from", "2026-01-01T00:00Z").out
    assert every.splitlines()[1] == "  Thu 2026-01-01 00:01:30 +00:00   2026-01-01 00:01:30Z"
    once = said("schedules", "explain", "--at", "2026-01-01T00:00Z", "--from", "2025-12-31")
    assert len(once.out.splitlines()) == 2 and "nothing comes after that" in once.err
    ancient = said("schedules", "explain", "--every", "1h", "--from", "0001-01-01T00:00Z")
    assert (ancient.code, ancient.out) == (5, "") and "lies before 1970" in ancient.err
    over = said("schedules", "explain", "--at", "2026-01-01T00:00Z", "--from", "2026-01-02")
    assert "it does not fire any more" in over.err


@pytest.mark.parametrize(
    ("argv", "code", "reason"),
    [
        ([], 2, "Give a schedule's NAME, or --cron, --every or --at"),
        (["x", "--cron", "@daily"], 2, "Give a schedule's NAME"),
        (["x", "--timezone", "Asia/Tokyo"], 2, "--timezone goes with --cron"),
        (["--cron", "@reboot"], 5, "headway service install"),
        (["--cron", "@daily", "--count", "0"], 5, "--count 0 is not between 1 and 1000"),
        (["--cron", "@daily", "--count", "many"], 5, "--count 'many' is not a whole number"),
        (["--cron", "@daily", "--from", "then"], 5, "--from 'then' is not a time"),
    ],
)
def test_explain_refuses_what_it_does_not_understand(
    said: Run, argv: list[str], code: int, reason: str
) -> None:
    done = said("schedules", "explain", *argv)
    assert done.code == code and reason in " ".join(done.err.split())


def test_help_offers_only_what_a_schedule_takes(said: Run) -> None:
    told = said("schedules", "add", "--help").out
    assert "Where its jobs run" in told
    assert not [each for each in ("--worktree", "--pin-head", "--save-patch") if each in told]
    refused = said("schedules", "add", "--every", "1h", "--save-patch", "--", "true")
    assert refused.code == 5 and "looks at a repository" in refused.err
    assert "--worktree" in said("templates", "add", "--help").out


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (("nightly", "--cron", "@daily", "--", "date"), ["date"]),
        (("--cron", "@daily", "nightly", "--", "date", "-u"), ["date", "-u"]),
        (("nightly", "--name", "nightly", "--cron", "@daily", "--", "date"), ["date"]),
        (("nightly", "--cron", "@daily", "--shell", "date"), None),
        (("--name", "nightly", "--cron", "@daily", "date", "now"), ["date", "now"]),
    ],
)
def test_a_word_before_the_dashes_is_the_name(
    words: tuple[str, ...], argv: list[str] | None, said: Run
) -> None:
    assert said("schedules", "add", *words).code == 0
    assert document(said, "schedules", "show", "nightly")["schedule"]["job"].get("argv") == argv


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("test", "run", "--cron", "@daily", "--", "date"), "'test' and 'run' stand before"),
        (("a", "--name", "b", "--cron", "@daily", "--", "date"), "two names, a and b"),
        (("test", "--cron", "@daily", "--"), "What is to run?"),
    ],
)
def test_other_words_before_the_dashes_are_refused(
    words: tuple[str, ...], problem: str, said: Run
) -> None:
    done = said("schedules", "add", *words)
    assert done.code == 2 and problem in " ".join(done.err.split())
    assert document(said, "schedules", "list")["schedules"] == []


def test_the_list_names_the_workflow_of_a_schedule(said: Run, file_site: Site) -> None:
    said("schedules", "add", "--every", "1h", "--", "true")
    assert "Workflow" not in said("schedules", "list").out
    folder = Path(file_site.home.path) / "workflows"
    folder.mkdir()
    (folder / "tidy.toml").write_text('[nodes.a]\nargv = ["true"]\n')
    said("schedules", "add", "--every", "1h", "--workflow", "tidy")
    said("schedules", "add", "often", "--every", "1m", "--workflow", "tidy")
    header, *rows = said("schedules", "list").out.splitlines()
    assert header.split()[:3] == ["Name", "Workflow", "When"]
    assert [row.split()[:2] for row in rows[1:3]] == [["tidy", "tidy"], ["often", "tidy"]]
    said("schedules", "trigger", "tidy")
    shown = said("schedules", "show", "tidy")
    assert shown.code == 0 and "last run" in shown.out and "last job" not in shown.out
