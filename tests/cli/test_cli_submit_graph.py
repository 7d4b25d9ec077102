"""`submit --graph`: a whole file of jobs or nothing, and every mistake in it is told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine

from harness import Site
from headway.jobs.graph_file import FORMS

GRAPH = [
    {"id": "test", "argv": ["true"], "after": ["build", "job-1"], "labels": {"kind": "check"}},
    {"id": "build", "shell": "exit 0", "name": "the build", "timeout": "5m", "retries": 2},
    {"id": "ship", "argv": ["true"], "after": ["test"], "locks": ["repo", "docs:shared"]},
]


def jsonl(jobs: list[Any]) -> str:
    return "".join(json.dumps(job) + "\n" for job in jobs)


def documents(text: str) -> dict[str, str]:
    """The same graph in every form that is taken."""
    return {
        "lines": text,
        "array": json.dumps(GRAPH),
        "object": json.dumps({"jobs": GRAPH}),
        "pretty": json.dumps({"jobs": GRAPH}, indent=2),
        "lines between blank ones": f"\n\n{text}\n",
        "with a byte order mark": f"\ufeff{text}",
    }


@pytest.mark.req("V1")
@pytest.mark.parametrize("form", documents(""))
def test_a_graph_is_taken_in_every_form(still: CommandLine, form: str) -> None:
    still("submit", "--", "true")
    path = still.folder / "graph"
    path.write_text(documents(jsonl(GRAPH))[form], encoding="utf-8")
    assert still.out("submit", "--graph", "graph").split() == ["job-2", "job-3", "job-4"]
    jobs = {job["id"]: job for job in json.loads(still.out("jobs", "list", "--json"))["jobs"]}
    test, build, ship = (jobs[f"job-{number}"] for number in (2, 3, 4))
    assert (test["after"], test["labels"]) == (["job-3", "job-1"], {"kind": "check"})
    assert (test["name"], build["name"]) == ("test", "the build")
    assert (build["params"]["timeout_seconds"], build["max_attempts"]) == (300.0, 2)
    assert test["state"] == "waiting_on_deps", "also for job-1, which is not of the graph"
    assert ship["state"] == "waiting_on_deps"
    assert ship["wait"]["detail"] == "waiting on job job-2"
    assert ship["locks"] == [
        {"key": "docs", "mode": "shared"},
        {"key": "repo", "mode": "exclusive"},
    ]


def test_from_stdin_with_keys_the_document_says_which_are_new(site: Site) -> None:
    graph = jsonl(
        [{"id": "a", "argv": ["true"], "key": "a"}, {"id": "b", "argv": ["true"], "after": ["a"]}]
    )
    expected = [
        ({"a": "job-1", "b": "job-2"}, {"a": True, "b": True}),
        ({"a": "job-1", "b": "job-3"}, {"a": False, "b": True}),
    ]
    for jobs, created in expected:
        done = subprocess.run(
            [sys.executable, "-m", "headway", "submit", "--json", "--graph", "-"],
            cwd=site.folder,
            env=site.env,
            input=graph,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert json.loads(done.stdout) == {"version": 1, "jobs": jobs, "created": created}


def test_a_graph_runs_to_its_end(headway: CommandLine) -> None:
    path = headway.folder / "graph.jsonl"
    note = 'echo $HEADWAY_JOB_ID >> "$PWD/order"'
    path.write_text(
        jsonl(
            [
                {"id": "c", "shell": note, "after": ["b"]},
                {"id": "b", "shell": note, "after": ["a"]},
                {"id": "a", "shell": note},
            ]
        )
    )
    ids = headway.out("submit", "--graph", "graph.jsonl").split()
    headway("jobs", "wait", *ids)
    assert (headway.folder / "order").read_text().split() == list(reversed(ids))


# fault H1
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "graph: there is no job in it"),
        ("[]", "graph: there is no job in it"),
        ("7", "graph: it is not a graph"),
        ("- id: a\n  argv: [true]\n", "graph: it is not JSON; write a list like"),
        ("jobs:\n  - id: a\n", "graph: it is not JSON; write a list like"),
        ('{"jobs": 7}', "graph: it is not a graph"),
        ('{"jobs": [], "job": 1}', "graph: unknown key 'job' beside \"jobs\""),
        ('[{"id": "a", "argv": ["true"]}', "graph: line 1, column 31: "),
        ('[\n{"id": "a" "argv": ["true"]}]', "graph: line 2, column 12: "),
        ('{"id": "a", "argv": ["true"]}\n{"id": ', "graph: line 2: column 8: "),
        ('{"id": "a", "argv": ["true"]}\n7', "graph: line 2: 7 is not a job; write an object"),
        ('{"id": "a", "id": "b", "argv": ["true"]}', "'id' stands twice in one object"),
        ('[{"id": "a", "argv": ["true"], "priority": NaN}]', "NaN is not a number"),
        ('{"argv": ["true"]}', 'line 1: it has no "id"'),
        ('{"id": "a"}', "line 1, job 'a': give argv, or shell, and not both"),
        ('{"id": "a", "argv": ["true"], "shell": "x"}', "give argv, or shell, and not both"),
        ('{"id": "a", "argv": ["true"], "afer": []}', "'afer'; did you mean 'after'?"),
        ('{"id": "a", "argv": "true"}', 'argv is "true"; give a list of texts'),
        ('{"id": "a", "argv": ["true"], "retries": true}', "retries is true; give a whole"),
        ('{"id": "a", "argv": ["true"], "timeout": 5}', 'timeout is 5; give a duration like "5m"'),
        ('{"id": "a", "argv": ["true"], "timeout": "5"}', "timeout '5' is not a duration"),
        ('{"id": "a", "argv": ["true"], "after": [7]}', "after is [7]; give a list of local"),
        ('{"id": "a", "argv": ["true"], "at": "never"}', "at 'never' is not a time"),
        ('{"id": "a", "argv": ["nowhere"]}', "program 'nowhere' was not found"),
        ('{"id": "a", "argv": ["true"], "needs": ["x"]}', "artifact 'x' is not of a known kind"),
        ('{"id": "a", "argv": ["true"], "after": ["a"]}', "a cycle: a -> a"),
        ('{"id": "a", "argv": ["true"], "after": ["b"]}', "job 'a': after 'b' names no job"),
        ("[" * 100_000, "graph: "),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_nothing_is_stored(
    bare: CommandLine, text: str, told: str
) -> None:
    (bare.folder / "graph").write_text(text)
    refused = bare("submit", "--graph", "graph", code=5)
    assert told in refused.stderr and refused.stdout == ""
    assert len(refused.stderr.splitlines()) == 1
    assert not bare.home.exists(), "a first submit that is refused leaves nothing behind"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"id": "a", "agrv": ["true"]}, "unknown key 'agrv'; did you mean 'argv'?"),
        ({"id": "a", "shel": "true"}, "unknown key 'shel'; did you mean 'shell'?"),
        ({"idd": "a", "argv": ["true"]}, "unknown key 'idd'; did you mean 'id'?"),
        ({"id": "a", "argv": ["true"], "priorty": 3}, "did you mean 'priority'?"),
        ({"id": "a", "argv": ["true"], "xyzzy": 3}, "`headway submit --help` has the same words"),
    ],
)
def test_one_wrong_key_is_one_mistake(
    still: CommandLine, entry: dict[str, object], told: str
) -> None:
    (still.folder / "graph").write_text(jsonl([entry]))
    (line,) = still("submit", "--graph", "graph", code=5).stderr.splitlines()
    assert told in line and len(line) < 120


def test_all_mistakes_of_a_file_are_told_at_once(still: CommandLine) -> None:
    jobs = [
        {"id": "a", "argv": ["true"], "after": ["x"], "nmae": 1},
        {"id": "b", "argv": ["true"], "after": ["c"], "priority": "high"},
        {"id": "c", "argv": ["true"], "after": ["b"]},
        {"id": "c", "argv": ["no-such-program"]},
    ]
    (still.folder / "graph").write_text(jsonl(jobs))
    told = still("submit", "--graph", "graph", code=5).stderr
    for each in (
        "line 1, job 'a': unknown key 'nmae'",
        "job 'a': after 'x' names no job",
        "line 2, job 'b': priority is \"high\"",
        "line 4, job 'c': another job is called 'c' already",
        "program 'no-such-program' was not found",
        "a cycle: b -> c -> b",
        "6 things are wrong; nothing was submitted",
    ):
        assert each in told, each
    assert still.out("jobs", "list", "--all", "--json").count('"id"') == 0


def test_bytes_that_are_no_text_and_files_that_are_none_are_refused(bare: CommandLine) -> None:
    (bare.folder / "graph").write_bytes(b'{"id": "\xff", "argv": ["true"]}')
    assert "it is not UTF-8" in bare("submit", "--graph", "graph", code=5).stderr
    assert "cannot read none" in bare("submit", "--graph", "none", code=5).stderr
    assert "cannot read ." in bare("submit", "--graph", ".", code=5).stderr
    (bare.folder / "graph").write_text('{"id": "a", "argv": ["true"], "after": ["job-9"]}')
    assert "there is no job-9" in bare("submit", "--graph", "graph", code=3).stderr
    assert not bare.home.exists()


@pytest.mark.parametrize(
    "options", [["--name", "x"], ["--", "true"], ["--follow"], ["--after", "1"], ["--shell", "x"]]
)
def test_options_of_one_job_do_not_go_with_a_graph(still: CommandLine, options: list[str]) -> None:
    (still.folder / "graph").write_text('{"id": "a", "argv": ["true"]}')
    told = still("submit", "--graph", "graph", *options, code=2).stderr
    assert "--graph takes no" in told
    assert still.out("jobs", "list", "--all", "--json").count('"id"') == 0


def test_a_file_beyond_the_limits_is_refused(
    still: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (still.folder / "graph").write_text(
        jsonl([{"id": f"n{n}", "argv": ["true"]} for n in range(4)])
    )
    still("config", "set", "scheduler.graph_limit", "3")
    assert "more than 3 jobs" in still("submit", "--graph", "graph", code=5).stderr
    (still.folder / "graph").write_text(json.dumps([{}] * 4))
    assert "more than 3 jobs" in still("submit", "--graph", "graph", code=5).stderr


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text(encoding="utf-8")
    for key in FORMS:
        assert f"`{key}`" in page, key


@pytest.mark.req("V46")
def test_to_be_after_a_job_means_after_its_success(still: CommandLine) -> None:
    still("submit", "--", "true")
    still("submit", "--after", "1", "--", "true")
    path = still.folder / "graph"
    path.write_text(jsonl([{"id": "x", "argv": ["true"], "after": ["job-2"]}]))
    still("submit", "--graph", "graph")
    edges = still.json("jobs", "schedule")["edges"]
    assert [each["after"] for each in edges] == [{"policy": "success"}] * 2
    drawn = still.out("jobs", "schedule", "--format", "dag")
    assert drawn.count("after:success -> ") == drawn.count("after:") >= 2


@pytest.mark.req("V46")
@pytest.mark.parametrize("policy", ["any", "success"])
def test_there_is_no_other_policy_to_ask_for(still: CommandLine, policy: str) -> None:
    still("submit", "--", "true")
    refused = still("submit", "--after", f"1:{policy}", "--", "true", code=3)
    assert f"'1:{policy}' is not a job" in refused.stderr
    path = still.folder / "graph"
    for after in ([f"job-1:{policy}"], [{"job": "job-1", "policy": policy}], {"job-1": policy}):
        path.write_text(jsonl([{"id": "x", "argv": ["true"], "after": after}]))
        assert "after" in still("submit", "--graph", "graph", code=5).stderr
    path.write_text(jsonl([{"id": "x", "argv": ["true"], "after_policy": policy}]))
    assert "unknown key 'after_policy'" in still("submit", "--graph", "graph", code=5).stderr
    assert len(still.json("jobs", "list")["jobs"]) == 1
