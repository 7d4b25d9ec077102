"""Everything that Headway does with the `git` program; needs no store and weighs little.

`program` starts it safely, `looking` asks without changing anything, `worktrees` gives a job its
own checkout and takes it back, `patches` writes down what a checkout holds.
"""

import sys
from collections.abc import Mapping

from headway.base.source import SOURCE

_MAIN = f"import sys; sys.path.insert(0, {SOURCE!r}); from {{module}} import main; main()"


def command(
    verb: str, request: Mapping[str, object], *, module: str = "headway.integrations.git.__main__"
) -> list[str]:
    """The command line of the small process that does this one thing (`__main__.py`, or the main
    module of another part that runs its verbs in the same way).

    Isolated, so that neither the job's environment nor its directory decides what is imported, and
    without `site`, which costs more than the rest: so the way to the package is given along.
    """
    import json

    main = _MAIN.format(module=module)
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", main, verb, json.dumps(request)]
