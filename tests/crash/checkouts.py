"""Scenes of the visiting test about jobs with worktrees of their own."""

import subprocess
from pathlib import Path

from scenes import Fate, Scene, check_piece, submit_piece
from stage import Part, Stage, work

from headway.core.states import Status
from headway.jobs.worktrees import clean_worktrees


def repository(stage: Stage) -> Path:
    folder = stage.folder / "repo"
    folder.mkdir()
    (folder / "file").write_text("first\n")
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "begin")):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder


def dies_around_its_command(fate: Fate) -> list[Scene]:
    """Whoever makes the worktree of `a`, checks what it is pinned to, or saves its patch, is killed
    on the way; first beside a worker that goes on, then with it and without control groups."""

    def beside(stage: Stage, point: str) -> None:
        _submit(stage)
        worker = stage.actor(work, children=f"{point}=kill")
        assert stage.killed_at() == point
        stage.until_ended(*stage.names)
        stage.leave(worker)
        _check(stage, fate)

    def together(stage: Stage, point: str) -> None:
        stage.settings["processes.cgroup"] = "off"
        _submit(stage)
        worker = stage.actor(work, children=f"{point}=kill")
        assert stage.killed_at() == point
        stage.kill(worker)
        stage.finish()
        _check(stage, fate)

    return [beside, together]


def _submit(stage: Stage) -> None:
    repo = str(repository(stage))
    submit_piece(stage, "echo more >>file", cwd=repo, worktree="", save_patch=True, pin_head="")


def _check(stage: Stage, fate: Fate) -> None:
    """Whatever it left can be taken back, whole or half-made."""
    check_piece(stage, fate)
    job = stage.number("a")
    clean(Part(stage.home, {}, "", stage.settings, {}), job)
    assert stage.client.document(job)["worktree"] is None
    assert not Path(stage.home.worktrees, f"job-{job}").exists()
    listed = subprocess.run(
        ["git", "worktree", "list"], cwd=stage.folder / "repo", capture_output=True, check=True
    )
    assert len(listed.stdout.splitlines()) == 1


def clean(part: Part, job: int) -> None:
    client = part.client()
    clean_worktrees(client.context.store, client.context.home, [job], actor="cleaner")
    client.close()


def cleaner_dies(stage: Stage, point: str) -> None:
    """After git or after the record: cleaning again finds nothing, and loses nothing."""
    _submit(stage)
    stage.finish()
    job = stage.number("a")
    assert stage.status(job) is Status.SUCCEEDED
    stage.dies_at(point, clean, job)
    saved = Path(stage.home.job(job), "worktree.patch").read_bytes()
    assert b"+more" in saved
    clean(Part(stage.home, {}, "", stage.settings, {}), job)
    assert stage.client.document(job)["worktree"] is None
    assert stage.kinds(job).count("worktree_cleaned") == 1
    assert Path(stage.home.job(job), "worktree.patch").read_bytes() == saved
    check_piece(stage)
