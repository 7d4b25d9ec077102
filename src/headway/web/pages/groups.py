"""Groups: how far each is, and its members."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.web.calls import WebCall
from headway.web.handlers import collections as api
from headway.web.pages.page import WebPage


class GroupsPage(WebPage):
    template = "groups.html"
    title = "Groups"
    place = "/ui/groups"

    @cached_property
    def groups(self) -> Sequence[dict[str, Any]]:
        asked = {"all": self.call.query.get("all", False)}
        found: Sequence[dict[str, Any]] = self.ask(api.list_groups, asked)["groups"]
        return found[::-1][:200]


class GroupPage(WebPage):
    template = "group.html"
    place = "/ui/groups"

    def __init__(self, call: WebCall) -> None:
        super().__init__(call)
        self.group: dict[str, Any] = self.ask(api.show_group)["group"]

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"{self.group['id']} {self.group['name'] or ''}"

    @property
    def members(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.group["members"]
        return found[:1000]

    @property
    def timeline(self) -> Markup:
        document = self.client.statistics.timeline_of_group(self.group["id"])
        return self.bars_over_time(self.title, document)

    @property
    def is_active(self) -> bool:
        return self.group["ended_at"] is None


class CancelGroupPage(GroupPage):
    template = "cancel_group.html"

    @property
    def active(self) -> Sequence[dict[str, Any]]:
        return [each for each in self.members if each["status"] in ("QUEUED", "RUNNING")]
