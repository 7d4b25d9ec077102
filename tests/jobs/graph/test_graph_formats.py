"""The JSON contract, the verbose tree, Mermaid and DOT."""

import json
import re

import pytest
from drawn import HOSTILE, graph, missing, node, present, schedule
from hypothesis import given
from hypothesis import strategies as st

from headway.core.states import Status
from headway.jobs.views.graph.dag import HEADER, dag
from headway.jobs.views.graph.formats import document, dot, mermaid
from headway.jobs.views.graph.model import GraphSchedule, arrange

FAN = (
    node(1, Status.RUNNING, slug="first"),
    node(2, Status.WAITING_ON_DEPS, after=(1,), wait="waiting on job job-1"),
    node(3, Status.WAITING_ON_DEPS, after=(1,)),
    node(4, after=(2, 3), needs=(missing("custom:a:b", 1), present("file:/x"))),
)


@pytest.mark.req("V89")
def test_the_json_has_exactly_the_keys_of_the_contract() -> None:
    assert document(schedule(*FAN[:2])) == {
        "ordering": "created_at_then_job_id",
        "jobs": [
            {
                "order": 1,
                "job_id": "job-1",
                "slug": "first",
                "name": "name-1",
                "status": "running",
                "wait": None,
                "created_at": "1970-01-01T00:00:01.000000Z",
            },
            {
                "order": 2,
                "job_id": "job-2",
                "slug": None,
                "name": "name-2",
                "status": "waiting_on_deps",
                "wait": "waiting on job job-1",
                "created_at": "1970-01-01T00:00:02.000000Z",
            },
        ],
        "edges": [{"from": "job-2", "to": "job-1", "after": {"policy": "success"}}],
    }


@pytest.mark.req("V89")
def test_an_artifact_edge_has_its_text_and_its_state() -> None:
    assert document(schedule(*FAN))["edges"][-2:] == [
        {"from": "job-4", "to": "job-1", "artifact": "custom:a:b", "state": "missing"},
        {"from": "job-4", "to": None, "artifact": "file:/x", "state": "present"},
    ]


@pytest.mark.req("V89")
def test_an_edge_names_the_declared_job_of_a_retried_chain() -> None:
    known = graph(node(3, chain=1), node(4, after=(1,)), ends={1: 3})
    assert document(arrange(known))["edges"] == [
        {"from": "job-4", "to": "job-1", "after": {"policy": "success"}}
    ]


def lines(drawn: GraphSchedule, max_depth: int = 3) -> list[str]:
    return list(dag(drawn, max_depth=max_depth))


@pytest.mark.req("V88")
def test_with_all_jobs_the_tree_tells_a_failure_and_its_retry_apart() -> None:
    first, again = node(1, Status.FAILED), node(3, Status.SUCCEEDED, chain=1)
    told = lines(arrange(graph(first, again, node(4, after=(1,)), ends={1: 3}), everything=True))
    assert "job-1 failed name-1" in told
    assert "  after:success -> job-3 succeeded" in told
    assert not any("-> job-1" in line for line in told)


@pytest.mark.req("V88")
def test_the_tree_unfolds_what_each_job_depends_on() -> None:
    assert HEADER == "Schedule (DAG, verbose)"
    assert lines(schedule(*FAN)) == [
        "job-4 queued name-4",
        "  after:success -> job-2 waiting_on_deps",
        "    after:success -> job-1 running",
        "  after:success -> job-3 waiting_on_deps",
        "    after:success -> job-1 running",
        "  custom:a:b [missing] -> job-1 running",
        "  file:/x [present] (nobody produces it)",
    ]


@pytest.mark.req("V88")
def test_the_tree_names_the_last_job_of_a_chain_or_says_that_it_is_gone() -> None:
    known = graph(node(3, Status.RUNNING, chain=1), node(4, after=(1, 2)), ends={1: 3})
    assert lines(arrange(known)) == [
        "job-4 queued name-4",
        "  after:success -> job-3 running",
        "  after:success -> job-2 gone",
    ]


def chain(length: int) -> GraphSchedule:
    return schedule(*(node(n, after=(n - 1,) if n > 1 else ()) for n in range(1, length + 1)))


@pytest.mark.req("V88")
def test_depth_bounds_the_nesting_and_what_is_cut_goes_on_by_itself() -> None:
    assert lines(chain(6), max_depth=2) == [
        "job-6 queued name-6",
        "  after:success -> job-5 queued",
        "    after:success -> job-4 queued  ...",
        "job-4 queued name-4",
        "  after:success -> job-3 queued",
        "    after:success -> job-2 queued  ...",
        "job-2 queued name-2",
        "  after:success -> job-1 queued",
    ]


