"""The process that a script job is: `python -m headway.schedules.jobsfile.script NAME RUN`.

NAME is the entry, whose state the function gets and leaves; RUN is what the entry says to run. It
knows its home from the environment, as every job does. An exception is a failed job: its last line
is the job's reason (`verdict.T`, docs/protocols.md, section 3) and the last of its log.
`headway.Skip` ends the job as skipped.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from headway.base.current import Skip
from headway.base.errors import HeadwayError, InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.trust import NEXT_STEP, why_not
from headway.client import connect
from headway.jobs.context import Context
from headway.schedules.jobsfile.model import LARGEST_STATE, POLL_FILE, SKIP_CODE
from headway.schedules.jobsfile.modules import (
    find_function,
    is_path,
    last_words,
    try_import,
    use_folder,
)
from headway.schedules.jobsfile.registry import JobContext, as_json, call_with


def main(name: str, run: str) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    client = connect()
    home, config = client.context.home, client.context.config
    refusal = why_not(home.path)
    if refusal is not None:
        raise InvalidInputError(f"no code of its project is imported: {refusal}; {NEXT_STEP}")
    use_folder(home.path)
    function = _function(run, config["app.modules"])
    context = JobContext(client=client, poll_data=_poll_data(), state=_state(client.context, name))
    try:
        return _call(function, context, home)
    finally:
        _keep(client.context, name, context.state)


def _function(run: str, modules: Sequence[str]) -> Callable[..., Any]:
    troubles = [] if is_path(run) else [each for each in map(try_import, modules) if each]
    try:
        return find_function(run)
    except NotFoundError as error:
        raise NotFoundError("; ".join([str(error), *troubles])) from None


def _call(function: Callable[..., Any], context: JobContext, home: Home) -> int:
    try:
        call_with(function, context)
    except Skip as skip:
        sys.stderr.write(f"skipped: {skip}\n" if str(skip) else "skipped\n")
        if str(skip):
            _leave_verdict(home, " ".join(str(skip).split()), [])
        return SKIP_CODE
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
            trace = trace.tb_next  # our frames are of no use to the user
        traceback.print_exception(error.with_traceback(trace))
        kinds = [each.__name__ for each in type(error).__mro__[:-2]]
        _leave_verdict(home, last_words(error), kinds)
        return 1
    return 0


def _leave_verdict(home: Home, why: str, kinds: list[str]) -> None:
    """For the supervisor; without it the exit code speaks alone."""
    folder = home.job(int(os.environ["HEADWAY_JOB_ID"].removeprefix("job-")))
    path = os.path.join(folder, f"verdict.{os.environ['HEADWAY_CLAIM']}")
    content = json.dumps({"error": why, "classes": kinds})
    try:
        fd = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(content)
        os.rename(f"{path}.tmp", path)
    except OSError as trouble:
        sys.stderr.write(f"the reason could not be left: {trouble.strerror}\n")


def _poll_data() -> Any:
    """None if there is none, or no more: one who runs an old job again gets none."""
    path = os.environ.get(POLL_FILE)
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"there is no poll data: {last_words(error)}\n")
        return None


def _state(context: Context, name: str) -> dict[str, Any]:
    with context.store.read() as tx:
        kept = tx.jobsfile.entry_state(context.host.id, name)
    return kept if isinstance(kept, dict) else {}


def _keep(context: Context, name: str, state: Any) -> None:
    as_json(state, f"the state of {name}", LARGEST_STATE)
    with context.store.write() as tx:
        tx.jobsfile.keep_entry_state(context.host.id, name, state)
    context.close()


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except HeadwayError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
