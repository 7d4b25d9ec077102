"""What a person must decide is decided by no job and by no agent, also not through a server."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from both_stores import on_a_file
from harness import Bench
from headway.base.errors import ConflictError
from headway.client import Client
from headway.core.states import Status

HOUR = 3_600_000_000
SERVER = """
import sys
from headway.client import connect
own = connect(home=sys.argv[1], actor="own")
def decided(client, job):
    try:
        return client.jobs.approve(job).approval.decided_by
    except Exception as error:
        return str(error).partition(":")[0]
theirs = own.acting("token:ann", "person", folder="/", environ={}, umask=0o022)
print(decided(own, 1), decided(theirs, 1), sep="\\n")
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside of all jobs."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def inside(bench: Bench) -> int:
    """A process inside job-1, without a trace of it in its environment."""
    note = bench.folder / "pid"
    bench.submit("env", "-i", "sh", "-c", f"sleep 600 & echo $! > {note}; wait", grace=0)
    bench.until(lambda: note.exists() and note.read_text().endswith("\n"))
    return int(note.read_text())


def acting(bench: Bench, kind: str = "person", **options: Any) -> Client:
    given: dict[str, Any] = {"folder": str(bench.folder), "environ": {}, "umask": 0o022}
    return bench.client.acting("token:ann", kind, **given, **options)


DECISIONS: dict[str, Callable[[Client, int], Any]] = {
    "approve": lambda client, job: client.jobs.approve(job),
    "reject": lambda client, job: client.jobs.reject(job),
    "repin": lambda client, job: client.jobs.repin(job),
}


@on_a_file
@pytest.mark.parametrize("verb", DECISIONS)
def test_a_person_is_judged_by_the_process_at_the_other_end(
    bench: Bench, inside: int, sleeper: subprocess.Popen[bytes], verb: str
) -> None:
    bench.client.pause("until it is decided")
    asks = bench.submit("true", require_approval=True)
    words = f"this runs inside job-1, and a job may not {verb}: a person decides. To allow it: "
    with pytest.raises(ConflictError) as refused:
        DECISIONS[verb](acting(bench, pid=inside), asks)
    assert str(refused.value).startswith(words)
    assert "decided" not in str(bench.events(asks))
    if verb != "repin":
        DECISIONS[verb](acting(bench, pid=sleeper.pid), asks)
        assert bench.events(asks)[1].actor == "token:ann"
    bench.client.resume()


@on_a_file
def test_a_job_may_decide_through_a_server_where_that_is_allowed(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(settings={"approval.from_jobs": True})
    asks = bench.submit("true", require_approval=True)
    theirs = bench.client.acting(
        "token:ann", "person", folder="/", environ={"HEADWAY_CLAIM": "t"}, umask=0, pid=os.getpid()
    )
    assert theirs.jobs.approve(asks).status is Status.QUEUED


@pytest.mark.parametrize("verb", DECISIONS)
def test_an_agent_decides_nothing_whatever_else_is_so(
    make_bench: Callable[..., Bench], verb: str
) -> None:
    bench = make_bench(settings={"approval.from_jobs": True})
    asks = bench.submit("true", require_approval=True, delay=HOUR)
    with pytest.raises(ConflictError, match=f"^token:ann may not {verb}: a person decides$"):
        DECISIONS[verb](acting(bench, "agent", pid=os.getpid()), asks)


@on_a_file
def test_a_server_inside_a_job_judges_its_callers_and_not_itself(bench: Bench) -> None:
    """If it does not know the other end, the kind of the caller is all that counts."""
    bench.submit("true", require_approval=True, delay=HOUR)
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HEADWAY_CLAIM": "0" * 32,
        "HEADWAY_JOB_ID": "job-7",
    }
    Path(bench.home.config).write_text("[worker]\nautostart = false\n")
    command = [sys.executable, "-c", SERVER, bench.home.path]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        "this runs inside job-7, and a job may not approve",
        "token:ann",
    ]
