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

from headway.integrations.agents.limits import limit_in
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
    outputs_of,
    result_document,
    summary_line,
)
from headway.integrations.git.work import look_at, work_since
from headway.supervise.folder import Folder, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from headway.integrations.agents.streams.base import AgentReport

RESULT = "result.json"
NOT_FOUND, NOT_EXECUTABLE = 127, 126


def main() -> NoReturn:
    token = os.environ["HEADWAY_CLAIM"]
    folder = Folder(sys.argv[1], kept=True)
    wanted: dict[str, Any] = json.loads(folder.read(f"claim.{token}"))["agent"]
    sys.exit(run(folder, token, wanted))


def run(folder: Folder, token: str, wanted: dict[str, Any]) -> int:
    """Do the job; what to exit with."""
    report = report_of(wanted["parser"])
    result, judged, ending = watch(folder, wanted, report)
    if wanted.get("outputs"):
        _set_outputs(folder, token, outputs_of(result))
    if not judged.ok:
        verdict = {"error": judged.reason, "classes": classes(judged, ending)}
        verdict |= parks(wanted, report, judged, ending)
        _keep(folder, f"verdict.{token}", json.dumps(verdict))
    os.write(2, f"{summary_line(result)}\n".encode(errors="replace"))
    return exit_code(judged, ending)


def watch(
    folder: Folder, wanted: dict[str, Any], report: AgentReport
) -> tuple[dict[str, Any], AgentVerdict, ProcessEnd]:
    """Let the agent work in this process's directory, and keep its result in the folder."""
    begun = time.time_ns() // 1000
    before = look_at(os.getcwd())
    more: dict[str, Any] = {"log_sha256": None, "too_long_lines": 0, "git": None}
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
        judged = judge(
            wanted["runner"],
            report,
            ending,
            denials=wanted["denials"],
            allowed_usd=wanted.get("allowed_usd"),
        )
        more |= {"log_sha256": agent.log_sha256, "too_long_lines": agent.too_long}
        if before is not None and not agent.is_hurried:  # else its supervisor is about to end us
            more["git"] = work_since(before)
    times = {"started_at": _instant(begun), "finished_at": _instant(time.time_ns() // 1000)}
    added = added_by_agent(_written_by_agent(folder, wanted.get("result_file")))
    result = result_document(wanted, report, ending, judged, added, **times, **more)
    _keep(folder, RESULT, json.dumps(result, indent=1) + "\n")
    return result, judged, ending


def parks(
    wanted: dict[str, Any], report: AgentReport, judged: AgentVerdict, ending: ProcessEnd
) -> dict[str, Any]:
    """What failed it and holds for all jobs of the runner, so that they need not learn it."""
    if judged.ok or ending.stopped is not None:
        return {}
    texts = (judged.reason or "", report.last_said, report.error[1] if report.error else "")
    met = limit_in(texts, wanted.get("limits", ()), time.time_ns() // 1000)
    session = {"session_id": report.session_id}
    if met is not None:
        return {"parks": "limit", "again_at": met.again_at, **session}
    if judged.error_class == "auth" and wanted.get("auth") == "park":
        return {"parks": "auth", **session}
    return {}


def _keep(folder: Folder, name: str, text: str) -> None:
    """A full disk takes the words away, but not the verdict: the exit code says that as well."""
    try:
        _replace(folder, name, text.encode())
    except OSError as error:
        os.write(2, f"headway: {name} could not be written: {error.strerror}\n".encode())


def _set_outputs(folder: Folder, token: str, outputs: dict[str, Any]) -> None:
    """Behind what the agent itself has set."""
    lines = (f"{name}:={json.dumps(value)}" for name, value in outputs.items())
    content = "\n".join(["", *lines, ""]).encode()
    try:
        fd = folder.open(f"outputs.{token}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            write_all(fd, content)
        finally:
            os.close(fd)
    except OSError as error:
        os.write(2, f"headway: its outputs could not be written: {error.strerror}\n".encode())


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


def _written_by_agent(folder: Folder, name: str | None) -> object:
    """The document that the agent left for us. Anything else there counts as nothing, and so does a
    document that could not be written again."""
    if name is None:
        return None
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
