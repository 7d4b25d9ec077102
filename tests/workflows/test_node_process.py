"""The process of a node: a hidden command that does nothing outside of its claim."""

import json
from pathlib import Path

import pytest
from started import Started

from harness import Bench
from headway.workflows.node_process import claim_of

GATE = """
[nodes.gate]
uses = "control.gate.cicd"
shell = 'tr "\\0" " " < /proc/$PPID/cmdline'
"""


@pytest.mark.req("V13")
def test_a_node_runs_through_a_hidden_command(bench: Bench) -> None:
    run = Started(bench, GATE)
    run.ended()
    assert f"__workflow-node --job-id {run.job('gate')} " in run.log("gate")
    claims = list(Path(bench.home.job(run.job("gate"))).glob("claim.*"))
    assert json.loads(claims[0].read_text())["node"]["operation"] == "gate.cicd"


@pytest.mark.parametrize("job", ["job-8", "", None])
def test_a_claim_counts_for_its_own_job_alone(tmp_path: Path, job: str | None) -> None:
    (tmp_path / "claim.T").write_text('{"node": {}}')
    environ = {"HEADWAY_CLAIM": "T", "HEADWAY_OUTPUTS": str(tmp_path / "outputs.T")}
    if job is not None:
        environ["HEADWAY_JOB_ID"] = job
    assert claim_of("7", environ) is None
    assert claim_of("7", {**environ, "HEADWAY_JOB_ID": "job-7"}) == {"node": {}}
