"""The job that an entry makes, as a specification. Raises InvalidInputError if it cannot be made
now: its program is not there, its runner is not installed."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from headway.config import Config
from headway.core.model import JobSpec
from headway.core.periodic import Timing
from headway.environment import MINIMAL_PATH
from headway.home import Home
from headway.jobsfile.model import AGENT, SCRIPT, Entry
from headway.jobsfile.script import POLL_FILE, SKIP_CODE
from headway.submission import Request, specify


def spec_of(entry: Entry, home: Home, config: Config, poll_file: str | None) -> JobSpec:
    """It runs in the project's folder, with `[env]` of the config and the minimal PATH."""
    common: dict[str, Any] = {
        "name": entry.name,
        "priority": entry.priority,
        "timeout": entry.timeout,
        "resources": entry.resources,
    }
    if entry.type == AGENT:
        spec = _specified(_agent(entry, common), home, config)
    elif entry.type == SCRIPT:
        spec = _specified(_script(entry, poll_file, common), home, config)
    else:
        spec = _specified(Request(argv=entry.argv, **common), home, config)
    return spec._replace(schedule_id=entry.schedule_id)


def timing_of(entry: Entry) -> Timing:
    if entry.cron is not None:
        from headway.timing.rules import rule_of

        return Timing(rule=rule_of({"cron": entry.cron, "timezone": entry.timezone}))
    return Timing(entry.interval or 0, entry.interval_active, entry.interval_idle)


def _script(entry: Entry, poll_file: str | None, common: Mapping[str, Any]) -> Request:
    words = (sys.executable, "-m", "headway.jobsfile.script", entry.name, entry.run or "")
    env = {} if poll_file is None else {POLL_FILE: poll_file}
    return Request(argv=words, env=env, type=SCRIPT, skip_exit_codes=(SKIP_CODE,), **common)


def _specified(request: Request, home: Home, config: Config) -> JobSpec:
    environ = {"PATH": MINIMAL_PATH, **config.env}
    folder = os.path.dirname(home.path)
    remedy = "PATH for such jobs is set in [env] of config.toml"
    return specify(
        request,
        environ=environ,
        working_directory=folder,
        remedy=remedy,
        place=(home, config),
    )


def _agent(entry: Entry, common: Mapping[str, Any]) -> Request:
    agent = {
        "runner": entry.runner,
        "prompt": entry.prompt,
        "model": entry.model,
        "max_turns": entry.max_turns,
        "allowed_tools": list(entry.allowed_tools),
    }
    given = {word: value for word, value in agent.items() if value is not None}
    return Request(agent=given, **common)
