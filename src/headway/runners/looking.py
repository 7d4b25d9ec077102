"""Which runners there are here, and whether their programs are."""

import os
import shutil
from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.config import Config
from headway.environment import MINIMAL_PATH
from headway.errors import HeadwayError
from headway.runners.files import is_builtin, load_runner, runner_names, runner_path
from headway.runners.filling import program_of
from headway.runners.model import Runner

VERSION_SECONDS = 15.0


class Seen(NamedTuple):
    """One runner as it stands here. `found` is where a submitter's PATH has its program, `alone`
    where that of jobs has it that nobody submitted."""

    name: str
    path: str | None
    runner: Runner | None
    error: str | None
    program: str | None
    found: str | None
    alone: str | None


def look_at_runner(name: str, home_path: str, config: Config, path: str) -> Seen:
    file = runner_path(name, home_path)
    try:
        runner = load_runner(name, home_path)
    except HeadwayError as error:
        return Seen(name, file, None, str(error), None, None, None)
    program = program_of(runner, ())
    if not program:  # any program
        return Seen(name, file, runner, None, None, None, None)
    own = runner.env.get("PATH")
    without = config.env.get("PATH") or own or MINIMAL_PATH
    found, alone = (shutil.which(program, path=each) for each in (own or path, without))
    return Seen(name, file, runner, None, program, found, alone)


def all_runners(home_path: str, config: Config, path: str) -> list[Seen]:
    return [look_at_runner(each, home_path, config, path) for each in runner_names(home_path)]


def version_of(runner: Runner, environ: Mapping[str, str]) -> str | None:
    """What its program says of its version; None if it does not say it, or not in time."""
    if not runner.version_command:
        return None
    import subprocess

    from headway.bounded import hear

    def start(given: int, out: int, err: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            runner.version_command,
            stdin=given,
            stdout=out,
            stderr=err,
            env=dict(environ),
            cwd="/",
            start_new_session=True,
        )

    try:
        heard = hear(start, VERSION_SECONDS)
    except OSError:
        return None
    lines = heard.out.decode(errors="replace").split("\n") if heard and not heard.code else []
    said = next((line.strip() for line in lines if line.strip()), None)
    return "".join(char for char in said if char.isprintable())[:200] if said else None


def runner_document(seen: Seen, version: str | None = None) -> dict[str, Any]:
    runner = seen.runner
    return {
        "name": seen.name,
        "built_in": seen.path is not None and is_builtin(seen.path),
        "file": seen.path,
        "error": seen.error,
        "program": seen.program,
        "found": seen.found,
        "found_without_submitter": seen.alone,
        "version": version,
        "tested": runner.tested or None if runner else None,
        "argv": [list(each) if isinstance(each, tuple) else each for each in runner.argv]
        if runner
        else None,
        "prompt": runner.prompt if runner else None,
        "parser": runner.parser if runner else None,
        "denials": runner.denials if runner else None,
        "env_pass": list(runner.env_pass) if runner else [],
        "env": sorted(runner.env) if runner else [],
        "defaults": dict(runner.defaults) if runner else {},
        "timeouts": {
            name: None if value is None else value / 1e6
            for name, value in runner.timeouts._asdict().items()
        }
        if runner
        else None,
    }


def default_path(environ: Mapping[str, str]) -> str:
    return environ.get("PATH", os.defpath)
