"""A runner whose program is a small script of the test, for agents in workflow runs."""

import json
from pathlib import Path
from typing import Any

from harness import Bench

RUNNER = """
argv = ["fake", "--model={model}", "--turns={max_turns}", "--tools={allowed_tools}"]
prompt = "stdin"
parser = "jsonl"
"""


def install(bench: Bench, script: str, *, name: str = "fake", more: str = "") -> None:
    """A runner of that name: its prompt is in the variable `PROMPT` of the shell `script`."""
    programs = bench.folder / "programs"
    programs.mkdir(exist_ok=True)
    program = programs / name
    program.write_text(f"#!/bin/sh\nPROMPT=$(cat)\n{script}\n")
    program.chmod(0o755)
    folder = Path(bench.home.path) / "runners"
    folder.mkdir(exist_ok=True)
    text = RUNNER.replace('"fake"', f'"{program}"')
    (folder / f"{name}.toml").write_text(text + more)


def result(**fields: Any) -> str:
    """A line of shell that prints the last line of a stream."""
    line = json.dumps({"type": "result", **fields}).replace("'", "'\\''")
    return f"printf '%s\\n' '{line}'"
