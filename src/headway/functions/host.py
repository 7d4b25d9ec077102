"""The function host: a long-lived process that imports the user's code once and calls functions.

It is exec'd under a supervisor like a command. Calls come over a socket from the worker; what
became of them goes into the journal, and the socket only carries hints that it has grown. When the
worker is gone the host starts nothing more, finishes what runs, and exits. It has no database and
no lock. docs/protocols.md, section 10.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import inspect
import json
import os
import queue
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from headway.crashpoints import reach
from headway.functions.current import Current, Retry, Skip, become, leave, storable
from headway.functions.journal import NAME, WELL, Journal, compact
from headway.functions.output import Outputs
from headway.hints import json_value

HINT_EVERY = 0.01
HINT_LATE = 0.05
RETIRES_WITHIN = 0.05
LARGEST_RESULT = 1 << 20
_WELL = (0, None, None, None)
LONGEST_ERROR = 2000
MOST_CLASSES = 50


class Order(NamedTuple):
    """A call that the worker asks for."""

    token: str
    job_id: int
    attempt: int
    task: str
    arguments: dict[str, Any]
    timeout: float | None


AGAIN = Order("", 0, 0, "", {}, None)  # look again: something was returned


class Host:
    def __init__(self, folder: str, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._journal = Journal(os.path.join(folder, NAME), patient=True)
        self._outputs = Outputs(settings["jobs"], settings["logs"])
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._running: dict[str, Current] = {}
        self._dropped: set[str] = set()
        self._functions: dict[str, Callable[..., Any]] = {}
        self._leaving = False
        self._hinted_at = 0.0
        self._hint_at = 0  # so many before the end of a batch the worker is told, to prepare more
        self._spare = 0  # threads that stand in for ones which wait for another job
        self._spares: list[threading.Thread] = []
        self._waiting = 0
        self._counting = threading.Lock()
        self._returned: list[Order] = []  # what a spare thread took and must not begin
        self._unhinted = threading.Event()  # ends were written with the start of another call
        self._worker = _connect(folder)

    def run(self) -> None:
        try:
            self._functions = load(self._settings["modules"], self._settings["path"])
        except BaseException as error:
            self._tell({"broken": _last_words(error)})
            raise
        self._outputs.install()
        self._tell({"ready": sorted(self._functions)})
        reach("host.ready")
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._hint_late, daemon=True).start()
        helpers = [
            threading.Thread(target=self._work) for _ in range(self._settings["threads"] - 1)
        ]
        for helper in helpers:
            helper.start()
        self._work()
        for helper in helpers + self._spares:
            helper.join()

    # -- the worker's side ---------------------------------------------------------------------

    def _listen(self) -> None:
        """Take orders until the worker is gone, perhaps in the middle of a message."""
        with suppress(OSError, ValueError), self._worker.makefile("rb") as messages:
            for message in messages:
                self._hear(json.loads(message))
        self._leave()

    def _hear(self, message: dict[str, Any]) -> None:
        orders = message.get("run", ())
        for order in orders:
            self._orders.put(Order(*order))
        if orders:
            self._hint_at = self._orders.qsize() // 5
        if "cancel" in message:
            self._cancel(message["cancel"])
        if message.get("give_back"):
            self._give_back()
        if message.get("leave"):
            self._leave()

    def _give_back(self) -> None:
        """What runs takes long: what was ordered behind it may be done elsewhere, or later."""
        kept: list[Order | None] = []
        lines = b""
        with suppress(queue.Empty):
            while True:
                order = self._orders.get_nowait()
                if order is None or order is AGAIN:
                    kept.append(order)
                else:
                    lines += f"v {order.token}\n".encode()
        for order in kept:
            self._orders.put(order)
        if lines:
            self._add(lines)

    def _cancel(self, token: str) -> None:
        """Ask a function that runs to end; one that has not begun never will."""
        with self._counting:
            job = self._running.get(token)
            if job is None:
                self._dropped.add(token)
        if job is not None:
            job.ask_to_end()
        else:
            self._add(f"v {token}\n".encode())

    def _leave(self) -> None:
        """Start nothing more. What was ordered and not begun is the next worker's to take back."""
        self._leaving = True
        for _ in range(self._settings["threads"] + self._spare):
            self._orders.put(None)

    def _tell(self, message: dict[str, Any]) -> None:
        with suppress(OSError):
            self._worker.sendall(json.dumps(message).encode() + b"\n")

    def _hint(self) -> None:
        """The journal has grown."""
        self._hinted_at = time.monotonic()
        with suppress(OSError):  # a full buffer holds hints enough; no worker needs none
            self._worker.send(b"\n", socket.MSG_DONTWAIT)

    def _hint_late(self) -> None:
        """Hint at ends for which nobody else does, because the next call takes its time."""
        while self._unhinted.wait():
            self._unhinted.clear()
            time.sleep(HINT_LATE)
            self._hint()

    # -- calling -------------------------------------------------------------------------------

    def _work(self, *, spare: bool = False) -> None:
        """Call what was ordered, one at a time. The end of one call is written with the start of
        the next, or at once when there is none."""
        ended = b""
        with asyncio.Runner() as runner:
            while True:
                try:
                    order = self._next(None if ended else self._patience(spare))
                except queue.Empty:
                    if ended:
                        self._journal.add(ended)
                        ended = b""
                        self._hint()
                    if spare and (self._leaving or self._retires()):
                        break
                    continue
                if order is None or self._leaving:
                    break
                if order is AGAIN:
                    continue
                if spare and self._retires(order):
                    break
                ended = self._call(order, ended, runner)
                late = time.monotonic() - self._hinted_at > HINT_EVERY
                if ended and (late or self._orders.qsize() == self._hint_at):
                    self._journal.add(ended)
                    ended = b""
                    self._hint()
        if ended:
            self._journal.add(ended)
            self._hint()

    def _next(self, seconds: float | None) -> Order | None:
        """The next order, waiting that long; None seconds is not at all."""
        if self._returned:
            with suppress(IndexError):
                return self._returned.pop(0)
        if seconds is None:
            return self._orders.get_nowait()
        return self._orders.get(timeout=seconds if seconds >= 0 else None)

    def _patience(self, spare: bool) -> float:
        return RETIRES_WITHIN if spare else -1.0

    def _retires(self, order: Order | None = None) -> bool:
        """Whether a spare thread has nobody to stand in for any more; another takes its order."""
        with self._counting:
            if self._spare <= self._waiting:
                return False
            self._spare -= 1
            if order is not None:
                self._returned.append(order)
                self._orders.put(AGAIN)
            return True

    def _begins(self, token: str, job: Current) -> bool:
        with self._counting:
            if token in self._dropped:
                self._dropped.discard(token)
                return False
            self._running[token] = job
            return True

    def _call(self, order: Order, ended: bytes, runner: asyncio.Runner) -> bytes:
        """Make the call, if it may still be made; how it ended, as a line for the journal."""
        token = order.token
        job = Current(order.job_id, order.attempt, token, add=self._add, waits=self._waits)
        if not self._begins(token, job):
            return ended
        try:
            deadline = None if order.timeout is None else time.monotonic() + order.timeout
            if not self._journal.start(token, deadline, ended):
                return b""
            if ended:
                self._unhinted.set()
            reach("host.started")
            began = time.monotonic_ns()
            before = become(job)
            try:
                outcome = self._outcome(order, job, runner)
            finally:
                leave(before)
        finally:
            del self._running[token]
        logs = self._outputs.close(token)
        reach("host.called")
        took = (time.monotonic_ns() - began) // 1000
        told = f"e {token} {time.time_ns() // 1000} {took}"
        if logs is None and outcome == _WELL:
            return f"{told} {WELL}\n".encode()
        return f"{told} {compact([*outcome, logs])}\n".encode()

    def _outcome(
        self, order: Order, job: Current, runner: asyncio.Runner
    ) -> tuple[int, Any, str | None, Any]:
        """Exit code, result, error, and what the function asked for next, or the classes of what it
        raised."""
        try:
            result = self._functions[order.task](**order.arguments)
            if inspect.iscoroutine(result):
                result = _awaited(result, job, runner)
        except Skip as skip:
            return 0, None, storable(str(skip)) or "skipped", "skip"
        except Retry as retry:
            return 1, None, storable(str(retry)) or "it asked to be tried again", retry.after
        except asyncio.CancelledError:
            return 143, None, "cancelled", "cancelled" if job.cancelled() else None
        except SystemExit as left:
            return _left(left)
        except BaseException as error:
            self._show(error)
            then = "cancelled" if job.cancelled() else class_names(error)
            return 1, None, _last_words(error), then
        if result is None:
            return 0, None, None, None
        problem = json_value(result, "")
        if problem is None and len(json.dumps(result)) > LARGEST_RESULT:
            problem = "is larger than 1 MiB; write a file and return its path"
        if problem is not None:
            return 1, None, f"its result {problem}", None
        return 0, result, None, None

    def _show(self, error: BaseException) -> None:
        """The traceback, in the job's log whatever the function did to its streams."""
        trace = traceback.format_exception(error.with_traceback(_own(error)))
        self._outputs.stderr.write("".join(trace))

    def _waits(self, waiting: bool) -> None:
        """One of the threads waits for another job: a spare one stands in for it."""
        with self._counting:
            self._waiting += 1 if waiting else -1
            if waiting and self._spare < self._waiting:
                self._spare += 1
                spare = threading.Thread(target=self._work, kwargs={"spare": True})
                self._spares = [each for each in self._spares if each.is_alive()] + [spare]
                spare.start()
            self._tell({"lent": self._waiting})

    def _add(self, lines: bytes) -> None:
        self._journal.add(lines)
        self._hint()


