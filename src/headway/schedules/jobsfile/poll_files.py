"""Files with the result of the poll (0600), for scripts. A file is removed when no active job needs
it any more."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from headway.base.home import Home
from headway.core.model import Job
from headway.schedules.jobsfile.model import POLL_FILE


def keep_poll(home: Home, data: Any) -> str:
    """Where it is kept. It need not outlive a crash of the machine: what has none runs without."""
    folder = os.path.join(home.run, "polls")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    path = os.path.join(folder, f"{os.urandom(8).hex()}.json")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(data, file)
    return path


def kept_polls(home: Home) -> set[str]:
    """Those that an earlier worker left."""
    folder = os.path.join(home.run, "polls")
    try:
        return {os.path.join(folder, name) for name in os.listdir(folder)}
    except OSError:
        return set()


def poll_files_of(jobs: Iterable[Job]) -> set[str]:
    found = (job.params.get("env", {}).get(POLL_FILE) for job in jobs)
    return {path for path in found if path is not None}


def forget_polls(kept: set[str], needed: set[str]) -> set[str]:
    """Remove those that nobody needs; what is left."""
    for path in kept - needed:
        with suppress(OSError):
            os.unlink(path)
    return kept & needed
