"""The process of a node: a hidden command that does nothing outside of its claim."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from started import Started

from harness import Bench, wait_for
from headway.supervise.evidence import Evidence
from headway.workflows.labels import LABELS, TERMINAL
from headway.workflows.model import WorkflowFile
from headway.workflows.node_process import claim_of
from headway.workflows.start import RunRequest, compile_run, start

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


EVERY_SORT = """
[nodes.gate]
uses = "control.gate.stop_condition"
[nodes.operation]
uses = "cap.env.builtin.prompt.resolve"
args = { prompt_text = "x" }
produces = ["custom:prompt_text:x"]
[nodes.fan]
argv = ["echo", "${{ item }}"]
each = { in = "${{ params.items }}" }
[nodes.end]
uses = "control.terminal"
[params]
items = { type = "list", default = ["a"] }
"""


@pytest.mark.req("V13")
def test_only_commands_are_their_own_main_process(bench: Bench) -> None:
    run = Started(bench, EVERY_SORT)
    assert run.ended()["state"] == "succeeded", run.document

    def argv(name: str) -> list[str]:
        (claim,) = Path(bench.home.job(run.job(name))).glob("claim.*")
        found: list[str] = json.loads(claim.read_text())["argv"]
        return found

    for name in ("gate", "operation", "fan", "end"):
        assert argv(name)[-3:] == ["__workflow-node", "--job-id", str(run.job(name))]
    assert argv("fan[0]") == ["echo", "a"]


@pytest.mark.parametrize("job", ["job-8", "", None])
def test_a_claim_counts_for_its_own_job_alone(tmp_path: Path, job: str | None) -> None:
    (tmp_path / "claim.T").write_text('{"node": {}}')
    environ = {"HEADWAY_CLAIM": "T", "HEADWAY_OUTPUTS": str(tmp_path / "outputs.T")}
    if job is not None:
        environ["HEADWAY_JOB_ID"] = job
    assert claim_of("7", environ) is None
    assert claim_of("7", {**environ, "HEADWAY_JOB_ID": "job-7"}) == {"node": {}}


SETS = """
[nodes.a]
shell = 'until [ -e {go} ]; do sleep 0.01; done; echo x=one >> "$HEADWAY_OUTPUTS"'
outputs = ["x"]
on.succeeded = ["b"]
[nodes.b]
argv = ["echo", "${{{{ nodes.a.outputs.x }}}}"]
"""


def _cut(file: Path) -> None:
    file.write_text("x=on")


@pytest.mark.parametrize("damage", [os.unlink, _cut], ids=["lost", "torn"])
def test_outputs_that_are_not_as_their_supervisor_saw_them_fail_the_node(
    bench: Bench, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    run = Started(bench, SETS.format(go=tmp_path / "go"))
    bench.until(lambda: run.node("a")["state"] == "running", "it to run")
    with bench.store.read() as tx:
        (claim,) = tx.claims.live()
    evidence = Evidence(claim.folder, claim.token)
    (tmp_path / "go").touch()
    wait_for(lambda: evidence.read_outcome(), what="its outcome on disk")
    damage(Path(evidence.outputs))
    assert run.ended()["state"] == "failed"
    assert run.node("a")["reason"] == "its outputs are missing"
    assert run.outcomes() == {"a": "failed", "b": "unreached"}


def test_a_terminal_of_which_its_manifest_lets_others_follow_fails(bench: Bench) -> None:
    """No file is compiled to such a manifest."""
    context, request = bench.client.context, RunRequest()
    text = '[nodes.a]\nargv = ["true"]\non.succeeded = ["b"]\n[nodes.b]\nargv = ["true"]\n'
    made = compile_run(context, WorkflowFile("flow", "flow.toml", text), request)
    nodes = dict(made.workflow.nodes)
    nodes["a"] = nodes["a"]._replace(label=LABELS[TERMINAL], argv=())
    compiled = tuple(each._replace(argv=()) if each.id == "a" else each for each in made.nodes)
    workflow = made.workflow._replace(nodes=nodes)
    start(context, made._replace(workflow=workflow, nodes=compiled), request)
    (job,) = bench.until_ended(1)
    assert job.reason == "terminal policy node must not declare outgoing routes"
    bench.until_ended(2)


def test_a_terminal_is_no_less_one_with_a_node_of_finally(bench: Bench) -> None:
    run = Started(
        bench,
        """
        finally = ["last"]
        [nodes.done]
        uses = "control.terminal"
        [nodes.last]
        argv = ["true"]
        """,
    )
    assert run.ended()["state"] == "succeeded"


@pytest.mark.parametrize("uses", ["control.gate.cicd", "cap.env.shell.command.run"])
def test_a_node_that_falls_silent_is_ended(bench: Bench, uses: str) -> None:
    run = Started(
        bench,
        f"""
        [nodes.it]
        uses = "{uses}"
        shell = "echo up; exec sleep 600"
        idle_timeout = "300ms"
        grace = "100ms"
        """,
    )
    assert run.ended()["state"] == "failed"
    assert run.node("it")["reason"] == "no output for 0.3 s"
