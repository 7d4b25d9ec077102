"""The function host: a long-lived process that imports the user's code once and calls functions.

It is exec'd under a supervisor like a command. Calls come over a socket from the worker; what
became of them goes into the journal, and the socket only carries hints that it has grown. When the
worker is gone the host starts nothing more, finishes what runs, and exits. It has no database and
no lock. docs/protocols.md, section 10.

Only the thread that holds `_read_lock` may read the socket. An idle thread reads it, so that the
thread that receives an order also carries it out. It takes the lock, checks once more for
orders, and only then reads and waits. Orders arrive only under the lock, so a thread that waits for
the lock misses none. A thread that has received orders releases the lock before it makes the call.
So the next idle thread takes its share of them, and then reads.

While all threads are busy the lock is free, and the stand-by thread reads cancels and other
messages. It polls every few milliseconds while calls begin, and otherwise sleeps until the socket
is readable. The same thread sends the hints about ends that were written together with the start of
a long call. The writer sets `_unhinted` and then checks `_looks`; the stand-by thread clears
`_looks` and then checks `_unhinted`. Whatever the timing, one of the two sends the hint.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headway.base.crashpoints import reach
from headway.base.current import become, leave
from headway.functions.current import NO_NODE, NOTHING, Current
from headway.functions.host.call import WELL, Caller, last_words, not_made
from headway.functions.host.descriptors import Descriptors
from headway.functions.host.journal import NAME, Journal, compact
from headway.functions.host.journal import WELL as RETURNED_NOTHING
from headway.functions.host.orders import Orders, read_order
from headway.functions.host.output import Outputs

HINT_EVERY = 10_000_000  # ns
LOOK_EVERY = 0.01
MOST_AT_ONCE = 1 << 16
# For so long a thread polls for the next order before it sleeps, if the last one came no later:
# to be woken takes as long as many calls do, on a machine that shares its processors.
MOMENT = 0.001


class HostProcess:
    def __init__(self, folder: str, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._journal = Journal(os.path.join(folder, NAME), patient=True)
        self._outputs = Outputs(settings["jobs"], settings["logs"])
        self._orders = Orders()
        self._read_lock = threading.Lock()
        self._running: dict[str, Current] = {}
        self._descriptors = Descriptors(
            self._outputs, self._running, one_at_a_time=settings["threads"] == 1
        )
        self._dropped: set[str] = set()
        self._functions: dict[str, Callable[..., Any]] = {}
        self._imported = False
        self._leaving = False
        self._deaf = False  # the worker is gone
        self._latest = ""  # the token of the call that began last
        self._looks = False  # whether the stand-by thread will soon check for ends without a hint
        self._unhinted = False  # ends were written with the start of another call
        self._hinted_at = 0
        self._hint_at = 0  # the worker gets a hint so many calls before a batch ends
        self._spare = 0  # threads that stand in for ones which wait for another job
        self._spares: list[threading.Thread] = []
        self._waiting = 0
        self._counting = threading.Lock()
        self._has_processors = len(os.sched_getaffinity(0)) > 1
        self._hurry = False  # whether the last order came within a moment
        self._is_copy = False  # a process that a function has forked
        self._worker = _connect(folder)
        self._said = _poll(self._worker)  # for the holder of the read lock

    def run(self) -> None:
        self._descriptors.capture()
        self._outputs.install()  # loggers that modules set up keep the stream which they find
        threading.Thread(target=self._leave_with_worker, daemon=True).start()
        try:
            self._functions = load(self._settings["modules"], self._settings["path"])
        except BaseException as error:
            self._send({"broken": last_words(error)})
            raise
        self._imported = True
        self._send({"ready": sorted(self._functions)})
        reach("host.ready")
        threading.Thread(target=self._stand_by, daemon=True).start()
        os.register_at_fork(after_in_child=self._become_copy)
        helpers = [
            threading.Thread(target=self._live) for _ in range(self._settings["threads"] - 1)
        ]
        for helper in helpers:
            helper.start()
        self._live()
        for helper in helpers + self._spares:
            helper.join()
        self._descriptors.settle()

    def _leave_with_worker(self) -> None:
        """An import may take for ever. If the worker leaves meanwhile, exit."""
        _poll(self._worker).poll()
        if not self._imported:
            os._exit(0)

    def _become_copy(self) -> None:
        """A function has forked, and this is the new process: calls and logs are not its own."""
        self._is_copy = True
        self._descriptors.become_copy()
        self._outputs.let_go()

    # -- the worker's side ---------------------------------------------------------------------

    def _listen(self) -> None:
        """Wait for orders, as soon as no other thread does."""
        with self._read_lock:
            if not self._orders.waiting and not self._leaving:
                begin = time.monotonic()
                while self._hurry and not self._said.poll(0):
                    self._hurry = time.monotonic() - begin < MOMENT
                self._said.poll()
                self._hurry = self._has_processors and time.monotonic() - begin < MOMENT
                self._read()

    def _stand_by(self) -> None:
        """Read the socket while all threads are busy, and send the hints that are still due."""
        said = _poll(self._worker)
        while not self._deaf:
            self._looks = False
            self._hint_if_due()
            said.poll()
            self._looks = True
            self._read_if_free()
            latest = None
            while latest != self._latest:
                latest = self._latest
                time.sleep(LOOK_EVERY)
                self._read_if_free()

    def _read_if_free(self) -> None:
        if self._read_lock.acquire(blocking=False):
            try:
                while not self._deaf and self._read():
                    pass
            finally:
                self._read_lock.release()

    def _read(self) -> bool:
        """Read the socket, holding the read lock; False if there was nothing to read. At end of
        file, or after a message that makes no sense, the worker counts as gone."""
        try:
            data = self._worker.recv(MOST_AT_ONCE, socket.MSG_DONTWAIT)
            self._orders.receive(data, self._obey)
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            data = b""
        if not data:
            self._deaf = self._leaving = True
        self._hint_at = len(self._orders.waiting) // 2
        return True

    def _obey(self, message: dict[str, Any]) -> None:
        if "cancel" in message:
            self._cancel(message["cancel"])
        elif message.get("give_back"):
            self._void(self._orders.take_all())
        elif message.get("leave"):
            self._leaving = True
        else:
            raise ValueError(f"unknown message {message}")

    def _cancel(self, token: str) -> None:
        """Ask a function that runs to end; one that has not begun never will."""
        with self._counting:
            job = self._running.get(token)
            if job is None:
                self._dropped.add(token)
        if job is not None:
            job.ask_to_end()
        else:
            self._void([token])

    def _void(self, tokens: list[str]) -> None:
        if tokens:
            self._add("".join(f"v {token}\n" for token in tokens))

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(OSError):
            self._worker.sendall(json.dumps(message).encode() + b"\n")

    def _add(self, lines: str) -> None:
        self._journal.add(lines)
        self._hint()

    def _record(self, lines: str) -> None:
        """The same; durable when this returns."""
        self._journal.add(lines)
        self._journal.sync()
        self._hint()

    def _hint(self) -> None:
        """The journal has grown."""
        self._unhinted = False
        self._hinted_at = time.monotonic_ns()
        self._hint_at = -1
        try:
            self._worker.send(b"\n", socket.MSG_DONTWAIT)
        except OSError:
            return  # a full buffer holds hints enough; no worker needs none

    def _hint_if_due(self) -> None:
        if self._unhinted:
            self._hint()

    # -- calling -------------------------------------------------------------------------------

    def _live(self, *, spare: bool = False) -> None:
        """A thread of the host. If it fails, the host exits: its call would never get an end."""
        try:
            self._work(spare=spare)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def _work(self, *, spare: bool = False) -> None:
        """Call what was ordered, one at a time. The end of one call is written with the start of
        the next, or at once when there is none."""
        waiting = self._orders.waiting
        caller = Caller(self._functions, self._outputs.stderr.write)
        ended = ""
        while not (self._leaving or (spare and self._retires())):
            if not waiting:
                self._finish(ended)
                ended = ""
                self._listen()
                continue
            try:
                order = waiting.popleft()
            except IndexError:  # another thread was quicker
                continue
            ended = self._call(order, ended, caller)
        self._finish(ended)
        caller.close()

    def _finish(self, ended: str) -> None:
        """There is nothing more to do for now."""
        if ended:
            self._add(ended)
        else:
            self._hint_if_due()

    def _retires(self) -> bool:
        """Whether a spare thread has nobody to stand in for any more."""
        with self._counting:
            if self._spare <= self._waiting:
                return False
            self._spare -= 1
            return True

    def _call(self, order: str, ended: str, caller: Caller) -> str:
        """Make the call, if it may still be made; what is to be written with the next one."""
        try:
            token, job_id, attempt, params = read_order(order)
        except (ValueError, RecursionError):  # the worker reads the row and reports it
            self._void([order.split(" ", 2)[1]])
            return ended
        job = Current(
            *(job_id, attempt, token, self._add, self._waits, params.get("node", NO_NODE)),
            record=self._record,
            steps=params.get("steps", NOTHING),
        )
        if not self._begins(token, job):
            return ended
        try:
            if not self._started(token, params.get("timeout_seconds"), ended):
                return ""
            reach("host.started")
            began = time.monotonic_ns()
            before = become(job)
            try:
                outcome = caller.call(params.get("task", ""), params.get("args", {}), job)
            finally:
                leave(before)
            if self._descriptors.written:
                self._descriptors.end_call()
            elif self._spare:  # two calls, and only the main thread hears of output in time
                self._descriptors.settle()
            unmade = not_made(outcome, params["products"]) if "products" in params else []
            if self._is_copy:  # what it was forked for is done, and the call is not its own
                os._exit(outcome[0])
        finally:
            del self._running[token]
        logs = self._outputs.close(job)
        reach("host.called")
        now = time.monotonic_ns()
        if logs is None and outcome is WELL and not unmade:
            outcome_text = RETURNED_NOTHING
        else:
            outcome_text = compact([*outcome, logs, unmade] if unmade else [*outcome, logs])
        line = f"e {token} {time.time_ns() // 1000} {(now - began) // 1000} {outcome_text}\n"
        if len(self._orders.waiting) > self._hint_at and now - self._hinted_at < HINT_EVERY:
            return line
        self._add(line)
        return ""

    def _begins(self, token: str, job: Current) -> bool:
        with self._counting:
            if token in self._dropped:
                self._dropped.discard(token)
                return False
            self._running[token] = job
            return True

    def _started(self, token: str, timeout: float | None, ended: str) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        starts = self._journal.start(token, deadline, ended)
        self._latest = token
        if ended:
            self._unhinted = True
            if not self._looks:
                self._hint()
        return starts

    def _waits(self, waiting: bool) -> None:
        """One of the threads waits for another job: a spare one stands in for it."""
        if self._is_copy:
            return
        with self._counting:
            self._waiting += 1 if waiting else -1
            if waiting and self._spare < self._waiting:
                self._spare += 1
                spare = threading.Thread(target=self._live, kwargs={"spare": True})
                self._spares = [each for each in self._spares if each.is_alive()] + [spare]
                spare.start()
            self._send({"lent": self._waiting})


def load(modules: list[str], path: list[str]) -> dict[str, Callable[..., Any]]:
    """Import the user's modules; the functions of all tasks by name."""
    from headway.functions.app import App
    from headway.functions.tasks import Task

    sys.path[:0] = [each for each in path if each not in sys.path]
    functions: dict[str, Callable[..., Any]] = {}
    for name in modules:
        for value in list(vars(importlib.import_module(name)).values()):
            app = value.app if isinstance(value, Task) else value  # it may be another module's
            if isinstance(app, App):
                functions.update({task.name: task.function for task in app.tasks.values()})
    return functions


def _connect(folder: str) -> socket.socket:
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(f"/proc/self/fd/{at}/socket")
        return connection
    finally:
        os.close(at)


def _poll(connection: socket.socket) -> select.poll:
    """To wait for a message: a thread that waits in recv also wakes when a hint is read."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return poll


def main() -> None:
    folder = sys.argv[1]
    with open(os.path.join(folder, "host.json"), encoding="utf-8") as file:
        settings = json.load(file)
    HostProcess(folder, settings).run()
    os._exit(0)  # threads that functions have left behind do not keep the host


if __name__ == "__main__":
    main()
