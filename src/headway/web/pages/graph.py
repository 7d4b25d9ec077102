"""The graph: what is to run and what each job waits for, as a picture and as a list."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.jobs.views.graph.svg import svg
from headway.web.pages.page import WebPage

MOST_BOXES = 3000
MOST_ROWS = 500


class GraphPage(WebPage):
    template = "graph.html"
    title = "Graph"
    place = "/ui/graph"

    @cached_property
    def _loaded(self) -> Any:
        asked: dict[str, Any] = {"everything": self.call.query.get("all", False)}
        if self.focus:
            asked["focus"] = self.client.jobs.find(self.focus)
            asked["everything"] = True
        return self.client.jobs.graph(**asked)

    @property
    def focus(self) -> str | None:
        return self.call.query.get("job")

    @cached_property
    def rows(self) -> Sequence[Any]:
        return list(self._loaded.rows)[:MOST_ROWS]

    @property
    def count(self) -> int:
        return len(self._loaded.rows)

    @property
    def is_drawn(self) -> bool:
        return 0 < self.count <= MOST_BOXES

    @property
    def picture(self) -> Markup:
        return Markup("\n".join(svg(self._loaded)))  # noqa: S704 - it escapes what it is given

    @property
    def timeline(self) -> Markup | None:
        """Of the graph around a job."""
        if self.focus is None:
            return None
        document = self.client.statistics.timeline_of_job(self.focus)
        return self.bars_over_time(f"around {self.focus}", document)
