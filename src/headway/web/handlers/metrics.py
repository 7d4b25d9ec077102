"""Metrics over HTTP: `headway.web.metrics` has what is counted."""

from headway.web.calls import Scrape, WebCall
from headway.web.metrics import gauges


def scrape(call: WebCall) -> Scrape:
    return Scrape(gauges(call.client))
