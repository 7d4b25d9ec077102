"""Runs whose nodes work on a repository: worktrees, commits and merges, by real processes."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from scratch import IDENTITY, Scratch
from started import Started

from both_stores import on_a_file
from harness import Bench
from headway.base.errors import ConflictError
from headway.cli.run_view import next_step
from headway.core.states import Status
from headway.core.worktrees import WorktreeState
from headway.jobs.approvals import approve
from headway.jobs.retention import clean
from headway.jobs.retry import preview, rewind
from headway.workflows.mistakes import WorkflowError
from headway.workflows.new_file import starter_text
from headway.workflows.runs import stop_run

CHANGE = """
inputs = ["slug"]
params.slug = { type = "slug" }

[nodes.tree]
uses = "cap.env.builtin.worktree.prepare"
args = { slug = "${{ params.slug }}", base = "main" }
on.succeeded = ["keep"]

[nodes.keep]
uses = "cap.env.builtin.plan.persist"
args = { slug = "${{ params.slug }}", spec_text = "make it so" }
on.succeeded = ["work"]

[nodes.work]
shell = "echo more >> readme.txt; pwd"
on.succeeded = ["commit"]

[nodes.commit]
uses = "cap.env.builtin.git.stage_commit"
args = { message = "feat: work" }
on.succeeded = ["ci"]

[nodes.ci]
uses = "control.gate.cicd"
shell = "grep more readme.txt && pwd"
on.succeeded = ["merge"]

[nodes.merge]
uses = "cap.env.builtin.git.integrate_plan_branch"
args = { slug = "${{ params.slug }}", target = "main" }
on.succeeded = ["tidy"]

