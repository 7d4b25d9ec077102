"""What happened, the newest first."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from headway.web.handlers import events as api
from headway.web.pages.formats import setting
from headway.web.pages.page import WebPage

SHOWN = 100
READ_AT_ONCE = 500
MOST_READ = 5000


class EventsPage(WebPage):
    template = "events.html"
    title = "Events"
    place = "/ui/events"

    @property
    def kinds(self) -> str:
        return ",".join(self.call.query.get("kind", []))

    @property
    def job(self) -> str:
        return str(self.call.query.get("job") or "")

    @cached_property
    def _found(self) -> tuple[Sequence[dict[str, Any]], int]:
        """The events that fit before a number, and the number before them all."""
        events = self.client.events
        wanted = api.filter_of(self.call)
        until = self.call.query.get("before") or events.last() + 1
        found: list[dict[str, Any]] = []
        read = 0
        while until > 1 and len(found) < SHOWN and read < MOST_READ:
            begin = max(0, until - 1 - READ_AT_ONCE)
            batch = events.since(begin, limit=READ_AT_ONCE)
            fits = [each for each in batch if each["seq"] < until and wanted.fits(each)]
            found += fits[::-1]
            read += READ_AT_ONCE
            until = begin + 1
        shown = found[:SHOWN]
        return shown, shown[-1]["seq"] if len(found) > SHOWN else until

    @property
    def events(self) -> Sequence[dict[str, Any]]:
        return self._found[0]

    @property
    def older(self) -> str | None:
        before = self._found[1]
        return self.with_query(before=before) if before > 1 else None

    @staticmethod
    def about(event: dict[str, Any]) -> str:
        """The rest of what it says, in words."""
        said = {name: value for name, value in event["data"].items() if value not in (None, "", [])}
        return ", ".join(
            f"{name.replace('_', ' ')}: {setting(value)}" for name, value in said.items()
        )[:300]
