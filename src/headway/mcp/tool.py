"""What a tool is, and what a handler of one is given. `tools` has the table of them."""

import threading
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from headway.base.errors import ConflictError, HeadwayError
from headway.base.shapes import Schema
from headway.client import Client
from headway.core.model import Job, JobId, shown
from headway.core.principals import Principal

Answer = dict[str, Any]


class Submits(StrEnum):
    """What happens to a job of an agent: a person must approve it, or it runs at once, or there are
    no tools that submit."""

    APPROVAL = "approval"
    FREE = "free"
    OFF = "off"


class SubmitRule(NamedTuple):
    """`free_templates` make jobs without an approval, of their parameters alone."""

    submits: Submits = Submits.APPROVAL
    free_templates: tuple[str, ...] = ()

    def needs_person(self, template: str | None = None) -> bool:
        return self.submits is not Submits.FREE and template not in self.free_templates


class CallGoneError(HeadwayError):
    """Nobody waits for the answer any more."""


class ToolCall(NamedTuple):
    """`client` acts for the agent. `gone` is set when nobody waits for the answer any more."""

    client: Client
    principal: Principal
    rule: SubmitRule
    given: Mapping[str, Any]
    gone: threading.Event

    def job_id(self) -> JobId:
        return self.client.jobs.find(self.given["job"])

    def is_own(self, submitted_by: str | None) -> bool:
        return self.principal.may_change(submitted_by)

    def own(self, jobs: Sequence[Job], verb: str) -> None:
        """Refuse what an agent does to jobs of others. All jobs of a chain are of one submitter."""
        for job in jobs:
            if not self.is_own(job.submitted_by):
                raise ConflictError(
                    f"{shown(job.id)} is of {job.submitted_by or 'nobody'}, and "
                    f"{self.principal.actor} may {verb} only jobs that it submitted; "
                    f"a person can: headway jobs {verb} {shown(job.id)}"
                )

    def refuse_gone(self) -> None:
        if self.gone.is_set():
            raise CallGoneError("the call was given up")


Handler = Callable[[ToolCall], Answer]


class Hints(NamedTuple):
    """What a client reads of a tool. `destructive` None: nothing, since it is what the submitted
    command makes of it."""

    reads: bool = False
    destructive: bool | None = None
    open_world: bool = False


class McpTool(NamedTuple):
    """`verbs` are the methods of `headway.Client` behind it. `bounds` says in words what limits an
    answer."""

    name: str
    title: str
    about: str
    handler: Handler
    hints: Hints
    shape: Schema
    verbs: tuple[str, ...]
    bounds: str = ""
    submits: bool = False  # so there is none with `--submit off`
    makes_home: bool = False
    waits: bool = False  # so it has a thread for itself
