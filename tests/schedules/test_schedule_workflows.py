"""Schedules whose slots become runs of a workflow."""

from collections.abc import Callable
from functools import partial

import pytest

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, KeyReusedError, NotFoundError
from headway.core.states import Status
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
GATED = """\
finally = ["report"]
defaults.locks = []
[nodes.one]
shell = "echo $HEADWAY_WORKFLOW_RUN >> log; while ! test -e gate; do sleep 0.01; done; {end}"
[nodes.two]
shell = "echo $HEADWAY_WORKFLOW_RUN >> log; while ! test -e gate; do sleep 0.01; done"
[nodes.report]
shell = "echo $HEADWAY_WORKFLOW_RUN >> log; touch gate"
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
    assert skipped == ("skipped", 1, "wf-1 has not ended")
    with pytest.raises(ConflictError, match="n: wf-1 has not ended; wait for it, or stop it"):
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


@pytest.mark.parametrize("end", ["true", "false"])
def test_runs_that_queue_begin_one_after_the_other_however_they_end(
    keeping: Keeping, end: str
) -> None:
    bench = keeping.bench
    keeping.client.set_setting("scheduler.max_active", 5)
    folder = bench.folder / ".headway" / "workflows"
    folder.mkdir()
    (folder / "nightly.toml").write_text(GATED.format(end=end))
    keeping.client.schedules.add(name="n", every="1m", workflow="nightly", overlap="queue")
    for _ in range(3):
        keeping.later(60)
    assert keeping.slots("n") == [("fired", 1, None)] * 3
    roots = [job for job in keeping.jobs() if job.node in ("one", "two")]
    assert [job.status for job in roots] == [
        *[Status.RUNNING] * 2,
        *[Status.WAITING_ON_DEPS] * 4,
    ]
    assert [job.wait and job.wait.detail for job in roots[2:]] == [
        *["waiting on wf-1"] * 2,
        *["waiting on wf-2"] * 2,
    ]
    assert keeping.client.workflows.run(2)["state"] == "running"
    (bench.folder / "gate").touch()
    keeping.let_end()
    state = "succeeded" if end == "true" else "failed"
    runs = [keeping.client.workflows.run(each) for each in (1, 2, 3)]
    assert [run["state"] for run in runs] == [state] * 3
    log = (bench.folder / "log").read_text().split()
    assert log == [*["wf-1"] * 3, *["wf-2"] * 3, *["wf-3"] * 3]


def test_a_queued_run_waits_for_all_before_it_also_if_one_is_stopped(
    paused: Keeping, write: Write
) -> None:
    write("nightly", NIGHTLY)
    paused.client.schedules.add(name="n", every="1m", workflow="nightly", overlap="queue")
    for _ in range(3):
        paused.later(60)
    paused.client.workflows.stop(2, everything=True)
    paused.settle()
    assert paused.client.workflows.run(2)["state"] == "cancelled"
    third = next(job for job in paused.jobs() if job.workflow_run == 3)
    assert third.wait is not None and third.wait.detail == "waiting on wf-1"


def test_all_that_was_missed_becomes_runs_in_line(paused: Keeping, write: Write) -> None:
    write("nightly", NIGHTLY)
    paused.client.schedules.add(name="n", every="1m", workflow="nightly", catch_up="all")
    assert paused.client.schedules.show("n")["overlap"] == "queue"
    paused.later(180)
    assert paused.slots("n") == [("fired", 1, None)] * 3
    roots = [job for job in paused.jobs() if job.node == "prune"]
    details = [job.wait and job.wait.detail for job in roots[1:]]
    assert details == ["waiting on wf-1", "waiting on wf-2"]
    assert paused.client.schedules.trigger("n").job_id == 10


def test_a_run_that_replaces_begins_when_the_one_before_has_ended(keeping: Keeping) -> None:
    bench = keeping.bench
    keeping.client.set_setting("scheduler.max_active", 5)
    folder = bench.folder / ".headway" / "workflows"
    folder.mkdir()
    (folder / "nightly.toml").write_text(GATED.format(end="true"))
    keeping.client.schedules.add(name="n", every="1m", workflow="nightly", overlap="replace")
    keeping.later(60)
    keeping.later(60)
    bench.until(lambda: keeping.client.workflows.run(2)["ended_at"], "the second run to end")
    first, second = (keeping.client.workflows.run(each) for each in (1, 2))
    assert (first["state"], second["state"]) == ("cancelled", "succeeded")
    log = (bench.folder / "log").read_text().split()
    assert log == sorted(log) and log.count("wf-2") == 3


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
    write("daily", '[nodes.a]\nargv = ["no-such-program"]\n')
    with pytest.raises(InvalidInputError, match=r"'no-such-program' was not found.*PATH of .env."):
        add(every="1m", workflow="daily")
    assert paused.client.schedules.list() == []


def test_a_schedule_without_a_name_is_called_like_its_workflow(
    paused: Keeping, write: Write
) -> None:
    for name in ("nightly", "7"):
        write(name, NIGHTLY)
    add = partial(paused.client.schedules.add, every="1m")
    path = str(paused.bench.folder / ".headway" / "workflows" / "nightly.toml")
    assert [add(workflow=each).name for each in ("nightly", "nightly", path, "7")] == [
        *("nightly", "nightly-2", "nightly-3", "schedule-4"),
    ]
    paused.client.schedules.remove("nightly-2")
    assert add(workflow="nightly").name == "nightly-2"
    assert add(workflow="nightly", name="other").name == "other"
    assert add(argv=["true"]).name == "schedule-7"


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
