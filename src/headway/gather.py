"""Load the facts that the core asks for. The planner and `why` use the same loader."""

from collections.abc import Iterable, Mapping, Sequence

from headway.config import store_setting
from headway.core.artifacts import artifact_key
from headway.core.facts import Answer, Door, Facts, TaskView
from headway.core.model import NOTHING, HostTrouble, Job, JobId, Question, WaitKind
from headway.core.states import ACTIVE
from headway.executors import TYPES
from headway.home import Home
from headway.store.base import Lending, ReadTx, Slots
from headway.units import show_size

LARGEST_WAIT = 100_000


def gather(
    tx: ReadTx,
    jobs: Sequence[Job],
    door: Door,
    queues: Sequence[str],
    tasks: TaskView | None = None,
    *,
    home: Home,
    answers: Mapping[Question, Answer] = NOTHING,
) -> Facts:
    """`answers` are looks at the world outside of the store, made before."""
    keys = {lock.key for job in jobs for lock in job.locks}
    needs = {artifact_key(text, job.repo) for job in jobs for text in job.needs}
    return Facts(
        now=tx.now(),
        door=door,
        predecessors=tx.predecessors(jobs),
        locks=tx.lock_views(sorted(keys)),
        types=TYPES,
        tasks=tasks,
        queues=queues,
        hosts=_elsewhere(tx, jobs, queues),
        artifacts=tx.artifact_views(needs) if needs else NOTHING,
        answers=answers,
        wait_for_producers=bool(needs) and _waits_for_producers(tx),
        home=home.path,
        jobs_folder=home.jobs,
    )


def _waits_for_producers(tx: ReadTx) -> bool:
    return bool(store_setting(tx.settings(), "scheduler.missing_producer") == "wait")


def tasks_known(tx: ReadTx) -> TaskView | None:
    """What the hosts of the store have told about their functions, taken together: for those who
    ask from outside of a worker. None if nobody runs any."""
    views = [each for each in tx.tasks_known().values() if each.names or each.trouble]
    if not views:
        return None
    sound = [each for each in views if each.trouble is None]
    if not sound:
        return TaskView(trouble="; ".join(sorted({str(each.trouble) for each in views})))
    return TaskView(frozenset().union(*(each.names for each in sound)))


def _elsewhere(tx: ReadTx, jobs: Sequence[Job], queues: Sequence[str]) -> Mapping[str, str]:
    if all(job.queue in queues for job in jobs):
        return {}
    return {each.id: f"{each.name} ({each.home})" for each in tx.hosts().values()}


def door(tx: ReadTx, host_id: str, *, log_budget: int) -> Door:
    """The state of the door, counted from rows inside this transaction."""
    slots = tx.slots()
    reservations = tx.reservations()
    granted = tuple(each for each in reservations if not each.waits)
    there = {*slots.running, *(each.occupant for each in granted)} if granted else slots.running
    lendings = [lending for lending in tx.lendings() if lending.job_id in there]
    lenders = {lending.job_id for lending in lendings}
    borrowed = {lender for lender in slots.running.values() if lender in lenders}
    borrowed |= {each.inside for each in granted if each.inside is not None}
    direct = sum(1 for each in granted if each.inside not in slots.running)
    return Door(
        max_active=store_setting(tx.settings(), "scheduler.max_active"),
        running=sum(1 for lender in slots.running.values() if lender not in lenders) + direct,
        paused=tx.pause_in_force(),
        trouble=_trouble(tx, host_id, slots, log_budget),
        lenders=_lenders(tx, [each for each in lendings if each.job_id not in borrowed]),
        reserved=next((each for each in reservations if each.waits), None),
        granted=granted,
        unlent=slots.running.keys() - borrowed if reservations else (),
    )


def _trouble(tx: ReadTx, host_id: str, slots: Slots, log_budget: int) -> HostTrouble | None:
    used = tx.marks()["log_bytes"]
    if used > log_budget:
        cause = (
            f"all logs together use {show_size(used)} of the {show_size(log_budget)} "
            "that logs.budget allows"
        )
        remedy = (
            "remove old jobs: headway jobs gc --days N; or raise logs.budget: "
            "headway config set logs.budget SIZE"
        )
        return HostTrouble(WaitKind.STORAGE, cause, 0, tx.now(), probing=True, remedy=remedy)
    trouble = tx.host_trouble(host_id)
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
        for other in (*tx.awaited_chains(waiting), *_awaited_makers(tx, waiting)):
            if other not in found:
                found[other] = None
                ahead.append(other)
    return list(found)


def _awaited_makers(tx: ReadTx, chain: JobId) -> Iterable[JobId]:
    """The chains that make what the last job of this one needs and is not there yet."""
    lasts = tx.chain_lasts([chain])
    keys = [key for key, _ in tx.needed_by(list(lasts.values()))] if lasts else []
    if not keys:
        return ()
    missing = (view for view in tx.artifact_views(keys).values() if not view.published)
    makers = [each.job_id for view in missing for each in view.producers if each.status in ACTIVE]
    return tx.chains_of(makers).values() if makers else ()
