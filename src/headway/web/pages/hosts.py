"""The hosts of the store, each with its last worker; and the agent programs."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.web.handlers import collections as api
from headway.web.pages.page import WebPage
from headway.web.pages.plots import spend_plot


class HostsPage(WebPage):
    template = "hosts.html"
    title = "Hosts"
    place = "/ui/hosts"

    @cached_property
    def hosts(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.hosts)["hosts"]
        return found

    @property
    def spend(self) -> Markup:
        return spend_plot(self.client.statistics.spend())

    @cached_property
    def runners(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.runners)["runners"]
        return found
