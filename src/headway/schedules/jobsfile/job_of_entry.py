"""The job that an entry makes, as a specification. Raises InvalidInputError if it cannot be made
now: its program is not there, its runner is not installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headway.base.environment import MINIMAL_PATH
from headway.base.home import Home
from headway.core.model import JobSpec
from headway.core.periodic import Timing
from headway.jobs.request import Request
from headway.jobs.settings import SETTINGS, Config
from headway.jobs.specification import specify
from headway.schedules.jobsfile.model import AGENT, POLL_FILE, SCRIPT, SKIP_CODE, Entry

if TYPE_CHECKING:
    from headway.store.transaction import ReadTx
    from headway.workflows.prepared import PreparedRun
    from headway.workflows.start import RunRequest

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


def run_of(tx: ReadTx, entry: Entry, home: Home, config: Config) -> PreparedRun:
    """The run that an entry of a workflow starts, by the file as it is now."""
    from headway.workflows.prepared import prepare_run

    return prepare_run(tx, home, config, entry.workflow or "", _request(entry))


def check_workflow(entry: Entry, home: Home, config: Config) -> None:
    """Raise with all that is wrong with its workflow now."""
    from headway.workflows.files import read_file
    from headway.workflows.nodes import RunPlace
    from headway.workflows.start import compile_at

    folder = os.path.dirname(home.path)
    file = read_file(home, entry.workflow or "", folder)
    limit = int(SETTINGS["scheduler.graph_limit"].default)
    compile_at(RunPlace(home, config, folder, {}, 0, limit, check=False), file, _request(entry))


def _request(entry: Entry) -> RunRequest:
    from headway.workflows.start import RunRequest

    params = dict(each.split("=", 1) for each in entry.params)
    return RunRequest(params=params, priority=entry.priority, schedule_id=entry.schedule_id)


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
