"""Slots, limits, rates, and who holds and awaits each lock."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from headway.web.handlers import collections as api
from headway.web.pages.page import WebPage

MOST_LOCKS = 500
MOST_NAMED = 20  # jobs of one lock


class LimitsPage(WebPage):
    template = "limits.html"
    title = "Limits and locks"
    place = "/ui/limits"
    most = MOST_NAMED

    @cached_property
    def limits(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(api.limits)
        return found

    @cached_property
    def locks(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.locks)["locks"]
        return found[:MOST_LOCKS]

    @staticmethod
    def holder(each: Any) -> str:
        """Who holds or awaits a lock, in words."""
        if isinstance(each, str):
            return each
        job = each.get("job") or each.get("id") or each.get("reservation") or ""
        mode = f" ({each['mode']})" if each.get("mode") else ""
        return f"{job}{mode}"
