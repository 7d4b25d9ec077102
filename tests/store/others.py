"""Other processes: what a test needs of them to be real, not threads."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"

PRELUDE = """
import sys
from headway.base.clock import SystemClock
from headway.base.errors import HeadwayError
from headway.store import open_store
from stocked import *

def opened(url=None, create=True):
    url = url or sys.argv[1]
    return open_store(url if "://" in url else f"sqlite://{url}", SystemClock(), create=create)
"""

TELL = """
def tell(act):
    try:
        act()
    except HeadwayError as error:
        print(type(error).__name__, error.exit_code, flush=True)
    else:
        print("ok", flush=True)
"""


def another(
    script: str,
    *arguments: object,
    environ: Mapping[str, str] | None = None,
) -> "subprocess.Popen[str]":
    """Start a Python process that has `opened(path or URL)` and `tell(act)`."""
    here = Path(__file__).parent
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + TELL + script, *map(str, arguments)],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{SOURCES}:{here}",
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environ or {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def words(process: "subprocess.Popen[str]", *, say: str | None = None) -> list[str]:
    """Wait for its end and give what it printed; anything on stderr fails the test."""
    out, err = process.communicate(say, timeout=60)
    assert err == "", err
    return out.splitlines()
