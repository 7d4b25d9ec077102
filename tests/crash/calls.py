"""Scenes of function calls: who dies between the order of a call and the taking in of its end.

Four calls: the first may be held at a gate, the others wait behind it inside its host. What was
begun is settled once, what was not runs once.
"""

from pathlib import Path

from scenes import Scene
from stage import Stage, work

from harness import wait_for
from headway.core.states import Status
from headway.jobs import submit
from headway.jobs.request import Request
from headway.jobs.specification import function_spec

NAMES = ("first", "second", "third", "fourth")
TASKS = """
import os, time
import headway

app = headway.App()


def enter(word, name):
    with open("ledger", "a") as file:
        file.write(f"{word} {name}\\n")


@app.task
def call(name, gate=None):
    enter("start", name)
    while gate is not None and not os.path.exists(gate):
        time.sleep(0.01)
    enter("end", name)


@app.task
def steps(name):
    headway.current().step("first", enter, "start", name)
    headway.current().step("second", enter, "end", name)
"""


def submit_calls(stage: Stage, *names: str, held: bool = False) -> None:
    Path(stage.folder, "stage_tasks.py").write_text(TASKS)
    stage.settings["app.modules"] = ("stage_tasks",)
    for name in names or NAMES:
        arguments = {"name": name}
        if held and name == "first":
            arguments["gate"] = "gate-first"
        spec = function_spec(Request(name=name), "stage_tasks.call", arguments)
        (submitted,) = submit.submit_calls(stage.client.context, [spec])
        stage.called(name, submitted.job_id)


def host_dies_between_steps(worker_dies: bool) -> Scene:
    """The retry finds the step that was recorded, and goes on with the next."""

    def scene(stage: Stage, point: str) -> None:
        Path(stage.folder, "stage_tasks.py").write_text(TASKS)
        stage.settings["app.modules"] = ("stage_tasks",)
        request = Request(name="first", retries=1, retry_base=0)
        spec = function_spec(request, "stage_tasks.steps", {"name": "first"})
        (submitted,) = submit.submit_calls(stage.client.context, [spec])
        stage.called("first", submitted.job_id)
        worker = stage.actor(work, children=f"{point}=kill")
        assert stage.killed_at() == point
        if worker_dies:
            stage.kill(worker)
            worker = stage.actor(work)
        wait_for(lambda: stage.client.jobs.last_of_chain(1).attempt == 2, what="the retry")
        stage.until_ended(2)
        stage.leave(worker)
        stage.settings["app.modules"] = ()
        stage.check_settled()
        assert [stage.status(job) for job in (1, 2)] == [Status.FAILED, Status.SUCCEEDED]
        assert stage.written() == [("start", "first"), ("end", "first")]

    return scene


def check_calls(stage: Stage, first: Status = Status.SUCCEEDED, begun: int = 1) -> None:
    stage.settings["app.modules"] = ()  # to start once more is not to start a host
    stage.check_settled()
    assert [stage.status(stage.number(name)) for name in NAMES[1:]] == [Status.SUCCEEDED] * 3
    job = stage.client.job(stage.number("first"))
    assert job.status is first
    if first is Status.FAILED:
        assert job.reason is not None and job.reason.startswith("its host died: ")
    assert stage.written().count(("start", "first")) == begun


def worker_dies_calling(stage: Stage, point: str) -> None:
    """It started a host, or handed out calls; those that began are taken in by the next one."""
    submit_calls(stage)
    stage.dies_at(point, work)
    stage.finish()
    check_calls(stage)


def worker_dies_among_many(stage: Stage, point: str) -> None:
    """It settles one call and claims the next, again and again, and looks at nothing else."""
    names = [f"call-{number}" for number in range(12)]
    stage.client.set_setting("scheduler.max_active", 1)
    submit_calls(stage, *names)
    stage.dies_at(point, work, visit=8)
    _finish_many(stage, names)


def worker_dies_one_by_one(stage: Stage, point: str) -> None:
    """It makes quick calls of which each waits for the end of the last."""
    names = [f"call-{number}" for number in range(40)]
    stage.patches["headway.functions.pool.host.AIM"] = 3600.0  # all are quick enough
    stage.client.set_setting("scheduler.max_active", 1)
    submit_calls(stage, *names)
    stage.dies_at(point, work, visit=5)
    _finish_many(stage, names)


def _finish_many(stage: Stage, names: list[str]) -> None:
    stage.finish()
    stage.settings["app.modules"] = ()
    stage.check_settled()
    assert {stage.status(stage.number(name)) for name in names} == {Status.SUCCEEDED}
    once = sorted((word, name) for word in ("start", "end") for name in names)
    assert sorted(stage.written()) == once


def worker_dies_taking_back(stage: Stage, point: str) -> None:
    """It takes back what an earlier one had handed out, and dies before it says so in the store."""
    stage.patches["headway.functions.pool.processes.STUCK"] = 3600.0
    stage.patches["headway.functions.pool.host.AIM"] = 3600.0
    submit_calls(stage, "second", "third")
    worker = stage.actor(work)
    stage.until_ended(*stage.names)  # quick ones, so that a call may wait inside the host
    submit_calls(stage, "first", "fourth", held=True)
    fourth = stage.number("fourth")
    wait_for(lambda: ("start", "first") in stage.written(), what="the first call")
    wait_for(lambda: stage.status(fourth) is Status.RUNNING, what="one that waits in the host")
    stage.kill(worker)
    stage.dies_at(point, work)
    stage.open_gate("first")
    stage.finish()
    check_calls(stage)


def host_dies(first: Status, begun: int) -> Scene:
    """Its worker goes on, and has another host make the calls that it had not begun."""

    def scene(stage: Stage, point: str) -> None:
        submit_calls(stage)
        worker = stage.actor(work, children=f"{point}=kill")
        assert stage.killed_at() == point
        stage.until_ended(*stage.names)
        stage.leave(worker)
        check_calls(stage, first, begun)

    return scene


def host_dies_with_worker(first: Status, begun: int) -> Scene:
    """The next worker finds the journal of a dead host."""

    def scene(stage: Stage, point: str) -> None:
        submit_calls(stage)
        worker = stage.actor(work, children=f"{point}=kill")
        assert stage.killed_at() == point
        stage.kill(worker)
        stage.finish()
        check_calls(stage, first, begun)

    return scene
