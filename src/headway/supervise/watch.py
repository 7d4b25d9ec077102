"""The watch over a running command: its output, its deadline, its cancellation, its end.

One poll, one process, no thread. The end of the main process is the end of the job; what it left
behind is then dealt with by policy. A stop that comes after that end changes nothing about it.
"""

from __future__ import annotations

import os
import select
import signal
import time

from headway.supervise import child
from headway.supervise.logs import CappedLog, ends_the_job, forgets, most_to_take
from headway.supervise.overseer import Overseer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from headway.supervise.evidence import Evidence
    from headway.supervise.tree import Tree

CANCEL_LOOK_SECONDS = 5.0
DRAIN_SECONDS = 2.0
KILL_AGAIN_SECONDS = 0.05
LEFTOVERS_SECONDS = 10.0
POLITE_SECONDS = 2.0
CHUNK_BYTES = 65536
STREAMS = ("stdout", "stderr")
_NEVER = float("inf")


class Watch:
    """What is known of one running command. `run` returns when the job and its tree have ended."""

    __slots__ = (
        "_cancel_look_at",
        "_deadline",
        "_evidence",
        "_full",
        "_grace_seconds",
        "_idle_seconds",
        "_kill_at",
        "_kill_pause",
        "_logs",
        "_main",
        "_open",
        "_overseer",
        "_poked",
        "_poll",
        "_report",
        "_report_fd",
        "_settled",
        "_silent_at",
        "_tree",
        "_wake_fd",
        "finished_at",
        "stopped_for",
        "usage",
        "wait_status",
        "was_silent",
    )

    def __init__(
        self,
        spec: dict[str, Any],
        evidence: Evidence,
        *,
        tree: Tree,
        main: int,
        pipes: child.Pipes,
        wake_fd: int,
        poked: Callable[[], None],
    ) -> None:
        now = time.monotonic()
        timeout = spec["timeout_seconds"]
        self._evidence = evidence
        self._tree = tree
        self._main = main
        self._deadline = _NEVER if timeout is None else now + timeout
        self._idle_seconds: float | None = spec.get("idle_seconds")
        self._silent_at = _NEVER if self._idle_seconds is None else now + self._idle_seconds
        self._grace_seconds: float = spec["grace_seconds"]
        self._kill_at = _NEVER
        self._kill_pause = KILL_AGAIN_SECONDS
        self._settled = False
        self._cancel_look_at = now  # one may have come between the lock and the go byte
        self._full: str = spec["logs"]["full"]
        self._report = b""
        self._report_fd = pipes.report_read
        self._wake_fd = wake_fd
        self._poked = poked
        journal = spec.get("journal")
        self._overseer = None if journal is None else Overseer(journal, now)
        caps = spec["logs"]
        self._logs = [
            CappedLog(
                evidence.folder,
                name,
                head_bytes=caps["head_bytes"],
                tail_bytes=caps["tail_bytes"],
                forgets=forgets(caps["full"]),
            )
            for name in STREAMS
        ]
        for log in self._logs:
            log.begin()
        self._open = {pipes.streams[index][0]: self._logs[index] for index in (0, 1)}
        self._poll = select.poll()
        for fd in (*self._open, self._report_fd, wake_fd):
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)
        self.wait_status: int | None = None
        self.usage: dict[str, float] = {"user_seconds": 0.0, "system_seconds": 0.0, "max_rss_kb": 0}
        self.finished_at = 0
        self.stopped_for: str | None = None
        self.was_silent = False  # that is why it was stopped

    def run(self, leftovers: str) -> str:
        """Watch until the end; what became of the tree: gone, left or unproven."""
        while self.wait_status is None:
            self._step(_NEVER)
        tree = self._deal_with(leftovers)
        self._settled = True
        drained_by = time.monotonic() + DRAIN_SECONDS
        self._empty_pipes()
        while self._open and time.monotonic() < drained_by:
            self._step(drained_by)
        for log in self._logs:
            log.close()
        if tree == "gone":
            return tree
        return "gone" if self._reap_and_see_gone() else tree

    def failure(self) -> tuple[int, str] | None:
        """Errno and text of what kept the child from exec'ing."""
        return child.parse_report(self._report) if self._report else None

    def logs(self) -> dict[str, dict[str, int]]:
        return {
            name: {"bytes": log.offset, "dropped": log.dropped}
            for name, log in zip(STREAMS, self._logs, strict=True)
        }

    def _deal_with(self, leftovers: str) -> str:
        if self._reap_and_see_gone():
            return "gone"
        never_began = bool(self._report)
        if self.stopped_for is None and not never_began:
            if leftovers == "leave":
                return "left"
            if leftovers == "wait":
                self._step_until(self._reap_and_see_gone, within=_NEVER)
                return "gone"
        self._kill_at = time.monotonic()
        if leftovers == "terminate" and self.stopped_for is None and self._was_killed():
            self._kill_at += POLITE_SECONDS  # a git that is asked to end removes its lock files
            self._tree.terminate()
        # What could not be prepared is prepared anew by the next try, which must not meet this one.
        patience = _NEVER if never_began else LEFTOVERS_SECONDS
        gone = self._step_until(self._reap_and_see_gone, within=patience)
        self._kill_at = _NEVER
        return "gone" if gone else "unproven"

    def _was_killed(self) -> bool:
        return self.wait_status is not None and os.WIFSIGNALED(self.wait_status)

    def _step_until(self, done: Callable[[], bool], *, within: float) -> bool:
        give_up_at = time.monotonic() + within
        while not done():
            now = time.monotonic()
            if now >= give_up_at:
                return False
            # A process that is no child of ours leaves the cgroup without a signal to us.
            self._step(min(give_up_at, now + 1.0))
        return True

    def _step(self, until: float) -> None:
        """Wait for the next thing to happen, at most until then, and deal with it."""
        self._act_on_time(time.monotonic())
        until = min(until, self._deadline, self._silent_at, self._kill_at, self._cancel_look_at)
        if self._overseer is not None:
            until = min(until, self._overseer.look_at)
        for fd, _ in self._poll.poll(_milliseconds(until - time.monotonic())):
            if fd == self._wake_fd:
                self._read_signals()
            elif fd == self._report_fd:
                self._read_child()
            elif fd in self._open:  # else closed while dealing with the others
                self._take_output(fd)

    def _act_on_time(self, now: float) -> None:
        if now >= self._cancel_look_at:
            self._cancel_look_at = now + CANCEL_LOOK_SECONDS
            if self._is_cancelled():
                self._stop("cancelled")
        if now >= self._deadline:
            self._deadline = _NEVER
            self._stop("timed_out")
        if now >= self._silent_at:
            self._silent_at = _NEVER
            before = self.stopped_for
            self._stop("timed_out")
            self.was_silent = before is None and self.stopped_for == "timed_out"
        if self._overseer is not None and now >= self._overseer.look_at:
            self._oversee(self._overseer, now)
        if now >= self._kill_at:
            self._tree.kill()
            # A process in an uninterruptible call may take for ever: do not poll all the time.
            self._kill_at = time.monotonic() + self._kill_pause
            self._kill_pause = min(1.0, 2 * self._kill_pause)

    def _oversee(self, overseer: Overseer, now: float) -> None:
        """End the host of a function that is past its deadline, at once: it cannot be asked."""
        if overseer.look(now) and self.stopped_for is None:
            self._reap()
            if self.wait_status is None:
                self.stopped_for = "timed_out"
                self._kill_at = now

    def silence(self) -> str | None:
        """That it was ended because it wrote nothing for so long."""
        return f"no output for {self._idle_seconds:g} s" if self.was_silent else None

    def culprit(self) -> str | None:
        """The token of the function that the host was ended for."""
        return None if self._overseer is None else self._overseer.culprit

    def _is_cancelled(self) -> bool:
        try:
            return self._evidence.is_cancelled()
        except OSError:  # a folder that someone changed is no reason to end the job
            return False

    def _stop(self, why: str) -> None:
        """TERM now, KILL after the grace; the first reason counts, and only while the job runs."""
        self._reap()
        if self._settled or self._kill_at != _NEVER:
            return
        if self.wait_status is None:
            self.stopped_for = why
        self._kill_at = time.monotonic() + self._grace_seconds  # however long it takes to ask all
        self._tree.terminate()

    def _read_signals(self) -> None:
        received = os.read(self._wake_fd, 4096)
        if signal.SIGUSR1 in received or len(received) == 4096:
            self._cancel_look_at = 0.0
            self._poked()
        self._reap()

    def _reap_and_see_gone(self) -> bool:
        self._reap()
        return self._tree.is_gone()

    def _reap(self) -> None:
        """Wait for every child that has ended; remember how the main one did."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._main:
                self.finished_at = time.time_ns() // 1000
                self.wait_status = status
                self.usage = {
                    "user_seconds": usage.ru_utime,
                    "system_seconds": usage.ru_stime,
                    "max_rss_kb": usage.ru_maxrss,
                }
                self._read_child()

    def _read_child(self) -> None:
        """Take in the report of an exec that failed; end of file says that it succeeded."""
        if self._report_fd < 0:
            return
        try:
            report = os.read(self._report_fd, 4096)
        except BlockingIOError:
            return
        self._report += report
        if not report or self.wait_status is not None:
            self._poll.unregister(self._report_fd)
            os.close(self._report_fd)
            self._report_fd = -1

    def _take_output(self, fd: int) -> None:
        """Take one chunk of output, unless the log is full and the command is to wait."""
        room = self._open[fd].room()
        most = most_to_take(self._full, room, CHUNK_BYTES)
        if not most:
            self._poll.unregister(fd)  # the pipe fills up, and then the command waits
            return
        got = self._read_chunk(fd, most)
        if ends_the_job(self._full, room, got) and self.stopped_for is None:
            self._reap()
            if self.wait_status is None:
                self.stopped_for = "log_full"
                self._kill_at = 0.0

    def _read_chunk(self, fd: int, most: int) -> int:
        """Move output from the pipe to the log; how much there was."""
        try:
            data = os.read(fd, most)
        except BlockingIOError:
            return 0
        if data:
            now = time.monotonic()
            if self._silent_at != _NEVER:
                self._silent_at = now + (self._idle_seconds or 0.0)
            self._open[fd].append(data, now)
            return len(data)
        if not forgets(self._full):
            self._poll.register(fd, select.POLLIN)  # it may have been taken out
        self._poll.unregister(fd)
        os.close(fd)
        del self._open[fd]
        return 0

    def _empty_pipes(self) -> None:
        """Take what the pipes hold (1 MiB at most), also those that were left to fill up."""
        for fd in list(self._open):
            for _ in range(16):
                if not self._read_chunk(fd, CHUNK_BYTES):
                    break


def _milliseconds(seconds: float) -> int | None:
    """For poll: rounded up, so that it never returns just before the time; None for never."""
    if seconds == _NEVER:
        return None
    return max(0, min(int(seconds * 1000) + 1, 2**31 - 1))
