"""Named points at which a test may end or stop this very process.

A durable system is judged by what a crash leaves behind, so each commit, fsync, rename, spawn and
send names the instant after it. `HEADWAY_POINTS="worker.claimed=kill,parent.read=stop@2"` makes the
process kill itself at its first visit of `worker.claimed` and stop itself (SIGSTOP) at its second
visit of `parent.read`. Without that variable a point costs one falsy test. Standard library only.
"""

import os
import signal

_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def _armed() -> dict[str, tuple[signal.Signals, int]]:
    points = {}
    for entry in filter(None, os.environ.get("HEADWAY_POINTS", "").split(",")):
        name, _, action = entry.partition("=")
        verb, _, visit = action.partition("@")
        points[name] = (_SIGNALS[verb], int(visit or 1))
    return points


_points = _armed()
_visits: dict[str, int] = {}


def reach(name: str) -> None:
    """Pass the named point; end or stop here if a test asked for it."""
    if not _points or name not in _points:
        return
    sig, visit = _points[name]
    _visits[name] = _visits.get(name, 0) + 1
    if _visits[name] == visit:
        os.kill(os.getpid(), sig)
