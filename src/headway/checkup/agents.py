"""Whether the runners of agent jobs can be used here."""

import os
from collections.abc import Iterator

from headway.checkup.finding import GREEN, RED, YELLOW, Finding, Place
from headway.runners.files import is_builtin
from headway.runners.looking import Seen, all_runners, default_path

PATH_STEP = 'set PATH in [env] of config.toml, as in PATH = "/home/me/.local/bin:/usr/bin:/bin"'


def runners(place: Place) -> Iterator[Finding]:
    """One finding for all that is well; a runner that nobody chose may be missing."""
    seen = all_runners(place.home.path, place.config, default_path(os.environ))
    wrong = [each for each in seen if each.error]
    for each in wrong:
        yield Finding("runners", RED, each.error or each.name, "correct the file")
    usual = place.config["agent.runner"]
    if "agent.runner" in place.config.values and not any(each.name == usual for each in seen):
        yield Finding(
            "runners", RED, f"agent.runner is {usual!r}, which is no runner", "headway runners list"
        )
    for each in seen:
        if _chosen(each, place) and each.program and not each.found:
            told = f"{each.name} is not installed: no program {each.program!r} on PATH"
            yield Finding("runners", YELLOW, told, f"install it, or {PATH_STEP}")
        elif _chosen(each, place) and each.found and not each.alone:
            told = f"{each.found} is not on the PATH of jobs that nobody submits"
            yield Finding("runners", YELLOW, told, PATH_STEP)
    if not wrong:
        here = [each.name for each in seen if each.found]
        yield Finding("runners", GREEN, f"installed: {', '.join(here) or 'none'}")


def _chosen(seen: Seen, place: Place) -> bool:
    """Whether someone here means to use it."""
    own = seen.runner is not None and not is_builtin(seen.runner.path)
    usual = "agent.runner" in place.config.values and place.config["agent.runner"] == seen.name
    return own or usual
