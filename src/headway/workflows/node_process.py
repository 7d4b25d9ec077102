"""The process of a gate: it decides by its command, if it has one, and says why.

It reads all that it needs from the claim, and opens no store. Its exit code is the decision, and
what it leaves in `verdict.T` is the reason. Standard library and `base` only: it starts for every
gate.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

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


def main() -> None:
    folder, token = sys.argv[1], os.environ["HEADWAY_CLAIM"]
    with open(os.path.join(folder, f"claim.{token}"), encoding="utf-8") as file:
        node = json.load(file)["node"]
    code, words = decide(node)
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()
    if code:
        leave_verdict(folder, token, words)
    sys.exit(code)


def decide(node: Mapping[str, Any]) -> tuple[int, str]:
    """The exit code of a gate, and what it says."""
    if node["policy"] in _ALWAYS:
        return 0, _ALWAYS[node["policy"]]
    passed, failed, skipped = _WORDS[node["policy"]]
    if node["command"] is None:
        return 0, skipped
    code = run_command(node["command"])
    words = failed if code else passed
    return (1 if code else 0), words.format(attempt=node["attempt"], code=code)


def run_command(argv: list[str]) -> int:
    """The exit code of a command; one that a signal ended has 128 and its number."""
    try:
        code = subprocess.run(argv, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        return 127
    return 128 - code if code < 0 else code


def leave_verdict(folder: str, token: str, words: str) -> None:
    path = os.path.join(folder, f"verdict.{token}")
    with open(path, "x", encoding="utf-8") as file:
        json.dump({"error": words, "classes": []}, file)
