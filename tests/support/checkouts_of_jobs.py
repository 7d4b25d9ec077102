"""Jobs in worktrees of their own, for the tests about them."""

import subprocess
from pathlib import Path
from typing import Any

from harness import Bench
from headway.jobs.worktrees import clean_worktrees

IDENTITY = "-c user.name=Ann -c user.email=ann@example.org"
COMMIT = f"echo more >>readme.txt && git {IDENTITY} commit -qam work"
CHANGES = "echo more >>readme.txt; printf 'a\\000b' >new.bin; rm part/data"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY.split(), *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def make_repository(tmp_path: Path) -> Path:
    """A repository beside the home, with a folder inside."""
    folder = tmp_path / "repo"
    (folder / "part").mkdir(parents=True)
    (folder / "readme.txt").write_text("first\n")
    (folder / "part" / "data").write_bytes(bytes(range(256)))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "begin")
    return folder


def at(repo: Path, *, base: str = "", **more: Any) -> dict[str, Any]:
    """The options of a job with a worktree of its own."""
    return {"cwd": str(repo), "worktree": base, **more}


def path_of(bench: Bench, job: int) -> Path:
    return Path(bench.home.worktrees, f"job-{job}")


def output(bench: Bench, job: int) -> str:
    return Path(bench.home.job(job), "stdout.log").read_text()


def patch(bench: Bench, job: int) -> Path:
    return Path(bench.home.job(job), "command.patch")


def cleaned(bench: Bench, *jobs: int) -> dict[int, Any]:
    return clean_worktrees(bench.store, bench.home, list(jobs), actor="tester")


def entries(repo: Path) -> list[str]:
    return git(repo, "worktree", "list", "--porcelain").split("\n\n")
