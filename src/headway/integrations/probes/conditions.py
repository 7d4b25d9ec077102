"""Registered preconditions: a command of the configuration, or a function of an installed package.

`[conditions]` in config.toml maps a name to a command that succeeds while the condition holds. A
package registers a function by the entry point group `headway.conditions`; it is called without
arguments in a process of its own and returns whether the condition holds. Either may take
`SECONDS`; what takes longer, fails or raises does not hold, and says why. Nothing of it
outlives who asked.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence

from headway.base import tether
from headway.base.programs import end, ended
from headway.core.facts import Answer

SECONDS = 10.0
AT_LATEST = 5.0  # later than that it ends by itself, if nobody else has ended it
GROUP = "headway.conditions"
_CALL = (
    "import sys; from importlib.metadata import entry_points; "
    "[entry] = entry_points(group=sys.argv[1], name=sys.argv[2]); "
    "sys.exit(0 if entry.load()() else 1)"
)


def ask(name: str, folder: str, commands: Mapping[str, Sequence[str]]) -> Answer:
    """Whether the condition holds now, seen from this folder."""
    if name in commands:
        return _run(name, [str(word) for word in commands[name]], folder)
    if _registered(name):
        return _run(name, [sys.executable, "-P", "-c", _CALL, GROUP, name], folder)
    return Answer(trouble=f"unknown custom precondition {name}", final=True)


def _registered(name: str) -> bool:
    from importlib.metadata import entry_points

    return len(entry_points(group=GROUP, name=name)) == 1


def _run(name: str, argv: Sequence[str], folder: str) -> Answer:
    try:
        process = tether.start(
            argv,
            seconds=SECONDS + AT_LATEST,
            cwd=folder or None,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        return Answer(trouble=f"condition {name} cannot be asked: {error.strerror}")
    try:
        done = ended(process, SECONDS)
        trouble = tether.why_not_started(process) if done else None
    finally:
        end(process)
    if trouble is not None:
        return Answer(trouble=f"condition {name} cannot be asked: {trouble}")
    if not done:
        return Answer(trouble=f"condition {name} took longer than {SECONDS:g} s")
    return Answer(name if process.returncode == 0 else None)
