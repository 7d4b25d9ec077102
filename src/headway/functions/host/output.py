"""The output of a function is its job's log: standard output and error, sorted by the job that
writes."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

from headway.functions.current import Current, present
from headway.supervise.folder import make_folder
from headway.supervise.logs import CappedLog


class JobLog:
    """One stream of one job, made when its first byte comes."""

    def __init__(self, folder: str, stream: str, caps: dict[str, Any]) -> None:
        self._folder = folder
        self._stream = stream
        self._caps = caps
        self._log: CappedLog | None = None
        self._closed = False
        self._turn = threading.Lock()  # a function may have threads of its own

    def write(self, data: bytes) -> bool:
        """False if it is closed: its length is already reported."""
        with self._turn:
            if self._closed:
                return False
            if self._log is None:
                self._log = self._made()
            self._log.append(data, time.monotonic())
            return True

    def _made(self) -> CappedLog:
        with suppress(OSError):  # then the log counts what it cannot keep
            make_folder(self._folder)
        return CappedLog(
            self._folder,
            self._stream,
            head_bytes=self._caps["head_bytes"],
            tail_bytes=self._caps["tail_bytes"],
            forgets=True,
        )

    def close(self) -> None:
        with self._turn:
            self._closed = True
            if self._log is not None:
                self._log.close()

    def sizes(self) -> dict[str, int] | None:
        if self._log is None:
            return None
        return {"bytes": self._log.offset, "dropped": self._log.dropped}


class Outputs:
    """The logs of the jobs that run now, by token."""

    def __init__(self, jobs: str, caps: dict[str, Any]) -> None:
        self._jobs = jobs
        self._caps = caps
        self._open: dict[tuple[str, str], JobLog] = {}
        self._keeps = True
        self.before_write: Callable[[], None] = lambda: None
        self.stdout = Sorted("stdout", sys.stdout, self)
        self.stderr = Sorted("stderr", sys.stderr, self)

    def install(self) -> None:
        sys.stdout = self.stdout
        sys.stderr = self.stderr

    def set_aside(self) -> None:
        """Keep the streams that there were: descriptors 1 and 2 are about to be something else."""
        self.stdout.set_aside()
        self.stderr.set_aside()

    def write_usual(self, stream: str, data: bytes) -> None:
        """Put it where it goes that belongs to no job."""
        (self.stdout if stream == "stdout" else self.stderr).write_usual(data)

    def let_go(self) -> None:
        """For a process that was forked: two that write one log would overwrite each other. What
        it writes takes the same way as that of any subprocess."""
        self._keeps = False
        self.stdout.write_to_descriptor()
        self.stderr.write_to_descriptor()

    def log(self, job: Current, stream: str) -> JobLog | None:
        """None once it has ended. The maker of a log checks for the end only after making it. The
        one that ends the job marks the end before it checks for logs. So no log is left open."""
        if not self._keeps:
            return None
        key = (job.token, stream)
        found = self._open.get(key)
        if found is None:
            folder = os.path.join(self._jobs, str(job.job_id))
            found = self._open.setdefault(key, JobLog(folder, stream, self._caps))
            if job.ended:
                self._open.pop(key, None)
                return None
        return found

    def close(self, job: Current) -> dict[str, dict[str, int]] | None:
        """End a job's logs; their sizes, if it wrote anything."""
        job.ended = True
        if not self._open:
            return None
        sizes = {}
        for stream in ("stdout", "stderr"):
            log = self._open.pop((job.token, stream), None)
            if log is not None:
                log.close()
                sizes[stream] = log.sizes() or {"bytes": 0, "dropped": 0}
        return sizes or None


class Sorted(io.TextIOBase):
    """A standard stream: what a job writes goes to its log, the rest where it always went."""

    def __init__(self, stream: str, usual: TextIO, outputs: Outputs) -> None:
        self._stream = stream
        self._usual = usual
        self._outputs = outputs
        self._descriptor: int | None = None
        self.buffer = Bytes(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def reconfigure(self, **options: Any) -> None:
        """Many scripts ask for UTF-8, or for lines to be flushed: that is how it is."""

    def fileno(self) -> int:
        return self._usual.fileno() if self._descriptor is None else self._descriptor

    def set_aside(self) -> None:
        self._usual.flush()
        self._descriptor = self._usual.fileno()
        self._usual = _writer(os.dup(self._descriptor))

    def write_to_descriptor(self) -> None:
        if self._descriptor is not None:
            self._usual = _writer(self._descriptor)

    def write_usual(self, data: bytes) -> None:
        self._usual.buffer.write(data)
        self._usual.flush()

    def write(self, text: str) -> int:
        if not self.take(text.encode("utf-8", "backslashreplace")):
            self._usual.write(text)
        return len(text)

    def take(self, data: bytes) -> bool:
        """Put it into the log of the job that writes; False if no job does, or it has ended."""
        self._outputs.before_write()
        job = present()
        log = None if job is None else self._outputs.log(job, self._stream)
        return log is not None and log.write(data)

    def write_bytes(self, data: bytes) -> None:
        if not self.take(data):
            self._usual.buffer.write(data)

    def flush(self) -> None:
        self._usual.flush()


def _writer(fd: int) -> TextIO:
    """Writes at once: its process may end at any time."""
    raw = open(fd, "wb", buffering=0, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


class Bytes(io.RawIOBase):
    """The same stream for those who write bytes: `sys.stdout.buffer`."""

    def __init__(self, text: Sorted) -> None:
        self._text = text

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        taken = bytes(data)
        self._text.write_bytes(taken)
        return len(taken)

    def flush(self) -> None:
        self._text.flush()