[nodes.tidy]
uses = "cap.env.builtin.worktree.cleanup"
"""


@pytest.fixture
def scratch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    """The home lies in the repository, and runs are started there."""
    monkeypatch.chdir(bench.folder)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    yield Scratch(bench.folder)


@pytest.mark.req("V21", "V24")
def test_a_change_goes_from_its_worktree_to_the_target(bench: Bench, scratch: Scratch) -> None:
    run = Started(bench, CHANGE, "login")
    ended = run.ended()
    assert ended["state"] == "succeeded", ended["nodes"]
    tree = Path(bench.home.worktrees, f"job-{run.job('tree')}")
    assert run.log("work").strip() == str(tree) and str(tree) in run.log("ci")
    assert "more" in (scratch.path / "readme.txt").read_text()
    assert scratch.git("status", "--porcelain", "--untracked-files=no") == ""
    assert "## Specification\n\nmake it so" in scratch.message("main")
    assert not tree.exists()
    with bench.store.read() as tx:
        assert tx.graph.kept_worktrees() == {}


def tree_of(bench: Bench, run: Started, node: str = "tree") -> Path:
    return Path(bench.home.worktrees, f"job-{run.job(node)}")


def state_of(bench: Bench, job: int) -> WorktreeState:
    with bench.store.read() as tx:
        return tx.graph.worktrees([job])[job].state


# -- where a node works ----------------------------------------------------------------------------

ROOTS = """
[nodes.tree]
uses = "cap.env.builtin.worktree.prepare"
args = { branch = "topic" }
on.succeeded = ["here", "gate", "deep"]
[nodes.here]
argv = ["pwd"]
[nodes.gate]
uses = "control.gate.stop_condition"
argv = ["pwd"]
[nodes.deep]
argv = ["pwd"]
cwd = "part"
[nodes.named]
argv = ["pwd"]
root = "tree"
after = [{ node = "tree", on = ["ended"] }]
[nodes.outside]
argv = ["pwd"]
"""


@pytest.mark.req("V23")
def test_nodes_work_in_the_worktree_that_leads_to_them(bench: Bench, scratch: Scratch) -> None:
    run = Started(bench, ROOTS)
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    tree = str(tree_of(bench, run))
    said = {name: run.log(name).splitlines()[0] for name in run.outcomes() if name != "tree"}
    assert said == {
        "here": tree,
        "gate": tree,
        "deep": f"{tree}/part",
        "named": tree,
        "outside": str(scratch.path),
    }
    shown = {name: bench.client.document(run.job(name))["execution_root"] for name in said}
    inside = os.path.relpath(tree, scratch.path)
    assert shown == {**dict.fromkeys(said, inside), "outside": None}
    document = bench.client.document(run.job("tree"))
    assert document["worktree"]["path"] == tree and document["worktree"]["branch"] == "topic"


MOVED = """
[nodes.tree]
uses = "cap.env.builtin.worktree.prepare"
args = { branch = "topic" }
on.succeeded = ["break"]
[nodes.break]
shell = "{command}"
on.succeeded = ["work"]
[nodes.work]
argv = ["touch", "done"]
"""


@pytest.mark.req("V23")
def test_a_worktree_that_leads_elsewhere_is_refused(
    bench: Bench, scratch: Scratch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away")
    command = f"mv $PWD $PWD.old && ln -s {away} $PWD"
    run = Started(bench, MOVED.replace("{command}", command))
    run.ended()
    tree = tree_of(bench, run)
    assert run.node("work")["reason"] == (
        f"workflow metadata.execution_root path {tree} is outside repository root {scratch.path}"
    )
    assert run.node("work")["state"] == "failed" and os.listdir(away) == []


# Once only, so that a retry goes well.
DELETES = "test -e ../../once || {{ touch ../../once; {}; }}"


@pytest.mark.parametrize(
    ("what", "command"),
    [
        ("worktree", "git worktree remove --force --force $PWD"),
        ("branch topic", "git update-ref -d refs/heads/topic"),
        ("branch topic", "git pack-refs --all; git update-ref -d refs/heads/topic"),
    ],
)
def test_what_is_gone_of_a_root_names_the_node_to_retry_from(
    bench: Bench, scratch: Scratch, what: str, command: str
) -> None:
    # fault J11
    run = Started(bench, MOVED.replace("{command}", DELETES.format(command)))
    run.ended()
    job = run.job("tree")
    assert run.node("work")["state"] == "failed"
    assert run.node("work")["reason"] == (
        f"the {what} of tree (job-{job}) is gone; headway workflows retry wf-1 --from tree"
    )
    assert next_step(bench.client, run.document) == "headway workflows retry wf-1 --from tree"
    bench.client.workflows.retry(run.run, from_node="tree")
    assert state_of(bench, job) is WorktreeState.CLEANED
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert run.job("tree") != job and scratch.head("topic")


def test_a_branch_that_git_has_packed_is_there(bench: Bench, scratch: Scratch) -> None:
    run = Started(bench, MOVED.replace("{command}", "git pack-refs --all"))
    assert run.ended()["state"] == "succeeded", run.document["nodes"]


MATRIX = """
[nodes.tree]
uses = "cap.env.builtin.worktree.prepare"
args = { branch = "topic-${{ matrix.python }}" }
matrix = { python = ["3.11", "3.12"] }
on.succeeded = ["work"]
[nodes.work]
shell = "pwd; git symbolic-ref HEAD; {command}"
matrix = { python = ["3.12", "3.11"] }
on.succeeded = ["tidy"]
[nodes.tidy]
uses = "cap.env.builtin.worktree.cleanup"
matrix = { python = ["3.11", "3.12"] }
"""


@pytest.mark.req("V23")
def test_an_instance_works_in_the_worktree_of_its_own_combination(
    bench: Bench, scratch: Scratch
) -> None:
    run = Started(bench, MATRIX.replace("{command}", "true"))
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    for each in ("[python=3.11]", "[python=3.12]"):
        tree, branch = tree_of(bench, run, f"tree{each}"), f"refs/heads/topic-{each[8:-1]}"
        assert run.log(f"work{each}").splitlines() == [str(tree), branch]
        assert not tree.exists(), "each of them is cleaned"
        locks = bench.client.document(run.job(f"work{each}"))["locks"]
        assert locks == [{"key": f"worktree:wf-1/tree{each}", "mode": "exclusive"}]


def test_an_instance_whose_worktree_is_gone_names_that_of_its_own(
    bench: Bench, scratch: Scratch
) -> None:
    # fault J11
    delete = "git update-ref -d $(git symbolic-ref HEAD)"
    run = Started(
        bench,
        MATRIX.replace("{command}", delete).replace("worktree.cleanup", "git.save_worktree_patch"),
    )
    run.ended()
    tree = "tree[python=3.11]"
    assert run.node("tidy[python=3.11]")["reason"] == (
        f"the branch topic-3.11 of {tree} (job-{run.job(tree)}) is gone; "
        f"headway workflows retry wf-1 --from '{tree}'"
    )


def test_a_node_whose_worktree_was_not_made_fails(bench: Bench, scratch: Scratch) -> None:
    run = Started(
        bench,
        """
        [nodes.tree]
        uses = "cap.env.builtin.worktree.prepare"
        args = { branch = "main" }
        on.blocked = ["work"]
        [nodes.work]
        argv = ["touch", "done"]
        root = "tree"
        [nodes.tidy]
        uses = "cap.env.builtin.worktree.cleanup"
        root = "tree"
        after = [{ node = "tree", on = ["ended"] }]
        """,
    )
    run.ended()
    assert run.outcomes() == {"tree": "blocked", "work": "failed", "tidy": "succeeded"}
    assert f"branch main is checked out at {scratch.path};" in run.node("tree")["reason"]
    assert run.node("work")["reason"] == f"root: 'tree' (job-{run.job('tree')}) is failed"
    assert run.log("tidy") == "worktree cleanup skipped\n" and not (scratch.path / "done").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ('{ branch = "x", base = "nowhere" }', "node 'tree': base: 'nowhere' names no commit in"),
        ('{ branch = "x", base = "main" }', None),
    ],
)
def test_a_base_is_the_commit_that_it_was_when_the_run_began(
    bench: Bench, scratch: Scratch, args: str, words: str | None
) -> None:
    text = f"""
    [nodes.wait]
    shell = "echo more >more && git add more && git -c user.name=A -c user.email=a@b commit -qm more"
    [nodes.tree]
    uses = "cap.env.builtin.worktree.prepare"
    args = {args}
    after = ["wait"]
    """
    if words is not None:
        with pytest.raises(WorkflowError, match=words):
            Started(bench, text)
        return
    before = scratch.head("main")
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded"
    assert scratch.head("main") != before and scratch.head("x") == before


def test_a_worktree_wants_a_repository(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.folder)
    with pytest.raises(WorkflowError, match=r"worktree.prepare works in a git repository, and"):
        Started(bench, MOVED)


# -- whose worktrees they are ----------------------------------------------------------------------

TREE = """
[nodes.tree]
uses = "cap.env.builtin.worktree.prepare"
args = { slug = "login" }
on.succeeded = ["work"]
[nodes.work]
shell = "echo mine >mine; test -e $GO"
env = { GO = "{go}" }
"""


def test_a_retry_takes_back_the_worktree_and_makes_another(bench: Bench, scratch: Scratch) -> None:
    text = TREE.replace("{go}", str(scratch.path / "go"))
    run = Started(bench, text)
    run.ended()
    first, tree = run.job("tree"), tree_of(bench, run)
    assert tree.is_dir() and state_of(bench, first) is WorktreeState.OWNED
    (scratch.path / "go").touch()
    rewind(bench.client.context, run.job("work"))
    run.ended()
    assert run.job("tree") == first, "what is before the root of a retry is not touched"
    assert run.outcomes() == {"tree": "succeeded", "work": "succeeded"}
    os.unlink(scratch.path / "go")
    run = Started(bench, text)
    run.ended()
    assert state_of(bench, first) is WorktreeState.CLEANED, "of a run that has ended"
    assert "+mine" in Path(bench.home.job(first), "worktree.patch").read_text()
    second = run.job("tree")
    rewind(bench.client.context, second)
    assert state_of(bench, second) is WorktreeState.CLEANED
    run.ended()
    assert tree_of(bench, run).is_dir() and run.job("tree") > second
    assert len(os.listdir(bench.home.worktrees)) == 1


def test_an_active_run_keeps_its_branch_to_itself(bench: Bench, scratch: Scratch) -> None:
    # fault J8
    bench.client.set_setting("scheduler.max_active", 3)
    first = Started(bench, TREE.replace("echo mine", "sleep 60"))
    bench.until(lambda: first.node("work")["state"] == "running")
    second = Started(bench, TREE)
    second.ended()
    assert second.outcomes() == {"tree": "blocked", "work": "unreached"}
    assert "belongs to job-1 of wf-1; wait until it has ended" in second.node("tree")["reason"]
    stop_run(bench.client.context, first.run)
    first.ended()
    rewind(bench.client.context, second.job("tree"))
    second.ended()
    assert second.outcomes()["tree"] == "succeeded"


def test_the_collector_takes_the_worktree_along(bench: Bench, scratch: Scratch) -> None:
    run = Started(bench, TREE)
    run.ended()
    job, tree = run.job("tree"), tree_of(bench, run)
    removed = clean(bench.client.context, job)
    assert removed.jobs == (job,) and not tree.exists()
    saved = Path(bench.home.saved, f"job-{job}.patch")
    assert removed.left == (str(saved),) and "+mine" in saved.read_text()


@pytest.mark.parametrize("word", ["true", "false"])
def test_a_run_that_did_not_succeed_keeps_its_worktree_for_a_retry(
    bench: Bench, scratch: Scratch, word: str
) -> None:
    run = Started(
        bench,
        f"""
        finally = ["tidy"]
        [nodes.tree]
        uses = "cap.env.builtin.worktree.prepare"
        args = {{ slug = "login" }}
        [nodes.work]
        argv = ["{word}"]
        after = ["tree"]
        [nodes.tidy]
        uses = "cap.env.builtin.worktree.cleanup"
        root = "tree"
        """,
    )
    run.ended()
    assert run.outcomes()["tidy"] == "succeeded"
    kept = word == "false"
    assert tree_of(bench, run).is_dir() is kept
    state = WorktreeState.OWNED if kept else WorktreeState.CLEANED
    assert state_of(bench, run.job("tree")) is state
    assert ("worktree kept for a retry: wf-1 failed" in run.log("tidy")) is kept


# -- once only ---------------------------------------------------------------------------------

SLOW_GIT = """\
#!/bin/sh
case " $* " in
*" worktree add "*)
  if mkdir {folder}/once; then
    mkdir -p {lock}
    trap 'rmdir {lock}; exit 1' TERM
    kill -9 $PPID
    while :; do sleep 0.02; done
  fi ;;
