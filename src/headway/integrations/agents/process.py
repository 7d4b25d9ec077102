"""One agent program, from its start to the end of all that it has started.

Its prompt goes in and its standard input is closed; what it prints is passed on as it comes and
read line by line; three clocks run: until its first output, between two outputs, and over all.
One poll, no thread, and no more memory than a line may be long.
"""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import time
from contextlib import suppress

from headway.integrations.agents.budget import overspent
from headway.integrations.agents.verdict import ProcessEnd, Stopped
from headway.supervise.folder import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from headway.integrations.agents.streams.base import AgentReport

CHUNK_BYTES = 65536
LONGEST_LINE = 4 << 20
DRAIN_SECONDS = 2.0
RECEIVED_WITHIN = 0.5
# Less than its supervisor waits, so that there is time to write down how it went.
SPARED_SECONDS = 1.0
_NEVER = float("inf")


class Lines:
    """Bytes as lines; what is longer than a line may be is left out."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._begun = bytearray()
        self._skipping = False
        self.too_long = 0

    def feed(self, data: bytes) -> Iterator[str]:
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            if not self._skipping:
                yield self._begun.decode(errors="replace") + "\n"
            self._begun.clear()
            self._skipping = False
        self._add(rest)

    def end(self) -> Iterator[str]:
        """The text after the last end of a line."""
        if self._begun and not self._skipping:
            yield self._begun.decode(errors="replace")
        self._begun.clear()

    def _add(self, part: bytes) -> None:
        if self._skipping:
            return
        self._begun += part
        if len(self._begun) > self._longest:
            self._begun.clear()
            self._skipping = True
            self.too_long += 1


class Agent:
    """A running agent. `wait` until it has ended, by itself or because its time was over."""

    def __init__(self, wanted: dict[str, Any], report: AgentReport) -> None:
        by_stdin = wanted["prompt_by"] == "stdin"
        self._wanted = wanted
        self._report = report
        self._wake, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        # A session of its own: there is no terminal that it could ask, and one group to end.
        self._process = subprocess.Popen(
            wanted["argv"],
            stdin=subprocess.PIPE if by_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._pidfd = os.pidfd_open(self._process.pid)
        text = wanted["prompt"] + ("" if wanted["prompt"].endswith("\n") else "\n")
        self._prompt = memoryview(text.encode() if by_stdin else b"")
        self._lines = {1: Lines(), 2: Lines()}
        self._stopped: Stopped | None = None
        self.is_hurried = False  # its supervisor ends the job
        self._kill_at = self._drained_by = _NEVER
        self._begun_at = self._received_at = time.monotonic()
        self._read_lines = False
        self._digest = hashlib.sha256()
        self._open: dict[int, int] = {}  # descriptor: of our own, where it is passed on to
        self._poll = select.poll()
        self._watch()

    @property
    def log_sha256(self) -> str:
        return self._digest.hexdigest()

    @property
    def too_long(self) -> int:
        return self._lines[1].too_long

    def wait(self) -> ProcessEnd:
        """Pass everything on until its end; then end its group and take in what is left."""
        while not self._step():
            continue
        with suppress(ProcessLookupError):  # not reaped yet, so the number is still its own
            os.killpg(self._process.pid, signal.SIGKILL)
        self._drain()
        code = self._process.wait()
        # A stop is sent to all processes of a job, and may have reached the agent first.
        if code == -signal.SIGTERM and self._stopped is None and self._receives(RECEIVED_WITHIN):
            self._asked_to_end()
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"SIG{-code}"
        return ProcessEnd(code if code >= 0 else None, name if code < 0 else None, self._stopped)

    def _watch(self) -> None:
        process = self._process
        for stream, own in ((process.stdout, 1), (process.stderr, 2)):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._open[stream.fileno()] = own
                self._poll.register(stream.fileno(), select.POLLIN)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._poll.register(process.stdin.fileno(), select.POLLOUT)
        for fd in (self._pidfd, self._wake):
            self._poll.register(fd, select.POLLIN)

    def _step(self) -> bool:
        """Wait for the next thing to happen and deal with it; whether the agent has ended."""
        now = time.monotonic()
        self._act_on_time(now)
        until = min(self._kill_at, *(when for when, _ in self._clocks()))
        ended = False
        for fd, _ in self._poll.poll(_milliseconds(until - now)):
            if fd == self._pidfd:
                ended = True
            elif fd == self._wake:
                self._asked_to_end()
            elif fd in self._open:
                self._take(fd)
            else:
                self._feed()
        return ended

    def _clocks(self) -> Iterator[tuple[float, Stopped]]:
        """When it is to be ended if nothing more happens, and why."""
        if self._stopped is not None:
            yield _NEVER, self._stopped
            return
        wanted = self._wanted
        first, idle, wall = (wanted[f"{name}_seconds"] for name in ("first_output", "idle", "wall"))
        if not self._read_lines:
            yield (
                _later(self._begun_at, first),
                Stopped("stalled", f"no output within {_shown(first)} of its start", timeout=True),
            )
        yield (
            _later(self._received_at, idle),
            Stopped("stalled", f"no output for {_shown(idle)}", timeout=True),
        )
        yield (
            _later(self._begun_at, wall),
            Stopped("limit", f"not done within {_shown(wall)}", timeout=True),
        )

    def _act_on_time(self, now: float) -> None:
        if now >= self._kill_at:
            self._kill_at = now + 1.0
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for when, why in self._clocks():
            if now >= when:
                self._stop(why)
                return

    def _stop(self, why: Stopped) -> None:
        """TERM now, KILL after the grace; the first reason counts."""
        if self._stopped is not None:
            return
        self._stopped = why
        self._hurry()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)

    def _hurry(self) -> None:
        """Its supervisor may have said just now that all is to end, and KILLs after the grace: by
        then the agent is to be gone, what it left in the pipes read, and its result written."""
        grace: float = self._wanted["grace_seconds"]
        self._kill_at = time.monotonic() + max(0.0, grace - SPARED_SECONDS)
        self._drained_by = self._kill_at + min(grace, SPARED_SECONDS) / 4

    def _receives(self, seconds: float) -> bool:
        """Whether the supervisor has said that the job is to end."""
        return bool(select.select([self._wake], [], [], seconds)[0])

    def _asked_to_end(self) -> None:
        """Its supervisor stops the job, and knows why."""
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)
        self.is_hurried = True
        self._stop(Stopped("task", "it was stopped"))

    def _feed(self) -> None:
        """Hand it more of its prompt; at the end close, so that it does not wait for more."""
        stdin = self._process.stdin
        if stdin is None:
            return
        try:
            self._prompt = self._prompt[os.write(stdin.fileno(), self._prompt[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to know
            self._prompt = self._prompt[:0]
        if not self._prompt:
            self._poll.unregister(stdin.fileno())
            stdin.close()

    def _take(self, fd: int) -> bool:
        """Pass on one chunk of its output and read it; whether there was any."""
        own = self._open[fd]
        try:
            data = os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._poll.unregister(fd)
            del self._open[fd]
            return False
        self._read_lines, self._received_at = True, time.monotonic()
        if own == 1:
            self._digest.update(data)
        with suppress(OSError):  # a log that cannot be written does not end the job
            write_all(own, data)
        self._read(own, self._lines[own].feed(data))
        return True

    def _read(self, own: int, lines: Iterator[str]) -> None:
        for line in lines:
            read_line(self._report, own, line)
        most = self._wanted["max_turns"]
        if most is not None and (self._report.turns or 0) > most and not self._report.finished:
            self._stop(Stopped("limit", f"it used up its {most} turns"))
        elif not self._report.finished and (words := overspent(self._report, self._wanted)):
            self._stop(Stopped("limit", words))

    def _drain(self) -> None:
        """Read what is still in the pipes. A process that holds them open does not delay us, least
        of all when the supervisor is about to end us."""
        give_up_at = time.monotonic() + DRAIN_SECONDS
        while self._open and (left := min(give_up_at, self._drained_by) - time.monotonic()) > 0:
            asked = [] if self._drained_by < _NEVER else [self._wake]
            for fd in select.select([*self._open, *asked], [], [], left)[0]:
                if fd == self._wake:
                    self.is_hurried = True
                    self._hurry()  # its work is done, so this is no reason
                else:
                    self._take(fd)
        for own, lines in self._lines.items():
            self._read(own, lines.end())


def read_line(report: AgentReport, own: int, line: str) -> None:
    """Take in one line. Whatever is wrong with it, or with us, what the agent did is worth more."""
    try:
        if own == 1:
            report.read(line)
        else:
            report.said(line)
    except Exception:
        report.unreadable += 1


def _later(instant: float, seconds: float | None) -> float:
    return _NEVER if seconds is None else instant + seconds


def _shown(seconds: float | None) -> str:
    return f"{seconds or 0:g} s"


def _milliseconds(seconds: float) -> int | None:
    """For poll: rounded up, so that it never returns just before the time; None for never."""
    return None if seconds == _NEVER else max(0, min(int(seconds * 1000) + 1, 2**31 - 1))
