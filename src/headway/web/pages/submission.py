"""A form for something new: a command, a template or a workflow with its parameters."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from headway.base.errors import InvalidInputError
from headway.base.shapes import FLAG, TEXT, Schema
from headway.core.model import shown as shown_job
from headway.core.model import shown_run
from headway.web.calls import Reply, WebCall
from headway.web.handlers import collections as api
from headway.web.pages.acts import back
from headway.web.pages.page import WebPage

NEW_COMMAND: Mapping[str, Schema] = {
    "shell": TEXT,
    "name": TEXT,
    "cwd": TEXT,
    "after": TEXT,
    "priority": {"type": "integer"},
    "require_approval": FLAG,
}
NEW_OF: Mapping[str, Schema] = {"of": TEXT, "params": TEXT}


class NewPage(WebPage):
    template = "new.html"
    title = "New"
    place = "/ui/new"

    @cached_property
    def templates(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.list_templates, {"all": False})["templates"]
        return found

    @cached_property
    def workflows(self) -> Sequence[dict[str, Any]]:
        return [each for each in self.client.workflows.list() if not each["mistakes"]]

    @property
    def folder(self) -> str:
        return str(self.client.context.folder)


def submit_command(call: WebCall) -> Reply:
    """A line for the shell, as one would type it."""
    call.refuse_bound_to_templates()
    said = {name: value for name, value in call.body.items() if name in NEW_COMMAND}
    if "shell" not in said:
        raise InvalidInputError("what is to run? Give a command")
    if "after" in said:
        named = said.pop("after").replace(",", " ").split()
        said["after"] = [shown_job(call.client.jobs.find(each)) for each in named]
    made = call.client.jobs.submit_entry(said)
    return to(call, f"/ui/jobs/{shown_job(made.job_id)}", shown_job(made.job_id), "submitted")


def submit_template(call: WebCall) -> Reply:
    template = call.body.get("of", "")
    if template not in call.principal.templates:
        call.refuse_bound_to_templates()
    made = call.client.templates.submit(template, params=params_of(call.body.get("params", "")))
    return to(call, f"/ui/jobs/{shown_job(made.job_id)}", shown_job(made.job_id), "submitted")


def start_workflow(call: WebCall) -> Reply:
    call.refuse_bound_to_templates()
    number = call.client.workflows.start(
        workflow_name(call.body.get("of", "")), params=params_of(call.body.get("params", ""))
    )
    return to(call, f"/ui/workflow-runs/{shown_run(number)}", shown_run(number), "started")


def workflow_name(text: str) -> str:
    """Of a workflow of the home: a path would reach files elsewhere."""
    if not text or "/" in text or text.endswith(".toml"):
        raise InvalidInputError(f"there is no workflow {text[:80]!r}")
    return text


def params_of(text: str) -> dict[str, str]:
    """Lines of `NAME=VALUE`."""
    made: dict[str, str] = {}
    for line in filter(None, (each.strip() for each in text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals:
            raise InvalidInputError(f"{line[:80]!r} is not NAME=VALUE")
        made[name.strip()] = value.strip()
    return made


def to(call: WebCall, path: str, thing: str, said: str) -> Reply:
    return back(call._replace(body={"back": path}), said, thing)
