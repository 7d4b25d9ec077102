"""The submitter's environment, umask and working directory, kept for the job.

One content-addressed file (`env/<sha256>`, 0600), synced before the commit that refers to it and
shared by all jobs with the same content. It never enters the database, a document or a log.
"""

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from headway.base.errors import StoreError, StoreFullError
from headway.base.home import Home

# What a job must not inherit from the job that submitted it: who it is.
OWN_VARIABLES = frozenset(
    {
        "HEADWAY_JOB_ID",
        "HEADWAY_RUN_ID",
        "HEADWAY_ATTEMPT",
        "HEADWAY_CLAIM",
        "HEADWAY_HOME",
        "HEADWAY_RESERVATION",
        "HEADWAY_FINISHED_JOB",
        "HEADWAY_FINISHED_STATE",
        "HEADWAY_FINISHED_EXIT_CODE",
    }
)
MINIMAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def keep_environment(
    home: Home, environ: Mapping[str, str], *, umask: int, working_directory: str
) -> str:
    """Store the environment and return its digest. Durable when this returns."""
    env = {name: value for name, value in environ.items() if name not in OWN_VARIABLES}
    document = {"env": env, "umask": umask, "cwd": working_directory}
    content = json.dumps(document, sort_keys=True).encode("ascii")
    digest = hashlib.sha256(content).hexdigest()
    path = os.path.join(home.environments, digest)
    try:
        os.utime(path, follow_symlinks=False)
        return digest
    except FileNotFoundError:
        pass
    fresh = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        _write_synced(fresh, content)
        os.rename(fresh, path)
        folder = os.open(home.environments, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
    except OSError as error:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (StoreFullError if full else StoreError)(
            f"cannot keep the environment in {path}: {error.strerror}"
        ) from error
    return digest


def kept_directory(home: Home, digest: str) -> str | None:
    """The working directory that was kept with an environment, if that is here."""
    kept = _read(home, digest)
    return str(kept["cwd"]) if "cwd" in kept else None


def kept_variables(home: Home, digest: str) -> dict[str, str] | None:
    """The variables of a kept environment, if that is here."""
    env = _read(home, digest).get("env")
    return env if isinstance(env, dict) else None


def _read(home: Home, digest: str) -> dict[str, Any]:
    try:
        with open(os.path.join(home.environments, digest), encoding="ascii") as file:
            document = json.load(file)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _write_synced(path: str, content: bytes) -> None:
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def present_umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
