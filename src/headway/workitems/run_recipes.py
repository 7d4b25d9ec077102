"""The recipe of an item that is slung to a target with a workflow: a run, whose parameters are
filled in with what the item has.

A file is read once for all items of a sling, so that all their runs are of one text.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from headway.base.errors import HeadwayError
from headway.core.subjects import SLING
from headway.core.targets import KNOWN, Target, filled, placeholders
from headway.jobs.context import Context
from headway.workflows.compiler import free_params
from headway.workflows.model import MISSING, Param, Workflow, WorkflowFile
from headway.workflows.nodes import RunPlace
from headway.workflows.prepared import PreparedRun, checked_workflow, prepare_at, read_trusted
from headway.workflows.start import RunRequest, place_of


class RunRecipe(NamedTuple):
    """The workflow of a target, read once."""

    target: Target
    file: WorkflowFile
    workflow: Workflow

    @property
    def params(self) -> Mapping[str, Param]:
        """Those that may be given."""
        return free_params(self.workflow)

    @property
    def asks_for(self) -> frozenset[str]:
        """The names that it has a place for."""
        return frozenset(self.params) | placeholders(self.target.params.values())

    def optional(self, name: str) -> bool:
        """Whether the target or the file says what it is if nobody does."""
        if name in placeholders(self.target.params.values()):
            return False
        return name in self.target.params or self.params[name].default is not MISSING


def read_recipes(
    context: Context, targets: Iterable[Target]
) -> tuple[dict[str, RunRecipe], dict[str, HeadwayError]]:
    """The recipes of those targets that have a workflow, and what is wrong with those that cannot
    be read, by the names of the targets."""
    found: dict[str, RunRecipe] = {}
    broken: dict[str, HeadwayError] = {}
    place = _place(context)
    for target in {each.name: each for each in targets if each.workflow is not None}.values():
        try:
            file = read_trusted(context.home, target.workflow or "")
            found[target.name] = RunRecipe(target, file, checked_workflow(place, file))
        except HeadwayError as error:
            broken[target.name] = error
    return found, broken


def prepared_run(
    context: Context,
    recipe: RunRecipe,
    filling: Mapping[str, str],
    variables: Collection[str],
    record: Mapping[str, Any],
    priority: int,
) -> PreparedRun:
    """The run as it would be. `filling` has the values by their names, those of the sling
    (`variables`) among them; each job of the run keeps `record`."""
    fixed = recipe.target.params
    given = dict(zip(fixed, filled(fixed.values(), filling), strict=True))
    for name in recipe.params:
        known = name in variables or (name in KNOWN and name not in fixed)
        if known and (filling[name] or not recipe.optional(name)):
            given[name] = filling[name]
    request = RunRequest(
        params=given,
        priority=priority,
        subject=filling["subject"],
        target=recipe.target.name,
    )
    prepared = prepare_at(_place(context), recipe.file, request)
    specs = (spec._replace(params={**spec.params, SLING: record}) for spec in prepared.specs)
    return prepared._replace(specs=tuple(specs))


def _place(context: Context) -> RunPlace:
    """In the folder of the project, with the environment of who slings."""
    return place_of(context)._replace(folder=os.path.dirname(context.home.path))
