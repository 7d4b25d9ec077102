"""`python board.py` makes a small board to try the housekeeping with."""

import json
import os
from pathlib import Path
from typing import Any

GONE = 2**22 + 1  # no process has such a number
LONG_AGO = 1_000_000_000

FILES: dict[str, Any] = {
    "agents/ada.json": {"status": "running", "pid": GONE},
    "agents/ben.json": {"status": "running", "pid": 1},
    "tasks/parser.json": {"status": "done", "agent": "ada"},
    "tasks/printer.json": {"status": "claimed", "agent": "ben", "lease_until": LONG_AGO},
    "hooks/merged.json": {"says": "parser was merged"},
    "projects/compiler.json": {"status": "open", "tasks": ["parser"]},
    "projects/shell.json": {"status": "open", "tasks": ["parser", "printer"]},
    "branches.json": {"parser": "merged", "printer": "open"},
}


def make(folder: Path) -> None:
    for name, document in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    for name in ("parser", "printer"):
        tree = folder / "worktrees" / name
        tree.mkdir(parents=True)
        os.utime(tree, (LONG_AGO, LONG_AGO))


if __name__ == "__main__":
    make(Path(__file__).parent / "board")
