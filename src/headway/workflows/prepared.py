"""Runs that no person starts: of a schedule, of an entry of the jobs file, of a slung work item.

The file counts as it is when the run is made. It is read and compiled, and the run is made, within
one transaction; what is wrong is raised before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headway.base.environment import MINIMAL_PATH
from headway.core.model import JobSpec
from headway.jobs.settings import store_setting
from headway.workflows.compiler import check_given, check_text, free_params, refuse_unknown
from headway.workflows.files import ENDING, read_file, refuse_untrusted
from headway.workflows.model import MISSING
from headway.workflows.nodes import RunPlace, specifications
from headway.workflows.start import RunRequest, StartedRun, add_run, compile_at, imported

if TYPE_CHECKING:
    from headway.base.home import Home
    from headway.jobs.insert import Origin
    from headway.jobs.settings import Config
    from headway.store.transaction import ReadTx, WriteTx
    from headway.workflows.mistakes import Mistakes
    from headway.workflows.model import Manifest, Workflow, WorkflowFile


_OF_NOBODY = "jobs of schedules have the PATH of [env] in config.toml"


class PreparedRun(NamedTuple):
    """A run that is checked, and ready to be added."""

    manifest: Manifest
    specs: Sequence[JobSpec]
    request: RunRequest


def prepare_run(
    tx: ReadTx, home: Home, config: Config, workflow: str, request: RunRequest
) -> PreparedRun:
    """Its jobs run in the project's folder with the environment of `[env]`; programs are looked for
    when they start."""
    place = _place(tx, home, config)
    return prepare_at(place, read_trusted(home, workflow), request)


def check_programs(
    tx: ReadTx, home: Home, config: Config, workflow: str, request: RunRequest
) -> None:
    """Raises with all that is wrong with a run that nobody's shell starts, also programs that are
    not on the PATH of its jobs."""
    environ = {"PATH": MINIMAL_PATH, **config.env}
    place = _place(tx, home, config)._replace(environ=environ, check=True, remedy=_OF_NOBODY)
    prepare_at(place, read_trusted(home, workflow), request)


def prepare_at(place: RunPlace, file: WorkflowFile, request: RunRequest) -> PreparedRun:
    manifest = compile_at(place, file, request)
    return PreparedRun(manifest, tuple(specifications(place, manifest)), request)


def read_trusted(home: Home, workflow: str) -> WorkflowFile:
    """The file as it is now; a path counts from the project's folder."""
    file = read_file(home, workflow, os.path.dirname(home.path))
    refuse_untrusted(home, file)
    return file


def check_run(
    tx: ReadTx,
    home: Home,
    config: Config,
    workflow: str,
    given: Mapping[str, str],
    later: Collection[str],
) -> Workflow:
    """Check a run that is prepared later, when all its parameters are known: those of `later`, and
    perhaps others. Raises with all that can be wrong before that."""
    file, place = read_trusted(home, workflow), _place(tx, home, config)
    written, problems = _checked(place, file)
    refuse_unknown(written, later, problems)
    check_given(written, given, problems)
    problems.raise_if_any()
    free = free_params(written).items()
    if all(name in given or param.default is not MISSING for name, param in free):
        prepare_at(place, file, RunRequest(params=given))
    return written


def checked_workflow(place: RunPlace, file: WorkflowFile) -> Workflow:
    """The workflow, before it has parameters; raises with all that is wrong."""
    written, problems = _checked(place, file)
    problems.raise_if_any()
    return written


def _checked(place: RunPlace, file: WorkflowFile) -> tuple[Workflow, Mistakes]:
    load = partial(imported, place)
    return check_text(file.text, name=file.name, file=file.path, limit=place.limit, load=load)


def _place(tx: ReadTx, home: Home, config: Config) -> RunPlace:
    limit = int(store_setting(tx.settings.all(), "scheduler.graph_limit"))
    return RunPlace(home, config, os.path.dirname(home.path), {}, tx.now(), limit, check=False)


def add_prepared(tx: WriteTx, prepared: PreparedRun, origin: Origin) -> StartedRun:
    return add_run(tx, prepared.manifest, prepared.specs, prepared.request, origin)


def kept_name(workflow: str, folder: str) -> str:
    """How a workflow is written down that is read later: a path becomes a whole one."""
    is_path = "/" in workflow or workflow.endswith(ENDING)
    return os.path.abspath(os.path.join(folder, workflow)) if is_path else workflow
