"""The job that an entry makes, as a specification. Raises InvalidInputError if it cannot be made
now: its program is not there, its runner is not installed."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from headway.base.environment import MINIMAL_PATH
from headway.base.home import Home
from headway.core.model import JobSpec
from headway.core.periodic import Timing
from headway.jobs.request import Request
from headway.jobs.settings import Config
from headway.jobs.specification import specify
from headway.schedules.jobsfile.model import AGENT, POLL_FILE, SCRIPT, SKIP_CODE, Entry

PATH_REMEDY = "set PATH for such jobs in [env] of config.toml"


def spec_of(entry: Entry, home: Home, config: Config, poll_file: str | None) -> JobSpec:
    """It runs in the project's folder, with `[env]` of the config and the minimal PATH."""
    common: dict[str, Any] = {
        "name": entry.name,
        "priority": entry.priority,
        "timeout": entry.timeout,
        "resources": entry.resources,
    }
    if entry.type == AGENT:
        request = _agent(entry, common)
    elif entry.type == SCRIPT:
        request = _script(entry, poll_file, common)
    else:
        request = Request(argv=entry.argv, **common)
    spec = specify(
        request,
        environ={"PATH": MINIMAL_PATH, **config.env},
        working_directory=os.path.dirname(home.path),
        remedy="it stays due" if entry.type == AGENT else PATH_REMEDY,
        place=(home, config),
    )
    return spec._replace(schedule_id=entry.schedule_id)


def timing_of(entry: Entry) -> Timing:
    if entry.cron is not None:
        from headway.schedules.timing.rules import rule_of

        return Timing(rule=rule_of({"cron": entry.cron, "timezone": entry.timezone}))
    return Timing(entry.interval or 0, entry.interval_active, entry.interval_idle)


def _script(entry: Entry, poll_file: str | None, common: Mapping[str, Any]) -> Request:
    words = (
        sys.executable,
        "-P",
        "-m",
        "headway.schedules.jobsfile.script",
        entry.name,
        entry.run or "",
    )
    env = {} if poll_file is None else {POLL_FILE: poll_file}
    return Request(argv=words, env=env, type=SCRIPT, skip_exit_codes=(SKIP_CODE,), **common)


def _agent(entry: Entry, common: Mapping[str, Any]) -> Request:
    from headway.jobs.agents import agent_request

    return agent_request(
        entry.prompt or "",
        runner=entry.runner,
        model=entry.model,
        max_turns=entry.max_turns,
        allowed_tools=entry.allowed_tools,
        **common,
    )
