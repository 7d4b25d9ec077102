"""Command jobs: a job's frozen parameters become the specification that a supervisor reads."""

import os
from collections.abc import Mapping
from typing import Any

from headway.base.environment import MINIMAL_PATH
from headway.base.errors import DataError
from headway.base.home import Home
from headway.base.trust import STATE, passed_on
from headway.core.artifacts import paths_of_files
from headway.core.gates.routes import OF_NODE
from headway.core.model import Claim, Job, shown, shown_run
from headway.core.worktrees import OwnedWorktree, owned_worktree
from headway.integrations.git import command as git_command
from headway.jobs.inputs import kept_input
from headway.jobs.log_limits import log_limits
from headway.jobs.settings import Config
from headway.jobs.wake import worker_argv, worker_environment
from headway.schedules.jobsfile.model import SCRIPT
from headway.supervise.evidence import Evidence

PREPARE_SECONDS = 300.0
FINISH_SECONDS = 120.0
PATCH_BYTES = 64 << 20
PATCH = "command.patch"
# What a submitter's environment may hold when a hook of git submits; a worktree is another place.
OF_ANOTHER_REPOSITORY = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"),
)


def command_specification(
    job: Job, claim: Claim, home: Home, config: Config, worker: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of `claim.T`; raises DataError when the record has no command."""
    spec = specification_of(_argv(job), job, claim, home, config, worker)
    if job.type != SCRIPT:
        return spec
    # It is Python of ours that imports the user's, and decides itself whether it may.
    return {**spec, "verdict": True, "env": {**spec["env"], **passed_on(os.environ)}}


def specification_of(
    argv: list[str],
    job: Job,
    claim: Claim,
    home: Home,
    config: Config,
    worker: Mapping[str, Any],
) -> dict[str, Any]:
    """The same for a job whose main process is another one."""
    params = job.params
    env_file = _submitters_environment(job, home)
    worktree = _worktree(job)
    return {
        "version": 1,
        "token": claim.token,
        "job": job.id,
        "attempt": job.attempt,
        "home": home.path,
        "argv": argv,
        "env_file": env_file,
        "env": {
            **_own_environment(home, config, alone=env_file is None),
            **params.get("env", {}),
            **_of_node(job, claim),
        },
        "outputs": job.workflow_run is not None,
        "cwd": _directory(worktree)
        or params.get("cwd")
        or (os.path.dirname(home.path) if env_file is None else None),
        "stdin": kept_input(home, params, job.chain) or params.get("stdin"),
        "timeout_seconds": params.get("timeout_seconds"),
        "idle_seconds": params.get("idle_seconds"),
        "grace_seconds": params.get("grace_seconds", 10.0),
        "leftovers": params.get("leftovers") or config["processes.leftovers"],
        "logs": log_limits(config, params.get("log_full")),
        "cgroup": config["processes.cgroup"],
        "worker": worker,
        **_around(job, worktree, claim.folder),
    }


def _of_node(job: Job, claim: Claim) -> dict[str, str]:
    """What a node of a workflow run is told."""
    if job.workflow_run is None:
        return {}
    return {
        "HEADWAY_WORKFLOW_RUN": shown_run(job.workflow_run),
        "HEADWAY_NODE": job.node or "",
        "HEADWAY_PASS": str(job.node_pass),
        "HEADWAY_OUTPUTS": Evidence(claim.folder, claim.token).outputs,
        **({"HEADWAY_SUBJECT": job.subject} if job.subject else {}),
        **({"HEADWAY_TARGET": job.target} if job.subject and job.target else {}),
    }


def how_to_reach_a_worker(home: Home, config: Config) -> dict[str, Any]:
    """What a supervisor needs to tell the worker of its end, or to start one."""
    return {
        "lock": home.worker_lock,
        "socket": home.worker_socket,
        "stopped": home.worker_stopped,
        "argv": worker_argv(home) if config["worker.autostart"] else None,
        "environ": worker_environment(home, os.environ),
    }


def _worktree(job: Job) -> OwnedWorktree | None:
    worktree = owned_worktree(job)
    if worktree is None and "worktree" in job.params:
        raise DataError("it has no place for its worktree")
    return worktree


def _directory(worktree: OwnedWorktree | None) -> str | None:
    return None if worktree is None else os.path.normpath(f"{worktree.path}/{worktree.inside}")


def _around(job: Job, worktree: OwnedWorktree | None, folder: str) -> dict[str, Any]:
    """What is to be made and to be checked before the command, and what is to be kept after it."""
    patched = bool(job.params.get("save_patch"))
    noted = os.path.join(folder, "command.base")
    around: dict[str, Any] = {}
    products = paths_of_files(job.produces)
    if products:
        around["products"] = products
    if job.pinned_head is not None or job.preconditions:
        from headway.integrations.probes.start_checks import check_before

        check = check_before(job)
        if check is not None:
            around["check"] = check
    if worktree is not None or _works_in_a_tree(job):
        around["unset"] = OF_ANOTHER_REPOSITORY
    if worktree is not None:
        around["prepare"] = _helper(PREPARE_SECONDS, "worktree-make", _to_make(worktree))
    elif patched:
        request = {"root": job.repo, "to": noted}
        around["prepare"] = _helper(PREPARE_SECONDS, "note-base", request)
    if patched:
        base = {"base_from": noted} if worktree is None else {"base": worktree.base}
        root = job.repo if worktree is None else worktree.path
        to = os.path.join(folder, PATCH)
        saving = {"root": root, "to": to, "limit_bytes": PATCH_BYTES, **base}
        around["finish"] = {**_helper(FINISH_SECONDS, "save-patch", saving), "file": PATCH}
    return around


def _works_in_a_tree(job: Job) -> bool:
    """Whether it is a node that works in the worktree of another."""
    return job.workflow_run is not None and job.params[OF_NODE].get("tree") is not None


def _to_make(worktree: OwnedWorktree) -> dict[str, Any]:
    return {
        "repo": worktree.repo,
        "path": worktree.path,
        "branch": worktree.branch,
        "base": worktree.base,
        "owner": shown(worktree.job_id),
        # Many jobs may begin at once, and each has its turn in the repository.
        "wait_seconds": PREPARE_SECONDS * 0.8,
    }


def _helper(seconds: float, verb: str, request: Mapping[str, Any]) -> dict[str, Any]:
    return {"argv": git_command(verb, request), "timeout_seconds": seconds}


def _argv(job: Job) -> list[str]:
    if isinstance(job.params.get("shell"), str):
        return ["/bin/sh", "-c", job.params["shell"]]
    argv = job.params.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(arg, str) for arg in argv):
        raise DataError("it has no command")
    return argv


def _submitters_environment(job: Job, home: Home) -> str | None:
    """Where it is kept. It never leaves its host, so elsewhere there is none."""
    if job.env_digest is None:
        return None
    path = os.path.join(home.environments, job.env_digest)
    return None if job.params.get("any_host") and not os.path.exists(path) else path


def _own_environment(home: Home, config: Config, *, alone: bool) -> dict[str, str]:
    """A job without a submitter's environment gets `[env]` of the config and a minimal PATH."""
    store = {"HEADWAY_STORE": home.store_url} if home.store_url else {}
    if not alone:
        return store
    state = {STATE: os.environ[STATE]} if os.environ.get(STATE) else {}
    return {"PATH": MINIMAL_PATH, **state, **config.env, **store}
