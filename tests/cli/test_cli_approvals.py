"""`headway jobs approve`, `reject`, `approvals` and `repin`, and who may decide."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import CommandLine, Run, wait_for

import warm
from harness import Site
from headway.supervise.inside import surrounding_claim

# Leaves its session and its parents behind, without a variable.
DAEMON = """
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        done = subprocess.run(sys.argv[2:], env={}, capture_output=True, text=True)
        with open(sys.argv[1] + ".tmp", "w") as file: file.write(f"{done.returncode} {done.stderr}")
        os.rename(sys.argv[1] + ".tmp", sys.argv[1])
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]): os.sched_yield()
"""


def git(folder: Path, *arguments: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=folder, env=environ, check=True)


@pytest.mark.req("V67")
def test_an_approval_says_what_it_started(headway: CommandLine) -> None:
    headway("submit", "--require-approval", "--", "true")
    wait_for(lambda: headway.state("1") == "waiting_on_approval")
    done = headway("jobs", "approve", "1")
    assert done.stdout == ""
    assert done.stderr == "headway: approved job-1 as ada; started job-1\n"
    headway("jobs", "wait", "1")
    document = headway.json("jobs", "show", "1")["job"]
    assert document["approval"]["decided_by"] == "ada"


@pytest.mark.req("V67")
def test_an_approval_says_why_the_job_does_not_start_yet(still: CommandLine) -> None:
    still("submit", "--", "true")
    still("submit", "--after", "1", "--require-approval", "--", "true")
    told = still("jobs", "approve", "2").stderr
    assert "approved job-2 as ada; it does not start yet: waiting on job job-1" in told
    document = still.json("jobs", "show", "2")["job"]
    assert (document["state"], document["approval"]["state"]) == ("waiting_on_deps", "approved")


@pytest.mark.req("V68", "V69")
def test_a_rejection_keeps_the_reason_and_cannot_be_repeated(still: CommandLine) -> None:
    still("submit", "--require-approval", "--", "true")
    told = still.json("jobs", "reject", "1", "--reason", "not on a friday")
    assert told["job"]["state"] == "blocked_by_approval"
    assert told["job"]["reason"] == "rejected by ada: not on a friday"
    for verb in ("approve", "reject"):
        done = still("jobs", verb, "1", code=4)
        assert done.stderr == "headway: job-1 was already rejected by ada\n"
        still("jobs", verb, "9", code=3)
    still("submit", "--", "true")
    assert (
        "job-2 asks for no approval; it is queued" in still("jobs", "approve", "2", code=4).stderr
    )


def test_the_decider_is_named_by_option_variable_git_or_login(
    still: CommandLine, tmp_path: Path
) -> None:
    git(still.folder, "init", "-q")
    git(still.folder, "config", "user.name", "Grace")

    def decided_by(*before: str, env: dict[str, str] | None = None) -> str:
        job = still.submit("--require-approval", "--", "true")
        still(*before, "jobs", "approve", job, env={"HOME": str(tmp_path), **(env or {})})
        return str(still.json("jobs", "show", job)["job"]["approval"]["decided_by"])

    assert decided_by() == "Grace"
    git(still.folder, "config", "user.email", "grace@example.org")
    assert decided_by() == "Grace <grace@example.org>"
    assert decided_by(env={"HEADWAY_ACTOR": "eve"}) == "eve"
    assert decided_by("--as", "kay", env={"HEADWAY_ACTOR": "eve"}) == "kay"
    git(still.folder, "config", "--unset", "user.email")
    git(still.folder, "config", "user.name", "")
    assert decided_by() == "ada"
    assert decided_by(env={"PATH": "/nowhere"}) == "ada", "without git, too"
    assert still.json("jobs", "show", "1")["job"]["submitted_by"] == "ada"


CGROUPS = [
    pytest.param("off", id="ancestors"),
    pytest.param("auto", id="cgroup", marks=pytest.mark.root),
]


@pytest.mark.parametrize("cgroup", CGROUPS)
def test_a_job_may_not_decide_whatever_it_does_to_its_environment(
    bare: CommandLine, cgroup: str
) -> None:
    bare.configure(f'[worker]\nidle = "1s"\n[processes]\ncgroup = "{cgroup}"\n')
    asks = bare.submit("--require-approval", "--", "true")
    program = [
        sys.executable,
        *(
            "-c",
            f"import sys; sys.path[:0] = {sys.path!r}; from headway.cli.main import main; main()",
        ),
        *("--home", str(bare.home), "jobs", "approve", asks),
    ]
    note = bare.folder / "note"
    bare("config", "set", "scheduler.max_active", "5")
    plain = bare.submit("--", *program)
    emptied = bare.submit("--", "env", "-i", *program)
    below = bare.submit("--", "sh", "-c", 'env -i "$@"; exit $?', "sh", *program)
    daemon = bare.submit("--", sys.executable, "-c", DAEMON, str(note), *program)
    for job in (plain, emptied, below):
        assert bare("jobs", "wait", job, code=4)
        told = bare("jobs", "tail", job).stderr
        assert f"this runs inside {job}, and a job may not approve" in told
        assert "approval.from_jobs" in told
    bare("jobs", "wait", daemon)
    assert note.read_text().startswith(f"4 headway: this runs inside {daemon}, ")
    assert bare.state(asks) == "waiting_on_approval"
    assert "approved" not in str(bare.json("jobs", "show", asks)["events"])


def test_a_job_may_decide_where_that_is_allowed_and_is_named(headway: CommandLine) -> None:
    headway.configure('[worker]\nidle = "1s"\n[approval]\nfrom_jobs = true\n')
    asks = headway.submit("--require-approval", "--", "true")
    job = headway.submit("--", *headway.argv("jobs", "approve", asks))
    headway("jobs", "wait", job, asks)
    assert headway.json("jobs", "show", asks)["job"]["approval"]["decided_by"] == job


def test_outside_of_jobs_there_is_no_claim() -> None:
    assert surrounding_claim({}) is None
    assert surrounding_claim({"HEADWAY_CLAIM": "t", "HEADWAY_JOB_ID": "job-3"}) == ("t", "job-3")


def test_the_inbox_shows_what_would_run_and_fits(still: CommandLine) -> None:
    assert "nothing waits for a person" in still("jobs", "approvals").stderr
    still("submit", "--name", "deploy " * 20, "--require-approval", "--", "echo", "x" * 90)
    still("submit", "--after", "1", "--require-approval", "--", "true")
    still("scheduler", "run")
    done = still("jobs", "approvals")
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("job-1  deploy deploy")
    assert lines[1].startswith("  asked  ") and lines[1].endswith("s ago by ada")
    assert lines[2].startswith("  runs   echo xxxx")
    assert f"  in     {still.folder}" in done.stdout.replace("\n         ", "")
    assert "turn   not yet: waiting on job job-1" in done.stdout
    assert "1 job to decide: headway jobs approve JOB" in done.stderr
    told = still.json("jobs", "approvals")["approvals"]
    assert [(each["id"], each["now"]) for each in told] == [("job-1", True), ("job-2", False)]
    assert told[0]["directory"] == str(still.folder)
    assert told[1]["runs"] == "true"


def test_of_two_processes_that_decide_at_once_one_is_refused(site: Site) -> None:
    # fault G4
    for _ in range(3):
        job = site.submit("true", require_approval=True)
        processes = [
            warm.start(
                [],
                ["--as", verb, "jobs", verb, str(job)],
                cwd=site.folder,
                env=site.env,
                stderr=subprocess.PIPE,
                text=True,
            )
            for verb in ("approve", "reject")
        ]
        told = [process.communicate(timeout=60)[1] for process in processes]
        codes = [process.returncode for process in processes]
        assert sorted(codes) == [0, 4], told
        winner = ("approve", "reject")[codes.index(0)]
        assert f"was already {winner.rstrip('e')}ed by {winner}" in told[codes.index(4)]
        if winner == "approve":
            site.client.cancel([job])


def test_repin_by_the_command(still: CommandLine) -> None:
    git(still.folder, "init", "-q", "-b", "main")
    commit = (
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    )
    git(still.folder, *commit)
    still("submit", "--pin-head", "--require-approval", "--", "true")
    git(still.folder, *commit)
    assert "is pinned to main at " in still("jobs", "repin", "1").stderr
    told = still.json("jobs", "repin", "1")
    assert told["from"] == told["to"] == told["job"]["pinned_head"]["oid"]
    still("jobs", "repin", "2", code=3)
    still("submit", "--", "true")
    assert "is not pinned" in still("jobs", "repin", "2", code=4).stderr


def test_several_jobs_are_approved_together_or_not_at_all(still: CommandLine) -> None:
    for _ in range(3):
        still("submit", "--require-approval", "--", "true")
    still("submit", "--", "true")
    assert "job-4 asks for no approval" in still("approve", "1", "4", code=4).stderr
    assert still.json("show", "1")["job"]["approval"]["state"] == "pending", "none was"
    told = still("approve", "1", "2", "1").stderr
    assert told == "headway: approved job-1, job-2 as ada; nothing was started yet\n"
    document = still.json("approve", "3")
    assert document["job"]["id"] == "job-3" and document["jobs"] == [document["job"]]
    assert [still.json("show", each)["job"]["approval"]["state"] for each in "123"] == [
        "approved"
    ] * 3


def test_an_edit_says_that_the_approval_is_void(said: Run) -> None:
    said("submit", "--require-approval", "--", "echo", "1")
    assert "approved" not in said("jobs", "edit", "1", "--", "echo", "2").err
    said("jobs", "approve", "1")
    assert "approved" not in said("jobs", "edit", "1", "--name", "other").err
    told = said("jobs", "edit", "1", "--", "echo", "3").err
    assert told == "headway: job-1: changed command; it must be approved again\n"
    assert "approved again" not in said("jobs", "edit", "1", "--", "echo", "4").err


def test_the_inbox_does_not_count_what_is_not_yet_to_decide(said: Run) -> None:
    said("submit", "--delay", "1h", "--require-approval", "--", "true")
    told = said("jobs", "approvals").err
    assert "0 jobs" not in told
    assert "nothing has to be decided now, but it can be: headway jobs approve JOB" in told


def test_a_job_that_ended_undecided_is_not_pending(said: Run) -> None:
    said("submit", "--require-approval", "--", "true")
    assert "approval   pending" in said("show", "1").out
    said("cancel", "1")
    assert "approval   was not decided" in said("show", "1").out
