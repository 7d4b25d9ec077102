"""Run a command for a function: its output goes to the job's log, and it ends with the job."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO

from headway.base.current import RunningFunction, become, leave

CHUNK_BYTES = 1 << 16
LOOK_EVERY = 0.1  # seconds, for a cancel


def run_command(
    job: RunningFunction,
    argv: Sequence[str | os.PathLike[str]],
    *,
    cancelled: Callable[[], bool],
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
) -> None:
    """Raises `subprocess.CalledProcessError` unless it exits with 0. A cancel of the job ends the
    command with TERM; what of it is left goes with the host after the job's grace."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    before = become(job)  # a thread that the function started itself may have called this
    try:
        _copy_until_ended(process, cancelled)
    except BaseException:
        _signal(process, signal.SIGKILL)
        raise
    finally:
        leave(before)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)


def _copy_until_ended(process: subprocess.Popen[bytes], cancelled: Callable[[], bool]) -> None:
    """What it leaves behind may hold the pipes open, so its end counts and not theirs."""
    end = os.pidfd_open(process.pid)
    asked = False
    try:
        with selectors.DefaultSelector() as selector:
            for stream in (process.stdout, process.stderr):
                assert stream is not None  # noqa: S101
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
            selector.register(end, selectors.EVENT_READ)
            while True:
                ready = selector.select(LOOK_EVERY)
                if cancelled() and not asked:
                    asked = True
                    _signal(process, signal.SIGTERM)
                over = any(key.fd == end for key, _ in ready)
                for key in list(selector.get_map().values()) if over else [k for k, _ in ready]:
                    if key.fd != end and not _copy(key.fd, key.fileobj is process.stderr):
                        selector.unregister(key.fileobj)
                if over:
                    return
    finally:
        os.close(end)


def _copy(fd: int, is_error: bool) -> bool:
    """What there is now; False at its end."""
    while True:
        try:
            data = os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        stream = sys.stderr if is_error else sys.stdout
        binary: IO[bytes] | None = getattr(stream, "buffer", None)
        if binary is None:  # a test has put something else there
            stream.write(data.decode(errors="replace"))
        else:
            stream.flush()
            binary.write(data)
            binary.flush()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
