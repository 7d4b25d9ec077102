"""Capacity: one rule for every path that starts work, and the same arithmetic for every view of it.

Status, dry run and dispatch all ask here, so they cannot disagree. A job takes a slot and, of every
limit that concerns it, one; it starts only if it can have all of them. A job that waits for another
lends its slot and all that it holds of the limits, to one job at a time. An entry of the jobs file
that
is not an agent takes one of `jobsfile.parallel` places instead of a slot; that bound is one more of
its limits, and all else is the same for it.
"""

from collections.abc import Collection, Iterable, Mapping

from headway.core import wait_words as say
from headway.core.facts import Capacity, Occupant
from headway.core.model import FUNCTION, Job, JobId, Wait, WaitKind
from headway.core.policies import ENTRY, SLOT, keys_of, limit_topic, place_of, rate_keys
from headway.core.reservations import Reservation


def occupied(occupants: Iterable[Occupant], lending: Collection[JobId]) -> dict[str, int]:
    """How much is in use of the slots and of every key.

    A borrower counts only for what its lender, and the lender of that one, does not hold: it runs
    in their place. When a lender stops waiting, both count.
    """
    occupants = list(occupants)
    holders = _holders(occupants)
    used: dict[str, int] = {}
    for each in occupants:
        lent = _in_turn(each.borrowed_from, holders, lending)
        for key in each.held:
            if key not in lent:
                used[key] = used.get(key, 0) + 1
    return used


def holdings(
    occupants: Iterable[Occupant], lending: Collection[JobId]
) -> dict[JobId, frozenset[str]]:
    """The holdings that each lender can give: its own and those it borrows."""
    holders = _holders(occupants)
    return {job_id: _in_turn(job_id, holders, lending) for job_id in lending}


def _holders(occupants: Iterable[Occupant]) -> dict[JobId, Occupant]:
    return {each.job_id: each for each in occupants if each.job_id is not None}


def _in_turn(
    lender: JobId | None, holders: Mapping[JobId, Occupant], lending: Collection[JobId]
) -> frozenset[str]:
    """The holdings of this lender, of its own lender, and so on."""
    held: set[str] = set()
    passed: set[JobId] = set()
    while lender is not None and lender in lending and lender in holders and lender not in passed:
        passed.add(lender)
        held.update(holders[lender].held)
        lender = holders[lender].borrowed_from
    return frozenset(held)


def free_slots(capacity: Capacity) -> int | None:
    """How many jobs may start now by the global cap; None is no cap (direct dispatch)."""
    if capacity.max_active <= 0:
        return None
    return max(0, capacity.max_active - capacity.running)


def limit_of(key: str, capacity: Capacity) -> int | None:
    """How many may run at once under this key, or start by this rate; None: any number."""
    return capacity.parallel if key == ENTRY else capacity.limits.get(key)


def room(key: str, capacity: Capacity) -> int | None:
    """How many more may start by this limit or rate; None: there is no such limit."""
    limit = limit_of(key, capacity)
    return None if limit is None else max(0, limit - capacity.usage.get(key, 0))


def limited_keys(job: Job, capacity: Capacity) -> tuple[str, ...]:
    """The keys that the job needs and that have a limit now."""
    if not capacity.limits:
        return (ENTRY,) if job.is_entry else ()
    needed = (*keys_of(job, capacity.policies), *rate_keys(job))
    return tuple(key for key in needed if limit_of(key, capacity) is not None)


def _lacking(job: Job, capacity: Capacity) -> tuple[str, ...]:
    return _lacking_keys(limited_keys(job, capacity), capacity)


def _lacking_keys(keys: Iterable[str], capacity: Capacity) -> tuple[str, ...]:
    return tuple(key for key in keys if room(key, capacity) == 0)


def lender_for(job: Job, capacity: Capacity) -> JobId | None:
    """A running job that waits for this one and lends it all that it lacks.

    Not while more run than may because a lender went on beside who had borrowed from it: then
    nothing starts until one of them has ended. If only the cap was lowered, what is lent adds
    nothing to what runs, and those who wait for it could never end without.
    """
    if not capacity.lenders:
        return None
    lacking = _lacking(job, capacity)
    if _exceeded(lacking, capacity):
        return None
    lenders = (
        _place_lenders(job, capacity) if _lacks_a_place(job, capacity) else _lenders(job, capacity)
    )
    for lender in lenders:
        if all(key in _lent_by(lender, capacity) for key in lacking):
            return lender
    return None


def _exceeded(keys: Iterable[str], capacity: Capacity) -> bool:
    return any(
        key in capacity.twice and capacity.usage.get(key, 0) > (limit_of(key, capacity) or 0)
        for key in keys
    )


