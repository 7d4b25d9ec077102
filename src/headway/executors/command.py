"""Command jobs: a job's frozen parameters become the specification that a supervisor reads."""

import os
from collections.abc import Mapping
from typing import Any

from headway.config import Config
from headway.core.model import Claim, Job
from headway.environment import MINIMAL_PATH
from headway.errors import DataError
from headway.home import Home
from headway.launching import worker_argv, worker_environment


def specification(
    job: Job, claim: Claim, home: Home, config: Config, worker: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of `claim.T`; raises DataError when the record has no command."""
    params = job.params
    env_file = _submitters_environment(job, home)
    return {
        "version": 1,
        "token": claim.token,
        "job": job.id,
        "attempt": job.attempt,
        "home": home.path,
        "argv": _argv(job),
        "env_file": env_file,
        "env": {**_own_environment(home, config, alone=env_file is None), **params.get("env", {})},
        "cwd": params.get("cwd") or (os.path.dirname(home.path) if env_file is None else None),
        "stdin": params.get("stdin"),
        "timeout_seconds": params.get("timeout_seconds"),
        "grace_seconds": params.get("grace_seconds", 10.0),
        "leftovers": params.get("leftovers") or config["processes.leftovers"],
        "logs": {
            "head_bytes": config.bytes("logs.head"),
            "tail_bytes": config.bytes("logs.tail"),
            "full": params.get("log_full") or config["logs.full"],
        },
        "cgroup": config["processes.cgroup"],
        "worker": worker,
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
    return {"PATH": MINIMAL_PATH, **config.env, **store}
