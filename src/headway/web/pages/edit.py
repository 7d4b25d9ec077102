"""A form that changes a job that waits: its name, its command, where it runs, its priority."""

import shlex
from collections.abc import Mapping
from typing import Any

from headway.base.errors import InvalidInputError
from headway.base.shapes import TEXT, Schema
from headway.base.units import show_duration
from headway.web.calls import Reply, WebCall
from headway.web.handlers import jobs as api
from headway.web.pages.acts import back
from headway.web.pages.formats import SECOND
from headway.web.pages.job import JobPage

EDITED: Mapping[str, Schema] = {
    "name": TEXT,
    "command": TEXT,
    "cwd": TEXT,
    "timeout": TEXT,
    "priority": {"type": "integer"},
}


class EditPage(JobPage):
    template = "edit.html"

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Edit {self.job['id']}"

    @property
    def values(self) -> Mapping[str, Any]:
        return values_of(self.job)


def values_of(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the form has of a job; a function and an agent have no command."""
    params = job["params"]
    found = {"name": job["name"], "priority": job["priority"]}
    if not (params.get("shell") or params.get("argv")):
        return found
    timeout = params.get("timeout_seconds")
    return {
        **found,
        "command": params.get("shell") or shlex.join(map(str, params["argv"])),
        "cwd": params.get("cwd") or "",
        "timeout": "" if timeout is None else show_duration(int(timeout * SECOND)),
    }


def edit_job(call: WebCall) -> Reply:
    """What differs from the job as it is; refused if it was changed since the form was made."""
    job = call.client.document(call.client.jobs.find(call.path["job"]))
    known = values_of(job)
    said = {name: call.body[name] for name in EDITED if name in call.body}
    if "command" in said:
        said["command"] = said["command"].replace("\r\n", "\n")  # as browsers send lines
    changes = {name: value for name, value in said.items() if value != known.get(name)}
    if "command" in changes:
        text = changes.pop("command")
        changes |= {"shell": text} if job["params"].get("shell") else {"argv": words_of(text)}
    if changes:
        headers = dict(call.headers)
        if "revision" in call.body:
            headers["if-match"] = f'"{call.body["revision"]}"'
        api.edit(call._replace(body=changes, headers=headers))
    return back(call, "edited", job["id"])


def words_of(text: str) -> list[str]:
    """The words of a command, as a shell reads them; nothing of it is run by one."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidInputError(f"the command cannot be read: {error}") from None
