"""Entries of the jobs file that start workflows."""

from pathlib import Path

import pytest

from declaring import Declaring

NIGHTLY = """\
jobs:
  nightly: {type: workflow, workflow: nightly, params: [keep=3], interval: 60}
"""
FLOW = """\
params.keep = 14
[nodes.prune]
argv = ["true"]
[nodes.backup]
shell = "test ${KEEP} = 3"
env = { KEEP = "${{ params.keep }}" }
after = ["prune"]
"""


@pytest.fixture
def yard(declared_yard: Declaring) -> Declaring:
    return declared_yard


def write(yard: Declaring, text: str) -> None:
    folder = Path(yard.home.path) / "workflows"
    folder.mkdir(exist_ok=True)
    (folder / "nightly.toml").write_text(text)


def test_an_entry_starts_runs_and_counts_from_their_ends(yard: Declaring) -> None:
    write(yard, FLOW)
    yard.declare(NIGHTLY)
    yard.pass_seconds(100)
    runs = yard.client.workflows.runs()
    assert [each["state"] for each in runs] == ["succeeded", "succeeded"]
    assert runs[0]["created_by"] == "jobs.yaml" and runs[0]["params"] == {"keep": 3}
    (entry,) = yard.client.jobsfile.list()["entries"]
    assert entry["last_run"]["status"] == "succeeded"
    assert not any(job.is_entry for job in yard.made("nightly")), "nodes take slots"


def test_an_entry_with_a_wrong_workflow_is_held_with_its_words(yard: Declaring) -> None:
    write(yard, '[nodes.a]\nargv = ["true"]\nafter = ["b"]\n')
    yard.declare(NIGHTLY)
    yard.pass_seconds(5)
    (entry,) = yard.client.jobsfile.list()["entries"]
    assert "node 'a': after 'b' names no node" in entry["held"]["reason"]
    assert yard.client.workflows.runs() == []
    missing = yard.client.jobsfile.missing()
    assert "after 'b' names no node" in missing[0]["text"]
    assert missing[0]["key"] == "jobs.nightly.workflow"
    write(yard, FLOW)
    yard.pass_seconds(30)
    assert len(yard.client.workflows.runs()) == 1
