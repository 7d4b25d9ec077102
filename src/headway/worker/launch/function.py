"""Function jobs: what a supervisor needs to know about the host that calls them."""

import os
from collections.abc import Mapping
from typing import Any

from headway.base.home import Home
from headway.functions.host.journal import NAME
from headway.jobs.log_limits import log_limits
from headway.jobs.settings import Config


def host_specification(
    token: str,
    folder: str,
    argv: list[str],
    home: Home,
    config: Config,
    worker: Mapping[str, Any],
) -> dict[str, Any]:
    """The content of a host's `claim.T`. It has the worker's environment, and `[env]` of config."""
    store = {"HEADWAY_STORE": home.store_url} if home.store_url else {}
    return {
        "version": 1,
        "token": token,
        "job": 0,
        "attempt": 1,
        "home": home.path,
        "argv": argv,
        "env_file": None,
        "env": {**os.environ, **config.env, **store},
        "cwd": os.path.dirname(home.path),
        "stdin": None,
        "timeout_seconds": None,
        "grace_seconds": 1.0,
        "leftovers": "kill",
        "logs": log_limits(config, full="drop"),
        "cgroup": config["processes.cgroup"],
        "journal": os.path.join(folder, NAME),
        "worker": {**worker, "argv": None},
    }
