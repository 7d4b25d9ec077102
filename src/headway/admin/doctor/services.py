"""Whether a worker that systemd runs may be stopped without its jobs being killed with it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from headway.admin.doctor.finding import GREEN, YELLOW, CheckedHome, Finding

HARMLESS = ("process", "none")  # all other modes end what is in the unit's control group
_ANSWER_SECONDS = 5.0


class Service(NamedTuple):
    unit: str
    of_user: bool  # of a user's own service manager


def service(place: CheckedHome) -> Iterator[Finding]:
    """Of the worker that is there now; a background one started from a terminal is in no unit."""
    from headway.base.worker_lock import STAYS, WorkerLock

    lock = WorkerLock(place.home.worker_lock)
    pid = lock.read_pid() if lock.is_held(STAYS) else None
    if pid is not None:
        yield from judged(service_of(f"/proc/{pid}/cgroup"))


def judged(found: Service | None) -> Iterator[Finding]:
    if found is None:
        return
    mode = kill_mode(found)
    if mode in HARMLESS:
        yield Finding("service", GREEN, f"{found.unit} with KillMode={mode}")
        return
    known = f"KillMode={mode}" if mode else "a KillMode that cannot be asked for"
    yield Finding(
        "service",
        YELLOW,
        f"the worker runs in {found.unit} with {known}: to stop it may kill all running jobs",
        "`headway service install`, or KillMode=process and Delegate=yes in the unit",
    )


def service_of(file: str) -> Service | None:
    """The unit that a process runs in, by the file that names its control groups."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as lines:
            paths = [line.rstrip("\n").split(":", 2) for line in lines]
    except OSError:
        return None
    for number, controllers, path in (each for each in paths if len(each) == 3):
        if number == "0" or controllers == "name=systemd":
            folders = path.split("/")
            # Not the service manager of a user, below which everything of that user runs.
            if folders[-1].endswith(".service") and not folders[-1].startswith("user@"):
                return Service(folders[-1], any(each.startswith("user@") for each in folders))
    return None


def kill_mode(found: Service) -> str | None:
    """What systemd says, if it can be asked."""
    program = shutil.which("systemctl")
    if program is None:
        return None
    scope = ["--user"] if found.of_user else []
    argv = [program, *scope, "show", "--property=KillMode", "--value", "--", found.unit]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
