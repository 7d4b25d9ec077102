"""Operations that are killed at each point, and done again: the same end, and one effect.

An operation runs in a process of its own, which kills itself where the test says. What is then on
disk is what a real crash leaves. `HEADWAY_POINTS` reaches the process of a node like any other
variable that its file sets.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scratch import IDENTITY, Desk, Scratch
from started import Started

from harness import Bench
from headway.workflows.operations.model import BlockedError, NodeTask

ACT = """
import json, sys
from headway.workflows.operations import operation_of
from headway.workflows.operations.model import NodeTask
task = NodeTask(**json.loads(sys.argv[1]))
print(json.dumps(dict(operation_of(task.operation)(task).outputs)))
"""
KILLED_GIT = """\
#!/bin/sh
case " $* " in
*" read-tree -m -u "*)
  cp {index} {index}.aside
  GIT_INDEX_FILE={index}.aside {git} "$@"
  rm -f {index}.aside
  kill -9 $PPID
  exit 1 ;;
esac
exec {git} "$@"
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    return Scratch(tmp_path / "repo")


@pytest.fixture
def desk(scratch: Scratch, tmp_path: Path) -> Desk:
    return Desk(scratch, tmp_path)


def act(task: NodeTask, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ACT, json.dumps(task._asdict())],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def killed_at(point: str, task: NodeTask, folder: Path) -> None:
    mark = folder / "mark"
    done = act(task, HEADWAY_POINTS=f"{point}=kill", HEADWAY_TEST_MARK=str(mark))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert mark.read_text().split()[0] == point


# -- scenes: what is to be done, and what must be so in the end ------------------------------------

Scene = tuple[Callable[[], NodeTask], Callable[[], None]]


def commit(scratch: Scratch, desk: Desk) -> Scene:
    tree = desk.tree(slug="login")
    scratch.write("new", "new\n", at=tree["path"])

    def check() -> None:
        assert scratch.count("draft/login") == 2
        assert scratch.git("show", "draft/login:new") == "new"
        assert scratch.status(at=tree["path"]) == ""

    args = {"message": "feat: x"}
    return lambda: desk.task("git.stage_commit", args=args, directory=tree["path"]), check


def plan(scratch: Scratch, desk: Desk) -> Scene:
    tree = desk.tree(slug="login")

    def check() -> None:
        assert scratch.count("draft/login") == 2 and scratch.status(at=tree["path"]) == ""
        assert Path(tree["path"], ".headway/plans/login.md").exists()

    args = {"slug": "login", "spec_text": "so"}
    return lambda: desk.task("plan.persist", args=args), check


def integrate(scratch: Scratch, desk: Desk) -> Scene:
    desk.do("plan.persist", {"slug": "login", "spec_text": "so"}, node="keep")
    scratch.on_branch("draft/login", new="new\n", **{"readme.txt": "changed\n"})
    tree = desk.tree(slug="login")

    def check() -> None:
        assert scratch.count("main") == 2, "one merge"
        assert scratch.count("draft/login") == 4, "one commit took the document out"
        assert scratch.status() == "" and scratch.status(at=tree["path"]) == ""
        assert scratch.message("main").count("## Specification") == 1
        assert (scratch.path / "new").exists()
        left = os.listdir(scratch.path / ".git" / "headway")
        assert not [name for name in left if name.startswith("intent")]

    args = {"slug": "login", "target": "main"}
    return lambda: desk.task("git.integrate_plan_branch", args=args), check


def apply_patch(scratch: Scratch, desk: Desk) -> Scene:
    scratch.on_branch("one", new="new\n", **{"readme.txt": "patched\n"})
    file = desk.home / "one.patch"
    file.write_text(scratch.git("diff", "--binary", "main", "one") + "\n")

    def check() -> None:
        assert scratch.status().splitlines() == ["A  new", "M  readme.txt"] or (
            scratch.status().splitlines() == ["A  new", "M readme.txt"]
        )
        assert scratch.git("write-tree") == scratch.head("one^{tree}")
        assert scratch.git("diff", "--name-only") == ""

    args = {"files": [str(file)]}
    return lambda: desk.task("patch.execute_pipeline", args=args), check


def worktree(scratch: Scratch, desk: Desk) -> Scene:
    def again() -> NodeTask:
        """The next job of the chain, which is told of what the one before may have left."""
        number = desk.jobs
        old = {
            "job": f"job-{number}",
            "repo": str(scratch.path),
            "path": str(desk.home / "worktrees" / f"job-{number}"),
            "branch": "draft/login",
            "base": scratch.head("main"),
            "run": "wf-7",
            "ended": True,
        }
        args = {"slug": "login", "base": "main"}
        return desk.task("worktree.prepare", args=args, old_trees=[old] if number else [])

    def check() -> None:
        assert os.listdir(desk.home / "worktrees") == [f"job-{desk.jobs}"]
        assert len(scratch.git("worktree", "list").splitlines()) == 2
        assert scratch.head("draft/login") == scratch.head("main")

    return again, check


RUNNER = 'argv = ["{program}"]\nprompt = "stdin"\nparser = "jsonl"\n'
AGENT = "#!/bin/sh\ncat > /dev/null\necho called >> {ledger}\necho both > readme.txt\n"


