"""The two system calls that Python does not offer: prctl, and a fork into a cgroup.

The parent loads this module once, for all supervisors: to build it anew in each would cost more
than all that they do with it.
"""

from __future__ import annotations

import ctypes
import os
import signal

_CLONE3 = 435  # the same number on every architecture
_CLONE_INTO_CGROUP = 0x200000000
# Without giving up the interpreter's lock, as in os.fork.
_libc = ctypes.PyDLL(None, use_errno=True)
_prctl = _libc.prctl
_prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_before_fork = ctypes.pythonapi.PyOS_BeforeFork
_after_fork_child = ctypes.pythonapi.PyOS_AfterFork_Child
_after_fork_parent = ctypes.pythonapi.PyOS_AfterFork_Parent


class _Arguments(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in (
            *("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size"),
            *("tls", "set_tid", "set_tid_size", "cgroup"),
        )
    )


def prctl(option: int, value: int) -> None:
    if _prctl(option, value, 0, 0, 0) != 0:
        _raise(ctypes.get_errno())


def fork_into(cgroup: str) -> int:
    """Like os.fork, for a single-threaded process whose child execs or exits soon; the child is in
    the cgroup from its first instant. Raises OSError before Linux 5.7, and where it is forbidden.

    Moving a living process into a cgroup makes the kernel wait until every processor has taken
    notice, 5 to 15 ms on an idle host; this costs no more than a fork.
    """
    folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        arguments = _Arguments(flags=_CLONE_INTO_CGROUP, exit_signal=signal.SIGCHLD, cgroup=folder)
        _before_fork()
        pid: int = _syscall(_CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments))
        if pid == 0:
            _after_fork_child()
            return 0
        failed_with = ctypes.get_errno()
        _after_fork_parent()
    finally:
        os.close(folder)
    if pid < 0:
        _raise(failed_with)
    return pid


def _raise(code: int) -> None:
    raise OSError(code, os.strerror(code))
