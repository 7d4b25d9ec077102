"""`headway templates`, `submit --template`, and chains as people see them."""

import json
import re

import pytest
from commandline import CommandLine, wait_for

from headway.cli.options import OF_ONE_JOB
from headway.cli.template_options import _WORDS
from headway.jobs.templates import OF_ONE_JOB as OF_ONE_JOB_WORDS


def test_a_template_is_added_shown_used_and_archived(still: CommandLine) -> None:
    made = still(
        *("templates", "add", "build", "--param", "what", "--param", "level=2"),
        *("--label", "kind=build", "--lock", "repo", "--timeout", "90m", "--env", "SECRET=x"),
        *("--retry-on", "75,signal", "--retry-jitter", "0.1", "--resource", "cpu", "--type", "ci"),
        *("--pin-head", "--no-check", "--", "echo", "{what}", "-O{level}"),
        code=None,
    )
    assert made.returncode == 5 and "--pin-head: " in made.stderr, "checked as a submit would be"
    made = still(
        *("templates", "add", "build", "--param", "what", "--param", "level=2"),
        *("--label", "kind=build", "--lock", "repo", "--timeout", "90m", "--env", "SECRET=x"),
        *("--retry-on", "75,signal", "--retry-jitter", "0.1", "--resource", "cpu", "--type", "ci"),
        *("--json", "--", "echo", "{what}", "-O{level}"),
    )
    template = json.loads(made.stdout)["template"]
    assert template["params"] == {"what": None, "level": "2"}
    assert template["job"] == {
        "argv": ["echo", "{what}", "-O{level}"],
        "labels": {"kind": "build"},
        "locks": ["repo"],
        "timeout": "90m",
        "env": ["SECRET"],
        "retry_on": ["75", "signal"],
        "retry_jitter": 0.1,
        "resources": ["cpu"],
        "type": "ci",
        "retries": 3,
        "retry_base": "10s",
    }
    assert still.json("templates", "show", "build")["template"] == template
    shown = still.out("templates", "show", "build")
    assert "level=2" in shown and "90m" in shown and "SECRET" in shown and "x" not in shown.split()
    assert "build" in still.out("templates", "list")
    assert still.json("templates", "list")["templates"] == [template]

    told = still.json(
        *("submit", "--template", "build", "--param", "what=docs", "--label", "by=ada"),
        *("--timeout", "1s", "--retries", "0", "--priority", "5", "--front"),
    )["job"]
    assert told["params"]["argv"] == ["echo", "docs", "-O2"]
    assert told["params"]["timeout_seconds"] == 1 and told["params"]["env"] == ["SECRET"]
    assert told["labels"] == {"kind": "build", "by": "ada"}
    assert (told["template_id"], told["max_attempts"], told["priority"]) == ("build", 0, 5)
    assert (told["type"], told["resources"]) == ("ci", ["cpu"])
    assert re.search("template +build", still.out("jobs", "show", told["id"]))
    other = still.submit("--template", "build", "--", "true")
    assert still.json("jobs", "show", other)["job"]["params"]["argv"] == ["true"]

    assert "is archived" in still("templates", "archive", "build").stderr
    assert "was already archived" in still("templates", "archive", "build").stderr
    refused = still("submit", "--template", "build", "--param", "what=x", code=4)
    assert "'build' is archived and makes no jobs" in refused.stderr and not refused.stdout
    assert still.json("templates", "list")["templates"] == []
    assert still.json("templates", "list", "--all")["templates"][0]["archived_at"]
    assert still.count() == 2


def test_the_help_offers_no_option_that_is_always_refused(still: CommandLine) -> None:
    assert {_WORDS.get(name, (name,))[0] for name in OF_ONE_JOB} == OF_ONE_JOB_WORDS - {"id"}
    told, submits = still.out("templates", "add", "--help"), still.out("submit", "--help")
    for name in OF_ONE_JOB:
        assert re.search(rf"^ +--{name}\b", submits, re.M), "others do"
        assert not re.search(rf"^ +--{name}\b", told, re.M), name
        value = [] if name in ("last", "front") else ["1"]
        done = still("templates", "add", "x", f"--{name}", *value, "--", "true", code=5)
        assert "is about one job; give it when you submit" in done.stderr


