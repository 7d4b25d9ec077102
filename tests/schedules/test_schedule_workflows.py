"""Schedules whose slots become runs of a workflow."""

from collections.abc import Callable

import pytest

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, KeyReusedError, NotFoundError
from keeping import Keeping

NIGHTLY = """\
finally = ["report"]
params.keep = 14
[nodes.prune]
argv = ["echo", "keep", "${{ params.keep }}"]
[nodes.backup]
argv = ["true"]
after = ["prune"]
[nodes.report]
argv = ["echo", "${{ run.state }}"]
"""
Write = Callable[[str, str], None]


@pytest.fixture
def write(paused: Keeping) -> Write:
    folder = paused.bench.folder / ".headway" / "workflows"
    folder.mkdir()

    def one(name: str, text: str) -> None:
        (folder / f"{name}.toml").write_text(text)

    return one


def test_a_slot_becomes_a_run(paused: Keeping, write: Write) -> None:
    write("nightly", NIGHTLY)
    schedule = paused.client.schedules.add(
        name="n", every="1m", workflow="nightly", params={"keep": "3"}
    )
    paused.later(60)
    assert [job.node for job in paused.jobs()] == ["prune", "backup", "report"]
    assert {job.schedule_id for job in paused.jobs()} == {schedule.shown}
    document = paused.client.schedules.show("n")
    assert document["workflow"] == "nightly"
    assert document["last_run"] == {"id": "wf-1", "state": "running"}
    run = paused.client.workflows.run(1)
    assert run["params"] == {"keep": 3} and run["created_by"] == schedule.shown
    assert paused.slots("n") == [("fired", 1, None)]


def test_a_slot_is_skipped_while_the_last_run_goes_on(paused: Keeping, write: Write) -> None:
    write("nightly", NIGHTLY)
    paused.client.schedules.add(name="n", every="1m", workflow="nightly")
    paused.later(60)
    paused.later(60)
    (_, skipped) = paused.slots("n")
    assert skipped[0] == "skipped" and "job-1" in str(skipped[2])
    with pytest.raises(ConflictError, match="job-1"):
        paused.client.schedules.trigger("n")
    assert len(paused.client.workflows.runs()) == 1


def test_a_run_is_replaced(paused: Keeping, write: Write) -> None:
    write("nightly", NIGHTLY)
    paused.client.schedules.add(name="n", every="1m", workflow="nightly", overlap="replace")
    paused.later(60)
    paused.later(60)
    first = paused.client.workflows.run(1)
    assert first["stopped_by"] == "schedule-1"
    states = {each["id"]: each["outcome"] for each in first["nodes"]}
    assert states == {"prune": "cancelled", "backup": "cancelled", "report": None}
    assert paused.client.workflows.run(2)["state"] == "running"


def test_the_file_counts_as_it_is_when_it_fires(paused: Keeping, write: Write) -> None:
    write("nightly", NIGHTLY)
    paused.client.schedules.add(name="n", every="1m", workflow="nightly")
    write("nightly", '[nodes.a]\nargv = ["true"]\nafter = ["b"]\n')
    paused.later(60)
    path = ".headway/workflows/nightly.toml"
    assert paused.slots("n") == [("skipped", 1, f"{path}: node 'a': after 'b' names no node")]
    assert paused.jobs() == [] and paused.client.workflows.runs() == []
    write("nightly", '[nodes.a]\nargv = ["true"]\n')
    paused.later(60)
    assert [job.node for job in paused.jobs()] == ["a"]


def test_what_is_wrong_is_refused_when_it_is_added(paused: Keeping, write: Write) -> None:
    write("nightly", NIGHTLY)
    add = paused.client.schedules.add
    with pytest.raises(NotFoundError, match="there is no workflow 'daily'"):
        add(every="1m", workflow="daily")
    with pytest.raises(InvalidInputError, match="there is no parameter 'kep'"):
        add(every="1m", workflow="nightly", params={"kep": "1"})
    with pytest.raises(InvalidInputError, match="retries: the workflow says it itself"):
        add(every="1m", workflow="nightly", retries=2)
    with pytest.raises(InvalidInputError, match="do not queue"):
        add(every="1m", workflow="nightly", overlap="queue")
    assert paused.client.schedules.list() == []


def test_a_run_of_a_slot_runs_to_its_end(keeping: Keeping) -> None:
    bench: Bench = keeping.bench
    folder = bench.folder / ".headway" / "workflows"
    folder.mkdir()
    (folder / "nightly.toml").write_text(NIGHTLY)
    keeping.client.schedules.add(name="n", at="+1m", workflow="nightly")
    made = keeping.client.schedules.trigger("n")
    assert bench.client.job(made.job_id).workflow_run == 1
    bench.until(lambda: bench.client.workflows.run(1)["ended_at"], "the run to end")
    assert bench.client.workflows.run(1)["state"] == "succeeded"


def test_a_run_that_is_triggered_with_the_same_key_is_made_once(
    paused: Keeping, write: Write
) -> None:
    write("nightly", NIGHTLY)
    for name in ("n", "other"):
        paused.client.schedules.add(name=name, at="+1m", workflow="nightly")
    made = paused.client.schedules.trigger("n", key="monday")
    assert paused.client.schedules.trigger("n", key="monday") == (made.job_id, False)
    with pytest.raises(KeyReusedError, match="which other did not make"):
        paused.client.schedules.trigger("other", key="monday")
    assert [each["id"] for each in paused.client.workflows.runs()] == ["wf-1"]
