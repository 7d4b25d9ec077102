"""How everything stands: what needs a person, what runs, what waits, what ended."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.base.errors import HeadwayError
from headway.client import Client
from headway.core.states import Status
from headway.web.pages.page import WebPage
from headway.web.pages.plots import load_plots

DAY = 86_400_000_000
MOST = 8  # rows of one list
LINE = 4096  # bytes of a log that are looked at for its last line
BAD = (Status.FAILED, Status.BLOCKED_BY_DEPENDENCY)


class Overview(WebPage):
    template = "overview.html"
    title = "Overview"
    place = "/ui/"

    @cached_property
    def is_new(self) -> bool:
        """Whether no job was ever made here."""
        return not self.client.jobs.list(limit=1, everything=True).documents

    @cached_property
    def approvals(self) -> Sequence[dict[str, Any]]:
        return [each for each in self.client.jobs.approvals() if each["now"]]

    @cached_property
    def failed(self) -> Sequence[dict[str, Any]]:
        """What ended badly within a day and was not tried again, the newest first; what another
        failure only held up is left out."""
        found = self.client.jobs.list(
            limit=200, states=[str(each) for each in BAD], most_read=2000
        ).documents[::-1]
        bad = {each["id"] for each in found}
        return [each for each in found if not bad & set(each["after"]) and _is_last(self, each)]

    @cached_property
    def failed_webhooks(self) -> int:
        return sum(each["failed"] for each in self.client.webhooks.list() if each.get("failed"))

    @cached_property
    def running(self) -> Sequence[dict[str, Any]]:
        found = self.client.jobs.list(limit=50, states=[str(Status.RUNNING)], everything=True)
        return found.documents

    @cached_property
    def queue(self) -> Any:
        return self.client.jobs.queue(limit=MOST)

    @cached_property
    def ended(self) -> Sequence[dict[str, Any]]:
        states = [str(each) for each in Status if each.value in _ENDED]
        found = self.client.jobs.list(limit=MOST, states=states, most_read=2000).documents
        return found[::-1]

    @property
    def span(self) -> str:
        return str(self.call.query["span"])

    @cached_property
    def plots(self) -> Sequence[Markup]:
        return load_plots(self.client.statistics.load(self.span))

    def last_line(self, job: dict[str, Any]) -> str | None:
        return last_line(self.client, job["id"])


_ENDED = ("succeeded", "failed", "skipped", "cancelled", "blocked_by_dependency")


def _is_last(page: WebPage, job: dict[str, Any]) -> bool:
    """Whether no later job of its chain was made."""
    return bool(page.client.jobs.last_of_chain(job["id"]).id == page.client.jobs.find(job["id"]))


def last_line(client: Client, job: str) -> str | None:
    """The last line that a job has written; of both streams, stdout first."""
    with suppress(HeadwayError):
        for stream in ("stdout", "stderr"):
            begin = client.jobs.log_tail(job, stream, 1)
            found = client.jobs.log(job, stream, begin, LINE)
            line = found.data.decode("utf-8", "replace").strip()
            if line:
                return line.splitlines()[-1][:200]
    return None
