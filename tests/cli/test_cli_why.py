"""`headway jobs why`: one row per gate, with what would clear it, as it is read at 80 columns."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.cli.jobs.why import _print_objections
from headway.core.agents import ParkedRunner
from headway.core.gates import GATES
from headway.core.targets import Target
from headway.jobs.agents import agent_request
from headway.jobs.approvals import approve
from headway.jobs.groups import submit_group
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock
from headway.jobs.views.why import why
from headway.testing.clock import FakeClock
from headway.workitems.sling import Wish, sling
from headway.workitems.targets import add_target

HOUR = 3_600_000_000


def lock(text: str) -> tuple[object, ...]:
    return (parse_lock(text),)


def git(folder: Path, *arguments: str) -> str:
    config = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": "/",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    }
    command = ["git", *config, *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repo() -> Iterator[Path]:
    """In a folder whose name is always of the same length, so that lines break where they do."""
    with TemporaryDirectory(prefix="repo", dir="/tmp") as folder:
        git(Path(folder), "init", "-q", "-b", "main")
        git(Path(folder), "commit", "-q", "--allow-empty", "-m", "first")
        yield Path(folder)


Given = Callable[[Bench, Path], int]


def due(bench: Bench, repo: Path) -> int:
    return bench.submit("true", delay=HOUR)


def after_met(bench: Bench, repo: Path) -> int:
    first = bench.submit("sleep", "60", name="build")
    return bench.submit("true", after=(first,))


def routed(bench: Bench, repo: Path) -> int:
    text = '[nodes.a]\nargv = ["sleep", "60"]\n[nodes.b]\nargv = ["true"]\nafter = ["a"]\n'
    (repo / "flow.toml").write_text(text)
    bench.client.workflows.start(str(repo / "flow.toml"))
    return 2


def after_a_retry(bench: Bench, repo: Path) -> int:
    first = bench.submit("false", name="build", retries=1, retry_base=HOUR)
    job = bench.submit("true", after=(first,))
    bench.until(lambda: bench.last(first).id != first)
    return job


def artifacts_present(bench: Bench, repo: Path) -> int:
    bench.submit("sleep", "60", name="report", produces=("custom:report:june",))
    return bench.submit("true", needs=("custom:report:june",))


def nobody_produces(bench: Bench, repo: Path) -> int:
    bench.client.set_setting("scheduler.missing_producer", "wait")
    return bench.submit("true", needs=("custom:report:june",))


def would_be_blocked(bench: Bench, repo: Path) -> int:
    bench.engine.dispatching = False
    return bench.submit("true", needs=("custom:report:june",))


def allowed(bench: Bench, repo: Path) -> int:
    request = agent_request("tidy up", runner="command", argv=("true",))
    job = bench.client.submit(request).job_id
    parked = ParkedRunner("command", None, "not logged in", bench.clock.now(), job)
    bench.store.transact(lambda tx: tx.runners.park(parked))
    return job


def turn_in_group(bench: Bench, repo: Path) -> int:
    requests = [Request(argv=("sleep", "60"), name="build"), Request(argv=("true",))]
    _, submitted = submit_group(bench.client.context, requests)
    return submitted[1].job_id


def subject_ready(bench: Bench, repo: Path) -> int:
    tasks = Path(bench.home.path) / "tasks"
    tasks.mkdir()
    (tasks / "aa-1.toml").write_text('depends_on = ["aa-2"]\n')
    (tasks / "aa-2.toml").write_text('title = "first this"\n')
    add_target(bench.client.context, Target(name="here", prefix="aa-", argv=("true", "{subject}")))
    job_id = sling(bench.client.context, Wish(words=("aa-1",))).scheduled[0].job_id
    assert job_id is not None
    return job_id


def head_pinned(bench: Bench, repo: Path) -> int:
    job = bench.submit("true", pin_head="", cwd=str(repo))
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    return job


def preconditions_hold(bench: Bench, repo: Path) -> int:
    (repo / "half-done.txt").touch()
    return bench.submit("true", require=("clean_worktree",), cwd=str(repo))


def branch_missing(bench: Bench, repo: Path) -> int:
    return bench.submit("true", require=("branch_exists:release",), cwd=str(repo))


def approved(bench: Bench, repo: Path) -> int:
    return bench.submit("true", require_approval=True)


def not_checked_yet(bench: Bench, repo: Path) -> int:
    bench.engine.dispatching = False
    return bench.submit("true", require_approval=True)


def locks_free(bench: Bench, repo: Path) -> int:
    bench.submit("sleep", "60", name="deploy", locks=lock("repo"))
    return bench.submit("true", locks=lock("repo"))


def lock_promised(bench: Bench, repo: Path) -> int:
    bench.submit("sleep", "60", name="read", locks=lock("repo:shared"))
    bench.submit("true", name="write", locks=lock("repo"))
    return bench.submit("true", locks=lock("repo:shared"))


def slot_free(bench: Bench, repo: Path) -> int:
    bench.client.pause("moving the disk")
    return bench.submit("true")


ROWS: list[tuple[Given, str]] = [
    (
        due,
        """
        job-1 is queued:
          time  waiting for its time
                55m left
                -> wait until its time
        """,
    ),
    (
        after_met,
        """
        job-2 is waiting_on_deps:
          dependencies  waiting on job job-1
                        -> wait for job-1 (build, running for 5m) to succeed
        """,
    ),
    (
        routed,
        """
        job-2 is waiting_on_deps:
          dependencies  waiting on job job-1
                        -> wait for job-1 (a, running for 5m) to succeed
        """,
    ),
    (
        after_a_retry,
        """
        job-2 is waiting_on_deps:
          dependencies  waiting on job job-1
                        -> wait for job-1 (build, now job-3, queued for 5m) to succeed
        """,
    ),
    (
        artifacts_present,
        """
        job-2 is waiting_on_deps:
          dependencies  waiting on custom:report:june
                        -> it is made by job-1 (report, running for 5m)
        """,
    ),
    (
        nobody_produces,
        """
        job-1 is waiting_on_deps:
          dependencies  waiting on custom:report:june
                        -> it is made by nobody yet
        """,
    ),
    (
        would_be_blocked,
        """
        job-1 is queued:
          dependencies  missing custom:report:june
                        -> nobody produces it: submit its producer first, or set
                        scheduler.missing_producer to wait
        """,
    ),
    (
        head_pinned,
        """
        job-1 is waiting_on_deps:
          pinned_head  pinned head mismatch on main
                       -> main is at SECOND, not at FIRST: move it back, or
                       headway jobs repin job-1
        """,
    ),
    (
        preconditions_hold,
        """
        job-1 is waiting_on_deps:
          preconditions  worktree is not clean
                         -> commit or remove the changes in REPO:
                         half-done.txt
        """,
    ),
    (
        branch_missing,
        """
        job-1 is waiting_on_deps:
          preconditions  branch release does not exist
                         -> git branch release, in REPO
        """,
    ),
    (
        approved,
        """
        job-1 is waiting_on_approval:
          approval  awaiting human approval
                    -> headway jobs approve job-1, or reject it; asked for by tester, 5m
                    ago
        """,
    ),
    (
        not_checked_yet,
        """
        job-1 is queued:
          approval  awaiting human approval
                    -> headway jobs approve job-1, or reject it; asked for by tester, 5m
                    ago
        """,
    ),
    (
        allowed,
        """
        job-1 is queued:
          rate  command is parked: not logged in
                -> correct that, then headway runners resume command
        """,
    ),
    (
        turn_in_group,
        """
        job-2 is waiting_on_deps:
          group  waiting for its turn in group-1, after job-1
                 -> wait for job-1 (build, running for 5m) to end
        """,
    ),
    (
        subject_ready,
        """
        job-1 is waiting_on_deps:
          subject  blocked by aa-2
                   -> wait until aa-2 is closed
        """,
    ),
    (
        locks_free,
        """
        job-2 is waiting_on_locks:
          locks  waiting on locks
                 -> repo is held by job-1 (deploy, running for 5m)
        """,
    ),
    (
        lock_promised,
        """
        job-3 is waiting_on_locks:
          locks  waiting on locks
                 -> repo is promised to job-2 (write, waiting_on_locks for 5m)
        """,
    ),
    (
        slot_free,
        """
        job-1 is queued:
          paused  paused by tester: moving the disk
                  -> headway scheduler resume
        place 1 of 1 in the queue
        """,
    ),
]


def test_every_gate_has_a_row() -> None:
    assert {gate.name for gate in GATES if gate.woken_by} <= {given.__name__ for given, _ in ROWS}


@pytest.mark.req("V60", "V62", "V64", "V66", "V71", "V56", "V57")
@pytest.mark.parametrize(("given", "expected"), ROWS, ids=[given.__name__ for given, _ in ROWS])
def test_why_says_what_is_in_the_way_who_and_for_how_long(
    make_bench: Callable[..., Bench],
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: Given,
    expected: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    clock = FakeClock(SystemClock().now())
    bench = make_bench(max_active=3, clock=clock)
    job = given(bench, repo)
    for _ in range(3):
        bench.step()
    clock.advance(300)
    _print_objections(why(bench.client.context, job), clock.now())
    told = capsys.readouterr().out
    assert all(len(line) <= 80 for line in told.splitlines())
    first = git(repo, "rev-list", "--max-parents=0", "HEAD")[:12]
    second = git(repo, "rev-parse", "HEAD")[:12]
    for word, value in (("REPO", str(repo)), ("FIRST", first), ("SECOND", second)):
        expected = expected.replace(word, value)
    assert told == dedent(expected).lstrip()


def test_why_names_every_objection_in_the_order_of_the_gates(
    make_bench: Callable[..., Bench], repo: Path
) -> None:
    bench = make_bench(max_active=3)
    first = bench.submit("sleep", "60", locks=lock("repo"), produces=("custom:a:b",))
    bench.step()
    job = bench.submit(
        "true",
        delay=HOUR,
        after=(first,),
        needs=("custom:a:b",),
        pin_head="",
        require=("clean_worktree",),
        require_approval=True,
        locks=lock("repo"),
        cwd=str(repo),
    )
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    (repo / "dirty").touch()
    bench.client.pause(None)
    told = why(bench.client.context, job)["objections"]
    kinds = "time dependencies dependencies pinned_head preconditions approval locks paused"
    assert [each["kind"] for each in told] == kinds.split()
    assert told[1]["jobs"] == told[2]["jobs"] == told[6]["jobs"]
    assert told[6]["jobs"][0]["id"] == f"job-{first}"
    approve(bench.client.context, job)
    left = [each["kind"] for each in why(bench.client.context, job)["objections"]]
    assert left == [kind for kind in kinds.split() if kind != "approval"]
