"""`headway jobs schedule`: headers, columns, order, empty states, the contract, refusals."""

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from commandline import CommandLine, wait_for

from harness import Site

EMPTY = "Outcome: No scheduled jobs\n"


@pytest.fixture
def graph(still: CommandLine) -> CommandLine:
    """build <- test, build ~custom:bin:app~> pack, and one that has nothing to do with it."""
    still("submit", "--name", "build", "--slug", "b1", "--produces", "custom:bin:app", "--", "true")
    still("submit", "--name", "test", "--after", "1", "--", "true")
    still("submit", "--name", "pack", "--after", "2", "--needs", "custom:bin:app", "--", "true")
    still("submit", "--name", "other", "--", "true")
    return still


def table(line: CommandLine, *argv: str, **options: Any) -> list[list[str]]:
    lines = line("jobs", "schedule", *argv, **options).stdout.splitlines()
    assert lines[0] == "Schedule (Summary)"
    return [re.split(r"\s{2,}", each) for each in lines[1:]]


@pytest.mark.req("V84", "V85")
def test_the_summary_has_its_header_columns_and_order(graph: CommandLine) -> None:
    rows = table(graph)
    assert rows[0] == ["#", "Slug", "Name", "Status", "Wait", "Job"]
    assert [row[:4] + row[5:] for row in rows[1:]] == [
        ["1", "b1", "build", "queued", "job-1"],
        ["2", "-", "test", "waiting_on_deps", "job-2"],
        ["3", "-", "pack", "waiting_on_deps", "job-3"],
        ["4", "-", "other", "queued", "job-4"],
    ]
    assert graph.out("jobs", "schedule", "--format", "summary") == graph.out("jobs", "schedule")


@pytest.mark.req("V86")
def test_a_job_is_pinned_to_row_1_with_its_relatives(graph: CommandLine) -> None:
    assert [row[-1] for row in table(graph, "--job", "3")[1:]] == ["job-3", "job-1", "job-2"]
    assert [row[-1] for row in table(graph, "--job", "job-4")[1:]] == ["job-4"]
    graph("jobs", "cancel", "2", "3", "4", "1")
    assert [row[-1] for row in table(graph, "--job", "4")[1:]] == ["job-4"]
    assert [row[-1] for row in table(graph, "--job", "1", "--all")[1:]] == [
        *("job-1", "job-2", "job-3"),
    ]


@pytest.mark.req("V87")
def test_what_ended_is_shown_only_if_asked_for_or_in_the_way(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    headway("exec", "--", "false", code=1)
    headway("submit", "--after", "2", "--", "true")
    headway("jobs", "wait", "3", code=10)
    rows = table(headway)[1:]
    assert [(row[3], row[-1]) for row in rows] == [
        ("failed", "job-2"),
        ("blocked_by_dependency", "job-3"),
    ]
    assert [row[-1] for row in table(headway, "--all")[1:]] == ["job-1", "job-2", "job-3"]


@pytest.mark.req("V88")
def test_the_tree_has_its_header_and_unfolds_three_levels(graph: CommandLine) -> None:
    assert graph.out("jobs", "schedule", "--format", "dag").splitlines() == [
        "Schedule (DAG, verbose)",
        "job-3 waiting_on_deps pack (waiting on job job-2)",
        "  after:success -> job-2 waiting_on_deps",
        "    after:success -> job-1 queued",
        "  custom:bin:app [missing] -> job-1 queued",
        "job-4 queued other",
    ]
    for number in range(5, 9):
        graph("submit", "--after", str(number - 1), "--", "true")
    told = graph.out("jobs", "schedule", "--format", "dag", "--job", "8").splitlines()
    assert told[1:6] == [
        "job-8 waiting_on_deps true (waiting on job job-7)",
        "  after:success -> job-7 waiting_on_deps",
        "    after:success -> job-6 waiting_on_deps",
        "      after:success -> job-5 waiting_on_deps  ...",
        "job-5 waiting_on_deps true (waiting on job job-4)",
    ]
    flat = graph.out("jobs", "schedule", "--format", "dag", "--max-depth", "1", "--job", "8")
    assert not any(line.startswith("    ") for line in flat.splitlines())


@pytest.mark.req("V89")
def test_the_json_is_the_contract(graph: CommandLine) -> None:
    document = graph.json("jobs", "schedule")
    assert list(document) == ["version", "ordering", "jobs", "edges"]
    assert (document["version"], document["ordering"]) == (1, "created_at_then_job_id")
    assert [list(job) for job in document["jobs"]] == [
        ["order", "job_id", "slug", "name", "status", "wait", "created_at"]
    ] * 4
    assert [job["order"] for job in document["jobs"]] == [1, 2, 3, 4]
    assert (document["jobs"][0]["slug"], document["jobs"][1]["slug"]) == ("b1", None)
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", job["created_at"]) for job in document["jobs"]
    )
    assert document["edges"] == [
        {"from": "job-2", "to": "job-1", "after": {"policy": "success"}},
        {"from": "job-3", "to": "job-2", "after": {"policy": "success"}},
        {"from": "job-3", "to": "job-1", "artifact": "custom:bin:app", "state": "missing"},
    ]
    assert json.loads(graph.out("jobs", "schedule", "--format", "json")) == document


