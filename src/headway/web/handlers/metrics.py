"""Metrics over HTTP: `headway.web.metrics` has what is counted."""

from headway.web.calls import Scrape, WebCall


def scrape(call: WebCall) -> Scrape:
    return Scrape()
