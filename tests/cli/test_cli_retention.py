"""`jobs gc`, `jobs clean`, `jobs edit` and `jobs cancel --downstream` as people use them."""

import json
import os

from commandline import CommandLine

from harness import Site


def states(site: Site, *arguments: str) -> dict[str, str]:
    listed = json.loads(site.run("jobs", "list", "--all", "--json", *arguments).stdout)
    return {each["id"]: each["state"] for each in listed["jobs"]}


def cancelled(site: Site) -> str:
    job = site.submit("true", delay=3_600_000_000)
    site.run("jobs", "cancel", str(job))
    return f"job-{job}"


def test_a_dry_run_names_what_would_go_and_why_others_stay(site: Site) -> None:
    gone, kept = cancelled(site), cancelled(site)
    waiting = site.submit("true", after=(int(kept.removeprefix("job-")),))
    told = site.run("jobs", "gc", "--days", "0", "--dry-run")
    assert told.stdout.split() == [gone]
    assert "would remove 1 job" in told.stderr
    assert "kept 1: an active job comes after it" in told.stderr
    document = json.loads(site.run("jobs", "gc", "--keep", "1", "--dry-run", "--json").stdout)
    assert document == {
        "version": 1,
        "dry_run": True,
        "jobs": [gone],
        "log_bytes": 0,
        "kept": {"within the limits": 1},
    }
    assert set(states(site)) == {gone, kept, f"job-{waiting}"}, "nothing was changed"


def test_gc_removes_rows_and_files(headway: CommandLine) -> None:
    job = headway.submit("echo", "hello")
    headway("jobs", "wait", job)
    folder = headway.home / "jobs" / job.removeprefix("job-")
    assert folder.is_dir()
    document = headway.json("jobs", "gc", "--days", "0")
    assert (document["jobs"], document["log_bytes"], document["dry_run"]) == ([job], 6, False)
    assert not folder.exists()
    failed = headway("jobs", "show", job, code=3)
    assert f"there is no {job} any more" in failed.stderr
    assert "removed 0 jobs" in headway("jobs", "gc").stderr


def test_numbers_are_checked(site: Site) -> None:
    assert site.run("jobs", "gc", "--days", "-1", check=False).returncode == 5
    assert site.run("jobs", "gc", "--keep", "many", check=False).returncode == 5


def test_clean_removes_one_and_refuses_what_is_needed(site: Site) -> None:
    one, other = cancelled(site), cancelled(site)
    waiting = site.submit("true", after=(int(one.removeprefix("job-")),))
    refused = site.run("jobs", "clean", one, check=False)
    assert refused.returncode == 4
    assert f"an active job comes after it (job-{waiting})" in refused.stderr
    active = site.run("jobs", "clean", str(waiting), check=False)
    assert active.returncode == 4 and "cancel it first" in active.stderr
    assert json.loads(site.run("jobs", "clean", other, "--json").stdout)["jobs"] == [other]
    assert site.run("jobs", "clean", other, check=False).returncode == 3
    assert set(states(site)) == {one, f"job-{waiting}"}


def test_a_job_whose_predecessor_is_gone_can_be_shown(headway: CommandLine) -> None:
    first = headway.submit("true")
    second = headway.submit("--after", first, "--", "true")
    headway("jobs", "wait", second)
    headway("jobs", "clean", first)
    assert headway.json("jobs", "show", second)["job"]["after"] == [first]
    for view in (("show", second), ("why", second), ("schedule",), ("schedule", "--job", second)):
        headway("jobs", *view)
    assert headway.json("doctor")["findings"]
    again = headway.out("jobs", "retry", second, code=4)  # it succeeded
    assert again == ""


def test_a_waiting_job_is_edited(site: Site) -> None:
    job = site.submit("true", delay=3_600_000_000)
    done = site.run(
        "jobs", "edit", str(job), "--name", "day", "--priority", "3", "--", "echo", "-n"
    )
    assert done.stderr == f"headway: job-{job}: changed name, priority, command\n"
    document = json.loads(
        site.run("jobs", "edit", str(job), "--timeout", "1m", "--label", "a=b", "--json").stdout
    )
    assert document["changed"] == ["labels", "timeout"]
    assert document["job"]["params"]["argv"] == ["echo", "-n"]
    assert document["job"]["params"]["timeout_seconds"] == 60.0
    assert document["job"]["labels"] == {"a": "b"}
    same = site.run("jobs", "edit", str(job), "--name", "day")
    assert "like that already" in same.stderr
    assert site.run("jobs", "edit", str(job), check=False).returncode == 2
    assert site.run("jobs", "edit", str(job), "--slug", "a b", check=False).returncode == 5
    assert site.run("jobs", "edit", "99", "--name", "x", check=False).returncode == 3
    site.run("jobs", "cancel", str(job))
    refused = site.run("jobs", "edit", str(job), "--name", "x", check=False)
    assert refused.returncode == 4 and "Cannot modify params" in refused.stderr


def test_cancel_downstream_names_them_all(site: Site) -> None:
    first = site.submit("true", delay=3_600_000_000)
    second = site.submit("true", after=(first,))
    third = site.submit("true", after=(second,))
    beside = site.submit("true", delay=3_600_000_000)
    done = site.run("jobs", "cancel", "--downstream", str(first), "--json")
    found = {each["id"]: each["state"] for each in json.loads(done.stdout)["jobs"]}
    assert found == dict.fromkeys((f"job-{n}" for n in (first, second, third)), "cancelled")
    assert states(site)[f"job-{beside}"] == "queued"
    assert site.run("jobs", "cancel", "--downstream", str(first), check=False).returncode == 4


def test_a_removal_leaves_the_folder_of_jobs_private_and_empty(headway: CommandLine) -> None:
    headway("jobs", "wait", headway.submit("true"))
    headway("jobs", "gc", "--keep", "0")
    jobs = headway.home / "jobs"
    assert os.listdir(jobs) == [] and jobs.stat().st_mode & 0o777 == 0o700
