"""Which claim a process runs under, whatever it did to its environment.

A job may clear its variables, start a session or lose its parent; it is still found: by the
environment of an ancestor, by a supervisor among its ancestors, or by the cgroup that it is in.
"""

from __future__ import annotations

import os
import re

from headway.base import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LOCK = re.compile(r"/(?:jobs/([0-9]+)|hosts/[0-9a-f]+)/lock\.([0-9a-f]{32})(?: \(deleted\))?")
_CGROUP = re.compile(r"/headway-([0-9a-f]{32})(?:/|$)", re.M)
_MOST_ANCESTORS = 1000

# A claim's token, and its job as `job-24` where that is known; a function host is of no single job.
Found = tuple[str, str | None]


def surrounding_claim(environ: Mapping[str, str], pid: int | None = None) -> Found | None:
    """The claim of the job, or of the function host, that a process with this environment is part
    of; without a pid, this process."""
    if environ.get("HEADWAY_CLAIM"):
        return environ["HEADWAY_CLAIM"], environ.get("HEADWAY_JOB_ID")
    pid = os.getpid() if pid is None else pid
    for each in _lineage(pid):
        found = _by_environment(each) or _by_lock(each)
        if found is not None:
            return found
    return _by_cgroup(pid)


def _lineage(pid: int) -> Iterator[int]:
    """The process, its parent, and so on; as far as they can be seen."""
    for _ in range(_MOST_ANCESTORS):
        yield pid
        stat = proc.read_stat(pid)
        if stat is None or stat[0] <= 0:
            return
        pid = stat[0]


def _by_environment(pid: int) -> Found | None:
    """Of a process that was started with a claim in its environment."""
    entries = (entry.partition(b"=") for entry in proc.read_environ(pid).split(b"\0"))
    own = {name: value.decode(errors="replace") for name, _, value in entries}
    token = own.get(b"HEADWAY_CLAIM")
    return (token, own.get(b"HEADWAY_JOB_ID")) if token else None


def _by_lock(pid: int) -> Found | None:
    """Of a supervisor: as long as it lives, it holds the lock of its claim."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # ended, or another user's
        return None
    for each in descriptors:
        try:
            match = _LOCK.search(os.readlink(f"/proc/{pid}/fd/{each}"))
        except OSError:
            continue
        if match is not None:
            return match[2], f"job-{match[1]}" if match[1] else None
    return None


def _by_cgroup(pid: int) -> Found | None:
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            match = _CGROUP.search(file.read())
    except OSError:
        return None
    return (match[1], None) if match is not None else None
