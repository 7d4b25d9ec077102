"""A repository as a user would drive it, with the plain git program and nothing of Headway."""

import os
import subprocess
from pathlib import Path

from headway.integrations.git.worktrees import Worktree

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_EDITOR": "true",
}
BINARY = bytes(range(256)) * 8


class Repo:
    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls, path: Path) -> "Repo":
        path.mkdir(parents=True)
        repo = cls(path)
        repo.git("init", "-q", "-b", "main")
        repo.write("readme.txt", "first\nsecond\nthird\n")
        repo.write("blob.bin", BINARY)
        repo.write("tools/run.sh", "#!/bin/sh\n")
        (path / "tools/run.sh").chmod(0o755)
        repo.commit("begin")
        return repo

    def __str__(self) -> str:
        return str(self.path)

    def git(self, *args: str, ok: bool = True, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=at or self.path,
            env=os.environ | IDENTITY,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0 or not ok, (args, done.stderr)
        return done.stdout.decode(errors="surrogateescape").strip()

    def write(self, name: str, content: str | bytes) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head()

    def head(self, name: str = "HEAD") -> str:
        return self.git("rev-parse", name)

    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()

    def tree_of(self, checkout: Path) -> str:
        """The name of the tree that everything in this checkout would make."""
        self.git("-c", "core.safecrlf=false", "add", "-A", at=checkout)
        return self.git("write-tree", at=checkout)

    def worktree(self, name: str, base: str | None = None) -> Worktree:
        path = self.path.parent / "home" / "worktrees" / name
        return Worktree(str(self.path), str(path), f"headway/{name}", base or self.head())

    def entries(self) -> list[str]:
        folder = self.path / ".git" / "worktrees"
        return sorted(os.listdir(folder)) if folder.exists() else []

    def notes(self) -> list[str]:
        """What Headway still remembers in the repository."""
        folder = self.path / ".git" / "headway"
        return sorted(set(os.listdir(folder)) - {"lock"}) if folder.exists() else []
