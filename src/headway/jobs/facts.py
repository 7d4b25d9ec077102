"""Load the facts that the core asks for. The planner and `why` use the same loader."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from headway.base.home import Home
from headway.base.units import parse_duration, parse_size
from headway.core.agents import BudgetView, calls_agent
from headway.core.artifacts import artifact_key
from headway.core.capacity import counted_twice, holdings, limited_keys, occupied, room
from headway.core.facts import (
    Answer,
    Capacity,
    Facts,
    Occupant,
    Predecessor,
    RateView,
    RunView,
    TaskView,
)
from headway.core.model import (
    FUNCTIONS,
    NOTHING,
    TYPES,
    HostTrouble,
    Job,
    JobId,
    OrderKey,
    Question,
    Rate,
    Wait,
)
from headway.core.policies import (
    BUILT_IN,
    ENTRY,
    RATE,
    SLOT,
    ConcurrencyPolicy,
    own_rate,
    rate_keys,
    read_topic,
)
from headway.core.pressure import Measured, strained
from headway.core.reservations import Reservation
from headway.core.states import ACTIVE
from headway.jobs.log_limits import over_budget
from headway.jobs.quotas import limit_text, parse_limit
from headway.jobs.settings import limits_set, store_setting
from headway.store.records import (
    Lending,
    Slots,
    TasksReport,
)
from headway.store.transaction import ReadTx

LARGEST_WAIT = 100_000


def gather(
    tx: ReadTx,
    jobs: Sequence[Job],
    capacity: Capacity,
    queues: Sequence[str],
    tasks: TaskView | None = None,
    *,
    home: Home,
    answers: Mapping[Question, Answer] = NOTHING,
) -> Facts:
    """`answers` come from earlier probes of the world outside of the store."""
    keys = {lock.key for job in jobs for lock in job.locks}
    needs = {artifact_key(text, job.repo) for job in jobs for text in job.needs}
    grouped = [job for job in jobs if job.group_id is not None]
    runs = _runs(tx, jobs)
    agents = [job for job in jobs if calls_agent(job)]
    return Facts(
        now=tx.now(),
        capacity=with_rates(
            tx, capacity, {key for job in jobs if job.rates for key in rate_keys(job)}
        ),
        predecessors=_outside(tx, _predecessors(tx, jobs), runs),
        locks=tx.claims.lock_views(sorted(keys)),
        types=TYPES,
        tasks=tasks,
        queues=queues,
        hosts=_elsewhere(tx, jobs, queues),
        artifacts=tx.graph.artifact_views(needs) if needs else NOTHING,
        runs=runs,
        parked=tx.runners.parked() if agents else NOTHING,
        budgets=_budgets(tx, agents),
        turns=tx.groups.turns(grouped) if grouped else NOTHING,
        answers=answers,
        wait_for_producers=bool(needs) and _waits_for_producers(tx),
        home=home.path,
        jobs_folder=home.jobs,
    )


def _runs(tx: ReadTx, jobs: Sequence[Job]) -> Mapping[JobId, RunView]:
    if all(job.workflow_run is None for job in jobs):
        return NOTHING
    from headway.jobs.routes import run_views

    return run_views(tx, jobs)


def _budgets(tx: ReadTx, agents: Sequence[Job]) -> Mapping[int, BudgetView]:
    if all(job.workflow_run is None for job in agents):
        return NOTHING
    from headway.jobs.budgets import budget_views

    return budget_views(tx, agents)


def _predecessors(tx: ReadTx, jobs: Sequence[Job]) -> Mapping[JobId, tuple[Predecessor, ...]]:
    found = tx.waits.predecessors(jobs)
    if all(not job.after_runs for job in jobs):
        return found
    from headway.jobs.awaited_runs import judged_by_outcome

    return judged_by_outcome(tx, jobs, found)


def _repeated(
    tx: ReadTx, found: Mapping[JobId, tuple[Predecessor, ...]]
) -> Mapping[JobId, tuple[Predecessor, ...]]:
    """The same; of those that have ended, what a loop of a workflow run may repeat says so."""
    ended = {each.chain for edges in found.values() for each in edges if each.status not in ACTIVE}
    runs = tx.workflows.open_chains(sorted(ended)) if ended else {}
    if not runs:
        return found
    return {
        job_id: tuple(each._replace(repeated_by=runs.get(each.chain)) for each in edges)
        for job_id, edges in found.items()
    }


def _outside(
    tx: ReadTx, found: Mapping[JobId, tuple[Predecessor, ...]], runs: Mapping[JobId, RunView]
) -> Mapping[JobId, tuple[Predecessor, ...]]:
    """Of a node's edges those to jobs outside of its run; another gate judges the others."""
    found = _repeated(tx, found)
    if not runs:
        return found
    within = {job_id: {end.chain for end in view.ends} for job_id, view in runs.items()}
    return {
        job_id: tuple(each for each in edges if each.chain not in within.get(job_id, ()))
        for job_id, edges in found.items()
    }


