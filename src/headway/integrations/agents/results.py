"""The results that the wrapper of an agent job wrote, read back for people."""

import json
from typing import Any

from headway.supervise.folder import Folder

NAME = "result.json"
LARGEST = 1 << 20


def read_result(folder: str) -> dict[str, Any] | None:
    """The result in a job's folder; None if there is none, or none that can be read."""
    try:
        with Folder(folder) as opened:
            result = json.loads(opened.read(NAME, most=LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return result if isinstance(result, dict) else None
