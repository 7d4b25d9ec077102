"""A watch and a command that has just ended: the end that was is the truth (ruling C36).

The signal of an ended child may come after the clock, the cancel or the last output has been looked
at. Here it never comes, so that whoever stops the command must look for himself. Each watch is in a
process of its own: it waits for every child that there is.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from supervised import Home

SCENE = """
import json, os, select, signal, sys, time
from headway.supervise import child
from headway.supervise.evidence import Evidence
from headway.supervise.overseer import Overseer
from headway.supervise.tree import Tree
from headway.supervise.watch import Watch

folder, token, act, ended = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "ended"
evidence = Evidence(folder, token)
spec = evidence.read_spec()
pipes = child.Pipes()
wake_read, wake_write = os.pipe()
main = os.fork()
if main == 0:
    os.write(pipes.streams[0][1], b"x" * 5000)
    if ended:
        os._exit(3)
    time.sleep(600)
if ended:
    os.waitid(os.P_PID, main, os.WEXITED | os.WNOWAIT)
else:
    select.select([pipes.streams[0][0]], [], [])
watch = Watch(
    spec, evidence, tree=Tree(None), main=main, pipes=pipes, wake_fd=wake_read, poked=lambda: None
)
pipes.close_child_ends()
if act == "cancel":
    evidence.request_cancel()
    watch._act_on_time(time.monotonic())
elif act == "deadline":
    watch._act_on_time(time.monotonic() + 1000)
elif act == "full log":
    for fd in list(watch._open):
        watch._take_output(fd)
elif act == "overdue call":
    class Late(Overseer):
        def __init__(self):
            self.look_at, self.culprit = 0.0, "t"
        def look(self, now):
            return True
    watch._oversee(Late(), time.monotonic())
stopped = watch.stopped_for
if not ended:
    os.kill(main, signal.SIGKILL)
    os.waitid(os.P_PID, main, os.WEXITED | os.WNOWAIT)
    os.write(wake_write, bytes([signal.SIGCHLD]))  # from here on it comes
tree = watch.run("kill")
print(json.dumps([stopped, watch.stopped_for, os.waitstatus_to_exitcode(watch.wait_status), tree]))
"""
ACTS = {
    "cancel": "cancelled",
    "deadline": "timed_out",
    "full log": "log_full",
    "overdue call": "timed_out",
}


def watched(home: Home, act: str, state: str) -> list[Any]:
    logs = {"head_bytes": 1024, "tail_bytes": 1024, "full": "kill" if act == "full log" else "drop"}
    claim = home.claim("true", logs=logs, timeout_seconds=500)
    done = subprocess.run(
        [sys.executable, "-c", SCENE, claim.evidence.folder, claim.evidence.token, act, state],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        timeout=30,
        check=True,
    )
    told: list[Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("act", ACTS)
def test_who_has_ended_is_stopped_by_nobody(home: Home, act: str) -> None:
    assert watched(home, act, "ended") == [None, None, 3, "gone"]


@pytest.mark.parametrize("act", ACTS)
def test_who_still_runs_is_stopped_for_that_reason(home: Home, act: str) -> None:
    stopped, said, code, tree = watched(home, act, "running")
    assert (stopped, said) == (ACTS[act], ACTS[act])
    assert code < 0 and tree == "gone"


def test_the_first_reason_counts(home: Home) -> None:
    """A command that takes its time to end after a cancel, and passes its deadline meanwhile."""
    claim = home.run_shell(
        "trap 'sleep 2; exit 0' TERM; echo up; while :; do sleep 0.05; done", timeout_seconds=1.5
    )
    claim.says(b"up")
    claim.cancel()
    assert claim.outcome().reason == "cancelled"
    assert not Path(claim.evidence.outcome_tmp).exists()
