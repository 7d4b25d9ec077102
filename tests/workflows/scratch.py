"""A scratch repository for runs and operations, driven with the plain git program."""

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from headway.workflows.operations import operation_of
from headway.workflows.operations.model import Done, NodeTask, operation_key

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_EDITOR": "true",
}


@cache
def _template() -> Path:
    """Made once: to do so takes five processes."""
    folder = tempfile.mkdtemp(prefix="headway-scratch-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Scratch.made(Path(folder, "repository")).path


class Scratch:
    """A repository on `main` with two files and one commit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copytree(_template(), path, dirs_exist_ok=True)
        self.git("update-index", "-q", "--refresh")  # the files of a copy are others

    @classmethod
    def made(cls, path: Path) -> "Scratch":
        scratch = cls.__new__(cls)
        scratch.path = path
        path.mkdir()
        scratch.git("init", "-q", "-b", "main")
        scratch.write("readme.txt", "first\nsecond\nthird\n")
        scratch.write("part/data", "data\n")
        scratch.commit("begin")
        return scratch

    def git(self, *args: str, at: Path | str | None = None, ok: bool = True) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=at or self.path,
            env=os.environ | IDENTITY,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not ok, (args, done.stderr)
        return done.stdout.strip()

    def write(self, name: str, text: str, at: Path | str | None = None) -> Path:
        file = Path(at or self.path) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def commit(self, message: str, at: Path | str | None = None) -> str:
        self.git("add", "-A", at=at)
        self.git("commit", "-q", "--allow-empty", "-m", message, at=at)
        return self.head(at=at)

    def head(self, name: str = "HEAD", at: Path | str | None = None) -> str:
        return self.git("rev-parse", "--verify", "-q", name, at=at, ok=False)

    def on_branch(self, branch: str, message: str = "work", **files: str) -> str:
        """A commit on a branch, which is made at main if need be; nothing stays checked out."""
        tree = self.path.parent / f"tree-of-{branch.replace('/', '-')}"
        start = [branch] if self.head(branch) else ["-b", branch, "main"]
        order = start if start[0] != "-b" else [*start[:2]]
        base = [] if start[0] != "-b" else [start[2]]
        if start[0] == "-b":
            self.git("worktree", "add", "-q", *order, str(tree), *base)
        else:
            self.git("worktree", "add", "-q", str(tree), branch)
        for name, text in files.items():
            self.write(name.replace("__", "/"), text, at=tree)
        commit = self.commit(message, at=tree)
        self.git("worktree", "remove", "--force", str(tree))
        return commit

    def status(self, at: Path | str | None = None) -> str:
        return self.git("status", "--porcelain", at=at)

    def message(self, commit: str) -> str:
        return self.git("log", "-1", "--format=%B", commit)

    def count(self, branch: str) -> int:
        return int(self.git("rev-list", "--count", branch))


class Desk:
    """Does one operation after the other, as the process of a node would."""

    def __init__(self, scratch: Scratch, folder: Path) -> None:
        self.scratch = scratch
        self.home = folder / "home"
        self.jobs = 0
        (self.home / "worktrees").mkdir(parents=True)

    def task(self, operation: str, **more: Any) -> NodeTask:
        self.jobs += 1
        folder = self.home / "jobs" / str(self.jobs)
        folder.mkdir(parents=True)
        node, node_pass = more.pop("node", "node"), more.pop("node_pass", 1)
        given: dict[str, Any] = {
            "run": "wf-7",
            "node": node,
            "node_pass": node_pass,
            "attempt": 1,
            "job": f"job-{self.jobs}",
            "label": operation,
            "operation": operation,
            "key": operation_key("host", "wf-7", node, node_pass),
            "args": more.pop("args", {}),
            "command": None,
            "outputs": [],
            "produces": [],
            "artifacts": {},
            "repository": str(self.scratch.path),
            "directory": str(self.scratch.path),
            "root": None,
            "home": str(self.home),
            "folder": str(folder),
            "state": "running",
            "began": 0,
            "worktrees": str(self.home / "worktrees"),
        }
        return NodeTask(**{**given, **more})

    def do(self, operation: str, args: dict[str, Any] | None = None, **more: Any) -> Done:
        return self.run(self.task(operation, args=args or {}, **more))

    def run(self, task: NodeTask) -> Done:
        return operation_of(task.operation)(task)

    def tree(self, **args: Any) -> dict[str, Any]:
        """A worktree, as nodes are told of it."""
        task = self.task("worktree.prepare", args={"base": "main", **args}, node="tree")
        made = self.run(task).outputs
        told = {key: made[key] for key in ("path", "branch", "base")}
        return {**told, "repo": str(self.scratch.path), "job": task.job, "node": "tree"}

    def within(self, tree: dict[str, Any], operation: str, **more: Any) -> Done:
        return self.run(
            self.task(operation, directory=tree["path"], root=tree, **more),
        )

    def sentinel(self, slug: str) -> Path:
        return self.home / "merge-conflicts" / f"{slug}.json"
