"""Every setting: its value, its default, where it stands; those of the store can be changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headway.jobs.settings import find_setting
from headway.web.calls import Reply, WebCall
from headway.web.handlers import scheduler as api
from headway.web.pages.acts import back
from headway.web.pages.page import WebPage

if TYPE_CHECKING:
    from headway.admin.doctor import Finding

_WORDS = {"green": "ok", "yellow": "warning", "red": "error"}
_ORDER = {"red": 0, "yellow": 1, "green": 2}


class SettingsPage(WebPage):
    template = "settings.html"
    title = "Settings"
    place = "/ui/settings"

    @cached_property
    def settings(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.settings)["settings"]
        return found

    @property
    def is_examined(self) -> bool:
        """Whether its reader asked for it, and may: it tells of the machine of the server."""
        return self.may("admin") and bool(self.call.query.get("doctor"))

    @cached_property
    def findings(self) -> Sequence[Finding]:
        """What `headway doctor` says, what is wrong first."""
        return sorted(self.client.admin.doctor(), key=lambda each: _ORDER.get(each.level, 0))

    @staticmethod
    def level(finding: Finding) -> str:
        return _WORDS.get(finding.level, "error")

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