@pytest.mark.req("V90")
def test_nothing_to_show_is_said(still: CommandLine) -> None:
    assert still("jobs", "schedule").stdout == EMPTY
    assert still("jobs", "schedule", "--format", "dag").stdout == EMPTY
    assert still("jobs", "schedule", "--all").stdout == EMPTY
    assert still.json("jobs", "schedule") == {
        "version": 1,
        "ordering": "created_at_then_job_id",
        "jobs": [],
        "edges": [],
    }
    assert still.out("jobs", "schedule", "--format", "mermaid") == "flowchart LR"
    assert still.out("jobs", "schedule", "--format", "dot").endswith("}")


def test_pictures_and_graph_languages_are_written(graph: CommandLine) -> None:
    drawn = {each: graph.out("jobs", "schedule", "--format", each) for each in ("mermaid", "dot")}
    assert drawn["mermaid"].startswith("flowchart LR\n") and "job1 --> job2" in drawn["mermaid"]
    assert drawn["dot"].startswith("digraph ") and "job1 -> job2" in drawn["dot"]
    assert ET.fromstring(graph.out("jobs", "schedule", "--format", "svg")).tag.endswith("svg")


@pytest.mark.req("V92", "V95")
@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (["--top", "0"], 5, "--top 0 is too small; the least is 1"),
        (["--top", "many"], 5, "--top 'many' is not a whole number"),
        (["--interval-ms", "99"], 5, "--interval-ms 99 is too small; the least is 100"),
        (["--interval-ms", "1.5"], 5, "--interval-ms '1.5' is not a whole number"),
        (["--max-depth", "0"], 5, "--max-depth 0 is too small; the least is 1"),
        (["--format", "xml"], 5, "--format 'xml' is not one of summary, dag, json"),
        (["--format", "dag", "--json"], 5, "exclude each other"),
        (["--job", "999"], 3, "there is no job-999"),
        (["--job", "../x"], 3, "'../x'"),
        (["--watch"], 5, "--watch needs stdout and stderr on a terminal"),
        (["--watch", "--format", "dag"], 5, "--watch shows the summary"),
        (["--watch", "--json"], 5, "--watch shows the summary"),
        (["--nope"], 2, "No such option"),
    ],
)
def test_what_cannot_be_is_refused(
    still: CommandLine, argv: list[str], code: int, told: str
) -> None:
    done = still("jobs", "schedule", *argv, code=code)
    assert told in done.stderr and done.stdout == ""


def test_the_first_rows_can_be_asked_for(graph: CommandLine) -> None:
    done = graph("jobs", "schedule", "--top", "2")
    assert [line.split()[-1] for line in done.stdout.splitlines()[2:]] == ["job-1", "job-2"]
    assert "only the first 2 are shown (--top 2)" in done.stderr
    assert "only the first" not in graph("jobs", "schedule", "--top", "4").stderr


def test_long_and_wide_names_fit_the_width(still: CommandLine) -> None:
    still("submit", "--name", "漢字" * 40, "--slug", "s" * 60, "--", "true")
    still("submit", "--name", "n" * 200, "--after", "1", "--", "true")
    for columns in (60, 80, 120):
        lines = still("jobs", "schedule", env={"COLUMNS": str(columns)}).stdout.splitlines()
        widths = [sum(2 if "\u4e00" <= char <= "\u9fff" else 1 for char in line) for line in lines]
        assert max(widths) <= columns and len(lines) == 4
        assert lines[2].endswith("job-1") and lines[3].endswith("job-2")


def test_it_says_when_nobody_works(graph: CommandLine) -> None:
    assert "no worker is there" in graph("jobs", "schedule").stderr


@pytest.mark.req("V89")
def test_the_schedule_is_the_same_on_both_stores(site: Site) -> None:
    first = site.submit("true", produces=("custom:a:b",))
    site.submit("true", after=(first,), needs=("custom:a:b",))
    document = json.loads(site.run("jobs", "schedule", "--json").stdout)
    assert [job["job_id"] for job in document["jobs"]] == ["job-1", "job-2"]
    assert [list(edge) for edge in document["edges"]] == [
        ["from", "to", "after"],
        ["from", "to", "artifact", "state"],
    ]
    assert "job-2" in site.run("jobs", "schedule", "--job", "1").stdout


@pytest.mark.req("V84")
def test_waits_are_shown_as_the_worker_sees_them(headway: CommandLine) -> None:
    headway("submit", "--name", "long", "--", "sleep", "60")
    headway("submit", "--name", "next", "--after", "1", "--", "true")
    headway.until_running("1")
    wait_for(lambda: headway.state("2") == "waiting_on_deps")
    assert table(headway)[1:] == [
        ["1", "-", "long", "running", "-", "job-1"],
        ["2", "-", "next", "waiting_on_deps", "waiting on job job-1", "job-2"],
    ]
