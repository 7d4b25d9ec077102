"""The nodes of a run, with their passes, over time."""

from typing import Any

from started import Started

from harness import Bench

LOOPS = """\
[nodes.build]
argv = ["true"]
[nodes.check]
shell = "test -e {folder}/once || {{ touch {folder}/once; exit 1; }}"
after = ["build"]
loop = {{ to = "build", on = ["failed"], times = 2 }}
[nodes.report]
argv = ["true"]
after = ["check"]
"""


def ran(row: dict[str, Any]) -> list[str]:
    return [each["state"] for each in row["intervals"] if each["kind"] == "running"]


def test_each_node_is_a_row_with_all_of_its_passes(bench: Bench) -> None:
    run = Started(bench, LOOPS.format(folder=bench.folder))
    run.ended()
    found = bench.client.statistics.timeline_of_run(f"wf-{run.run}")
    rows = {each["name"]: each for each in found["rows"]}
    assert list(rows) == ["build", "check", "report"] and found["of"] == f"wf-{run.run}"
    assert ran(rows["build"]) == ["succeeded"] * 2
    assert ran(rows["check"]) == ["failed", "succeeded"]
    assert (rows["build"]["pass"], rows["report"]["pass"]) == (2, 1)
    assert rows["report"]["intervals"][0]["on"]


def test_the_last_runs_of_a_workflow_say_how_long_they_took(bench: Bench) -> None:
    runs = [Started(bench, LOOPS.format(folder=bench.folder)) for _ in range(2)]
    runs[0].ended()
    found = bench.client.statistics.runs("flow")["runs"]
    assert [each["run"] for each in found] == ["wf-2", "wf-1"]
    assert found[1]["state"] == "succeeded" and found[1]["seconds"] >= 0
