"""Lists of jobs: what the query asks for, in pages; and many of them changed at once."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from headway.base.errors import HeadwayError, InvalidInputError
from headway.core.states import ACTIVE, TERMINAL, Status
from headway.web.calls import Reply, WebCall
from headway.web.handlers.jobs import FILTERS, list_jobs
from headway.web.pages.acts import back
from headway.web.pages.page import WebPage
from headway.web.pages.requests import MOST_AT_ONCE

# The views that stand above the list: word, and what the query asks for.
VIEWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("All", {}),
    ("Active", {"state": [str(each) for each in Status if each in ACTIVE]}),
    ("Running", {"state": ["running"]}),
    ("Waiting", {"state": [str(each) for each in Status if each in ACTIVE - {Status.RUNNING}]}),
    ("Failed", {"state": ["failed", "blocked_by_dependency", "blocked_by_approval"]}),
    ("Failed, 24 h", {"state": ["failed"], "since": "24h"}),
    ("Succeeded", {"state": ["succeeded"]}),
)


class JobsPage(WebPage):
    template = "jobs.html"
    title = "Jobs"
    place = "/ui/jobs"
    views = VIEWS

    @cached_property
    def _found(self) -> dict[str, Any]:
        query = {name: value for name, value in self.call.query.items() if name in _LISTED}
        found: dict[str, Any] = list_jobs(self.call._replace(query=query)).document
        return found

    @property
    def jobs(self) -> Sequence[dict[str, Any]]:
        found: list[dict[str, Any]] = self._found["jobs"]
        return found

    @property
    def next(self) -> str | None:
        """The page with older ones."""
        cursor = self._found["next"]
        return None if cursor is None else self.with_query(cursor=cursor)

    @property
    def asked(self) -> dict[str, Any]:
        return {name: self.call.query[name] for name in FILTERS if name in self.call.query}

    def leads_to(self, view: dict[str, Any]) -> str:
        cleared = dict.fromkeys((*FILTERS, "cursor"))
        return self.with_query(**{**cleared, **view})

    def is_view(self, view: dict[str, Any]) -> bool:
        return self.asked == view

    @property
    def text(self) -> str:
        """What the search field has."""
        return str(self.call.query.get("name") or "")


_LISTED = {*FILTERS, "limit", "cursor"}


class BulkPage(WebPage):
    """What a change of many jobs would do, before it is done."""

    template = "bulk.html"
    place = "/ui/jobs"

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"{self.verb.capitalize()} {len(self.able)} jobs"

    @property
    def verb(self) -> str:
        word: str = self.call.query.get("verb", "cancel")
        return word

    @cached_property
    def chosen(self) -> Sequence[dict[str, Any]]:
        return [self.client.document(each) for each in _named(self.call.query.get("job", []))]

    @cached_property
    def able(self) -> Sequence[dict[str, Any]]:
        return [each for each in self.chosen if fits(self, self.verb, each)]

    @cached_property
    def others(self) -> Sequence[dict[str, Any]]:
        return [each for each in self.chosen if not fits(self, self.verb, each)]


def fits(page: WebPage, verb: str, job: dict[str, Any]) -> bool:
    """Whether the verb can be applied to this job, by this reader."""
    if not page.may_change(job["submitted_by"]):
        return False
    if verb == "cancel":
        return Status(job["state"]) in ACTIVE
    jobs = page.client.jobs
    is_last = jobs.last_of_chain(job["id"]).id == jobs.find(job["id"])  # else it was tried again
    return (
        is_last
        and Status(job["state"]) in TERMINAL
        and job["state"] not in ("succeeded", "skipped", "blocked_by_dependency")
    )


def _named(given: Sequence[str]) -> Sequence[str]:
    named = list(dict.fromkeys(given))
    if not named:
        raise InvalidInputError("no job is chosen; tick some")
    if len(named) > MOST_AT_ONCE:
        raise InvalidInputError(f"at most {MOST_AT_ONCE} jobs at once")
    return named


def bulk(call: WebCall) -> Reply:
    """Cancel or retry these jobs, each by itself; those that are refused are named."""
    named = _named(call.body.get("job", []))
    verb = call.body.get("verb", "cancel")
    call.refuse_bound_to_templates()
    jobs = call.client.jobs
    refused: list[str] = []
    for each in named:
        try:
            if verb == "cancel":
                call.own([jobs.find(each)], "cancel")
                jobs.cancel([each])
            else:
                call.own(jobs.preview_retry(each).members, "retry")
                jobs.retry(each)
        except HeadwayError as error:
            refused.append(f"{each}: {error}")
    if refused:
        done = len(named) - len(refused)
        raise InvalidInputError(f"{done} of {len(named)} are done; not these: {'; '.join(refused)}")
    word = "cancelled" if verb == "cancel" else "retried"
    return back(call, word, f"{len(named)} jobs")
