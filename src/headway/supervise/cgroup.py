"""One cgroup per claim, where cgroup v2 lets us make one: the sure way to find and end a tree.

A process cannot leave its cgroup by forking, by a new session or by losing its parent, so an empty
cgroup proves that the tree is gone. Nothing here raises for want of cgroups: unusable is None.
"""

from __future__ import annotations

import errno
import os
import signal

from headway.base import proc

AT_ONCE = 500  # processes that are held while the list of members is read again
_NO_ROOM = (errno.EMFILE, errno.ENFILE)


def find_base() -> str | None:
    """The folder of this process's own cgroup v2, also on hybrid mounts; None without one."""
    mount = _cgroup2_mount()
    own = _own_path()
    if mount is None or own is None:
        return None
    root, point = mount
    if root != "/":
        if own != root and not own.startswith(root + "/"):
            return None
        own = own[len(root) :] or "/"
    base = point if own == "/" else point + own
    return base if os.path.isdir(base) else None


def path_for(base: str, token: str) -> str:
    return f"{base}/headway-{token}"


def make(path: str) -> bool:
    try:
        os.mkdir(path, 0o755)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def admit(path: str, pid: int) -> bool:
    """Move the process in; False where the kernel or the owner of the hierarchy forbids it."""
    return _write(f"{path}/cgroup.procs", b"%d" % pid)


def remove(path: str) -> bool:
    """Remove the cgroup and those made inside it; True if it is gone, so no process is in it."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        for inner in _inner(path):
            remove(inner)
        try:
            os.rmdir(path)
        except OSError:
            return not os.path.isdir(path)
    return True


def is_populated(path: str) -> bool:
    """True if a living process is in the cgroup or in one made inside it."""
    try:
        with open(f"{path}/cgroup.events", "rb", buffering=0) as file:
            return b"populated 1" in file.read()
    except OSError:
        return False


def signal_all(path: str, *signals: int) -> None:
    """Send the signals, one after the other, to each process that is in the cgroup now. A
    process that is born meanwhile, to clean up perhaps, gets none."""
    waiting = _pids(path)
    while waiting:
        waiting = _signal_some(path, waiting, signals)


def kill(path: str) -> None:
    """Kill all that is in the cgroup; without cgroup.kill (before 5.14) one pass of many."""
    if not _write(f"{path}/cgroup.kill", b"1"):
        signal_all(path, signal.SIGKILL)


def _signal_some(path: str, pids: list[int], signals: tuple[int, ...]) -> list[int]:
    """Signal as many of them as can be held at once; those that are left."""
    held, left = _hold(pids)
    try:
        # Read after opening, once for all: a number that was given to a stranger is not listed.
        members = set(_pids(path))
        for sig in signals:
            for pid, fd in held.items():
                if pid in members:
                    proc.signal_pidfd(fd, sig)
    finally:
        for fd in held.values():
            os.close(fd)
    return left


def _hold(pids: list[int]) -> tuple[dict[int, int], list[int]]:
    """Pidfds of the first of them, and who is left because there is no room for more."""
    held: dict[int, int] = {}
    spare = _spare()  # to read the list again takes a descriptor, too
    try:
        for place, pid in enumerate(pids):
            if len(held) == AT_ONCE:
                return held, pids[place:]
            try:
                held[pid] = os.pidfd_open(pid)
            except OSError as error:
                if error.errno in _NO_ROOM and held:
                    return held, pids[place:]
        return held, []
    finally:
        if spare is not None:
            os.close(spare)


def _spare() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _pids(path: str) -> list[int]:
    try:
        with open(f"{path}/cgroup.procs", "rb", buffering=0) as file:
            pids = [int(line) for line in file.read().split()]
    except OSError:
        return []
    for inner in _inner(path):
        pids.extend(_pids(inner))
    return [pid for pid in pids if pid > 0]  # 0: a process of another pid namespace


def _inner(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _write(path: str, content: bytes) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        os.write(fd, content)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _cgroup2_mount() -> tuple[str, str] | None:
    """Root and mount point of the first cgroup2 mount (field 4 and 5 of mountinfo)."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields, _, source = line.partition(" - ")
                if source.startswith("cgroup2 "):
                    parts = fields.split()
                    return parts[3], parts[4]
    except OSError:
        return None
    return None


def _own_path() -> str | None:
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                if line.startswith("0::"):
                    return line[3:].rstrip("\n")
    except OSError:
        return None
    return None
