"""Which runners there are here, and whether their programs are."""

import os
import shutil
from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.base.environment import MINIMAL_PATH
from headway.base.errors import HeadwayError, InvalidInputError, NotFoundError
from headway.integrations.agents.command_line import program_of
from headway.integrations.agents.files import is_builtin, load_runner, runner_names, runner_path
from headway.integrations.agents.model import Runner
from headway.jobs.context import Context
from headway.jobs.runners import parked_runners
from headway.jobs.settings import Config

VERSION_SECONDS = 15.0


class SeenRunner(NamedTuple):
    """One runner as it stands here. `found` is where a submitter's PATH has its program, `alone`
    where that of jobs has it that nobody submitted."""

    name: str
    path: str | None
    runner: Runner | None
    error: str | None
    program: str | None
    found: str | None
    alone: str | None


def runners(context: Context) -> list[dict[str, Any]]:
    path = default_path(context.environ)
    parked = parked_now(context)
    found = all_runners(context.home.path, context.config, path)
    return [runner_document(each, parked=parked.get(each.name)) for each in found]


def parked_now(context: Context) -> dict[str, dict[str, Any]]:
    """Those whose jobs wait, by their names."""
    with context.store.read() as tx:
        return parked_runners(tx)


def runner(context: Context, name: str) -> dict[str, Any]:
    """One that counts here, and what its program says of its version."""
    found = one_runner(name, context.home.path, context.config, context.environ)
    return {**found, "parked": parked_now(context).get(name)}


def one_runner(
    name: str, home_path: str, config: Config, environ: Mapping[str, str]
) -> dict[str, Any]:
    if name not in runner_names(home_path):
        load_runner(name, home_path)  # says why it does not count, if it is there
        there = ", ".join(runner_names(home_path))
        raise NotFoundError(f"there is no runner {name!r}; there are {there}")
    seen = look_at_runner(name, home_path, config, default_path(environ))
    if seen.runner is None:
        raise InvalidInputError(seen.error or name)
    return runner_document(seen, version_of(seen.runner, environ) if seen.found else None)


def look_at_runner(name: str, home_path: str, config: Config, path: str) -> SeenRunner:
    file = runner_path(name, home_path)
    try:
        runner = load_runner(name, home_path)
    except HeadwayError as error:
        return SeenRunner(name, file, None, str(error), None, None, None)
    program = program_of(runner, ())
    if not program:  # any program
        return SeenRunner(name, file, runner, None, None, None, None)
    own = runner.env.get("PATH")
    without = config.env.get("PATH") or own or MINIMAL_PATH
    found, alone = (shutil.which(program, path=each) for each in (own or path, without))
    return SeenRunner(name, file, runner, None, program, found, alone)


def all_runners(home_path: str, config: Config, path: str) -> list[SeenRunner]:
    return [look_at_runner(each, home_path, config, path) for each in runner_names(home_path)]


def version_of(runner: Runner, environ: Mapping[str, str]) -> str | None:
    """The version that its program prints; None if it prints none in time."""
    if not runner.version_command:
        return None
    import subprocess

    from headway.base.programs import run_program

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
        result = run_program(start, VERSION_SECONDS)
    except OSError:
        return None
    lines = result.out.decode(errors="replace").split("\n") if result and not result.code else []
    said = next((line.strip() for line in lines if line.strip()), None)
    return "".join(char for char in said if char.isprintable())[:200] if said else None


def runner_document(
    seen: SeenRunner, version: str | None = None, parked: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    runner = seen.runner
    return {
        "name": seen.name,
        "built_in": seen.path is not None and is_builtin(seen.path),
        "file": seen.path,
        "error": seen.error,
        "program": seen.program,
        "found": seen.found,
        "found_without_submitter": seen.alone,
        "parked": parked,
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
