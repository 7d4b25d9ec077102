"""Values that a shell would run: references in the script of `sh -c` in a node's command. Pure.

No way of quoting helps there, as in `shell`: the place in the script decides which quotes are open.
A value goes into `env`, or is an argument of the script.
"""

from collections.abc import Sequence
from typing import Any

from headway.base.shells import scripts
from headway.workflows.references import OPEN

REFUSED = "shell takes no ${{ }}, because the shell would run the value; put it into env"


def runs_value(written: Sequence[Any], filled: Sequence[Any] | None = None) -> bool:
    """Whether a shell would run what a reference of this command stands for. `filled` is the
    command with its values, because a value may be the shell."""
    words = written if filled is None else filled
    return any(OPEN in str(written[place]) for place in scripts([str(word) for word in words]))
