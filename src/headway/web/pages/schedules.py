"""Schedules: what fires when, what came of it, and a calendar of what is to come."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.base.clock import SECOND
from headway.base.units import show_instant
from headway.web.calls import WebCall
from headway.web.handlers import collections as api
from headway.web.pages.charts import strip
from headway.web.pages.page import WebPage
from headway.web.pages.workflows import of_run

HOUR = 3600 * SECOND
DAY = 24 * HOUR
FREQUENT = 29  # slots within a week: more than four a day
MOST_SLOTS = 10_000
SHOWN_A_DAY = 12


class SchedulesPage(WebPage):
    template = "schedules.html"
    title = "Schedules"
    place = "/ui/schedules"

    @cached_property
    def schedules(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.list_schedules)["schedules"]
        return found

    @cached_property
    def _coming(self) -> Sequence[dict[str, Any]]:
        """The slots of the next week; of one schedule no more than it takes to call it frequent."""
        end = self.now + 7 * DAY
        found, _ = self.client.schedules.upcoming(self.now, end, limit=MOST_SLOTS, each=FREQUENT)
        return found

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        return Counter(each["id"] for each in self._coming)

    @cached_property
    def next_hour(self) -> Sequence[tuple[dict[str, Any], int]]:
        """The first slot of each schedule that fires within an hour, and how many those are."""
        end = show_instant(self.now + HOUR)
        soon = [each for each in self._coming if each["slot"] <= end]
        counts = Counter(each["id"] for each in soon)
        first = {each["id"]: each for each in reversed(soon)}
        ordered = sorted(first.values(), key=lambda each: str(each["slot"]))
        return [(each, counts[each["id"]]) for each in ordered]

    @cached_property
    def frequent(self) -> Sequence[dict[str, Any]]:
        """The schedules that fire several times a day: they would fill the calendar."""
        return [each for each in self.schedules if self._counts[each["id"]] >= FREQUENT]

    @cached_property
    def calendar(self) -> Mapping[str, Sequence[dict[str, Any]]]:
        """The slots of the next week by the day of the server's clock, but those of the frequent
        ones."""
        days: dict[str, list[dict[str, Any]]] = {}
        for each in self._coming:
            if self._counts[each["id"]] < FREQUENT:
                days.setdefault(day_of(each["slot"]), []).append(each)
        return days

    most = SHOWN_A_DAY
    most_counted = FREQUENT

    @cached_property
    def jobs_file(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(api.jobs_file)
        return found

    def lengths(self, schedule: str) -> Markup:
        return lengths(self, schedule)


def lengths(page: WebPage, schedule: str) -> Markup:
    """How long the last runs took, as a strip."""
    found = page.client.schedules.runs(schedule)
    drawn = [of_run(each) for each in found[::-1]]
    return Markup(strip(f"runs of {schedule}", drawn))  # noqa: S704 - it escapes what it is given


def day_of(instant: str) -> str:
    from headway.web.pages.formats import moment

    at = moment(instant)
    return "" if at is None else at.astimezone().strftime("%a %d %b")


class SchedulePage(WebPage):
    template = "schedule.html"
    place = "/ui/schedules"

    def __init__(self, call: WebCall) -> None:
        super().__init__(call)
        self.schedule: dict[str, Any] = self.ask(api.show_schedule)["schedule"]

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Schedule {self.schedule['name']}"

    @cached_property
    def slots(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.ask(api.slots, {"limit": 50})["slots"]
        return found

    @property
    def lengths(self) -> Markup:
        return lengths(self, self.schedule["name"])
