"""Whether the runners of agent jobs can be used here."""

import os
from collections.abc import Iterator

from headway.admin.doctor.finding import GREEN, RED, YELLOW, CheckedHome, Finding
from headway.integrations.agents.files import is_builtin
from headway.jobs.views.runners import SeenRunner, all_runners, default_path

PATH_STEP = 'set PATH in [env] of config.toml, as in PATH = "/home/me/.local/bin:/usr/bin:/bin"'


def runners(place: CheckedHome) -> Iterator[Finding]:
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
            detail = f"{each.name} is not installed: no program {each.program!r} on PATH"
            yield Finding("runners", YELLOW, detail, f"install it, or {PATH_STEP}")
        elif _chosen(each, place) and each.found and not each.alone:
            detail = f"{each.found} is not on the PATH of jobs that nobody submits"
            yield Finding("runners", YELLOW, detail, PATH_STEP)
    if not wrong:
        here = [each.name for each in seen if each.found]
        yield Finding("runners", GREEN, f"installed: {', '.join(here) or 'none'}")


def _chosen(seen: SeenRunner, place: CheckedHome) -> bool:
    """Whether someone here means to use it."""
    own = seen.runner is not None and not is_builtin(seen.runner.path)
    usual = "agent.runner" in place.config.values and place.config["agent.runner"] == seen.name
    return own or usual
