"""`headway sling`, `headway targets`, and what `headway scheduler` says of slung work."""

import hashlib
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import CommandLine

from harness import Site, wait_for
from headway.core.states import Status

TREE = [
    {"id": "gt-epic", "title": "All", "status": "open", "issue_type": "epic"},
    {"id": "gt-1", "title": "One", "status": "open"},
    {"id": "gt-2", "title": "Two", "status": "open"},
    {"id": "hq-3", "title": "Three", "status": "open"},
]


def export(folder: Path, issues: list[dict[str, object]]) -> None:
    """Write a tracker's export; all but the first are its children."""
    (folder / ".beads").mkdir(exist_ok=True)
    root = issues[0]["id"]
    edge = {"depends_on_id": root, "type": "parent-child"}
    children = [{**each, "dependencies": [edge]} for each in issues[1:]]
    lines = [json.dumps(each) for each in (issues[0], *children)]
    (folder / ".beads" / "issues.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def project(still: CommandLine) -> CommandLine:
    export(still.folder, TREE)  # type: ignore[arg-type]
    still("targets", "add", "gas", "--prefix", "gt-", "--", "echo", "{subject}", "{title}")
    return still


@pytest.mark.req("G1", "G17", "G23")
def test_sling_prints_ids_and_says_what_it_did(project: CommandLine) -> None:
    done = project("sling", "gt-epic")
    assert done.stdout.split() == ["job-1", "job-2"]
    assert "skipped hq-3: no target has a prefix of hq-3" in done.stderr
    assert "2 jobs scheduled, 1 skipped; deferred: at most 1 at a time" in done.stderr
    again = project("sling", "gt-1")
    assert again.stdout.split() == ["job-1"]
    assert "gt-1 is already scheduled as job-1" in again.stderr
    assert "nothing new" in again.stderr
    document = project.json("sling", "gt-epic")
    assert (document["mode"], document["scheduled"]) == ("deferred", [])
    assert [each["job"] for each in document["already"]] == ["job-1", "job-2"]
    assert [each["subject"] for each in document["skipped"]] == ["hq-3"]
    shown = project.json("jobs", "show", "1")["job"]
    assert (shown["subject"], shown["target"], shown["sling"]["item"]) == ("gt-1", "gas", "gt-1")


@pytest.mark.req("G15", "G16", "G18")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["nothing"], 3),
        (["gt-1", "nowhere"], 3),
        (["hq-3"], 3),
        (["hq-3", "gas"], 4),
        (["gt-1", "--var", "x"], 5),
        (["gt-1", "--var", "x=1"], 5),
        (["gt-1", "--args", "x"], 5),
        (["gt-1", "--priority", "x"], 5),
        ([], 2),
    ],
)
def test_what_is_refused_has_its_code_and_one_line(
    project: CommandLine, words: list[str], code: int
) -> None:
    done = project("sling", *words, code=code)
    assert done.stdout == "" and project.count() == 0
    if code != 2:
        assert len(done.stderr.splitlines()) == 1


def test_a_tree_of_which_nothing_can_be_taken_is_a_conflict(project: CommandLine) -> None:
    project("targets", "remove", "gas")
    done = project("sling", "gt-epic", code=4)
    assert done.stderr.count("skipped") == 4 and "0 jobs scheduled" in done.stderr


@pytest.mark.req("G23")
def test_what_cannot_be_read_is_named_and_counted(project: CommandLine) -> None:
    tasks = project.folder / ".headway" / "tasks"
    tasks.mkdir()
    (tasks / "gt-lost.md").write_bytes(b"\xff")
    (tasks / "gt-all.md").write_text("# All\n")
    (tasks / "gt-one.md").write_text("---\nparent: gt-all\n---\n")
    done = project("sling", "gt-all")
    assert re.search("warning: .*gt-lost.md: .*can't decode", done.stderr)
    assert "1 job scheduled, 1 unreadable; deferred" in done.stderr
    [trouble] = project.json("sling", "gt-all")["troubles"]
    assert "gt-lost.md" in trouble


def test_a_rehearsal_and_forcing(project: CommandLine) -> None:
    done = project("sling", "gt-epic", "--dry-run")
    assert done.stdout.split() == ["gt-1", "gt-2"] and "would be scheduled" in done.stderr
    assert project.count() == 0
    assert project.out("sling", "hq-3", "gas", "--force", "--priority", "3") == "job-1"
    assert project.json("jobs", "show", "1")["job"]["priority"] == 3


