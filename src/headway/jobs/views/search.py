"""Find jobs by what people know of them, newest first, until there are enough.

The store is asked for what it can judge; the rest is judged here. So a listing reads about as much
as it shows, however much lies in the store.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError
from headway.core.groups import shown_group
from headway.core.model import NOTHING, Job, JobId, shown_run
from headway.core.states import API_STATUS, Status
from headway.jobs.awaited_runs import require_run
from headway.jobs.context import Context
from headway.jobs.views.details import describe
from headway.store.records import Search
from headway.store.transaction import ReadTx

DAY = 86_400_000_000
LEAST_STRETCH, MOST_STRETCH = 100, 10_000
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
    targets: Sequence[str] = ()
    runs: Sequence[str] = ()  # of workflows, like `wf-7`; then it does not matter when they ended


ANY = SearchQuery()


class SearchResult(NamedTuple):
    documents: Documents  # by id, so the oldest first
    more: bool  # there are older ones, or may be
    unreadable: Mapping[JobId, str] = NOTHING  # rows that could not be read, and why
    next: JobId | None = None  # if there are older ones: `before` of the page that has them


def listing(
    context: Context,
    query: SearchQuery = ANY,
    *,
    limit: int = MOST_LISTED,
    before: JobId | None = None,
    most_read: int | None = None,
) -> SearchResult:
    """The newest documents that the query asks for, of jobs that were made before the given one;
    without a query, active jobs and the last day's. When about `most_read` rows were looked at,
    what was found until then is all: there may be older ones."""
    with context.store.read() as tx:
        query = resolved(tx, query)
        jobs, rest = _find(tx, query, limit, before, most_read)
        return SearchResult(
            describe(context, tx, jobs[::-1]), rest is not None, dict(tx.unreadable()), rest
        )


def _find(
    tx: ReadTx, query: SearchQuery, limit: int, before: JobId | None, most_read: int | None
) -> tuple[list[Job], JobId | None]:
    """The newest jobs that fit, and below which one there are, or may be, others."""
    found: list[Job] = []
    read = 0
    size = min(MOST_STRETCH, max(LEAST_STRETCH, limit + 1))
    for stretch in tx.search.jobs(_search(tx, query), below=before, size=size):
        found += [job for job in stretch.jobs if fits(job, query)]
        read += stretch.rows
        if len(found) > limit:
            return found[:limit], found[limit - 1].id
        if most_read is not None and read >= most_read:
            return found, stretch.below
    return found, None


def resolved(tx: ReadTx, query: SearchQuery) -> SearchQuery:
    """The same, each group and each run by its id. Raises if there is no such group, run or
    state."""
    _one_of("state", query.states, list(Status))
    _one_of("status", query.statuses, sorted(set(API_STATUS.values())))
    if query.groups:
        from headway.jobs.membership import find_group

        groups = [shown_group(find_group(tx, each).id) for each in query.groups]
        query = query._replace(groups=groups)
    return query._replace(runs=[shown_run(require_run(tx, each).id) for each in query.runs])


def _one_of(kind: str, given: Sequence[str], known: Sequence[str]) -> None:
    for word in given:
        if word not in known:
            raise InvalidInputError(f"{kind} {word!r} is not one of {', '.join(known)}")


def _search(tx: ReadTx, query: SearchQuery) -> Search:
    everything = query.everything or query.since is not None or bool(query.runs)
    runs = [require_run(tx, each).id for each in query.runs]
    return Search(
        statuses=frozenset(_wanted(query)),
        ended_since=0 if everything else tx.now() - DAY,
        created_since=query.since or 0,
        name=query.name or "*",
        labels=query.labels,
        targets=tuple(query.targets),
        chains=tuple(node.chain for run in runs for node in tx.workflows.nodes(run))
        if runs
        else None,
        groups=tuple(int(each.removeprefix("group-")) for each in query.groups),
        subjects=tuple(query.subjects),
    )


def _wanted(query: SearchQuery) -> Iterable[Status]:
    return (
        status
        for status in Status
        if (not query.states or status in query.states)
        and (not query.statuses or API_STATUS[status] in query.statuses)
    )


def fits(job: Job, query: SearchQuery) -> bool:
    """Whether it is one that a resolved query asks for, whatever its state and its times."""
    return (
        query.labels.items() <= job.labels.items()
        and (query.name is None or fnmatchcase(job.name, query.name))
        and (not query.groups or _shown(shown_group, job.group_id) in query.groups)
        and (not query.subjects or job.subject in query.subjects)
        and (not query.targets or job.target in query.targets)
        and (not query.runs or _shown(shown_run, job.workflow_run) in query.runs)
    )


def _shown(show: Callable[[int], str], number: int | None) -> str | None:
    return None if number is None else show(number)


def has_state(job: Job, query: SearchQuery) -> bool:
    return job.status in _wanted(query)