def _awaited(coroutine: Any, job: Current, runner: asyncio.Runner) -> Any:
    """Run an async function to its end; a cancel of its job cancels it."""
    loop = runner.get_loop()

    async def watched() -> Any:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        job.cancel = lambda: _discard(loop.call_soon_threadsafe(task.cancel))
        if job.cancelled():
            task.cancel()
        return await coroutine

    # The runner's own context is that of the first job it ran.
    return runner.run(watched(), context=contextvars.copy_context())


def _discard(_: object) -> None:
    """For a lambda that returns nothing."""


def _left(left: SystemExit) -> tuple[int, Any, str | None, Any]:
    """sys.exit ends the call, not the host."""
    if left.code in (None, 0):
        return 0, None, None, None
    code = left.code if isinstance(left.code, int) else 1
    return code & 0xFF or 1, None, f"sys.exit({left.code!r})", None


def _own(error: BaseException) -> Any:
    """The traceback without the host's own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace or error.__traceback__


def class_names(error: BaseException) -> list[str]:
    """Its class and those it is made from, each by name and as module.Class: what a retry policy
    may be about."""
    names: list[str] = []
    with suppress(Exception):  # a class may answer in any way when it is asked for its name
        for each in type(error).__mro__[:MOST_CLASSES]:
            if each is not object:
                names += (each.__qualname__, f"{each.__module__}.{each.__qualname__}")
    return [storable(name) for name in names]


def _last_words(error: BaseException) -> str:
    return storable("".join(traceback.format_exception_only(error)).strip()[:LONGEST_ERROR])


def load(modules: list[str], path: list[str]) -> dict[str, Callable[..., Any]]:
    """Import the user's modules; the functions of all tasks by name."""
    from headway.app import App

    sys.path[:0] = [each for each in path if each not in sys.path]
    functions: dict[str, Callable[..., Any]] = {}
    for name in modules:
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, App):
                functions.update({task.name: task.function for task in value.tasks.values()})
    return functions


def _connect(folder: str) -> socket.socket:
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(f"/proc/self/fd/{at}/socket")
        return connection
    finally:
        os.close(at)


def main() -> None:
    folder = sys.argv[1]
    with open(os.path.join(folder, "host.json"), encoding="utf-8") as file:
        settings = json.load(file)
    Host(folder, settings).run()
    os._exit(0)  # threads that functions have left behind do not keep the host


if __name__ == "__main__":
    main()