def _waits_for_producers(tx: ReadTx) -> bool:
    return bool(store_setting(tx.settings.all(), "scheduler.missing_producer") == "wait")


def tasks_known(tx: ReadTx) -> TaskView | None:
    """The functions that the hosts of the store have reported, taken together, for callers outside
    of a worker. None if no host runs any."""
    reports = [each for each in tx.hosts.tasks_reported() if each.view.names or each.view.trouble]
    views = [each.view for each in reports if each.is_up]
    once = _known_once(tx, [each for each in reports if not each.is_up])
    if not views:
        return TaskView(once=once) if once else None
    sound = [each for each in views if each.trouble is None]
    if not sound:
        trouble = "; ".join(sorted({str(each.trouble) for each in views}))
        return TaskView(trouble=trouble, once=once)
    return TaskView(frozenset().union(*(each.names for each in sound)), once=once)


def tasks_elsewhere(tx: ReadTx, host_id: str, own: TaskView) -> TaskView:
    """The functions that a host knows itself, with those of the other hosts."""
    others = [each for each in tx.hosts.tasks_reported() if each.host_id != host_id]
    sound = [each.view.names for each in others if each.is_up and each.view.trouble is None]
    return own._replace(
        elsewhere=frozenset().union(*sound),
        once=_known_once(tx, [each for each in others if not each.is_up]),
    )


def _known_once(tx: ReadTx, gone: Sequence[TasksReport]) -> Mapping[str, str]:
    """The tasks of hosts that are not up, each with the name of such a host."""
    names = tx.hosts.all() if gone else {}
    called = {
        each.host_id: f"{names[each.host_id].name} ({names[each.host_id].home})"
        for each in gone
        if each.host_id in names
    }
    return {
        task: called.get(each.host_id, each.host_id) for each in gone for task in each.view.names
    }


def _elsewhere(tx: ReadTx, jobs: Sequence[Job], queues: Sequence[str]) -> Mapping[str, str]:
    if all(job.queue in queues for job in jobs):
        return {}
    held = {
        each.host_id: f", which is paused by {each.actor}," for each in tx.settings.host_pauses()
    }
    return {
        each.id: f"{each.name} ({each.home}){held.get(each.id, '')}"
        for each in tx.hosts.all().values()
    }


def count_capacity(
    tx: ReadTx,
    host_id: str,
    *,
    log_budget: int,
    policies: Sequence[ConcurrencyPolicy] = BUILT_IN,
    strain: Wait | None = None,
) -> Capacity:
    """The state of capacity, counted from rows inside this transaction."""
    slots = tx.claims.slots()
    reservations = tx.reservations.all()
    granted = tuple(each for each in reservations if not each.waits)
    there: Set[JobId] = slots.running.keys()
    if granted:
        there = {*there, *(each.occupant for each in granted)}
    lendings = [lending for lending in tx.claims.lendings() if lending.job_id in there]
    lending = {each.job_id for each in lendings}
    borrowed = {lender for lender in slots.running.values() if lender in lending}
    limits = {
        key: limit for key, limit in limits_set(tx.settings.all()).items() if isinstance(limit, int)
    }
    # Each holder of capacity is one of these; what they hold is counted in this one place.
    occupants = slots.occupants
    entries = [each for each in occupants if ENTRY in each.keys]
    if entries and lendings:
        stands_for = _stand_for(tx, entries, lendings, reservations, borrowed)
        borrowed |= {*stands_for.values()}
        occupants = tuple(
            each._replace(borrowed_from=stands_for.get(each.job_id or 0, each.borrowed_from))
            for each in occupants
        )
    if granted:
        occupants = _with_calls(occupants, lending, granted)
        makers = {each.inside for each in granted if each.inside is not None}
        makers.intersection_update(there)
        lending, borrowed = lending | makers, borrowed | makers
    plain = not (limits or lending or entries)
    used = {SLOT: len(occupants)} if plain else occupied(occupants, lending)
    opened = Capacity(
        max_active=store_setting(tx.settings.all(), "scheduler.max_active"),
        running=used.get(SLOT, 0),
        parallel=store_setting(tx.settings.all(), "jobsfile.parallel"),
        paused=tx.settings.pause_in_force(host_id),
        trouble=_trouble(tx, host_id, slots, log_budget),
        lenders=_lenders(tx, [each for each in lendings if each.job_id not in borrowed]),
        limits=limits,
        usage=used,
        lent=holdings(occupants, lending) if lending else NOTHING,
        twice=counted_twice(occupants, lending) if _any_borrows(occupants) else (),
        policies=policies,
        next_pass=next_pass(tx),
        strain=strain,
        reserved=next((each for each in reservations if each.waits), None),
        granted=granted,
        unlent=_unlent(reservations, occupants, lending, there - borrowed),
    )
    return with_rates(tx, opened, {read_topic(each).key for each in tx.limits.waited_for()})


