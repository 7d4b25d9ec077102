"""The process of a node: `headway __workflow-node --job-id N`. It decides for a gate, or does what
an operation is to do, and says what came of it.

It reads all that it needs from the claim, and opens no store. Its exit code is the decision, what
it leaves in `verdict.T` is the reason, and what it appends to `$HEADWAY_OUTPUTS` are the outputs.
It imports little: it starts for every gate and operation.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from headway.core.conditions import as_text
from headway.workflows.node_command import run_command

COMMAND = "__workflow-node"
BLOCKED, HOST = "blocked", "host"  # classes of a verdict
EXIT_FAILED, EXIT_BLOCKED, EXIT_HOST, EXIT_ELSEWHERE = 1, 10, 75, 4

_WORDS = {
    "gate.stop_condition": (
        "stop-condition passed on attempt {attempt}",
        "stop-condition failed on attempt {attempt}",
        "stop-condition gate skipped (no script configured)",
    ),
    "gate.cicd": (
        "cicd gate passed on attempt {attempt}",
        "cicd gate failed on attempt {attempt} (exit {code})",
        "cicd gate skipped (no script configured)",
    ),
}
_ALWAYS = {"terminal": "terminal sink reached", "gate.approval": "approved"}
LEADS_TO = "leads_to"  # of a terminal: what its manifest says follows


class Decision:
    """The outcome of a node: its exit code, a line for people, why it failed, and the outputs that
    it sets."""

    def __init__(
        self,
        code: int,
        words: str,
        classes: Sequence[str] = (),
        outputs: Mapping[str, Any] | None = None,
        parks: Mapping[str, Any] | None = None,
    ) -> None:
        self.code = code
        self.words = words
        self.classes = classes
        self.outputs = outputs or {}
        self.parks = parks or {}  # what its agent met that holds for all jobs of the runner


def main() -> NoReturn:
    """The command line ends with `__workflow-node --job-id N`."""
    run_node(sys.argv[-1])


def run_node(job: str) -> NoReturn:
    """Do the work of this job, if this is its main process; the exit code is the decision."""
    job = job.removeprefix("job-")
    claim = claim_of(job, os.environ)
    if claim is None:
        sys.stderr.write(f"headway: job-{job} does not run here\n")
        sys.exit(EXIT_ELSEWHERE)
    folder, token = os.path.dirname(os.environ["HEADWAY_OUTPUTS"]), os.environ["HEADWAY_CLAIM"]
    decision = decide(claim["node"])
    for name, value in decision.outputs.items():
        _append_output(name, value)
    if decision.words:
        sys.stdout.write(f"{decision.words}\n")
        sys.stdout.flush()
    if decision.words:
        verdict = {"error": decision.words, "classes": list(decision.classes), **decision.parks}
        leave_verdict(folder, token, verdict)
    sys.exit(decision.code)


def claim_of(job: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The claim of this job whose main process this is; None: it is not."""
    token, outputs = environ.get("HEADWAY_CLAIM"), environ.get("HEADWAY_OUTPUTS")
    if token is None or outputs is None or environ.get("HEADWAY_JOB_ID") != f"job-{job}":
        return None
    try:
        with open(f"{os.path.dirname(outputs)}/claim.{token}", encoding="utf-8") as file:
            claim: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return None
    return claim if "node" in claim else None


def decide(node: Mapping[str, Any]) -> Decision:
    """What a gate decides by its command, or an operation comes to."""
    policy = node["operation"]
    if policy == "terminal" and node["args"].get(LEADS_TO):
        return Decision(EXIT_FAILED, "terminal policy node must not declare outgoing routes")
    if policy in _ALWAYS:
        return Decision(0, _ALWAYS[policy])
    if policy in _WORDS:
        return _gate(node, *_WORDS[policy])
    return _operation(node)


def _gate(node: Mapping[str, Any], passed: str, failed: str, skipped: str) -> Decision:
    if node["command"] is None:
        return Decision(0, skipped)
    code = run_command(node["command"])
    words = failed if code else passed
    return Decision(EXIT_FAILED if code else 0, words.format(attempt=node["attempt"], code=code))


def _operation(node: Mapping[str, Any]) -> Decision:
    from headway.base.errors import HeadwayError
    from headway.integrations.git.program import HOST_ERRNOS, GitError
    from headway.workflows.operations import operation_of
    from headway.workflows.operations.model import BlockedError, FailedError, NodeTask, ParkedError

    try:
        done = operation_of(node["operation"])(NodeTask(**node))
    except BlockedError as error:
        return Decision(EXIT_BLOCKED, str(error), [BLOCKED], error.outputs)
    except ParkedError as error:
        return Decision(EXIT_FAILED, str(error), parks=error.parks)
    except FailedError as error:
        return Decision(EXIT_FAILED, str(error), (), error.outputs)
    except GitError as error:
        if error.of_host:
            return Decision(EXIT_HOST, str(error), [HOST])
        return Decision(EXIT_FAILED, str(error))
    except HeadwayError as error:
        return Decision(EXIT_FAILED, str(error))
    except OSError as error:
        words = f"{node['operation']}: {error.filename or 'it failed'}: {error.strerror}"
        if error.errno in HOST_ERRNOS:
            return Decision(EXIT_HOST, words, [HOST])
        return Decision(EXIT_FAILED, words)
    return Decision(0, done.summary, (), done.outputs)


def _append_output(name: str, value: Any) -> None:
    """A text that has no line break as it is, all else as JSON."""
    plain = isinstance(value, str) and not {"\n", "\r"} & set(value)
    if plain:
        line = f"{name}={as_text(value)}"
    else:
        line = f"{name}:={json.dumps(value, ensure_ascii=False)}"
    with open(os.environ["HEADWAY_OUTPUTS"], "a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def leave_verdict(folder: str, token: str, verdict: Mapping[str, Any]) -> None:
    path = os.path.join(folder, f"verdict.{token}")
    with open(path, "x", encoding="utf-8") as file:
        json.dump(verdict, file)