esac
exec {git} "$@"
"""


@on_a_file
def test_a_git_whose_node_is_killed_leaves_no_lock_file(
    bench: Bench, scratch: Scratch, tmp_path: Path
) -> None:
    """It is asked to end, and so removes its lock file; else the next try would meet that."""
    program, lock = tmp_path / "git", scratch.path / ".git/refs/heads/draft/login.lock"
    program.write_text(SLOW_GIT.format(folder=tmp_path, lock=lock, git=shutil.which("git")))
    program.chmod(0o755)
    run = Started(
        bench,
        f"""
        [nodes.tree]
        uses = "cap.env.builtin.worktree.prepare"
        args = {{ slug = "login" }}
        env = {{ PATH = "{tmp_path}:{os.environ["PATH"]}" }}
        retry_base = "1ms"
        """,
    )
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert (tmp_path / "once").exists() and not lock.exists()
    assert bench.job(run.job("tree")).attempt == 2


@pytest.mark.parametrize("operation", ["git.stage_commit", "merge.sentinel.clear"])
def test_operations_repeat_after_unknown_ends_and_trouble_of_the_host(
    bench: Bench, scratch: Scratch, operation: str
) -> None:
    run = Started(
        bench,
        f"""
        [nodes.it]
        uses = "cap.env.builtin.{operation}"
        args = {{ {'message = "m"' if operation == "git.stage_commit" else 'slug = "x"'} }}
        [nodes.ci]
        uses = "control.gate.cicd"
        [nodes.stop]
        uses = "control.gate.stop_condition"
        retries = 1
        [nodes.named]
        uses = "control.gate.cicd"
        retries = 5
        retry_on = ["host", "7"]
        [nodes.command]
        argv = ["true"]
        """,
    )
    retry = {name: bench.job(run.job(name)).retry for name in run.outcomes()}
    for name in ("it", "ci"):
        assert (retry[name].max_attempts, retry[name].on) == (3, ("unknown", "host", "signal"))
    assert (retry["stop"].max_attempts, retry["stop"].on) == (1, ())
    assert (retry["named"].max_attempts, retry["named"].on) == (5, ("host", "7"))
    assert retry["command"].max_attempts == 0
    run.ended()


def test_a_commit_that_a_person_retries_takes_the_new_work(bench: Bench, scratch: Scratch) -> None:
    scratch.write("new", "x")
    run = Started(
        bench,
        """
        [nodes.commit]
        uses = "cap.env.builtin.git.stage_commit"
        args = { message = "m" }
        """,
    )
    run.ended()
    first = scratch.head("main")
    scratch.write("more", "y")
    bench.client.workflows.retry(run.run, from_node="commit")
    assert run.ended()["state"] == "succeeded"
    assert scratch.head("main^") == first and scratch.status() == ""
    keys = [scratch.message(each).rpartition("/commit/")[2].split() for each in ("main^", "main")]
    assert [each[0] for each in keys] == ["1", "2"] and keys[0][1] != keys[1][1]


FULL_DISK = """\
#!/bin/sh
case " $* " in
*" write-tree "*)
  if [ ! -e {mark} ]; then
    touch {mark}
    echo "fatal: unable to write new index file: No space left on device" >&2
    exit 128
  fi ;;