@pytest.mark.req("G1")
def test_a_changed_mode_tells_what_becomes_of_the_queue(project: CommandLine) -> None:
    project("sling", "gt-epic")
    assert "at a time" not in project("config", "set", "scheduler.max_active", "5").stderr
    done = project("config", "set", "scheduler.max_active", "-1")
    assert "direct from now on; 2 queued jobs may start now" in done.stderr
    assert "direct" not in project("config", "set", "scheduler.max_active", "0").stderr
    done = project("config", "set", "scheduler.max_active", "3")
    assert "deferred from now on: at most 3 at a time; 2 queued jobs wait for slots" in done.stderr
    project("config", "set", "scheduler.max_active", "-1")
    project("scheduler", "clear")
    assert "direct: what may run starts now" in project("sling", "gt-1").stderr


def test_targets_are_added_shown_and_removed(project: CommandLine) -> None:
    argv = ["make", "{subject}", "--lock", "x"]
    options = ["--prefix", "hq-", "--env", "A=1", "--resource", "gpu", "--lock", "repo:shared"]
    more = ["--timeout", "1h", "--retries", "2", "--helper", "true 'a b'", "--cwd", "."]
    project("targets", "add", "hall", *options, *more, "--", "env", *argv)
    told = project.json("targets", "show", "hall")["target"]
    assert told["command"] == ["env", *argv]
    assert (told["prefix"], told["env"], told["timeout"]) == ("hq-", ["A"], "1h")
    assert told["helper"][1:] == ["a b"] and os.path.isabs(told["helper"][0])
    assert told["cwd"] == str(project.folder)
    assert [each["name"] for each in project.json("targets", "list")["targets"]] == ["gas", "hall"]
    assert "repo:shared" in project.out("targets", "show", "hall")
    assert project.out("targets", "list").splitlines()[1].split()[:2] == ["gas", "gt-"]
    project("targets", "add", "hall", "--", "true", code=4)
    project("targets", "add", "hall", "--replace", "--", "true")
    assert project.json("targets", "show", "hall")["target"]["prefix"] is None
    project("targets", "remove", "hall")
    for verb in ("remove", "show"):
        assert "there is no target 'hall'" in project("targets", verb, "hall", code=3).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["x", "--workflow", "build", "--", "true"], "give --workflow or a command, not both"),
        (["x", "--workflow", "build", "--timeout", "5m"], "timeout: the workflow says it itself"),
        (["x", "--workflow", "build", "--set", "y"], "--set 'y' is not K=V"),
        (["x", "--set", "y=1", "--", "true"], "--set is about a workflow; name it with --workflow"),
        (["x"], "Give a command after --"),
        (["x y", "--", "true"], "target 'x y'"),
        (["x", "--helper", "'", "--", "true"], "--helper"),
        (["x", "--env", "A B=1", "--", "true"], "environment variable"),
        (["x", "--lock", "", "--", "true"], "lock"),
        (["x", "--retries", "-1", "--", "true"], "retries"),
        (["x", "--", "no-such-program"], "was not found"),
        (["x", "--", "sh", "-c", "echo {title}"], "sh -c 'work on \"$1\"' sh {title}"),
    ],
)
def test_a_wrong_target_is_refused(project: CommandLine, words: list[str], told: str) -> None:
    done = project("targets", "add", *words, code=5)
    assert told in done.stderr and len(done.stderr.splitlines()) == 1
    assert "--no-check" not in done.stderr, "there is no such option here"
    assert len(project.json("targets", "list")["targets"]) == 1


CHANGE = """
params.slug = { type = "slug" }
params.title = ""
[nodes.plan]
argv = ["true"]
[nodes.code]
argv = ["echo", "${{ params.title }}"]
after = ["plan"]
"""


