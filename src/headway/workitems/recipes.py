"""The recipe of a slung item: the command or workflow of its target, or a template, with its values
filled in.

It is checked as a whole. What could never run is refused before anything is written."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.errors import InvalidInputError
from headway.core.model import NOTHING, JobSpec
from headway.core.subjects import RECORDED, SLING, Item, wrong_value
from headway.core.targets import KNOWN, Target, filled, placeholders
from headway.integrations.trackers import SourcePlace
from headway.jobs.context import Context
from headway.jobs.request import Request
from headway.jobs.specification import LONGEST_NAME, parse_lock, specify
from headway.store.records import Template
from headway.workitems.targets import refuse_code, request_for

if TYPE_CHECKING:
    from headway.workflows.prepared import PreparedRun
    from headway.workitems.run_recipes import RunRecipe

VERSION = 1
_ARGS = "{args}"


class Values(NamedTuple):
    """The values that are filled in beside the item's own: the options of the sling."""

    args: str | None = None
    variables: Mapping[str, str] = NOTHING
    priority: int = 0
    template: Template | None = None
    runs: Mapping[str, RunRecipe] = NOTHING  # of targets with a workflow, by their names

    def asked_by(self, target: Target) -> frozenset[str]:
        """The names that the recipe has a place for."""
        if self.template is not None:
            return frozenset(self.template.document["params"])
        if target.name in self.runs:
            return self.runs[target.name].asks_for
        return placeholders(target.argv)

    def optional(self, name: str, target: Target) -> bool:
        """Whether the recipe says what it is if nobody does."""
        if target.name in self.runs:
            return self.runs[target.name].optional(name)
        declared = self.template.document["params"] if self.template is not None else {}
        return declared.get(name) is not None


def check_values(values: Values, targets: Collection[Target]) -> None:
    """Refuse values that are wrong whatever the item: a number out of bounds, one that the template
    needs and nobody gave, all that were given and no recipe needs, or that cannot be what they
    are."""
    wrong = ((name, wrong_value(name, value)) for name, value in values.variables.items())
    problems = [f"--var {name}: {why}" for name, why in wrong if why is not None]
    if not targets:
        _refuse(problems)
        return
    number_only = Request(argv=("true",), priority=values.priority, check=False)
    specify(number_only, environ={}, working_directory="/")
    if values.template is not None:
        _refuse_missing(values, next(iter(targets)))
    used = frozenset().union(*(values.asked_by(target) for target in targets))
    for given in values.variables:
        if given in KNOWN or given not in {*used, *RECORDED}:
            problems.append(f"--var {given}: no recipe has {{{given}}} for it")
    if values.args is not None and "args" not in used:
        problems.append("--args: no recipe has {args} for it")
    _refuse(problems)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise InvalidInputError("; ".join(problems))


def _refuse_missing(values: Values, target: Target) -> None:
    """Refuse a recipe that needs what nobody gave."""
    for missing in sorted(values.asked_by(target) - {*KNOWN, *values.variables}):
        if not values.optional(missing, target):
            template = values.template
            what = f"target {target.name}" if template is None else f"template {template.name}"
            raise InvalidInputError(
                f"the recipe of {what} has {{{missing}}}; give --var {missing}=VALUE"
            )


def specification(
    context: Context,
    item: Item,
    place: SourcePlace,
    target: Target,
    values: Values,
    found: dict[str, bool],
) -> JobSpec | PreparedRun:
    """The job, or the run, as it would be. `found` remembers which programs and folders are
    there."""
    _refuse_missing(values, target)
    filling = {
        **values.variables,
        "subject": item.id,
        "title": item.title,
        "target": target.name,
        "args": values.args or "",
    }
    record = {
        "version": VERSION,
        "source": place.source,
        "place": place.path,
        "title": item.title,
        "recipe": _recipe(values, target),
        "args": values.args,
        "vars": dict(values.variables),
    }
    if target.name in values.runs:
        from headway.workitems.run_recipes import prepared_run

        recipe = values.runs[target.name]
        return prepared_run(context, recipe, filling, values.variables, record, values.priority)
    spec = specify(
        _request(context, item, target, values, filling),
        environ=context.environ,
        working_directory=context.folder,
        found=found,
        remedy=_remedy(values, target),
        place=(context.home, context.config),
    )
    return spec._replace(params={**spec.params, SLING: record})


def _recipe(values: Values, target: Target) -> str:
    if values.template is not None:
        return f"template {values.template.name}"
    return "command" if target.workflow is None else f"workflow {target.workflow}"


def _remedy(values: Values, target: Target) -> str:
    if values.template is not None:
        return f"`headway templates add {values.template.name} --replace` changes the template"
    return f"`headway targets add {target.name} --replace` changes the recipe"


def _request(
    context: Context, item: Item, target: Target, values: Values, filling: Mapping[str, str]
) -> Request:
    name = f"{item.id}: {item.title}"[:LONGEST_NAME].rstrip(": ")
    own = {"HEADWAY_SUBJECT": item.id, "HEADWAY_TARGET": target.name}
    if values.template is not None:
        return _of_template(context, target, values, filling, name, own)
    words = [word for word in target.argv if word != _ARGS or values.args]
    refuse_code(words, filling)
    return request_for(
        context,
        target,
        filled(words, filling),
        name=name,
        subject=item.id,
        priority=values.priority,
        env={**target.env, **own},
    )


def _of_template(
    context: Context,
    target: Target,
    values: Values,
    filling: Mapping[str, str],
    name: str,
    own: Mapping[str, str],
) -> Request:
    """The template says what runs and how; where, and what it takes, is also up to the target."""
    from headway.jobs.templates import request_from_template

    template = values.template
    if template is None:
        raise InvalidInputError("there is no template to run")
    given = {
        each: filling[each]
        for each in template.document["params"]
        if each in filling and (filling[each] or not values.optional(each, target))
    }
    words: dict[str, Any] = {
        "name": name,
        "target": target.name,
        "env": {**target.env, **own},
    }
    if values.priority:
        words["priority"] = values.priority
    request = request_from_template(template, given, words, context.clock.now())
    return request._replace(
        subject=own["HEADWAY_SUBJECT"],
        cwd=request.cwd or target.cwd or os.path.dirname(context.home.path),
        resources=(*request.resources, *target.resources),
        locks=(*request.locks, *(parse_lock(each) for each in target.locks)),
    )
