"""Find jobs by what people know of them, in pages, newest first, until there are enough.

The store is asked for what it can judge; the rest is judged here. So a listing reads about as much
as it shows, however much lies in the store.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from headway.core.groups import shown_group
from headway.core.model import NOTHING, Job, JobId
from headway.core.states import API_STATUS, Status
from headway.jobs.context import Context
from headway.jobs.views.details import describe
from headway.store.records import Search
from headway.store.transaction import ReadTx

DAY = 86_400_000_000
LEAST_PAGE, MOST_PAGE = 100, 10_000
MOST_LISTED = 10_000

Documents = list[dict[str, Any]]


class SearchQuery(NamedTuple):
    """Words of one kind are alternatives; an empty one asks for nothing."""

    everything: bool = False  # also what ended before yesterday
    states: Sequence[str] = ()
    statuses: Sequence[str] = ()
    labels: Mapping[str, str] = NOTHING
    name: str | None = None
    since: int | None = None  # submitted; then it does not matter when they ended
    groups: Sequence[str] = ()  # each by its id or its name
    subjects: Sequence[str] = ()


ANY = SearchQuery()


class SearchResult(NamedTuple):
    documents: Documents  # by `created_at, id`
    more: bool  # there are older ones
    unreadable: Mapping[JobId, str] = NOTHING  # rows that could not be read, and why


def listing(
    context: Context, query: SearchQuery = ANY, *, limit: int = MOST_LISTED
) -> SearchResult:
    """The newest documents that the query asks for; without one, active jobs and the last day's."""
    with context.store.read() as tx:
        found = find(tx, query, limit, lambda jobs: describe(context, tx, jobs))
        return found._replace(unreadable=dict(tx.unreadable()))


def find(
    tx: ReadTx, query: SearchQuery, limit: int, describe: Callable[[Sequence[Job]], Documents]
) -> SearchResult:
    """The newest `limit` documents that the query asks for."""
    query = with_groups_known(tx, query)
    search = _search(query, tx.now())
    found: Documents = []
    last: Job | None = None
    while len(found) <= limit:
        size = min(MOST_PAGE, max(LEAST_PAGE, limit + 1))
        page = tx.jobs.find(search, before=last, limit=size)
        if not page:
            break
        last = page[-1]
        described = describe([job for job in page if fits(job, query)])
        found += [document for document in described if is_about(document, query)]
    return SearchResult(found[:limit][::-1], len(found) > limit)


def with_groups_known(tx: ReadTx, query: SearchQuery) -> SearchQuery:
    """The same, each group by its id."""
    if not query.groups:
        return query
    from headway.jobs.membership import find_group

    return query._replace(
        groups=tuple(shown_group(find_group(tx, each).id) for each in query.groups)
    )


def _search(query: SearchQuery, now: int) -> Search:
    everything = query.everything or query.since is not None
    return Search(
        statuses=frozenset(_wanted(query)),
        ended_since=0 if everything else now - DAY,
        created_since=query.since or 0,
        name=query.name or "*",
        labels=query.labels,
        groups=tuple(int(each.removeprefix("group-")) for each in query.groups),
    )


def _wanted(query: SearchQuery) -> Iterable[Status]:
    return (
        status
        for status in Status
        if (not query.states or status in query.states)
        and (not query.statuses or API_STATUS[status] in query.statuses)
    )


def fits(job: Job, query: SearchQuery) -> bool:
    return query.labels.items() <= job.labels.items() and (
        query.name is None or fnmatchcase(job.name, query.name)
    )


def has_state(job: Job, query: SearchQuery) -> bool:
    return job.status in _wanted(query)


def is_about(document: Mapping[str, Any], query: SearchQuery) -> bool:
    return (not query.groups or document["group_id"] in query.groups) and (
        not query.subjects or document["subject"] in query.subjects
    )