def _lenders(job: Job, capacity: Capacity) -> tuple[JobId, ...]:
    return () if _overdrawn(capacity) else capacity.lenders.get(job.chain, ())


def _lent_by(lender: JobId, capacity: Capacity) -> Collection[str]:
    return capacity.lent.get(lender, (SLOT,))


def _place_lenders(job: Job, capacity: Capacity) -> tuple[JobId, ...]:
    """Those that lend the job what it is to run in: a job with a slot has no place for an entry of
    the jobs file to lend, and such an entry has no slot."""
    place = place_of(job)
    return tuple(each for each in _lenders(job, capacity) if place in _lent_by(each, capacity))


def _lacks_a_place(job: Job, capacity: Capacity) -> bool:
    """A free place may be kept for a direct call."""
    if capacity.reserved is not None:
        return True
    return room(ENTRY, capacity) == 0 if job.is_entry else free_slots(capacity) == 0


def _overdrawn(capacity: Capacity) -> bool:
    return SLOT in capacity.twice and 0 < capacity.max_active < capacity.running


def counted_twice(occupants: Iterable[Occupant], lending: Collection[JobId]) -> frozenset[str]:
    """The capacity that a lender has taken back by going on, while its borrower still holds it."""
    occupants = list(occupants)
    running = _holders(occupants)
    return frozenset(
        key
        for each in occupants
        if each.borrowed_from in running and each.borrowed_from not in lending
        for key in each.held
    )


def objection(job: Job, capacity: Capacity, now: int) -> Wait | None:
    """Why capacity does not let this job start, or None."""
    return (
        _held_up(capacity, now)
        or _strained(job, capacity)
        or _spaced(capacity, now)
        or _reserved(job, capacity)
        or _no_slot(job, capacity)
        or _no_place(job, capacity)
        or _no_unit(job, left_by_direct(capacity) or capacity)
    )


def closed(capacity: Capacity, now: int) -> Wait | None:
    """Why no job that borrows nothing may start, whatever is free."""
    return _held_up(capacity, now) or capacity.strain or _spaced(capacity, now)


def _held_up(capacity: Capacity, now: int) -> Wait | None:
    if capacity.paused is not None:
        words = say.paused(capacity.paused)
        return Wait(WaitKind.PAUSED, words.detail, for_capacity=True, remedy=words.remedy)
    trouble = capacity.trouble
    if trouble is not None and (trouble.probing or now < trouble.probe_at):
        return Wait(
            trouble.kind,
            trouble.cause,
            until=None if trouble.probing else trouble.probe_at,
            for_capacity=True,
            remedy=trouble.remedy,
        )
    return None


def _spaced(capacity: Capacity, now: int) -> Wait | None:
    if capacity.next_pass is None or now >= capacity.next_pass:
        return None
    words, until = say.no_pass_due(), capacity.next_pass
    return Wait(
        WaitKind.CAPACITY, words.detail, until=until, for_capacity=True, remedy=words.remedy
    )


def _strained(job: Job, capacity: Capacity) -> Wait | None:
    """The job that waits for this one does nothing meanwhile, and perhaps holds the memory that is
    short. If this one could not start, neither would ever go on."""
    return None if capacity.strain is None or _lenders(job, capacity) else capacity.strain


def direct_objection(asking: Reservation, capacity: Capacity, now: int) -> Wait | None:
    """Why a direct call may not have its slot, and what it takes of the limits, or None."""
    held_up = _held_up(capacity, now)
    if held_up is not None or direct_lender(asking, capacity) is not None:
        return held_up
    if capacity.strain is not None:
        return capacity.strain
    if capacity.reserved is not None and capacity.reserved.id < asking.id:
        return _goes_first(capacity.reserved)
    return _all_in_use(capacity) or _none_left(_lacking_keys(asking.occupies, capacity), capacity)


def direct_lender(asking: Reservation, capacity: Capacity) -> JobId | None:
    """The running job, or the other direct call, that makes this one, if it holds all that this
    lacks and lends it to nobody else."""
    lendable = None if asking.inside is None else capacity.unlent.get(asking.inside)
    if lendable is None or _overdrawn(capacity):
        return None
    lacking = _lacking_keys(asking.occupies, capacity)
    if _exceeded(lacking, capacity) or not all(key in lendable for key in (SLOT, *lacking)):
        return None
    return asking.inside


