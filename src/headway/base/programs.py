"""Programs that get so long and no longer, whatever they and their children do.

What a program says goes into files in memory, not into pipes: then its own end is the end of the
answer, and no child that left its session can hold that up. Each is started in a session of its
own; what even a kill does not end, because the kernel holds it, is left behind and not waited for.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import subprocess

    Program = subprocess.Popen[bytes]

GRACE_SECONDS = 2.0  # for each signal, until it must have worked


class ProgramResult(NamedTuple):
    code: int
    out: bytes
    err: bytes


def run_program(
    start: Callable[[int, int, int], Program],
    seconds: float,
    *,
    question: bytes = b"",
    politely: bool = False,
) -> ProgramResult | None:
    """The output of a program until it ends; None if it had to be ended. `start` is called with its
    future standard input, output and error."""
    with _memory() as given, _memory() as out, _memory() as err:
        with os.fdopen(os.dup(given), "wb") as file:
            file.write(question)
        os.lseek(given, 0, os.SEEK_SET)
        process = start(given, out, err)
        try:
            done = ended(process, seconds)
        except BaseException:
            end(process, politely=politely)
            raise
        if not done:
            end(process, politely=politely)
            return None
        return ProgramResult(process.wait(), _content(out), _content(err))


def ended(process: Program, seconds: float) -> bool:
    """Wait so long for its end. It is not reaped, so that its session keeps its number."""
    if process.returncode is not None:
        return True
    fd = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(fd)


def end(process: Program, *, politely: bool = False) -> None:
    """End it with all that it started, and close what is held of it."""
    for number in (signal.SIGTERM, signal.SIGKILL) if politely else (signal.SIGKILL,):
        _signal(process, number)
        if ended(process, GRACE_SECONDS):
            break
    _signal(process, signal.SIGKILL)  # what is left of its session
    process.poll()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _signal(process: Program, number: int) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


@contextmanager
def _memory() -> Iterator[int]:
    fd = os.memfd_create("headway")
    try:
        yield fd
    finally:
        os.close(fd)


def _content(fd: int) -> bytes:
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        return file.read()