def test_a_run_that_is_not_there_is_called_a_run(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    for verb in ("retry", "show"):
        assert "there is no run-99; " in headway("runs", verb, "run-99", code=3).stderr
    headway("jobs", "clean", "1")
    assert "there is no run-1 any more" in headway("runs", "show", "1", code=3).stderr


WRONG = [
    (("templates", "add", "x"), 2, "What is to run?"),
    (("templates", "add", "a b", "--", "true"), 5, "template 'a b' may have"),
    (("templates", "add", "x", "--param", "p", "--", "true"), 5, "'p' is used nowhere"),
    (("templates", "add", "x", "--param", "p", "--param", "p=1", "--", "true"), 5, "twice"),
    (("templates", "add", "x", "--key", "k", "--", "true"), 5, "key is about one job"),
    (("templates", "add", "x", "--", "no-such-program"), 5, "was not found"),
    (("templates", "add", "old", "--", "true"), 4, "--replace"),
    (("templates", "show", "none"), 3, "there is no template 'none'"),
    (("templates", "archive", "none"), 3, "there is no template 'none'"),
    (("submit", "--template", "none"), 3, "there is no template 'none'"),
    (("submit", "--template", "old", "--param", "x=1"), 5, "no parameter 'x'; it has none"),
    (("submit", "--template", "old", "--param", "x"), 5, "--param x has no value"),
    (("submit", "--template", "old", "--after", "99"), 3, "there is no job-99"),
    (("submit", "--template", "old", "--after", "x"), 3, "'x' is not a job"),
    (("submit", "--template", "old", "--slug", "a b"), 5, "slug 'a b'"),
    (("submit", "--template", "old", "--front", "--position", "2"), 5, "not both"),
    (("submit", "--param", "x=1", "--", "true"), 2, "--param is about a template"),
    (("exec", "--template", "none"), 3, "there is no template 'none'"),
    (("runs", "retry", "x"), 3, "'x' is not a run; write it like run-24 or 24"),
    (("runs", "retry", "job-1"), 3, "'job-1' is not a run"),
    (("runs", "retry", "run-9"), 3, "there is no run-9"),
    (("runs", "retry", "run-1"), 3, "there is no run-1: job-1 was never started (queued)"),
    (("runs", "show", "1"), 3, "there is no run-1"),
]


def test_what_is_wrong_is_refused_by_name_and_changes_nothing(still: CommandLine) -> None:
    still("templates", "add", "old", "--", "true")
    still.submit("--", "true")
    before = still.json("templates", "list", "--all")
    for argv, code, said in WRONG:
        refused = still(*argv, code=code)
        assert said in refused.stderr and not refused.stdout, argv
    assert still.json("templates", "list", "--all") == before and still.count() == 1


def test_templates_before_there_is_a_home(bare: CommandLine) -> None:
    assert "there is no .headway/" in bare("submit", "--template", "x", code=3).stderr
    assert not bare.home.exists()


@pytest.mark.req("E20", "D13")
def test_a_run_can_be_retried_at_any_count_and_the_chain_tells_all(headway: CommandLine) -> None:
    headway("templates", "add", "flaky", "--retry-base", "10ms", "--", "sh", "-c", "exit 3")
    assert headway("exec", "--template", "flaky", code=3).stdout == ""
    chain = headway.json("jobs", "show", "2")["chain"]
    assert [each["id"] for each in chain] == ["job-1", "job-2", "job-3", "job-4"]
    assert [each["retry_of"] for each in chain] == [None, "job-1", "job-2", "job-3"]
    assert [(each["attempt"], each["executions"]) for each in chain] == [
        *((1, 4), (2, 4)),
        *((3, 4), (4, 4)),
    ]
    for each in chain:
        assert (each["state"], each["exit_code"]) == ("failed", 3)
        assert each["reason"].startswith("exit code 3") and each["finished_at"]
    assert chain[0]["not_before"] is None and chain[1]["not_before"]
    text = headway.out("jobs", "show", "4")
    assert "attempt     4 of 4" in text
    for row in ("job-1  1 of 4", "job-2  2 of 4", "job-3  3 of 4", "job-4  4 of 4"):
        assert row in text
    assert "exit code 3" in text

    would = headway.json("runs", "retry", "run-4", "--dry-run")
    assert would["retry_set"] == ["job-4"]
    assert headway.out("runs", "retry", "run-4") == "job-5"
    headway("jobs", "wait", "5", code=3)
    chain = headway.json("jobs", "show", "1")["chain"]
    assert [each["attempt"] for each in chain] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert chain[4]["executions"] == 8, "by hand there is a fresh budget"
    run = headway.json("runs", "show", "8")
    assert (run["job"], run["run"]["run_id"], run["run"]["exit_code"]) == ("job-8", "run-8", 3)
    assert "exit code  3" in headway.out("runs", "show", "run-8")


def test_a_retry_that_waits_says_until_when(headway: CommandLine) -> None:
    job = headway.submit("--retries", "2", "--retry-base", "1h", "--", "false")
    headway("jobs", "wait", "--this", job, code=1)
    waiting = headway.json("jobs", "show", job)["chain"][1]
    assert (waiting["state"], waiting["attempt"], waiting["executions"]) == ("queued", 2, 3)
    at = waiting["not_before"][:19].replace("T", " ")
    assert f"not before {at}Z" in headway.out("jobs", "show", job)


def test_a_run_that_went_well_is_not_retried(headway: CommandLine) -> None:
    job = headway.submit("--", "true")
    headway("jobs", "wait", job)
    by_run = headway("runs", "retry", job.replace("job", "run"), code=4)
    assert by_run.stderr == headway("jobs", "retry", job, code=4).stderr


def test_the_status_and_a_reset_speak_of_what_could_not_be_launched(headway: CommandLine) -> None:
    job = headway.submit("--no-check", "--", "no-such-program")
    struck = f"not started +1 job.*{job} no-such-program.*strike [12] of 3"
    wait_for(lambda: re.search(struck, headway.out("scheduler", "status"), re.S))
    wait_for(lambda: job in headway("scheduler", "reset").stderr)
    assert headway.json("scheduler", "reset")["breakers"] == []
    headway("jobs", "wait", job, code=127)
    text = headway.out("scheduler", "status")
    assert "given up" in text and "exec no-such-program" in text
    assert "1 job given up in the last day stay" in headway("scheduler", "reset").stderr
