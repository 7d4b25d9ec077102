"""What a shell offers for an unfinished word: jobs, templates, settings, runners and other names.

Loaded only when a shell asks. It reads what is there and makes nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import click
from click.shell_completion import CompletionItem

from headway.base.errors import ConflictError, HeadwayError
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.model import shown
from headway.core.states import API_STATUS, Status
from headway.jobs.settings import SETTINGS

Named = Iterator[tuple[str, str]]  # a word, and a few about it


def _jobs(client: Client) -> Named:
    """By id, the newest first; then by slug, each for the job that it stands for."""
    newest = client.jobs.list(everything=False, limit=None).documents[::-1]
    for each in newest:
        yield each["id"], f"{each['state']}: {each['name']}"
    for slug in dict.fromkeys(each["slug"] for each in newest if each["slug"]):
        with suppress(ConflictError):  # of several active jobs: it stands for none
            yield slug, shown(client.jobs.find(slug))


def _groups(client: Client) -> Named:
    for each in client.groups.list():
        yield each["id"], f"{each['status']} {each['name'] or ''}".strip()


def _templates(client: Client) -> Named:
    for each in client.templates.list():
        yield each["name"], "a template"


def _schedules(client: Client) -> Named:
    for each in client.schedules.list():
        yield each["name"] or each["id"], "a schedule"


def _targets(client: Client) -> Named:
    for each in client.targets.list():
        yield each.name, "a target"


def _runners(client: Client) -> Named:
    for each in client.runners.list():
        yield each["name"], "a runner"


def _webhooks(client: Client) -> Named:
    for each in client.webhooks.list():
        yield each["name"], each["origin"]


def _deliveries(client: Client) -> Named:
    """The newest first; those that are pending are sent anyway."""
    for state in ("failed", "delivered"):
        for each in client.webhooks.deliveries(state=state):
            yield each["id"], f"{state}: {each['type']} {each['job'] or ''}".strip()


def _workflows(client: Client) -> Named:
    for each in client.workflows.list():
        yield each["name"], each["description"] or "a workflow"


def _workflow_runs(client: Client) -> Named:
    """The newest first."""
    for each in client.workflows.runs():
        yield each["id"], f"{each['state']}: {each['workflow']}"


def _jobs_and_runs(client: Client) -> Named:
    yield from _workflow_runs(client)
    yield from _jobs(client)


def _workflows_and_runs(client: Client) -> Named:
    yield from _workflows(client)
    yield from _workflow_runs(client)


def _settings(client: Client) -> Named:
    for each in SETTINGS.values():
        yield each.key, each.about


def _states(client: Client) -> Named:
    for each in Status:
        yield each.value, f"shown as {API_STATUS[each]} by the API"


def _statuses(client: Client) -> Named:
    for each in sorted(set(API_STATUS.values())):
        yield each, "a status of the API"


Find = Callable[[Client], Named]

# Options by their name, and arguments by what the help calls them.
_OF_OPTIONS: Mapping[str, Find] = {
    "after": _jobs_and_runs,
    "before": _jobs,
    "job": _jobs,
    "template": _templates,
    "runner": _runners,
    "group": _groups,
    "target": _targets,
    "workflow": _workflows,
    "run": _workflow_runs,
    "state": _states,
    "status": _statuses,
}
_OF_ARGUMENTS: Mapping[str, Find] = {
    "JOB": _jobs,
    "JOB|RUN": _jobs,
    "JOB|wf-N": _jobs_and_runs,
    "NAME|wf-N": _workflows_and_runs,
    "GROUP": _groups,
    "KEY": _settings,
    "DELIVERY": _deliveries,
}
# A NAME is of the noun that the command belongs to.
_OF_NOUNS: Mapping[str, Find] = {
    "templates": _templates,
    "targets": _targets,
    "runners": _runners,
    "schedules": _schedules,
    "webhooks": _webhooks,
    "workflows": _workflows,
}
_NEW = ("add", "init")  # verbs whose NAME is not there yet


def offer_candidates(path: str, command: click.Command) -> None:
    """Let each parameter of the command offer what it could be."""
    for parameter in command.params:
        find = _finder(path, parameter)
        if find is not None:
            # Each parameter has this method; ours takes the place of the one that offers nothing.
            setattr(parameter, "shell_complete", partial(_offered, find))  # noqa: B010


def _finder(path: str, parameter: click.Parameter) -> Find | None:
    if isinstance(parameter.type, click.Choice):
        return None  # it offers its own words
    if isinstance(parameter, click.Option):
        return _OF_OPTIONS.get(parameter.name or "")
    if path == "run" and parameter.name == "name":
        return _workflows
    word = (parameter.metavar or "").strip("[]").removesuffix("...").strip().strip("[]")
    noun, _, verb = path.rpartition(" ")
    if word == "RUN" and noun == "workflows":
        return _workflow_runs
    if word == "NAME":
        return None if verb in _NEW else _OF_NOUNS.get(noun)
    return _OF_ARGUMENTS.get(word)


def _offered(find: Find, context: click.Context, incomplete: str) -> list[CompletionItem]:
    given = context.find_root().params
    scope = Scope(given.get("home"), given.get("store"), given.get("actor"))
    scope.be_quiet()
    try:
        client = scope.connect_or_nothing()
        named = list(find(client))
    except HeadwayError:
        return []  # a shell has no place to show why, and the command itself will say it
    return [
        CompletionItem(word, help=about) for word, about in named if word.startswith(incomplete)
    ]
