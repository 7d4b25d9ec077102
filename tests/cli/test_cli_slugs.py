"""Wherever a command expects a job, a slug may stand."""

import json

import pytest
from commandline import CommandLine, Run

# The command line with JOB in the place of a job, and a word of what it prints then.
TAKES_A_JOB = (
    ("jobs show JOB", "job-1"),
    ("jobs status JOB", "queued"),
    ("jobs why JOB", ""),
    ("why JOB", ""),
    ("jobs schedule --job JOB", "job-1"),
    ("locks JOB", ""),
    ("jobs move JOB --back", "job-1"),
    ("jobs move job-2 --before JOB", "job-2"),
    ("jobs move job-2 --after JOB", "job-2"),
    ("jobs reorder JOB job-2", ""),
    ("jobs edit JOB --name other", "job-1"),
    ("groups create --jobs JOB", "group-"),
    ("submit --after JOB -- true", "job-"),
    ("jobs cancel JOB", "job-1"),
    ("jobs tail JOB", ""),
    ("jobs wait JOB", "job-1"),
    ("jobs retry JOB --dry-run", "job-1"),
    ("jobs clean JOB", "job-1"),
)


def test_a_slug_stands_for_a_job_in_every_command(still: CommandLine) -> None:
    still("submit", "--slug", "build", "--", "true")
    still("submit", "--", "true")
    wrong = {}
    for line, word in TAKES_A_JOB:
        done = still(*line.replace("JOB", "build").split(), code=None)
        if word not in done.stdout + done.stderr or "is not a job" in done.stderr:
            wrong[line] = done.stdout + done.stderr
    assert not wrong


def test_several_active_jobs_with_a_slug_are_a_conflict(still: CommandLine) -> None:
    for _ in range(2):
        still("submit", "--slug", "build", "--", "true")
    done = still("jobs", "show", "build", code=4)
    assert "job-1 (queued), job-2 (queued); name one by its id" in done.stderr
    still("submit", "--after", "build", "--", "true", code=4)
    assert len(json.loads(still("jobs", "list", "--json").stdout)["jobs"]) == 2


@pytest.mark.parametrize("asked", [["jobs", "show", "nope"], ["submit", "--after", "nope", "true"]])
def test_a_slug_that_nobody_has_is_not_found(still: CommandLine, asked: list[str]) -> None:
    done = still(*asked, code=3)
    assert "'nope' is not a job; write it like job-24 or 24, or by a slug" in done.stderr


def test_a_list_shows_the_slug_with_the_name(said: Run) -> None:
    said("submit", "--slug", "build", "--", "make", "all")
    said("submit", "--slug", "test", "--name", "test", "--", "true")
    said("submit", "--", "true")
    names = [line[7:].partition("  ")[0] for line in said("list").out.splitlines()[1:]]
    assert names == ["build: make all", "test", "true"]
    assert "build: make all" in said("list", "--queue").out
    assert "build:" not in said("list", "--fields", "slug,name").out
    assert json.loads(said("list", "--json").out)["jobs"][0]["name"] == "make all"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("hopes", "job-2 has that name, which is no slug"),
        ("buidl", "did you mean build (job-1)?"),
        ("nothing-like-it", "write it like job-24 or 24, or by a slug that a job has"),
    ],
)
def test_a_word_that_is_no_slug_is_answered_with_what_was_meant(
    said: Run, word: str, hint: str
) -> None:
    said("submit", "--slug", "build", "--", "true")
    said("submit", "--name", "hopes", "--", "true")
    for words in (["why", word], ["submit", "--after", word, "--", "true"]):
        done = said(*words)
        assert done.code == 3
        assert f"{word!r} is not a job; {hint}" in done.err
