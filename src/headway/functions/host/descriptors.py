"""Descriptors 1 and 2 of a host are pipes, so what subprocesses and C code write comes back to it.

Where one call runs at a time, that is the output of this call. A thread reads the pipes while the
call runs; at its end, and before the function itself prints, the rest is read, so the order is that
of the writing. A call that wrote nothing must not pay for this, not even with one system call. So
the kernel sends SIGIO to the main thread, which makes the calls, when something comes
(`O_ASYNC`). The handler sets `written` and turns the signals off until the rest has been read. A
child that has ended wrote before; so `written` is set before the call that waited for it goes on.

After a call that wrote there are new pipes. What its processes leave behind and write later comes
from the old ones, and belongs to no call.

Where several calls run at a time nobody knows whose output it is. It goes to the host's own log as
before, and the calls that run then are told so, once.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from headway.functions.current import Current
from headway.functions.host.output import Outputs

CHUNK_BYTES = 1 << 16
_SET_OWNER = 15  # F_SETOWN_EX
_OF_THREAD = 0  # F_OWNER_TID
_STREAMS = {1: "stdout", 2: "stderr"}
NOT_HERE = (
    "headway: output of subprocesses is not in this log: several calls run at a time here "
    "(app.threads); headway.current().run([...]) puts it here\n"
)


class _Pipe(NamedTuple):
    """What a process that was started under it writes to descriptor 1 or 2."""

    source: int
    stream: str


class Descriptors:
    """The pipes of one host; `running` are its calls by token, in the order in which they began."""

    def __init__(
        self, outputs: Outputs, running: Mapping[str, Current], *, one_at_a_time: bool
    ) -> None:
        self._outputs = outputs
        self._running = running
        self._one_at_a_time = one_at_a_time
        self._readable = select.epoll()
        self._current: dict[str, _Pipe] = {}
        self._left_behind: dict[int, _Pipe] = {}
        self._turn = threading.RLock()
        self._main = threading.main_thread()
        self._is_copy = False
        self._explained = False
        self.written = False

    def capture(self) -> None:
        """From now on; in the main thread."""
        self._outputs.set_aside()
        if self._one_at_a_time:
            self._outputs.before_write = self._catch_up
            signal.signal(signal.SIGIO, self._on_signal)
            signal.siginterrupt(signal.SIGIO, False)  # calls of C code are restarted
        self._renew()
        threading.Thread(target=self._pump, daemon=True).start()

    def become_copy(self) -> None:
        """In a process that a function has forked: it writes to the pipes, and reads none."""
        self._is_copy = True
        self.written = False

    def settle(self) -> None:
        """Take in all that has been written up to now."""
        if self._is_copy:
            return
        with self._turn:
            self._arm()
            self.written = False
            for pipe in list(self._current.values()):
                self._take(pipe)

    def end_call(self) -> None:
        """The same at the end of a call that has written; what comes later is not its own."""
        if self._is_copy:
            return
        with self._turn:
            self.settle()
            self._renew()

    def _catch_up(self) -> None:
        """Before the function itself writes."""
        if self.written:
            self.settle()

    # -- the pipes -----------------------------------------------------------------------------

    def _renew(self) -> None:
        for fd, stream in _STREAMS.items():
            source, sink = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(source, False)
            os.dup2(sink, fd)
            os.close(sink)
            before = self._current.get(stream)
            self._current[stream] = _Pipe(source, stream)
            if self._one_at_a_time:
                # To this thread, and no other: it must have the signal before it goes on.
                owner = struct.pack("ii", _OF_THREAD, self._main.native_id)
                fcntl.fcntl(source, _SET_OWNER, owner)
            self._readable.register(source, select.EPOLLIN)
            if before is not None:
                self._left_behind[before.source] = before
                self._take(before)  # and close it, unless someone still has the other end
        self._arm()

    def _arm(self) -> None:
        if self._one_at_a_time:
            for pipe in self._current.values():
                fcntl.fcntl(pipe.source, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)

    def _on_signal(self, *_: object) -> None:
        self.written = True
        for pipe in self._current.values():
            with suppress(OSError):  # a spare thread may just have closed it
                fcntl.fcntl(pipe.source, fcntl.F_SETFL, os.O_NONBLOCK)

    def _pump(self) -> None:
        while True:
            ready = self._readable.poll()
            with self._turn:
                known = {each.source: each for each in self._current.values()}
                for source, _ in ready:
                    pipe = known.get(source) or self._left_behind.get(source)
                    if pipe is not None:
                        self._take(pipe)

    def _take(self, pipe: _Pipe) -> None:
        """Read what there is; at its end, close it."""
        while True:
            try:
                data = os.read(pipe.source, CHUNK_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._left_behind.pop(pipe.source, None)
                self._readable.unregister(pipe.source)
                os.close(pipe.source)
                return
            self._deliver(pipe, data)

    def _deliver(self, pipe: _Pipe, data: bytes) -> None:
        calls = list(self._running.values())
        if not self._one_at_a_time:
            self._explain(calls)
        elif calls and pipe.source not in self._left_behind:
            log = self._outputs.log(calls[-1], pipe.stream)
            if log is not None and log.write(data):
                return
        self._outputs.write_usual(pipe.stream, data)

    def _explain(self, calls: list[Current]) -> None:
        if self._explained:
            return
        for call in calls:
            log = self._outputs.log(call, "stderr")
            self._explained |= log is not None and log.write(NOT_HERE.encode())
