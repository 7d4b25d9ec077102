"""The charts of statistics: which numbers each shows, and in which look. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from headway.web.pages.charts import ChartSeries, bars, in_number, lines
from headway.web.pages.formats import moment


def load_plots(load: Mapping[str, Any]) -> Sequence[Markup]:
    """Of the document of `client.statistics.load`."""
    buckets = load["buckets"]
    labels = _labels([each["at"] for each in buckets])
    ended = [
        ChartSeries(word, [each[word] for each in buckets], look)
        for word, look in (("succeeded", "good"), ("failed", "bad"), ("other", "other"))
    ]
    waits = [
        ChartSeries(word, [each[key] for each in buckets], look)
        for word, look, key in (("p50", "line-1", "wait_p50"), ("p95", "line-2", "wait_p95"))
    ]
    waiting = ChartSeries("waiting", [each["waiting"] for each in buckets], "line-1")
    slots = ChartSeries("slots in use", [each["slots"] for each in buckets], "line-1")
    return [
        _safe(bars("Ended", labels, ended)),
        _safe(lines("Waited before the start", labels, waits)),
        _safe(lines("Waiting", labels, [waiting], in_number)),
        _safe(lines("Slots in use", labels, [slots], in_number)),
    ]


def spend_plot(spend: Mapping[str, Any]) -> Markup:
    """Of the document of `client.statistics.spend`."""
    days = spend["days"]
    labels = [str(each["day"]) for each in days]
    usd = ChartSeries("USD", [each["usd"] for each in days], "good")
    return _safe(bars("Agents, USD a day", labels, [usd]))


def _labels(instants: Sequence[str]) -> Sequence[str]:
    """On the server's clock, with the day where there are several."""
    moments = [at.astimezone() for at in map(moment, instants) if at is not None]
    several = len({at.date() for at in moments}) > 1
    return [at.strftime("%a %H:%M" if several else "%H:%M") for at in moments]


def _safe(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704 - `charts` escapes what it is given