def left_by_direct(capacity: Capacity) -> Capacity | None:
    """The capacity that the first direct call in line leaves to queued jobs; None: nothing.

    While it waits for a slot, or could have one, no job takes any. While it lacks only a limit, a
    slot and one of everything else that it takes are kept for it, and jobs may have the rest.
    Nothing is free of what it lacks; once something is, the direct call goes and no job can take
    it.
    """
    first = capacity.reserved
    if first is None:
        return capacity
    lacking = _lacking_keys(first.occupies, capacity)
    free = free_slots(capacity)
    if not lacking or (free is not None and free <= 1):
        return None
    kept = [key for key in first.occupies if key not in lacking]
    return capacity._replace(running=capacity.running + 1, usage=with_taken(kept, capacity.usage))


def _reserved(job: Job, capacity: Capacity) -> Wait | None:
    """Lent capacity holds nobody back."""
    if (
        capacity.reserved is None
        or left_by_direct(capacity) is not None
        or _place_lenders(job, capacity)
    ):
        return None
    return _goes_first(capacity.reserved)


def _goes_first(reservation: Reservation) -> Wait:
    return _at_capacity(say.direct_call_first(reservation))


def _at_capacity(words: say.Words) -> Wait:
    """In the queue for slots, until something is free."""
    return Wait(WaitKind.CAPACITY, words.detail, for_capacity=True, remedy=words.remedy)


def _no_slot(job: Job, capacity: Capacity) -> Wait | None:
    """An entry of the jobs file needs none; what it takes instead is among its limits."""
    return None if job.is_entry or _place_lenders(job, capacity) else _all_in_use(capacity)


def _all_in_use(capacity: Capacity) -> Wait | None:
    free = free_slots(capacity)
    if free is None or free > 0:
        return None
    return _at_capacity(say.no_slot(capacity))


def _no_place(job: Job, capacity: Capacity) -> Wait | None:
    """A function needs a process that calls it, beside the slot."""
    if job.type != FUNCTION or capacity.places is None or capacity.places > 0:
        return None
    return _at_capacity(say.no_process())


def _no_unit(job: Job, capacity: Capacity) -> Wait | None:
    """Nothing is left of a limit or a rate. The job is parked under all that it lacks. In the queue
    for slots it would be in the way of jobs that lack nothing."""
    lacking = _lacking(job, capacity)
    if not lacking or lender_for(job, capacity) is not None:
        return None
    rates = [capacity.rates[key] for key in lacking if key in capacity.rates]
    words = say.all_used_up(lacking, capacity)
    return Wait(
        WaitKind.RATE if len(rates) == len(lacking) else WaitKind.CAPACITY,
        words.detail,
        topics=tuple(limit_topic(key, job) for key in lacking),
        until=max((each.until for each in rates if each.until is not None), default=None),
        remedy=words.remedy,
    )


def _none_left(lacking: Collection[str], capacity: Capacity) -> Wait | None:
    """The same for a direct call, which is parked nowhere: it polls by itself."""
    if not lacking:
        return None
    words = say.all_used_up(list(lacking), capacity)
    return Wait(WaitKind.CAPACITY, words.detail, remedy=words.remedy)


def borrows(job: Job, capacity: Capacity) -> JobId | None:
    """The lender whose place the job takes when it starts; None for a place of its own."""
    if not capacity.lenders:
        return None
    capacity = left_by_direct(capacity) or capacity
    needed = _lacks_a_place(job, capacity) or bool(_lacking(job, capacity))
    return lender_for(job, capacity) if needed else None


def enter(job: Job, capacity: Capacity, lender: JobId | None) -> Capacity:
    """The capacity after the start of this job, in a place of its own or the lender's."""
    trouble = capacity.trouble and capacity.trouble._replace(probing=True)
    places = capacity.places
    if job.type == FUNCTION and places is not None:
        places -= 1
    lent = () if lender is None else _lent_by(lender, capacity)
    keys = limited_keys(job, capacity)
    if keys:
        capacity = capacity._replace(usage=with_taken(keys, capacity.usage, lent))
    if not job.is_entry and SLOT not in lent:
        capacity = capacity._replace(running=capacity.running + 1)
    if lender is None:
        return capacity._replace(trouble=trouble, places=places)
    lenders = {
        chain: tuple(each for each in lending if each != lender)
        for chain, lending in capacity.lenders.items()
    }
    return capacity._replace(lenders=lenders, trouble=trouble, places=places)


def with_taken(
    keys: Iterable[str], usage: Mapping[str, int], lent: Collection[str] = ()
) -> dict[str, int]:
    """The usage after these keys are taken, apart from those that are lent."""
    used = dict(usage)
    for key in keys:
        if key not in lent:
            used[key] = used.get(key, 0) + 1
    return used
