"""How everything stands: what needs a person, what runs, what waits, what ended."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.base.errors import HeadwayError
from headway.base.units import show_instant
from headway.client import Client
from headway.core.states import TERMINAL, Status
from headway.jobs.views.recent import Recent
from headway.web.pages.page import WebPage
from headway.web.pages.plots import load_plots

DAY = 86_400_000_000
MOST_FAILED = 50
ENDED = [str(each) for each in Status if each in TERMINAL]
MOST = 8  # rows of one list
MOST_READ = 100  # waiting jobs that the estimates of the first ones go by
SHORT = 120  # characters of a command that is shown whole
LINE = 4096  # bytes of a log that are looked at for its last line


class Overview(WebPage):
    template = "overview.html"
    title = "Overview"
    place = "/ui/"
    most_failed = MOST_FAILED

    @cached_property
    def is_new(self) -> bool:
        """Whether no job was ever made here."""
        return not self.client.jobs.list(limit=1, everything=True).documents

    @cached_property
    def approvals(self) -> Sequence[dict[str, Any]]:
        return [each for each in self.client.jobs.approvals() if each["now"]]

    def is_short(self, approval: dict[str, Any]) -> bool:
        """Whether a line has room for all that would run. What is longer is approved on a page of
        its own: nobody agrees here to what is not shown."""
        return len(approval["runs"] or "") <= SHORT and "\n" not in (approval["runs"] or "")

    @cached_property
    def recent(self) -> Recent:
        return self.client.jobs.recent(limit=MOST_FAILED)

    @property
    def failed(self) -> Sequence[dict[str, Any]]:
        """Jobs that failed within a day and were not tried again, the newest first. A job that
        another one's failure blocked is left out."""
        bad = {each["id"] for each in self.recent.failed}
        return [
            each
            for each in self.recent.failed
            if not any(self._newest_of(other) in bad for other in each["after"])
        ]

    def _newest_of(self, job: str) -> str | None:
        """The last try of what another job comes after; None if that is gone."""
        with suppress(HeadwayError):
            return f"job-{self.client.jobs.last_of_chain(job).id}"
        return None

    @cached_property
    def failed_webhooks(self) -> int:
        """Of a day, also those to URLs of jobs; as many as are counted at most."""
        since = self.now - DAY
        found = self.client.webhooks.deliveries(state="failed", since=since, limit=MOST_FAILED)
        return len(found)

    @cached_property
    def running(self) -> Sequence[dict[str, Any]]:
        found = self.client.jobs.list(limit=50, states=[str(Status.RUNNING)], everything=True)
        return found.documents

    def usual(self, job: dict[str, Any]) -> float | None:
        """How many seconds jobs of this name take."""
        return self.recent.usual.get(job["name"])

    @cached_property
    def queue(self) -> Any:
        return self.client.jobs.queue(limit=MOST, most_read=MOST_READ)

    @cached_property
    def ready_since(self) -> str | None:
        """When the oldest job was submitted that waits for a slot alone."""
        with self.client.context.store.read() as tx:
            return show_instant(tx.jobs.oldest_ready())

    @cached_property
    def ended(self) -> Sequence[dict[str, Any]]:
        found = self.client.jobs.list(limit=MOST, states=ENDED, most_read=2000).documents
        return found[::-1]

    @property
    def span(self) -> str:
        return str(self.call.query["span"])

    @cached_property
    def plots(self) -> Sequence[Markup]:
        return load_plots(self.client.statistics.load(self.span))

    def last_line(self, job: dict[str, Any]) -> str | None:
        return last_line(self.client, job["id"])


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