def resolve(scratch: Scratch, desk: Desk) -> Scene:
    """A conflict, and an agent that resolves it and leaves a line each time."""
    scratch.on_branch("draft/login", **{"readme.txt": "theirs\n"})
    scratch.write("readme.txt", "ours\n")
    scratch.commit("ours")
    ledger, program = desk.home / "called", desk.home / "agent"
    program.write_text(AGENT.format(ledger=ledger))
    program.chmod(0o755)
    runner = desk.home / "fake.toml"
    runner.write_text(RUNNER.format(program=program))
    tree = desk.tree(slug="login")
    with pytest.raises(BlockedError):
        desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"}, node="merge")

    def check() -> None:
        assert scratch.git("show", "draft/login:readme.txt") == "both"
        assert scratch.head("draft/login^2") == scratch.head("main")
        assert scratch.status(at=tree["path"]) == "" and not desk.sentinel("login").exists()
        assert ledger.read_text() == "called\n", "one agent in all tries"

    args = {"slug": "login", "auto_resolve": True, "runner_file": str(runner)}
    return lambda: desk.task("gate.conflict_resolution", args=args, root=tree), check


SCENES = {
    "worktree.added": worktree,
    "commit.before_ref": commit,
    "commit.after_ref": commit,
    "plan.before_ref": plan,
    "plan.after_ref": plan,
    "integrate.doc": integrate,
    "integrate.commit": integrate,
    "integrate.tree": integrate,
    "integrate.ref": integrate,
    "patch.aside": apply_patch,
    "patch.moved": apply_patch,
    "conflict.merging": resolve,
    "conflict.agent_ended": resolve,
}


@pytest.mark.parametrize("point", SCENES)
def test_killed_at_a_point_and_done_again_it_ends_the_same(
    scratch: Scratch, desk: Desk, tmp_path: Path, point: str
) -> None:
    # fault J2
    task, check = SCENES[point](scratch, desk)
    killed_at(point, task(), tmp_path)
    for _ in range(2):
        done = act(task())
        assert done.returncode == 0, done.stderr
        check()


def test_an_agent_that_was_ended_at_its_work_is_not_called_again(
    scratch: Scratch, desk: Desk, tmp_path: Path
) -> None:
    task, _ = resolve(scratch, desk)
    killed_at("conflict.agent_called", task(), tmp_path)
    for _ in range(2):
        with pytest.raises(BlockedError, match="nobody knows what the agent did") as caught:
            desk.run(task())
    top = caught.value.outputs["path"]
    assert not (desk.home / "called").exists() and desk.sentinel("login").exists()
    scratch.write("readme.txt", "by a person\n", at=top)
    scratch.commit("by a person", at=top)
    desk.run(task())
    assert scratch.git("show", "draft/login:readme.txt") == "by a person"


def test_an_agent_that_failed_or_left_marks_is_called_again(scratch: Scratch, desk: Desk) -> None:
    task, check = resolve(scratch, desk)
    program = desk.home / "agent"
    resolves = program.read_text()
    for script in ("exit 3", "true"):
        program.write_text(f"#!/bin/sh\n{script}\n")
        assert "unmerged index entries remain" in act(task()).stderr
    program.write_text(resolves)
    assert act(task()).returncode == 0
    check()


@pytest.mark.parametrize("scene", [plan, integrate, apply_patch], ids=lambda each: each.__name__)
def test_a_git_killed_while_it_turns_a_checkout_is_repaired(
    scratch: Scratch, desk: Desk, tmp_path: Path, scene: Callable[[Scratch, Desk], Scene]
) -> None:
    """Files are as the new tree has them, and the index is not."""
    task, check = scene(scratch, desk)
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    of_tree = scratch.path / ".git" / "worktrees"
    index = scratch.path / ".git" / "index"
    if scene is plan:
        index = of_tree / os.listdir(of_tree)[0] / "index"
    if scene is integrate:  # the document leaves first, in the worktree
        killed_at("integrate.doc", task(), tmp_path)
    program.write_text(KILLED_GIT.format(index=index, git=shutil.which("git")))
    program.chmod(0o755)
    killed = act(task(), PATH=f"{program.parent}:{os.environ['PATH']}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    at = None if scene is not plan else os.listdir(desk.home / "worktrees")[0]
    assert scratch.status(at=at and desk.home / "worktrees" / at) != "", "half of it is done"
    done = act(task())
    assert done.returncode == 0, done.stderr
    check()


def test_a_merge_is_found_by_its_key_although_the_target_went_on(
    scratch: Scratch, desk: Desk, tmp_path: Path
) -> None:
    # fault J2
    task, _ = integrate(scratch, desk)
    killed_at("integrate.ref", task(), tmp_path)
    merge = scratch.head("main")
    scratch.write("readme.txt", "someone else\n")
    scratch.commit("someone else")
    assert json.loads(act(task()).stdout)["commit"] == merge


NODE = """
[nodes.commit]
uses = "cap.env.builtin.git.stage_commit"
args = {{ message = "feat: x" }}
env = {{ HEADWAY_POINTS = "{point}=kill", HEADWAY_TEST_MARK = "{mark}" }}
retries = 1
retry_base = "1ms"
retry_on = ["unknown", "signal"]
"""


@pytest.mark.parametrize("point", ["commit.before_ref", "commit.after_ref"])
def test_a_node_that_is_killed_commits_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, point: str
) -> None:
    # fault J2
    monkeypatch.chdir(bench.folder)
    scratch, mark = Scratch(bench.folder), tmp_path / "mark"
    scratch.write("readme.txt", "changed\n")
    before = scratch.count("main")
    run = Started(bench, NODE.format(point=point, mark=mark))
    assert run.ended()["state"] == "succeeded"
    assert mark.read_text().split()[0] == point
    assert bench.job(run.job("commit")).attempt == 2
    assert scratch.count("main") == before + 1
    assert "Headway-Operation: wf-1/commit/1 " in scratch.message("main")
