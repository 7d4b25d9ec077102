"""The main process of an agent job: runs the agent and writes down what became of it.

`python -I -S ... FOLDER` in the job's directory and environment; what it is to do stands in the
claim's file. It leaves `result.json` in the job's folder, and for its supervisor `verdict.T`: why
the job failed, where its exit code alone does not say it. docs/protocols.md, section 3.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time

from headway.integrations.agents.process import Agent
from headway.integrations.agents.streams import report_of
from headway.integrations.agents.verdict import (
    LARGEST_ADDED,
    AgentVerdict,
    ProcessEnd,
    added_by_agent,
    classes,
    exit_code,
    judge,
    result_document,
    summary_line,
)
from headway.supervise.folder import Folder, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

RESULT = "result.json"
NOT_FOUND, NOT_EXECUTABLE = 127, 126


def main() -> NoReturn:
    token = os.environ["HEADWAY_CLAIM"]
    folder = Folder(sys.argv[1], kept=True)
    wanted: dict[str, Any] = json.loads(folder.read(f"claim.{token}"))["agent"]
    sys.exit(run(folder, token, wanted))


def run(folder: Folder, token: str, wanted: dict[str, Any]) -> int:
    """Do the job; what to exit with."""
    begun = time.time_ns() // 1000
    report = report_of(wanted["parser"])
    more: dict[str, Any] = {"log_sha256": None, "too_long_lines": 0}
    try:
        if wanted["prompt_by"] == "file":
            _replace(folder, wanted["prompt_file"], wanted["prompt"].encode())
        agent = Agent(wanted, report)
    except OSError as error:
        ending = ProcessEnd(_code_of(error), None, None)
        words = f"{wanted['runner']} could not be started: {error.strerror}"
        judged = AgentVerdict("task", words)
    else:
        ending = agent.wait()
        judged = judge(wanted["runner"], report, ending, denials=wanted["denials"])
        more = {"log_sha256": agent.log_sha256, "too_long_lines": agent.too_long}
    times = {"started_at": _instant(begun), "finished_at": _instant(time.time_ns() // 1000)}
    added = added_by_agent(_written_by_agent(folder, wanted["result_file"]))
    result = result_document(wanted, report, ending, judged, added, **times, **more)
    _keep(folder, token, result, classes(judged, ending))
    os.write(2, f"{summary_line(result)}\n".encode(errors="replace"))
    return exit_code(judged, ending)


def _keep(folder: Folder, token: str, result: dict[str, Any], retry_words: list[str]) -> None:
    """A full disk takes the words away, but not the verdict: the exit code says that as well."""
    try:
        _replace(folder, RESULT, json.dumps(result, indent=1).encode() + b"\n")
        if not result["ok"]:
            verdict = {"error": result["reason"], "classes": retry_words}
            _replace(folder, f"verdict.{token}", json.dumps(verdict).encode())
    except OSError as error:
        os.write(2, f"headway: {RESULT} could not be written: {error.strerror}\n".encode())


def _replace(folder: Folder, name: str, content: bytes) -> None:
    """Whole or not at all."""
    folder.remove(f"{name}.tmp")
    fd = folder.open(f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    folder.rename(f"{name}.tmp", name)


def _written_by_agent(folder: Folder, name: str) -> object:
    """The document that the agent left for us. Anything else there counts as nothing, and so does a
    document that could not be written again."""
    try:
        document = json.loads(folder.read(name, most=LARGEST_ADDED))
        json.dumps(document, allow_nan=False)
    except (OSError, ValueError, RecursionError):
        return None
    return document


def _code_of(error: OSError) -> int:
    return NOT_FOUND if error.errno in (errno.ENOENT, errno.ENOTDIR) else NOT_EXECUTABLE


def _instant(micros: int) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(micros // 1_000_000))
    return f"{whole}.{micros % 1_000_000:06d}Z"


if __name__ == "__main__":
    main()
