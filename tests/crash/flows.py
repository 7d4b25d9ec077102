"""Scenes with a run of a workflow: whoever starts it, or runs a node of it, dies."""

import os
import subprocess
from pathlib import Path

from calls import TASKS
from checkouts import repository
from stage import Part, Stage, work

from harness import wait_for
from headway.core.states import Status
from headway.workflows.model import WorkflowFile
from headway.workflows.runs import show_run
from headway.workflows.start import RunRequest, compile_run, start

TEXT = """
finally = ["last"]
[nodes.a]
shell = '''{a}; echo "said=so" >> "$HEADWAY_OUTPUTS"; {a_end}'''
outputs = ["said"]
on.failed = ["alarm"]
[nodes.b]
shell = '{b}; {b_end}'
after = ["a"]
when = ["${{{{ nodes.a.outputs.said }}}} == so"]
[nodes.alarm]
shell = '{alarm}; {alarm_end}'
[nodes.last]
shell = '{last}; {last_end}'
"""
NODES = ("a", "b", "alarm", "last")
# Red, then green: the second pass finds what the first one left.
LOOP = """
[nodes.list]
shell = '''echo one >> {log}; echo 'items:=["x", "y"]' >> "$HEADWAY_OUTPUTS"'''
outputs = ["items"]
[nodes.each]
shell = 'echo "$HEADWAY_NODE" >> {log}; test $(grep -c one {log}) -ge 2'
each = {{ in = "${{{{ nodes.list.outputs.items }}}}" }}
after = ["list"]
loop = {{ to = "list", times = 3 }}
[nodes.done]
shell = 'echo done >> {log}'
after = ["each"]
"""


def start_flow(part: Part, text: str) -> None:
    context = part.client().context
    request = RunRequest()
    start(context, compile_run(context, WorkflowFile("flow", "flow.toml", text), request), request)


def _text(stage: Stage) -> str:
    begun = {name: stage.entry("start", name) for name in NODES}
    ended = {f"{name}_end": stage.entry("end", name) for name in NODES}
    for number, name in enumerate(NODES, 1):
        stage.called(name, number)
    return TEXT.format(**begun, **ended)


CALLS = """
[nodes.first]
task = "stage_tasks.call"
args.arguments = { name = "first" }
on.failed = ["alarm"]
[nodes.second]
task = "stage_tasks.call"
args.arguments = { name = "${{ params.second }}" }
after = ["first"]
[nodes.alarm]
argv = ["true"]
[params]
second = "second"
"""


def worker_dies_in_flow_of_calls(stage: Stage, point: str) -> None:
    """It has claimed the call of a node, or handed it out; the next worker goes on with the run."""
    Path(stage.folder, "stage_tasks.py").write_text(TASKS)
    stage.settings["app.modules"] = ("stage_tasks",)
    for number, name in enumerate(("first", "second", "alarm"), 1):
        stage.called(name, number)
    stage.actor(start_flow, CALLS).join(30)
    stage.dies_at(point, work)
    stage.finish()
    stage.settings["app.modules"] = ()
    del stage.names[3]  # it leaves no entry in the ledger
    stage.check_settled()
    assert [stage.status(job) for job in (1, 2, 3)] == [
        *(Status.SUCCEEDED, Status.SUCCEEDED, Status.SKIPPED),
    ]
    assert show_run(stage.client.context, 1)["state"] == "succeeded"


def check_flow(stage: Stage, *, a: Status, state: str) -> None:
    stage.check_settled()
    went_well = a is Status.SUCCEEDED
    assert stage.status(1) is a
    assert stage.status(2) is (Status.SUCCEEDED if went_well else Status.BLOCKED_BY_DEPENDENCY)
    assert stage.status(3) is (Status.SKIPPED if went_well else Status.SUCCEEDED)
    assert stage.status(4) is Status.SUCCEEDED
    assert show_run(stage.client.context, 1)["state"] == state
    ends = stage.rows("select count(*) from events where kind = 'workflow_ended'")
    assert ends == [(1,)], "a run ends once"


def starter_dies_of_flow(stage: Stage, point: str) -> None:
    """After its commit: the whole run is there, and runs."""
    stage.dies_at(point, start_flow, _text(stage))
    stage.finish()
    check_flow(stage, a=Status.SUCCEEDED, state="succeeded")


def worker_dies_in_flow(stage: Stage, point: str) -> None:
    """Between the end of a node and what follows from it there is no instant."""
    stage.actor(start_flow, _text(stage)).join(30)
    stage.dies_at(point, work, visit=2)
    stage.finish()
    check_flow(stage, a=Status.SUCCEEDED, state="succeeded")


def worker_dies_in_loop(stage: Stage, point: str) -> None:
    """What goes back, and what a list becomes, is whole or not there; nothing happens twice."""
    log = stage.folder / "log"
    stage.actor(start_flow, LOOP.format(log=log)).join(30)
    stage.dies_at(point, work)
    worker = stage.actor(work)
    wait_for(lambda: show_run(stage.client.context, 1)["ended_at"], what="the run to end")
    stage.leave(worker)
    assert show_run(stage.client.context, 1)["state"] == "succeeded"
    first = ["one", "each[0]", "each[1]"]
    assert sorted(log.read_text().split()) == sorted([*first, *first, "done"])
    assert stage.rows("select used from workflow_loops") == [(1,)]


def supervisor_dies_with_outputs(stage: Stage, point: str) -> None:
    """Its outputs are there, its outcome is not: that counts as nothing, and the run goes on where
    a failure leads."""
    stage.actor(start_flow, _text(stage)).join(30)
    worker = stage.actor(work, children=f"{point}=kill")
    assert stage.killed_at() == point
    stage.until_ended(*stage.names)
    stage.leave(worker)
    check_flow(stage, a=Status.FAILED, state="failed")


COMMIT = """
[nodes.commit]
uses = "cap.env.builtin.git.stage_commit"
args = { message = "feat: more" }
retry_base = "1ms"
[nodes.after]
argv = ["test", "${{ nodes.commit.outputs.changed }}", "=", "1"]
after = ["commit"]
"""


def start_flow_in(part: Part, text: str, folder: str) -> None:
    os.chdir(folder)
    start_flow(part, text)


def supervisor_dies_with_a_commit(stage: Stage, point: str) -> None:
    """An operation that is done, of which nobody knows: it is repeated, and finds its commit."""
    repo = repository(stage)
    (repo / "file").write_text("more\n")
    stage.actor(start_flow_in, COMMIT, str(repo)).join(30)
    worker = stage.actor(work, children=f"{point}=kill")
    assert stage.killed_at() == point
    context = stage.client.context
    wait_for(lambda: show_run(context, 1)["ended_at"], what="the run to end")
    stage.leave(worker)
    document = show_run(context, 1)
    assert document["state"] == "succeeded", document
    assert stage.rows("select max(attempt) from jobs") == [(2,)], "it was repeated"
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=repo, capture_output=True, check=True, text=True
    )
    assert log.stdout.split("\n")[:2] == ["feat: more", "begin"], "and committed once"