esac
exec {git} "$@"
"""


def test_trouble_of_the_host_is_tried_again(
    bench: Bench, scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # fault I6
    program, mark = tmp_path / "bin" / "git", tmp_path / "full"
    program.parent.mkdir()
    program.write_text(FULL_DISK.format(mark=mark, git=shutil.which("git")))
    program.chmod(0o755)
    scratch.write("new", "x")
    run = Started(
        bench,
        f"""
        [nodes.commit]
        uses = "cap.env.builtin.git.stage_commit"
        args = {{ message = "m" }}
        env = {{ PATH = "{program.parent}:{os.environ["PATH"]}" }}
        """,
    )
    first = run.job("commit")
    bench.until(lambda: bench.status(first) is Status.FAILED)
    assert bench.client.document(first)["run"]["exit_code"] == 75 and mark.exists()
    assert bench.last(first).id != first, "it is tried again"
    assert "No space left on device" in (bench.job(first).reason or "")
    rewind(bench.client.context, first)
    assert run.ended()["state"] == "succeeded"
    assert scratch.message("main").startswith("m\n")


# -- artifacts ---------------------------------------------------------------------------------


def test_what_operations_make_lets_plain_jobs_go(bench: Bench, scratch: Scratch) -> None:
    run = Started(
        bench,
        """
        [nodes.keep]
        uses = "cap.env.builtin.plan.persist"
        args = { slug = "login", spec_text = "so" }
        [nodes.step]
        uses = "cap.env.builtin.build.materialize_step"
        args = { slug = "login", target = "release" }
        [nodes.note]
        uses = "cap.env.builtin.merge.sentinel.write"
        args = { slug = "other" }
        [nodes.patch]
        uses = "cap.env.builtin.git.save_worktree_patch"
        """,
    )
    made = ("plan_branch:login", "plan_doc:login", "target_branch:release", "merge_sentinel:other")
    needs = [*made, f"command_patch:job-{run.job('patch')}"]
    waiting = [bench.submit("true", needs=(each,)) for each in needs]
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    bench.until_ended(*waiting)
    assert {bench.status(each) for each in waiting} == {Status.SUCCEEDED}


PIPELINE = """
[nodes.take]
uses = "cap.env.builtin.patch.pipeline_prepare"
args = { files = ["one.patch"] }
on.succeeded = ["tree"]
[nodes.tree]
uses = "cap.env.builtin.worktree.prepare"
args = { branch = "topic" }
on.succeeded = ["apply"]
[nodes.apply]
uses = "cap.env.builtin.patch.execute_pipeline"
args = { from = "take" }
on.succeeded = ["final"]
[nodes.final]
uses = "cap.env.builtin.patch.pipeline_finalize"
outputs = ["patch", "bytes"]
"""


def test_patches_go_through_a_pipeline(bench: Bench, scratch: Scratch) -> None:
    scratch.on_branch("one", new="new\n")
    patch = scratch.git("diff", "--binary", "main", "one") + "\n"
    scratch.write("one.patch", patch)
    run = Started(bench, PIPELINE)
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    made = Path(bench.home.job(run.job("final")), "command.patch").read_text()
    assert "+new" in made and (tree_of(bench, run) / "new").read_text() == "new\n"
    os.unlink(scratch.path / "one.patch")
    run = Started(bench, PIPELINE)
    run.ended()
    assert run.node("take")["reason"] == "patch.pipeline_prepare missing patch file one.patch"


# -- merges ------------------------------------------------------------------------------------

MERGE = """
[nodes.tree]
uses = "cap.env.builtin.worktree.prepare"
args = { slug = "login" }
on.succeeded = ["merge"]
[nodes.merge]
uses = "cap.env.builtin.git.integrate_plan_branch"
args = { slug = "login", target = "main" }
on.blocked = ["resolve"]
[nodes.resolve]
uses = "control.gate.conflict_resolution"
args = { slug = "login" }
root = "tree"
COMMAND
loop = { to = "merge", on = ["succeeded"], times = 2 }
"""
RESOLVE = 'shell = "echo both >readme.txt"'


def in_conflict(scratch: Scratch) -> None:
    scratch.on_branch("draft/login", **{"readme.txt": "theirs\n"})
    scratch.write("readme.txt", "ours\n")
    scratch.commit("ours")


@pytest.mark.req("V22")
def test_a_conflict_is_resolved_by_a_command_and_merged(bench: Bench, scratch: Scratch) -> None:
    in_conflict(scratch)
    run = Started(bench, MERGE.replace("COMMAND", RESOLVE))
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert run.outcomes() == {"tree": "succeeded", "merge": "succeeded", "resolve": "skipped"}
    assert run.node("merge")["pass"] == 2
    assert (scratch.path / "readme.txt").read_text() == "both\n" and scratch.status() == ""
    assert not Path(bench.home.path, "merge-conflicts", "login.json").exists()


@pytest.mark.req("V42", "V43")
def test_a_person_resolves_a_conflict_and_retries(bench: Bench, scratch: Scratch) -> None:
    # fault I1
    in_conflict(scratch)
    run = Started(bench, MERGE.replace("COMMAND", ""))
    waiting = bench.submit("true", needs=("merge_sentinel:login",))
    assert run.ended()["state"] == "blocked"
    bench.until_ended(waiting)
    assert bench.status(waiting) is Status.SUCCEEDED
    assert run.node("resolve")["reason"].startswith(
        "merge conflict resolution incomplete for slug login: unmerged index entries remain"
    )
    first, _, then = run.ended()["reason"].partition("; then ")
    assert first.startswith(f"merge (job-{run.job('merge')}) blocked: ")
    assert then.startswith(f"resolve (job-{run.job('resolve')}) blocked: merge conflict resolution")
    sentinel = Path(bench.home.path, "merge-conflicts", "login.json")
    assert json.loads(sentinel.read_text())["conflicts"] == ["readme.txt"]
    tree, job = tree_of(bench, run), run.job("resolve")
    for verb in (preview, rewind):
        with pytest.raises(ConflictError, match=rf"{tree} is in the middle of a merge.*--abort"):
            verb(bench.client.context, job)
    assert sentinel.exists() and run.job("resolve") == job
    scratch.write("readme.txt", "by a person\n", at=tree)
    scratch.commit("merge main", at=tree)
    rewind(bench.client.context, job)
    assert not sentinel.exists(), "the mark of the conflict goes with the retry"
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert (scratch.path / "readme.txt").read_text() == "by a person\n"


@pytest.mark.req("V42")
def test_a_retry_of_a_merge_clears_the_sentinel_of_its_slug(bench: Bench, scratch: Scratch) -> None:
    in_conflict(scratch)
    run = Started(
        bench,
        """
        [nodes.merge]
        uses = "cap.env.builtin.git.integrate_plan_branch"
        args = { slug = "login", target = "main" }
        """,
    )
    assert run.ended()["state"] == "blocked"
    folder = Path(bench.home.path, "merge-conflicts")
    (folder / "other.json").write_text("{}")
    bench.client.pause("look at it first")
    rewind(bench.client.context, run.job("merge"))
    assert os.listdir(folder) == ["other.json"]


# -- starters ----------------------------------------------------------------------------------


def test_the_merge_starter_merges_a_plan(bench: Bench, scratch: Scratch) -> None:
    scratch.write("Makefile", "test:\n\tgrep -q new new\n")
    scratch.commit("checks")
    scratch.on_branch("draft/login", new="new\n")
    run = Started(bench, starter_text("merge"), "login")
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert run.outcomes() == {
        "tree": "succeeded",
        "ci": "succeeded",
        "integrate": "succeeded",
        "resolve": "skipped",
        "ask": "skipped",
        "done": "succeeded",
    }
    assert scratch.message("main").startswith("feat: merge plan login\n")
    assert (scratch.path / "new").exists()


def test_the_merge_starter_asks_for_a_person_where_there_is_no_agent(
    bench: Bench, scratch: Scratch
) -> None:
    scratch.write("Makefile", "test:\n\ttrue\n")
    scratch.commit("checks")
    in_conflict(scratch)
    run = Started(bench, starter_text("merge"), "login")
    assert run.ended()["state"] == "blocked", run.document["nodes"]
    assert "claude could not be started: No such file" in run.node("resolve")["reason"]
    assert run.log("ask") == "wf-1: the conflict of login needs a person\n"


def without_agents(name: str) -> str:
    """A starter in which a command does what the agent would."""
    text = starter_text(name)
    if name == "draft":
        ask = text[text.index("[nodes.ask]") : text.index("[nodes.keep]")]
        plan = '[nodes.ask]\nargv = ["true"]\non.succeeded = ["keep"]\n'
        text = text.replace(ask, plan).replace('needs = ["custom:plan_text:plan"]\n', "")
        return text.replace('artifacts.plan_text.version = "1"\n', "")
    implement = text[text.index("[nodes.implement]") : text.index("[nodes.commit]")]
    work = (
        "[nodes.implement]\nshell = 'cat .headway/plans/*.md >new'\non.succeeded = [\"commit\"]\n"
    )
    return text.replace(implement, work)


def test_the_three_stages_take_a_change_from_plan_to_target(bench: Bench, scratch: Scratch) -> None:
    scratch.write("Makefile", "test:\n\ttest -e readme.txt\n")
    scratch.commit("checks")
    run = Started(bench, without_agents("draft"), "login", spec="make it so")
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert scratch.git("show", "draft/login:.headway/plans/login.md").startswith("# login")
    run = Started(bench, without_agents("approve"), "login")
    bench.step()
    approve(bench.client.context, run.job("agree"))
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert "make it so" in scratch.git("show", "draft/login:new")
    run = Started(bench, starter_text("merge"), "login")
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert "make it so" in (scratch.path / "new").read_text()
    assert "make it so" in scratch.message("main")
    assert "plans" not in scratch.git("ls-tree", "-r", "--name-only", "main")
    assert len(os.listdir(bench.home.worktrees)) == 1, "each stage took the tree of the one before"