@pytest.mark.req("G2", "G17", "G39", "G41")
def test_a_target_with_a_workflow_starts_runs(project: CommandLine) -> None:
    folder = project.folder / ".headway" / "workflows"
    folder.mkdir()
    (folder / "change.toml").write_text(CHANGE)
    add = ["targets", "add", "flow", "--prefix", "hq-", "--workflow", "change"]
    assert "there is no parameter 'x'" in project(*add, "--set", "x=1", code=5).stderr
    made = project(*add, "--set", "slug=a-{subject}")
    assert "target flow: workflow change 'slug=a-{subject}'" in made.stderr
    told = project.json("targets", "show", "flow")["target"]
    assert (told["workflow"], told["params"]) == ("change", {"slug": "a-{subject}"})
    shown = project.out("targets", "show", "flow")
    assert "workflow  change" in shown and "slug=a-{subject}" in shown and "command" not in shown
    assert "workflow change 'slug=a-{subject}'" in project.out("targets", "list")
    would = project("sling", "hq-3", "--dry-run")
    assert would.stdout == "hq-3\n" and "1 run would be scheduled" in would.stderr
    [entry] = project.json("sling", "hq-3", "--dry-run")["scheduled"]
    assert (entry["workflow"], entry["run"], entry["job"]) == ("change", None, None)
    done = project("sling", "gt-epic")
    assert done.stdout.split() == ["job-1", "job-2", "wf-1"]
    assert "2 jobs and 1 run scheduled" in done.stderr
    again = project("sling", "hq-3")
    assert again.stdout == "wf-1\n" and "hq-3 is already scheduled as wf-1" in again.stderr
    [entry] = project.json("sling", "hq-3")["already"]
    assert entry == {
        "subject": "hq-3",
        "target": "flow",
        "job": None,
        "workflow": "change",
        "run": "wf-1",
    }
    listed = project.out("scheduler", "list")
    assert "flow (1 run)" in listed and "wf-1 job-3" in listed and "gas (2 jobs)" in listed
    [entry] = project.json("scheduler", "list")["targets"][0]["jobs"]
    assert (entry["run"], entry["job"], entry["subject"]) == ("wf-1", "job-3", "hq-3")
    run = project.json("workflows", "show", "wf-1")["run"]
    assert (run["subject"], run["target"]) == ("hq-3", "flow")
    assert run["params"] == {"slug": "a-hq-3", "title": "Three"}
    refused = project("submit", "--subject", "hq-3", "--", "true", code=4).stderr
    assert "wf-1 is about hq-3 and has not ended; wait for it, or stop it" in refused
    cleared = project("scheduler", "clear")
    assert cleared.stdout.split() == ["job-1", "job-2", "wf-1"]
    assert "2 jobs and 1 run cleared" in cleared.stderr


@pytest.mark.req("G3")
def test_every_verb_of_the_scheduler_does_its_work(project: CommandLine) -> None:
    offered = re.findall(r"^  ([a-z]+)  ", project.out("scheduler", "--help"), re.M)
    assert {"status", "list", "run", "pause", "resume", "clear"} <= set(offered)
    project("sling", "gt-epic")
    project("scheduler", "pause", "--reason", "lunch")
    assert project.json("scheduler", "status")["paused"] is True
    assert project.out("scheduler", "run") == ""
    project("scheduler", "resume")
    assert project.json("scheduler", "status")["paused"] is False
    assert project.out("scheduler", "run") == "job-1"
    [target] = project.json("scheduler", "list")["targets"]
    assert {each["subject"]: each["state"] for each in target["jobs"]}["gt-2"] != "running"
    assert project.out("scheduler", "clear") == "job-2"
    assert project.json("jobs", "show", "2")["job"]["state"] == "cancelled"


@pytest.mark.req("G39", "G41")
def test_scheduler_list_and_clear(project: CommandLine) -> None:
    assert "nothing is slung" in project("scheduler", "list").stderr
    project("sling", "gt-epic")
    lines = project.out("scheduler", "list").splitlines()
    assert lines[0] == "gas (2 jobs)"
    assert lines[2].split()[:4] == ["gt-1", "job-1", "queued", "1"]
    assert all(len(line) <= 80 for line in lines)
    [target] = project.json("scheduler", "list")["targets"]
    assert [each["subject"] for each in target["jobs"]] == ["gt-1", "gt-2"]
    assert project.out("scheduler", "clear", "--subject", "gt-2") == "job-2"
    assert "nothing of gt-2 waits" in project("scheduler", "clear", "--subject", "gt-2").stderr
    assert project.json("scheduler", "clear") == {"version": 1, "cleared": ["job-1"], "running": []}
    assert project.json("jobs", "show", "1")["job"]["reason"] == "cleared"


@pytest.mark.req("G4", "G29")
def test_the_plan_of_a_pass_says_what_would_start_and_why_not(project: CommandLine) -> None:
    project("config", "set", "scheduler.max_active", "2")
    project("sling", "gt-epic")
    project("submit", "--", "true")
    before = project.json("jobs", "list")
    plan = project.json("scheduler", "run", "--dry-run")
    assert [each["id"] for each in plan["would_start"]] == ["job-1"]
    assert [(each["id"], each["reason"]) for each in plan["skipped"]] == [
        ("job-2", "one pass starts at most 1"),
        ("job-3", "all 2 slots are in use"),
    ]
    assert plan["reason"] == "one pass starts at most 1"
    told = project("scheduler", "run", "--dry-run", "--batch", "2")
    assert told.stdout.split() == ["job-1", "job-2"]
    assert "job-3 would wait: all 2 slots are in use" in told.stderr
    assert project.json("jobs", "list") == before


