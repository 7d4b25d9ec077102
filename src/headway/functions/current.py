"""What a function may ask about the job it runs as."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from headway.base.current import inside
from headway.base.errors import InvalidInputError, NotFoundError
from headway.functions.host.journal import line
from headway.functions.host.steps import Steps
from headway.functions.type_checks import json_value

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_TEXT = 500
NO_NODE = (None, None, 0)
NOTHING: Mapping[str, str] = {}


def storable(text: str) -> str:
    """The text with escapes for what no store keeps as text: NUL, and halves of characters."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


class Current:
    """The job that the calling function is. Of use only while it runs."""

    cancel: Callable[[], None] | None = None  # of an async function
    workflow_run: str | None  # wf-7
    node: str | None
    node_pass: int
    ended = False  # what threads and coroutines that it left behind print is no part of its log
    _cancelled = False
    _log: logging.Logger | None = None
    _steps: Steps | None = None  # made for the first of them

    def __init__(
        self,
        job_id: int,
        attempt: int,
        token: str,
        add: Callable[[str], None],
        waits: Callable[[bool], None] = lambda waiting: None,
        of_node: Sequence[Any] = NO_NODE,
        record: Callable[[str], None] | None = None,
        steps: Mapping[str, str] = NOTHING,
    ) -> None:
        """`of_node` are the run of a workflow, the node in it, and the node's pass. `record` adds a
        line durably; `steps` are those of earlier tries."""
        self.job_id = job_id
        self.attempt = attempt
        self.token = token
        self.workflow_run, self.node, self.node_pass = of_node
        self._add = add
        self._record = record
        self._known_steps = steps
        self.waits = waits  # its host may call another function meanwhile

    @property
    def id(self) -> str:
        return f"job-{self.job_id}"

    @property
    def log(self) -> logging.Logger:
        """A logger whose lines go to the job's own stderr."""
        if self._log is None:
            self._log = logging.Logger(self.id)
            handler = logging.StreamHandler()  # stderr, which belongs to the job
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
            self._log.addHandler(handler)
        return self._log

    def progress(self, fraction: float, text: str = "") -> None:
        """Record how far it has come, from 0 to 1, for those who watch."""
        if not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
            raise InvalidInputError(f"progress {fraction!r} is not a number from 0 to 1")
        problem = json_value(text, "")
        if problem or not isinstance(text, str):
            raise InvalidInputError(f"progress: the text {problem or 'is not a str'}")
        self._add(line("p", self.token, [round(fraction, 4), storable(text[:LONGEST_TEXT])]))

    def step(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """What this chain has recorded under `key`; else call the function, and record what it
        returns before returning that. A retry does not call it again. The value is JSON of at most
        1 MiB. Of an async function it is to be awaited."""
        from inspect import iscoroutinefunction

        if self._steps is None:
            if self._record is None:
                raise NotFoundError("steps are for functions that run as jobs")
            self._steps = Steps(self.token, self._known_steps, self._record)
        steps: Any = self._steps
        take = steps.awaited if iscoroutinefunction(function) else steps.take
        found: R = take(key, function, args, kwargs)
        return found

    def run(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run a command, with its output in the job's log; a cancel of the job ends it. Raises
        `subprocess.CalledProcessError` unless it exits with 0."""
        from headway.functions.command import run_command

        run_command(self, argv, cancelled=self.cancelled, cwd=cwd, env=env)

    def cancelled(self) -> bool:
        """Whether someone asked for this job's end; it is ended by force after its grace."""
        return self._cancelled

    def ask_to_end(self) -> None:
        """From the host: the job was cancelled."""
        self._cancelled = True
        if self.cancel is not None:
            self.cancel()


def present() -> Current | None:
    """The same as `current`, or None outside of a job."""
    found = inside()
    return found if isinstance(found, Current) else None


def current() -> Current:
    """The job that this function runs as."""
    found = present()
    if found is None:
        raise NotFoundError(
            "this function does not run as a job; current() is for tasks, not for threads "
            "that they start"
        )
    return found
