"""Named points at which a test may end or stop this very process.

A durable system is judged by what a crash leaves behind, so each commit, fsync, rename, spawn and
send names the instant after it. `HEADWAY_POINTS="engine.claimed=kill,parent.read=stop@2"` makes the
process kill itself at its first visit of `engine.claimed` and stop itself (SIGSTOP) at its second
visit of `parent.read`; `*=kill@7` counts the visits of all points. Without that variable a point
costs one falsy test.

`HEADWAY_TEST_MARK` names a file that whoever dies or stops makes first, with the point's name and
its own pid in it. That proves which point was reached; and as there is only one such file, of all
processes that have the same points armed one alone is hit. Standard library only.
"""

import os
import signal

_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
_points: dict[str, tuple[signal.Signals, int]] = {}
_visits: dict[str, int] = {}


def arm(entries: str) -> None:
    """From now on, and with all counts at nothing, these points act and no others."""
    _points.clear()
    _visits.clear()
    for entry in filter(None, entries.split(",")):
        name, _, action = entry.partition("=")
        verb, _, visit = action.partition("@")
        _points[name] = (_SIGNALS[verb], int(visit or 1))


def reach(name: str) -> None:
    """Pass the named point; end or stop here if a test asked for it."""
    if not _points:
        return
    for armed in (name, "*"):
        if armed not in _points:
            continue
        sig, visit = _points[armed]
        _visits[armed] = _visits.get(armed, 0) + 1
        if _visits[armed] == visit and _leave_mark(name):
            os.kill(os.getpid(), sig)


def _leave_mark(name: str) -> bool:
    """True if this process is the one to be hit."""
    path = os.environ.get("HEADWAY_TEST_MARK")
    if path is None:
        return True
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    os.write(fd, f"{name} {os.getpid()}".encode())
    os.close(fd)
    return True


arm(os.environ.get("HEADWAY_POINTS", ""))