@pytest.mark.req("G24", "G32")
def test_a_pass_starts_its_batch(project: CommandLine) -> None:
    project("config", "set", "scheduler.max_active", "5")
    project("config", "set", "scheduler.spawn_delay", "10ms")
    project("sling", "gt-epic")
    project("submit", "--", "true")
    assert project.out("scheduler", "run", "--batch", "2").split() == ["job-1", "job-2"]


# -- all of it ----------------------------------------------------------------------------------

ITEMS, BAD, CAP = 37, 2, 5
WORK = """#!/bin/sh
mkdir running/$1 || exit 9
ls running | wc -l >> counts
while [ ! -e go ]; do sleep 0.02; done
rmdir running/$1
"""


def fingerprints(folder: Path) -> dict[str, tuple[str, int, int]]:
    return {each.name: fingerprint(each) for each in folder.iterdir()}


def fingerprint(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return hashlib.sha256(path.read_bytes()).hexdigest(), status.st_mtime_ns, status.st_ino


def many_issues(folder: Path) -> Path:
    """A tree of many, one of another tracker and one with a status that nobody understands."""
    names = [*(f"gt-{n}" for n in range(ITEMS - 1)), "hq-0"]
    issues: list[dict[str, object]] = [{"id": name, "title": name} for name in names]
    issues[3]["status"] = "bogus"
    export(folder, [{"id": "gt-epic", "title": "All", "issue_type": "epic"}, *issues])
    return folder / ".beads"


def many_files(folder: Path) -> Path:
    """The same as task files; the front matter of one cannot be used."""
    tasks = folder / ".headway" / "tasks"
    tasks.mkdir(parents=True)
    (tasks / "gt-epic.md").write_text("# All\n")
    for name in [*(f"gt-{n}" for n in range(ITEMS - 1)), "hq-0"]:
        (tasks / f"{name}.md").write_text("---\nparent: gt-epic\n---\n")
    broken = "---\ntitle: [broken\nstate: bogus\nparent: gt-epic\n---\n"
    (tasks / "gt-3.md").write_text(broken)
    return tasks


@pytest.mark.req("G2", "G9", "G12", "G22", "G23", "G42")
@pytest.mark.parametrize("many", [many_issues, many_files])
def test_a_tree_of_many_is_scheduled_once_capped_paused_and_survives_a_kill(
    site: Site, many: Callable[[Path], Path]
) -> None:
    tracker = many(site.folder)
    before = fingerprints(tracker)
    (site.folder / "running").mkdir()
    work = site.folder / "work"
    work.write_text(WORK)
    work.chmod(0o755)
    site.run("config", "set", "scheduler.max_active", str(CAP))
    site.run("targets", "add", "gas", "--prefix", "gt-", "--", str(work), "{subject}")

    slung = site.run("sling", "gt-epic")
    ids = [int(each.removeprefix("job-")) for each in slung.stdout.split()]
    assert len(ids) == ITEMS - BAD
    skipped = dict(re.findall(r"skipped (\S+): (.*)", slung.stderr))
    assert skipped.keys() == {"gt-3", "hq-0"}
    assert "bogus" in skipped["gt-3"] and "no target has a prefix" in skipped["hq-0"]
    assert f"{ITEMS - BAD} jobs scheduled, {BAD} skipped; " in slung.stderr
    again = site.run("sling", "gt-epic")
    assert again.stdout == slung.stdout and "nothing new" in again.stderr

    worker = site.worker()
    running = site.folder / "running"
    wait_for(lambda: len(list(running.iterdir())) == CAP, what="all slots to be used")
    site.run("--as", "eve", "scheduler", "pause", "--reason", "lunch")
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    (site.folder / "go").write_text("")
    site.worker()
    wait_for(lambda: _ended(site, ids) == CAP, what="those that ran to end")
    status = json.loads(site.run("scheduler", "status", "--json").stdout)
    assert (status["paused_by"], status["active"]) == ("eve", 0)
    assert status["queued_total"] == ITEMS - BAD - CAP
    assert "started" not in site.run("scheduler", "run").stdout

    site.run("scheduler", "resume")
    site.until_ended(*ids, deadline=60.0)
    assert {site.status(each) for each in ids} == {Status.SUCCEEDED}
    counts = [int(line) for line in (site.folder / "counts").read_text().split()]
    assert len(counts) == ITEMS - BAD and max(counts) <= CAP
    assert fingerprints(tracker) == before


def _ended(site: Site, ids: list[int]) -> int:
    return sum(site.status(each) is Status.SUCCEEDED for each in ids)
