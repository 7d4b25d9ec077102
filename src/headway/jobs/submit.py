"""Submit jobs: check, store and acknowledge them; durable when this returns.

Each call is one transaction, of all jobs or none. Then the worker is woken, or one is started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headway.base.environment import keep_environment
from headway.base.errors import InvalidInputError
from headway.base.worker_lock import WAKE
from headway.core.model import JobSpec
from headway.jobs.insert import Origin, Submitted, Waiting, add_jobs, add_plain
from headway.jobs.request import Request, is_plain
from headway.jobs.settings import store_setting
from headway.jobs.specification import specify

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.jobs.graph import Drafts
    from headway.store.transaction import WriteTx


def submit(context: Context, request: Request) -> Submitted:
    """Submit one job."""
    return submit_many(context, [request])[0]


def submit_many(context: Context, requests: Sequence[Request]) -> list[Submitted]:
    """All of them or none, in one transaction.

    They may be a graph: a request with a `local` name is one that others can name in their
    `after`, before or behind it. Raises GraphError with all that is wrong.
    """
    specs = specify_all(context, requests)
    if not any(each.input for each in requests):
        return submit_commands(context, specs)
    from headway.jobs.inputs import contents_of, kept_inputs

    with kept_inputs(context.store, context.home, contents_of(specs, requests)) as place:
        return submit_commands(context, specs, placed=place)


def submit_entry(context: Context, entry: Mapping[str, Any]) -> Submitted:
    """One job in the words of a graph file; it needs no `id`."""
    from headway.jobs.graph_file import request_of_entry

    return submit(context, request_of_entry(entry, context.clock.now()))


def submit_entries(context: Context, entries: Sequence[Any]) -> list[Submitted]:
    """A graph in the words of its file: all of it or nothing, in one transaction."""
    from headway.jobs.graph_file import read_entries

    made = drafts(context)
    read_entries(entries, made, now=context.clock.now())
    return submit_commands(context, made.linked())


def specify_all(context: Context, requests: Sequence[Request]) -> list[JobSpec]:
    """The checked specifications, with names among them resolved."""
    requests = [each if is_plain(each) else _read(context, each) for each in requests]
    if not any(each.local is not None for each in requests):
        check = _check(context)
        return [check(_with_ids(context, each)) for each in requests]
    graph = drafts(context)
    for each in requests:
        graph.add(each)
    return graph.linked()


def _read(context: Context, request: Request) -> Request:
    from headway.jobs.request_values import read_request

    return read_request(request, context.clock.now)


def drafts(context: Context, no_check: str | None = None) -> Drafts:
    """A graph to be put together, and then submitted with `submit_commands`. `no_check` is the word
    of a graph file, if that is what the caller has."""
    from headway.jobs.graph import Drafts
    from headway.jobs.lookup import find_id

    return Drafts(
        _check(context, no_check), limit=graph_limit(context), find=partial(find_id, context)
    )


def _with_ids(context: Context, request: Request) -> Request:
    """The same request, with slugs replaced by the jobs that have them."""
    if not any(isinstance(each, str) for each in request.after):
        return request
    from headway.jobs.lookup import find_id
    from headway.jobs.references import RUN_ID

    after = (
        find_id(context, each) if isinstance(each, str) and not RUN_ID.fullmatch(each) else each
        for each in request.after
    )
    return request._replace(after=tuple(dict.fromkeys(after)))


def graph_limit(context: Context) -> int:
    """How many jobs one graph may have."""
    with context.store.read() as tx:
        return int(store_setting(tx.settings.all(), "scheduler.graph_limit"))


def _check(context: Context, no_check: str | None = None) -> Callable[[Request], JobSpec]:
    return partial(
        specify,
        environ=context.environ,
        working_directory=context.folder,
        found={},
        no_check=no_check or context.no_check,
        place=(context.home, context.config),
    )


def submit_commands(
    context: Context,
    specs: Sequence[JobSpec],
    prepare: Callable[[WriteTx], Sequence[JobSpec]] | None = None,
    placed: Callable[[Sequence[Submitted]], None] | None = None,
) -> list[Submitted]:
    """Submit checked commands; `prepare` gives them another form, inside of the transaction, and
    `placed` is called with the new jobs as its last act."""
    if placed is None and any("input" in each.params for each in specs):
        raise InvalidInputError(
            "what a job reads is kept for jobs that are submitted by themselves; give it a file"
        )
    env_digest = keep_environment(
        context.home, context.environ, umask=context.umask, working_directory=context.folder
    )
    origin = origin_of(context, env_digest)
    plain = None if prepare or placed else add_plain(context.store, specs, origin)

    def add(tx: WriteTx) -> list[Submitted]:
        added = add_jobs(tx, specs if prepare is None else prepare(tx), origin)
        if placed is not None:
            placed(added)
        return added

    submitted = plain or context.store.transact(add)
    if prepare is None:
        _wake(context, submitted)
    else:
        context.wake()
    return submitted


def submit_calls(context: Context, specs: Sequence[JobSpec]) -> list[Submitted]:
    """Submit checked calls of functions."""
    submitted = context.store.transact(lambda tx: add_jobs(tx, specs, origin_of(context)))
    _wake(context, submitted)
    return submitted


def submit_on(context: Context, connection: Any, specs: Sequence[JobSpec]) -> list[Submitted]:
    """The same within a transaction of the caller's; workers hear of it when it commits."""
    with context.store.join(connection) as tx:
        submitted = add_jobs(tx, specs, origin_of(context))
    context.wake()
    return submitted


def origin_of(context: Context, env_digest: str | None = None) -> Origin:
    host = context.host if context.store.shared else None
    return Origin(context.actor, context.home.worktrees, host, env_digest)


def _wake(context: Context, submitted: Sequence[Submitted]) -> None:
    """A worker that is there need not look at jobs that wait for others."""
    context.wake(None if all(isinstance(each, Waiting) for each in submitted) else WAKE)