def spacing(tx: ReadTx) -> int:
    """The delay between passes."""
    return parse_duration(store_setting(tx.settings.all(), "scheduler.spawn_delay"))


def next_pass(tx: ReadTx) -> int | None:
    """When a delay between passes is over, counted from the last start of any worker; None: there
    is no such delay, or it is over."""
    delay = spacing(tx)
    last = tx.settings.marks()["last_dispatch_at"]
    return last + delay if delay and last + delay > tx.now() else None


def _any_borrows(occupants: Iterable[Occupant]) -> bool:
    return any(each.borrowed_from is not None for each in occupants)


def _with_calls(
    claims: Sequence[Occupant], lending: Collection[JobId], granted: Sequence[Reservation]
) -> tuple[Occupant, ...]:
    """Direct calls beside the claims. One that a running job makes, or another direct call, has
    that one's place; a claim whose lender waits for it no more does not get that back by it."""
    kept = [
        each if each.borrowed_from in lending else each._replace(borrowed_from=None)
        for each in claims
    ]
    calls = [Occupant(each.occupant, each.occupies, each.inside) for each in granted]
    return (*kept, *calls)


def _stand_for(
    tx: ReadTx,
    entries: Sequence[Occupant],
    lendings: Sequence[Lending],
    reservations: Sequence[Reservation],
    borrowed: Collection[JobId],
) -> dict[JobId, JobId]:
    """The running entries of the jobs file that pass on what a job lends which waits for them.

    An entry needs no slot itself. But it may wait for a job that does, or make a direct call, while
    all slots are held by jobs that wait for the entry.
    """
    asking = {each.job_id for each in lendings} | {each.inside for each in reservations}
    without = [each.job_id or 0 for each in entries if each.borrowed_from is None]
    without = [job_id for job_id in without if job_id in asking]
    if not without:
        return {}
    free = {each.chain: each.job_id for each in lendings if each.job_id not in borrowed}
    chains = tx.graph.chains_of(without)
    found = {job_id: free.get(chains.get(job_id, 0)) for job_id in without}
    return {entry: lender for entry, lender in found.items() if lender not in (None, entry)}


def _unlent(
    reservations: Sequence[Reservation],
    occupants: Sequence[Occupant],
    lending: Collection[JobId],
    alone: Collection[JobId],
) -> Mapping[JobId, Collection[str]]:
    """What the makers of a waiting direct call could lend to it."""
    makers = (each.inside for each in reservations if each.waits)
    return {
        job_id: holdings(occupants, {*lending, job_id})[job_id]
        for job_id in makers
        if job_id is not None and job_id in alone
    }


def with_rates(tx: ReadTx, capacity: Capacity, keys: Iterable[str]) -> Capacity:
    """The same state, with how much of each of these rates is used up. Other keys, and rates
    without a number, are left out."""
    views, limits, usage = {}, {}, {}
    for key in keys:
        view = _rate(tx, key) if key.startswith(f"{RATE}:") and key not in capacity.rates else None
        if view is None or view.rate.most is None:
            continue
        starts = tx.limits.newest_starts(view.rate.key, tx.now() - view.rate.period, view.rate.most)
        if len(starts) == view.rate.most:
            view = view._replace(until=starts[-1] + view.rate.period)
        kept = capacity.usage.get(key, 0)  # for those that only need one more probe
        views[key], limits[key], usage[key] = view, view.rate.most or 0, len(starts) + kept
    if not views:
        return capacity
    return capacity._replace(
        rates={**capacity.rates, **views},
        limits={**capacity.limits, **limits},
        usage={**capacity.usage, **usage},
    )


