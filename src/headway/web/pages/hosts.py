"""The hosts of the store, each with its last worker; and the agent programs."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from headway.web.handlers import collections as api
from headway.web.pages.page import WebPage


class HostsPage(WebPage):
    template = "hosts.html"
    title = "Hosts"
    place = "/ui/hosts"

    @cached_property
    def hosts(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.hosts)["hosts"]
        return found

    @cached_property
    def runners(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.runners)["runners"]
        return found
