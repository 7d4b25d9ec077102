"""Jobs that wait for a person: what each would run, where, for whom. Made for a phone first."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from headway.base.errors import HeadwayError
from headway.web.pages.page import WebPage

MOST_SHOWN = 100
MOST_BEFORE = 5


class ApprovalsPage(WebPage):
    template = "approvals.html"
    title = "Approvals"
    place = "/ui/approvals"

    @cached_property
    def _all(self) -> Sequence[dict[str, Any]]:
        return self.client.jobs.approvals()

    @property
    def ready(self) -> Sequence[dict[str, Any]]:
        return [each for each in self._all if each["now"]][:MOST_SHOWN]

    @property
    def left_out(self) -> int:
        return len(self._all) - len(self.ready) - len(self.later)

    def seen_before(self, approval: dict[str, Any]) -> Sequence[dict[str, Any]]:
        """The jobs that this one comes after and that wrote something: what to read before."""
        found = []
        with suppress(HeadwayError):
            for each in self.client.document(approval["id"])["after"][:MOST_BEFORE]:
                last = self.client.jobs.last_of_chain(each)
                document = self.client.document(last.id)
                if document["run"]:
                    found.append(document)
        return found

    @property
    def later(self) -> Sequence[dict[str, Any]]:
        """Those that something else holds up still."""
        return [each for each in self._all if not each["now"]][:MOST_SHOWN]