def _rate(tx: ReadTx, key: str) -> RateView | None:
    """The numbers behind a rate's key: a job's own, or those of the settings."""
    own = own_rate(key)
    if own is not None:
        return RateView(own, limit_text(own.most or 0, own.period))
    text = limits_set(tx.settings.all()).get(key)
    if not isinstance(text, str):
        return None
    return RateView(Rate(key.removeprefix(f"{RATE}:"), *parse_limit(text)), text)


class Waiters(NamedTuple):
    """Jobs that are parked under a limit with room. There may be more under the keys in `known_to`:
    a job behind that place in the order that needs one of them is not checked yet."""

    jobs: tuple[Job, ...] = ()
    known_to: Mapping[str, OrderKey] = NOTHING

    def go_before(self, job: Job, capacity: Capacity) -> bool:
        keys = limited_keys(job, capacity)
        return any(job.order > self.known_to[key] for key in keys if key in self.known_to)


def waiters(
    tx: ReadTx,
    capacity: Capacity,
    queues: Sequence[str],
    most: Mapping[str, int],
    *,
    besides: Collection[JobId] = (),
) -> Waiters:
    """The first of those who wait for a limit or a rate, at most as many as may start now: by
    slots, and by places for entries of the jobs file.

    They are found when there is room, whatever made it: an end, a lending, a setting, time.
    """
    found: dict[JobId, Job] = {}
    known_to: dict[str, OrderKey] = {}
    for topic in sorted(tx.limits.waited_for()):
        key, queue, of_entries = read_topic(topic)
        left, asked = room(key, capacity), most[ENTRY if of_entries else SLOT]
        asked = asked if left is None else min(asked, left)
        if queue == FUNCTIONS and capacity.places is not None:
            asked = min(asked, capacity.places)
        if queue not in queues or asked <= 0:
            continue
        jobs = tx.limits.parked_under(topic, asked)
        if len(jobs) == asked and any(job.id not in besides for job in jobs):
            known_to[key] = min(jobs[-1].order, known_to.get(key, jobs[-1].order))
        found |= {job.id: job for job in jobs if job.id not in besides}
    return Waiters(tuple(found.values()), known_to)


def strain_of(settings: Mapping[str, Any], measure: Callable[[], Measured]) -> Wait | None:
    """Why nothing is to be started on this host; it is measured only if there is a bound."""
    load = store_setting(settings, "scheduler.pressure.load")
    memory = parse_size(store_setting(settings, "scheduler.pressure.memory"))
    if not load and not memory:
        return None
    return strained(measure(), most_load=load, least_memory=memory)


def _trouble(tx: ReadTx, host_id: str, slots: Slots, log_budget: int) -> HostTrouble | None:
    too_much = over_budget(tx.settings.marks()["log_bytes"], log_budget, tx.now())
    if too_much is not None:
        return too_much
    trouble = tx.hosts.trouble(host_id)
    if trouble is None or not slots.probing:
        return trouble
    return trouble._replace(probing=True)


def _lenders(tx: ReadTx, lendings: Sequence[Lending]) -> Mapping[JobId, tuple[JobId, ...]]:
    """For each chain, the running jobs that wait for it, directly or through what it waits for."""
    lenders: dict[JobId, tuple[JobId, ...]] = {}
    for lending in lendings:
        for chain in awaited_set(tx, lending.chain):
            if lending.job_id not in lenders.get(chain, ()):
                lenders[chain] = (*lenders.get(chain, ()), lending.job_id)
    return lenders


def awaited_set(tx: ReadTx, chain: JobId) -> list[JobId]:
    """The chain and all chains that it transitively waits for."""
    found = {chain: None}  # in the order of finding
    ahead = [chain]
    while ahead and len(found) < LARGEST_WAIT:
        waiting = ahead.pop()
        for other in (*tx.graph.awaited_chains(waiting), *_awaited_makers(tx, waiting)):
            if other not in found:
                found[other] = None
                ahead.append(other)
    return list(found)


def _awaited_makers(tx: ReadTx, chain: JobId) -> Iterable[JobId]:
    """The chains that make what the last job of this one needs and is not there yet."""
    lasts = tx.graph.chain_lasts([chain])
    keys = [key for key, _ in tx.graph.needed_by(list(lasts.values()))] if lasts else []
    if not keys:
        return ()
    missing = (view for view in tx.graph.artifact_views(keys).values() if not view.published)
    makers = [each.job_id for view in missing for each in view.producers if each.status in ACTIVE]
    return tx.graph.chains_of(makers).values() if makers else ()
