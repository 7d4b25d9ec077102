"""The graph: what is to run and what each job waits for, as a picture and as a list."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.jobs.views.graph.equal_jobs import folded
from headway.jobs.views.graph.svg import svg
from headway.web.pages.page import WebPage

MOST_READ = 10_000
MOST_BOXES = 3000
MOST_ROWS = 500
SIZES = (25, 50, 100, 150)  # percent


class GraphPage(WebPage):
    template = "graph.html"
    title = "Graph"
    place = "/ui/graph"
    sizes = SIZES

    @cached_property
    def _loaded(self) -> Any:
        asked: dict[str, Any] = {"everything": self.call.query.get("all", False)}
        if self.focus:
            asked["focus"] = self.client.jobs.find(self.focus)
            asked["everything"] = True
        return self.client.jobs.graph(**asked, top=MOST_READ)

    @cached_property
    def _drawn(self) -> Any:
        """What the boxes are of: the jobs, or classes of equal ones where there are too many."""
        return self._loaded if self.count <= MOST_BOXES else folded(self._loaded)

    @property
    def focus(self) -> str | None:
        return self.call.query.get("job")

    @property
    def size(self) -> int:
        """In percent."""
        return int(self.call.query.get("size") or 100)

    @cached_property
    def rows(self) -> Sequence[Any]:
        return list(self._loaded.rows)[:MOST_ROWS]

    @property
    def count(self) -> int:
        return len(self._loaded.rows)

    @property
    def has_more(self) -> bool:
        return bool(self._loaded.hidden)

    @property
    def is_folded(self) -> bool:
        return self._drawn is not self._loaded

    @property
    def is_drawn(self) -> bool:
        return 0 < len(self._drawn.rows) <= MOST_BOXES

    @property
    def picture(self) -> Markup:
        count = f"{self.count:,} {'job' if self.count == 1 else 'jobs'}"
        title = f"{count}{', and more that are not shown' if self.has_more else ''}"
        drawn = svg(self._drawn, title=title, scale=self.size / 100)
        return Markup("\n".join(drawn))  # noqa: S704 - it escapes what it is given

    @property
    def timeline(self) -> Markup | None:
        """Of the graph around a job."""
        if self.focus is None:
            return None
        document = self.client.statistics.timeline_of_job(self.focus)
        return self.bars_over_time(f"around {self.focus}", document)
