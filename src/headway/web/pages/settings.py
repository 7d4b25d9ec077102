"""Every setting: its value, its default, where it stands; those of the store can be changed."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from headway.jobs.settings import find_setting
from headway.web.calls import Reply, WebCall
from headway.web.handlers import scheduler as api
from headway.web.pages.acts import back
from headway.web.pages.page import WebPage


class SettingsPage(WebPage):
    template = "settings.html"
    title = "Settings"
    place = "/ui/settings"

    @cached_property
    def settings(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.settings)["settings"]
        return found

    @staticmethod
    def can_be_set(setting: dict[str, Any]) -> bool:
        return find_setting(setting["key"]).in_store


def change(call: WebCall) -> Reply:
    """A value as it is typed; an empty one is the default."""
    text = call.body.get("value")
    key = call.path["key"]
    value = None if text is None else find_setting(key).read(text)
    api.put_setting(call._replace(body={"value": value}))
    return back(call, "set", key)
