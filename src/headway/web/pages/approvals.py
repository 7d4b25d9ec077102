"""Jobs that wait for a person: what each would run, where, for whom. Made for a phone first."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from headway.web.pages.page import WebPage


class ApprovalsPage(WebPage):
    template = "approvals.html"
    title = "Approvals"
    place = "/ui/approvals"

    @cached_property
    def _all(self) -> Sequence[dict[str, Any]]:
        return self.client.jobs.approvals()

    @property
    def ready(self) -> Sequence[dict[str, Any]]:
        return [each for each in self._all if each["now"]]

    @property
    def later(self) -> Sequence[dict[str, Any]]:
        """Those that something else holds up still."""
        return [each for each in self._all if not each["now"]]
