"""The small process that a supervisor runs before a job, to make its worktree, and after it, to
save its patch: `headway.integrations.git.command(verb, request)` gives its command line.

    worktree-make  {"repo", "path", "branch", "base", "owner", "wait_seconds"?}
    note-base      {"root", "to"}
    save-patch     {"root", "base" or "base_from", "to", "limit_bytes"?}

Exit 0; 1 with one line on standard error; 75 with one line if it is the host's trouble (a full
disk, too many open files), so that no job is blamed for it.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from headway.base.errors import HeadwayError
from headway.integrations.git.program import HOST_ERRNOS

OF_HOST = 75


def main() -> NoReturn:
    run(VERBS)


def run(verbs: Mapping[str, "Verb"]) -> NoReturn:
    """Do the one thing that the command line asks for, and say in the exit code what came of it."""
    # Ends by an exception, so that a git at work is ended with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        verb, request = sys.argv[1:]
        verbs[verb](json.loads(request))
    except (HeadwayError, OSError) as error:
        say(str(error))
        sys.exit(OF_HOST if getattr(error, "errno", None) in HOST_ERRNOS else 1)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        say(f"not a request for headway.integrations.git: {error!r}")
        sys.exit(1)
    sys.exit(0)


def make_worktree(request: Mapping[str, Any]) -> None:
    from headway.integrations.git.lock import WAIT_SECONDS
    from headway.integrations.git.worktrees import Worktree, make

    worktree = Worktree(request["repo"], request["path"], request["branch"], request["base"])
    make(worktree, request["owner"], wait_seconds=request.get("wait_seconds", WAIT_SECONDS))


def note_base(request: Mapping[str, Any]) -> None:
    """Write down what is checked out, for a later `save-patch` with this file as `base_from`."""
    from headway.integrations.git.patches import base_of

    with open(request["to"], "w", encoding="ascii", opener=_private) as file:
        file.write(f"{base_of(request['root'])}\n")


def save(request: Mapping[str, Any]) -> None:
    from headway.integrations.git.patches import LIMIT_BYTES, save_patch

    limit_bytes = request.get("limit_bytes", LIMIT_BYTES)
    base = request["base"] if "base" in request else _noted(request["base_from"])
    save_patch(request["root"], base, request["to"], limit_bytes)


def _noted(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read(100).strip()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


Verb = Callable[[Mapping[str, Any]], None]
VERBS: Mapping[str, Verb] = {
    "worktree-make": make_worktree,
    "note-base": note_base,
    "save-patch": save,
}


def say(words: str) -> None:
    print(" ".join(words.split()), file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
