"""Workflows: the files, their runs, and one run with its nodes."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.web.calls import WebCall
from headway.web.handlers import runs as api
from headway.web.pages.charts import StripRun, strip
from headway.web.pages.page import WebPage

MOST_NODES = 500
MOST_DRAWN = 1000


class WorkflowsPage(WebPage):
    template = "workflows.html"
    title = "Workflow runs"
    place = "/ui/workflows"

    @cached_property
    def workflows(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.list_workflows)["workflows"]
        return found

    @cached_property
    def runs(self) -> Sequence[dict[str, Any]]:
        return self.client.workflows.runs(everything=self.call.query.get("all", False))[:200]

    def lengths(self, workflow: str) -> Markup:
        """The last runs of it, as a strip."""
        found = self.client.statistics.runs(workflow)["runs"]
        return Markup(strip(f"runs of {workflow}", [of_run(each) for each in found[::-1]]))  # noqa: S704


def of_run(each: dict[str, Any]) -> StripRun:
    """A run of a workflow, or of a schedule a job."""
    name = each["run"] or each["job"]
    folder = "workflow-runs" if each["run"] else "jobs"
    return StripRun(each["state"], name, f"/ui/{folder}/{name}", each["seconds"])


class RunPage(WebPage):
    template = "run.html"
    place = "/ui/workflows"

    def __init__(self, call: WebCall) -> None:
        super().__init__(call)
        self.run: dict[str, Any] = self.ask(api.show_workflow_run)["run"]

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"{self.run['id']} {self.run['workflow']}"

    @property
    def nodes(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.run["nodes"]
        return found[:MOST_NODES]

    @property
    def left_out(self) -> int:
        return max(0, len(self.run["nodes"]) - MOST_NODES)

    @property
    def is_active(self) -> bool:
        return bool(self.run["state"] == "running")

    @cached_property
    def why(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(api.why_workflow_run)
        return found

    @property
    def timeline(self) -> Markup:
        document = self.client.statistics.timeline_of_run(self.run["id"])
        return self.bars_over_time(self.title, document)

    @property
    def picture(self) -> Markup | None:
        """The nodes as a graph, with how far each is; of very many there is none."""
        if len(self.run["nodes"]) > MOST_DRAWN:
            return None
        drawn = self.client.workflows.graph(self.run["id"], "svg")
        return Markup("\n".join(drawn))  # noqa: S704 - it escapes what it is given
