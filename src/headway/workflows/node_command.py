"""The command of a gate, or of an operation that a command decides."""

import subprocess
import sys


def run_command(argv: list[str], *, cwd: str | None = None) -> int:
    """The exit code of a command; one that a signal ended has 128 and its number."""
    try:
        code = subprocess.run(argv, check=False, cwd=cwd).returncode
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        return 127
    return 128 - code if code < 0 else code
