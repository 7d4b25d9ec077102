"""Webhooks: where messages go, what became of each, and sending one again."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from headway.web.handlers import webhooks as api
from headway.web.pages.page import WebPage

SHOWN = 100


class WebhooksPage(WebPage):
    template = "webhooks.html"
    title = "Webhooks"
    place = "/ui/webhooks"

    @cached_property
    def endpoints(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.list_endpoints)["endpoints"]
        return found

    @property
    def state(self) -> str | None:
        return self.call.query.get("state")

    @cached_property
    def deliveries(self) -> Sequence[dict[str, Any]]:
        asked = {"limit": SHOWN, **({"state": self.state} if self.state else {})}
        found: Sequence[dict[str, Any]] = self.ask(api.deliveries, asked)["deliveries"]
        return found
