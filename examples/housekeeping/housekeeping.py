"""The housekeeping of a small orchestrator: what jobs.yaml names, one function each.

Its world is the folder `board/` beside this file: agents, tasks, hooks and projects as JSON files
(board.py makes one to try with). A real orchestrator would ask its server in the same places.
"""

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headway import JobContext, condition, job, poll

BOARD = Path(__file__).parent / "board"
STALE_SECONDS = 24 * 3600
LONG_QUEUE = 100


@poll
def fetch() -> dict[str, Any]:
    """What all remote jobs of a round share; it is fetched once for them."""
    _note("polls.log", "polled")
    counts = Counter(task["status"] for _, task in _all("tasks"))
    return {"queue_counts": dict(counts), "orchestrators": len(_all("orchestrators"))}


@condition("board_is_there")
def board_is_there() -> bool:
    return BOARD.is_dir()


# -- local: without poll data ------------------------------------------------------------------


@job("check_finished_agents")
def check_finished_agents(ctx: JobContext) -> None:
    """An agent whose process is gone has finished."""
    for path, agent in _all("agents"):
        if agent["status"] == "running" and not _is_alive(agent["pid"]):
            _write(path, {**agent, "status": "finished"})
            ctx.log(f"{path.stem} has finished")


@job("sweep_stale_worktrees")
def sweep_stale_worktrees(ctx: JobContext) -> None:
    """A worktree that nobody touched for a day, and that no task has, goes."""
    tasks = {path.stem for path, task in _all("tasks") if task["status"] != "done"}
    for folder in sorted((BOARD / "worktrees").glob("*/")):
        stale = time.time() - folder.stat().st_mtime > STALE_SECONDS
        if stale and folder.name not in tasks:
            shutil.rmtree(folder)
            ctx.log(f"removed {folder.name}")


@job("cleanup_merged_branches")
def cleanup_merged_branches(ctx: JobContext) -> None:
    path = BOARD / "branches.json"
    branches = json.loads(path.read_text()) if path.exists() else {}
    kept = {name: state for name, state in branches.items() if state != "merged"}
    if kept != branches:
        _write(path, kept)
    ctx.log(f"{len(branches) - len(kept)} branches were merged")


# -- remote: with poll data, or None if the poll failed -----------------------------------------


@job("register_orchestrator")
def register_orchestrator(ctx: JobContext) -> None:
    """Say that we live. `ctx.state` is kept from run to run."""
    ctx.state["times"] = ctx.state.get("times", 0) + 1
    _write(BOARD / "orchestrators" / "this.json", {"at": time.time(), **ctx.state})


@job("requeue_expired_leases")
def requeue_expired_leases(ctx: JobContext) -> None:
    for path, task in _all("tasks"):
        if task["status"] == "claimed" and task["lease_until"] < time.time():
            _write(path, {**task, "status": "incoming", "lease_until": None})
            ctx.log(f"{path.stem} is back in the queue")


@job("process_hooks")
def process_hooks(ctx: JobContext) -> None:
    for path, hook in _all("hooks"):
        _note("hooks.log", hook["says"])
        path.unlink()
        ctx.log(f"hook {path.stem} is done")


@job("check_project_completion")
def check_project_completion(ctx: JobContext) -> None:
    done = {path.stem for path, task in _all("tasks") if task["status"] == "done"}
    for path, project in _all("projects"):
        if project["status"] == "open" and set(project["tasks"]) <= done:
            _write(path, {**project, "status": "completed"})
            ctx.log(f"{path.stem} is completed")


@job("check_queue_health")
def check_queue_health(ctx: JobContext) -> None:
    """Look at the numbers that the poll brought."""
    counts = (ctx.poll_data or {}).get("queue_counts")
    waiting = (counts or {}).get("incoming", 0)
    health = "unknown" if counts is None else "long" if waiting > LONG_QUEUE else "good"
    _write(BOARD / "health.json", {"queue": health, "waiting": waiting})


@job("evaluate_agents")
def evaluate_agents(ctx: JobContext) -> None:
    """How many tasks each agent has done, of those that it had."""
    had = Counter(task["agent"] for _, task in _all("tasks") if task.get("agent"))
    done = Counter(task["agent"] for _, task in _all("tasks") if task["status"] == "done")
    _write(BOARD / "evaluation.json", {name: f"{done[name]} of {had[name]}" for name in had})


# -- the board ---------------------------------------------------------------------------------


def _all(kind: str) -> list[tuple[Path, dict[str, Any]]]:
    return list(_each(kind))


def _each(kind: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted((BOARD / kind).glob("*.json")):
        yield path, json.loads(path.read_text())


def _write(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all: other jobs read it meanwhile."""
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(json.dumps(document))
    fresh.rename(path)


def _note(name: str, line: str) -> None:
    with (BOARD / name).open("a") as file:
        file.write(line + "\n")


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
