"""Make sure that a worker sees what was just committed.

A mutating command commits first, then wakes, then asks whether a worker is there, and starts one in
the background if not. In that order nothing can fall between a worker that leaves and a command
that counts on it.
"""

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any

from headway.base.home import Home
from headway.base.worker_lock import WAKE, Waker, autostart, worker_is_there

# What a background worker may know of the one who happened to start it.
_KEPT = (
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"),
    *("HEADWAY_TRUST", "XDG_STATE_HOME"),  # so that it decides what to trust as its starter does
)


def worker_argv(home: Home) -> list[str]:
    """The command line of a background worker: this very program, wherever it was found."""
    return [sys.executable, "-P", "-m", "headway", "--home", home.path, "work", "--background"]


def nudge(home: Home, environ: Mapping[str, str], *, start: bool) -> bool:
    """Wake the worker of this home, or start one; says whether one is there now or coming up."""
    with closing(WorkerWakeUp(home)) as wake_up:
        return wake_up.send(environ, start=start)


class WorkerWakeUp:
    """The way to the worker of one home, kept open for a client that submits again and again."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._stopped = home.worker_stopped
        self._lock = home.worker_lock
        self._waker = Waker(home.worker_socket)
        self._turn = threading.Lock()

    def send(self, environ: Mapping[str, str], word: bytes | None = WAKE, *, start: bool) -> bool:
        """Wake the worker, or start one; says whether one is there now or coming up. Without a word
        one that is there is left alone."""
        # Without a lock there was no worker when this was committed; the next worker will read it.
        if os.access(self._lock, os.F_OK):
            self._may_come_back()
            if word is not None:
                with self._turn:
                    self._waker.wake(word)
            if worker_is_there(self._lock):
                return True
        if not start:
            return False
        self._may_come_back()
        home = self._home
        request = {
            "lock": self._lock,
            "argv": worker_argv(home),
            "environ": worker_environment(home, environ),
        }
        start_worker(request, environ)
        return True

    def _may_come_back(self) -> None:
        """A worker that was stopped, now that there is something to do again."""
        if os.access(self._stopped, os.F_OK):  # most often it is not there, and asking is cheap
            with suppress(FileNotFoundError):
                os.unlink(self._stopped)

    def close(self) -> None:
        self._waker.close()


def start_worker(request: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Start the worker of some home. Inside a job or a direct call, leave it to processes outside:
    one that was started inside would be killed with it, and with the worker its own jobs."""
    if not worker_is_there(request["lock"]) and not (
        _asked_supervisor(request, environ) or _asked_caller(request, environ)
    ):
        autostart(request["lock"], request["argv"], request["environ"])


def _asked_caller(request: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """Inside a direct call, ask the process that makes it."""
    if "HEADWAY_RESERVATION" not in environ:
        return False
    from headway.supervise.outside import ask_outside

    return ask_outside(environ["HEADWAY_RESERVATION"], request)


def _asked_supervisor(request: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """Inside a job, ask its supervisor."""
    if "HEADWAY_CLAIM" not in environ or "HEADWAY_HOME" not in environ:
        return False
    from headway.supervise.evidence import Evidence
    from headway.supervise.rescue import poke_supervisor

    surrounding = Home(environ["HEADWAY_HOME"], environ.get("HEADWAY_STORE"))
    token = environ["HEADWAY_CLAIM"]
    job_id = environ.get("HEADWAY_JOB_ID", "").removeprefix("job-")
    # Without a job's id it is a function host.
    folder = surrounding.job(int(job_id)) if job_id.isdigit() else surrounding.host(token)
    evidence = Evidence(folder, token)
    try:
        evidence.ask_for_worker(request)
    except OSError:
        return False
    return poke_supervisor(evidence)


def worker_environment(home: Home, environ: Mapping[str, str]) -> dict[str, str]:
    """A clean environment, with the store's URL: there nobody else can read its password."""
    store = {"HEADWAY_STORE": home.store_url} if home.store_url else {}
    return {**clean_environment(environ), **store}


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: environ[name] for name in _KEPT if name in environ}
    kept |= {name: value for name, value in environ.items() if name.startswith("HEADWAY_TEST_")}
    for name in ("HEADWAY_POINTS", "HEADWAY_BOOT_ID_FILE"):
        if name in environ:
            kept[name] = environ[name]
    if environ.get("PYTHONPATH"):  # the worker works from /, where a relative path means another
        places = environ["PYTHONPATH"].split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(os.path.abspath(each) for each in places)
    return kept
