"""What a function prints is its job's log: standard output and error, sorted by who writes."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
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
        """False if it is closed: how long it is has been told."""
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
        self.stdout = Sorted("stdout", sys.stdout, self)
        self.stderr = Sorted("stderr", sys.stderr, self)

    def install(self) -> None:
        sys.stdout = self.stdout
        sys.stderr = self.stderr

    def let_go(self) -> None:
        """For a process that was forked: two that write one log would overwrite each other."""
        self._keeps = False

    def log(self, job: Current, stream: str) -> JobLog | None:
        """None once it has ended. Who makes one looks for the end only then, and who ends it says
        so before it looks for logs: so none is left open."""
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
        self.buffer = Bytes(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def reconfigure(self, **options: Any) -> None:
        """Many scripts ask for UTF-8, or for lines to be flushed: that is how it is."""

    def fileno(self) -> int:
        return self._usual.fileno()

    def write(self, text: str) -> int:
        if not self.take(text.encode("utf-8", "backslashreplace")):
            self._usual.write(text)
        return len(text)

    def take(self, data: bytes) -> bool:
        """Put it into the log of the job that writes; False if no job does, or it has ended."""
        job = present()
        log = None if job is None else self._outputs.log(job, self._stream)
        return log is not None and log.write(data)

    def write_bytes(self, data: bytes) -> None:
        if not self.take(data):
            self._usual.buffer.write(data)

    def flush(self) -> None:
        self._usual.flush()


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