def test_a_chain_longer_than_the_interpreters_stack_is_unfolded() -> None:
    told = lines(chain(3000), max_depth=5000)
    assert len(told) == 3000
    assert told[-1] == "  " * 2999 + "after:success -> job-1 queued"


def test_what_many_share_is_unfolded_once_so_the_tree_stays_small() -> None:
    """Two jobs per layer, each after both of the layer before: 2^20 ways through 40 jobs."""
    nodes = [
        node(2 * layer + side, after=(2 * layer - 1, 2 * layer - 2) if layer > 1 else ())
        for layer in range(1, 21)
        for side in (0, 1)
    ]
    told = lines(schedule(*nodes), max_depth=100)
    assert len(told) <= len(nodes) + sum(len(each.after) for each in nodes)
    assert any(line.endswith("(above)") for line in told)


def unfolded(told: list[str]) -> list[tuple[str, list[str]]]:
    """The job of each line, with the jobs that stand directly below it."""
    found: list[tuple[str, list[str]]] = []
    path: list[list[str]] = []
    for line in told:
        depth = (len(line) - len(line.lstrip())) // 2
        job = re.search(r"job-\d+", line)
        assert job is not None and depth <= len(path)
        if depth:
            path[depth - 1].append(job[0])
        path[depth:] = [[]]
        found.append((job[0], path[-1]))
    return found


@given(st.lists(st.sets(st.integers(1, 30), max_size=4), min_size=1, max_size=30))
def test_every_row_is_unfolded_once_and_no_line_is_too_many(befores: list[set[int]]) -> None:
    nodes = [
        node(at, after=tuple(sorted(each for each in before if each < at)))
        for at, before in enumerate(befores, 1)
    ]
    for max_depth in (1, 2, 30):
        told = lines(schedule(*nodes), max_depth)
        assert len(told) <= len(nodes) + sum(len(each.after) for each in nodes)
        assert max(len(line) - len(line.lstrip()) for line in told) <= 2 * max_depth
        found = unfolded(told)
        for each in nodes:
            wanted = [f"job-{before}" for before in each.after]
            seen = [below for job, below in found if job == f"job-{each.id}"]
            assert [below for below in seen if below] == ([wanted] if wanted else [])
            assert seen


def test_the_focused_job_begins_the_tree() -> None:
    drawn = schedule(*FAN, focus=2)
    assert lines(drawn)[:2] == [
        "job-2 waiting_on_deps name-2 (waiting on job job-1)",
        "  after:success -> job-1 running",
    ]


def test_mermaid_draws_from_what_is_needed_to_who_needs_it() -> None:
    drawn = list(mermaid(schedule(*FAN)))
    assert drawn[0] == "flowchart LR"
    assert '  job1["job-1 first<br/>name-1<br/>running"]:::running' in drawn
    assert "  job1 --> job2" in drawn
    assert '  job1 -. "custom:a:b [missing]" .-> job4' in drawn
    assert [line for line in drawn if "file:/x" in line] == [
        '  artifact5(["file:/x [present]"]) -.-> job4'
    ]
    assert any(line.startswith("  classDef running ") for line in drawn)


def test_a_hostile_name_stays_a_name_in_mermaid() -> None:  # fault H9
    (label,) = re.findall(r'job1\["(.*)"\]:::', "\n".join(mermaid(schedule(node(1, name=HOSTILE)))))
    name = label.split("<br/>")[1]
    assert not set(name) & set('"<>&`{}\\\x1b\n')
    decoded = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), name)
    assert "<script>" in decoded and "\x1b" not in decoded


def test_dot_draws_the_same() -> None:
    drawn = list(dot(schedule(*FAN)))
    assert (drawn[0], drawn[-1]) == ("digraph schedule {", "}")
    assert "  job1 -> job2;" in drawn
    assert '  job1 -> job4 [style=dashed, label="custom:a:b [missing]"];' in drawn


def test_a_hostile_name_stays_a_name_in_dot() -> None:  # fault H9
    (line,) = [line for line in dot(schedule(node(1, name=HOSTILE))) if "job1 [" in line]
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    assert re.sub(r'"((?:[^"\\]|\\.)*)"', "S", line) == "  job1 [label=S, fillcolor=S, color=S];"
    name = re.sub(r"\\(.)", r"\1", strings[0])
    assert '<script>alert("x")</script>' in name
    assert "\x1b" not in line and "\n" not in line


def test_an_arrow_from_a_job_that_is_no_row_has_its_box() -> None:
    drawn = schedule(node(1, Status.SUCCEEDED), node(2, after=(1,)))
    assert json.dumps(document(drawn)["jobs"]).count("job_id") == 1
    assert any(line.startswith("  job1[") for line in mermaid(drawn))
    assert any(line.startswith("  job1 [") for line in dot(drawn))
