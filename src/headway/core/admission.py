"""Capacity: one door for every path that starts work, and the same arithmetic for every view of it.

Status, dry run and dispatch all ask here, so they cannot disagree. A job takes a slot and, of every
limit that concerns it, one; it starts only if it can have all of them. What a waiting job lends is
its slot and all that it holds of the limits, to one job at a time. An entry of the jobs file that
is not an agent takes one of `jobsfile.parallel` places instead of a slot; that bound is one more of
its limits, and all else is the same for it.
"""

from collections.abc import Collection, Iterable, Mapping

from headway.core.facts import Door, Occupant
from headway.core.model import FUNCTION, Job, JobId, Wait, WaitKind
from headway.core.policies import ENTRY, SLOT, keys_of, limit_topic, place_of, rate_keys
from headway.core.reservations import Reservation


def occupied(occupants: Iterable[Occupant], lending: Collection[JobId]) -> dict[str, int]:
    """How much is in use of the slots and of every key.

    Who borrows counts only for what its lender, and the lender of that one, does not hold: it runs
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
    """What each of those who lend can give: what it holds itself and what it borrows."""
    holders = _holders(occupants)
    return {job_id: _in_turn(job_id, holders, lending) for job_id in lending}


def _holders(occupants: Iterable[Occupant]) -> dict[JobId, Occupant]:
    return {each.job_id: each for each in occupants if each.job_id is not None}


def _in_turn(
    lender: JobId | None, holders: Mapping[JobId, Occupant], lending: Collection[JobId]
) -> frozenset[str]:
    """What this lender has, and whoever lends to it, and so on."""
    held: set[str] = set()
    passed: set[JobId] = set()
    while lender is not None and lender in lending and lender in holders and lender not in passed:
        passed.add(lender)
        held.update(holders[lender].held)
        lender = holders[lender].borrowed_from
    return frozenset(held)


def free_slots(door: Door) -> int | None:
    """How many jobs may start now by the global cap; None is no cap (direct dispatch)."""
    if door.max_active <= 0:
        return None
    return max(0, door.max_active - door.running)


def limit_of(key: str, door: Door) -> int | None:
    """How many may run at once under this key, or start by this rate; None: any number."""
    return door.parallel if key == ENTRY else door.limits.get(key)


def room(key: str, door: Door) -> int | None:
    """How many more may start by this limit or rate; None: there is no such limit."""
    limit = limit_of(key, door)
    return None if limit is None else max(0, limit - door.usage.get(key, 0))


def limited_keys(job: Job, door: Door) -> tuple[str, ...]:
    """What the job needs of that which is limited now."""
    if not door.limits:
        return (ENTRY,) if job.is_entry else ()
    needed = (*keys_of(job, door.policies), *rate_keys(job))
    return tuple(key for key in needed if limit_of(key, door) is not None)


def _lacking(job: Job, door: Door) -> tuple[str, ...]:
    return _lacking_keys(limited_keys(job, door), door)


def _lacking_keys(keys: Iterable[str], door: Door) -> tuple[str, ...]:
    return tuple(key for key in keys if room(key, door) == 0)


def lender_for(job: Job, door: Door) -> JobId | None:
    """A running job that waits for this one and lends it all that it lacks.

    Not while more run than may because a lender went on beside who had borrowed from it: then
    nothing starts until one of them has ended. If only the cap was lowered, what is lent adds
    nothing to what runs, and those who wait for it could never end without.
    """
    if not door.lenders:
        return None
    lacking = _lacking(job, door)
    if _exceeded(lacking, door):
        return None
    lenders = _place_lenders(job, door) if _lacks_a_place(job, door) else _lenders(job, door)
    for lender in lenders:
        if all(key in _lent_by(lender, door) for key in lacking):
            return lender
    return None


def _exceeded(keys: Iterable[str], door: Door) -> bool:
    return any(
        key in door.twice and door.usage.get(key, 0) > (limit_of(key, door) or 0) for key in keys
    )


def _lenders(job: Job, door: Door) -> tuple[JobId, ...]:
    return () if _overdrawn(door) else door.lenders.get(job.chain, ())


def _lent_by(lender: JobId, door: Door) -> Collection[str]:
    return door.lent.get(lender, (SLOT,))


def _place_lenders(job: Job, door: Door) -> tuple[JobId, ...]:
    """Those that lend the job what it is to run in: a job with a slot has no place for an entry of
    the jobs file to lend, and such an entry has no slot."""
    place = place_of(job)
    return tuple(each for each in _lenders(job, door) if place in _lent_by(each, door))


def _lacks_a_place(job: Job, door: Door) -> bool:
    """What is free may be kept for a direct call."""
    if door.reserved is not None:
        return True
    return room(ENTRY, door) == 0 if job.is_entry else free_slots(door) == 0


def _overdrawn(door: Door) -> bool:
    return SLOT in door.twice and 0 < door.max_active < door.running


def counted_twice(occupants: Iterable[Occupant], lending: Collection[JobId]) -> frozenset[str]:
    """What a lender has taken back by going on, while who borrowed it has it still."""
    occupants = list(occupants)
    running = _holders(occupants)
    return frozenset(
        key
        for each in occupants
        if each.borrowed_from in running and each.borrowed_from not in lending
        for key in each.held
    )


def objection(job: Job, door: Door, now: int) -> Wait | None:
    """Why the door stays shut for this job, or None."""
    return (
        _held_up(door, now)
        or _strained(job, door)
        or _spaced(door, now)
        or _reserved(job, door)
        or _no_slot(job, door)
        or _no_place(job, door)
        or _no_unit(job, left_by_direct(door) or door)
    )


def closed(door: Door, now: int) -> Wait | None:
    """Why the door is shut for everyone who borrows nothing, whatever is free."""
    return _held_up(door, now) or door.strain or _spaced(door, now)


def _held_up(door: Door, now: int) -> Wait | None:
    if door.paused is not None:
        because = f": {door.paused.reason}" if door.paused.reason else ""
        return Wait(
            WaitKind.PAUSED,
            f"paused by {door.paused.actor}{because}",
            at_door=True,
            remedy="headway scheduler resume",
        )
    trouble = door.trouble
    if trouble is not None and (trouble.probing or now < trouble.probe_at):
        return Wait(
            trouble.kind,
            trouble.cause,
            until=None if trouble.probing else trouble.probe_at,
            at_door=True,
            remedy=trouble.remedy,
        )
    return None


def _spaced(door: Door, now: int) -> Wait | None:
    if door.next_pass is None or now >= door.next_pass:
        return None
    return Wait(
        WaitKind.CAPACITY,
        "the next pass is not due: scheduler.spawn_delay",
        until=door.next_pass,
        at_door=True,
        remedy="wait until its time, or lower scheduler.spawn_delay",
    )


def _strained(job: Job, door: Door) -> Wait | None:
    """Who waits for this job does nothing meanwhile, and perhaps holds the memory that is short:
    without it, nobody would ever go on."""
    return None if door.strain is None or _lenders(job, door) else door.strain


def direct_objection(asking: Reservation, door: Door, now: int) -> Wait | None:
    """Why a direct call may not have its slot, and what it takes of the limits, or None."""
    held_up = _held_up(door, now)
    if held_up is not None or direct_lender(asking, door) is not None:
        return held_up
    if door.strain is not None:
        return door.strain
    if door.reserved is not None and door.reserved.id < asking.id:
        return _goes_first(door.reserved)
    return _all_in_use(door) or _none_left(_lacking_keys(asking.occupies, door), door)


def direct_lender(asking: Reservation, door: Door) -> JobId | None:
    """The running job, or the other direct call, that makes this one, if it holds all that this
    lacks and lends it to nobody else."""
    lendable = None if asking.inside is None else door.unlent.get(asking.inside)
    if lendable is None or _overdrawn(door):
        return None
    lacking = _lacking_keys(asking.occupies, door)
    if _exceeded(lacking, door) or not all(key in lendable for key in (SLOT, *lacking)):
        return None
    return asking.inside


def left_by_direct(door: Door) -> Door | None:
    """The door as the direct call that is first in line leaves it to queued jobs; None: shut.

    While it waits for a slot, or could have one, nobody else takes any. While it has only to wait
    for a limit, a slot and one of everything else that it takes are kept for it, and others may
    have the rest. Of what it lacks nothing is free; once there is, it can go, and nobody else can.
    """
    first = door.reserved
    if first is None:
        return door
    lacking = _lacking_keys(first.occupies, door)
    free = free_slots(door)
    if not lacking or (free is not None and free <= 1):
        return None
    kept = [key for key in first.occupies if key not in lacking]
    return door._replace(running=door.running + 1, usage=with_taken(kept, door.usage))


def _reserved(job: Job, door: Door) -> Wait | None:
    """What is lent is in nobody's way."""
    if door.reserved is None or left_by_direct(door) is not None or _place_lenders(job, door):
        return None
    return _goes_first(door.reserved)


def _goes_first(reservation: Reservation) -> Wait:
    return Wait(
        WaitKind.CAPACITY,
        f"{reservation.name} of {reservation.holder} goes first",
        at_door=True,
        remedy=f"wait until {reservation.name} has its slot; `headway scheduler status` shows it",
    )


def _no_slot(job: Job, door: Door) -> Wait | None:
    """An entry of the jobs file needs none; what it takes instead is among its limits."""
    return None if job.is_entry or _place_lenders(job, door) else _all_in_use(door)


def _all_in_use(door: Door) -> Wait | None:
    free = free_slots(door)
    if free is None or free > 0:
        return None
    direct = ", ".join(f"{each.name} of {each.holder}" for each in door.granted)
    return Wait(
        WaitKind.CAPACITY,
        f"all {door.max_active} slots are in use"
        if door.max_active > 1
        else "the one slot is in use",
        at_door=True,
        remedy=f"wait for {f'{direct} or ' if direct else ''}a running job to end, "
        "or raise scheduler.max_active",
    )


def _no_place(job: Job, door: Door) -> Wait | None:
    """A function needs a process that calls it, beside the slot."""
    if job.type != FUNCTION or door.places is None or door.places > 0:
        return None
    return Wait(
        WaitKind.CAPACITY,
        "every process that runs functions is busy",
        at_door=True,
        remedy="wait for a function to return, or raise app.processes",
    )


def _no_unit(job: Job, door: Door) -> Wait | None:
    """Nothing is left of a limit or a rate. It is filed under all that it lacks, and not at the
    door: there it would be in the way of those who lack nothing."""
    lacking = _lacking(job, door)
    if not lacking or lender_for(job, door) is not None:
        return None
    rates = [door.rates[key] for key in lacking if key in door.rates]
    told = [used_up(key, door) for key in lacking]
    return Wait(
        WaitKind.RATE if len(rates) == len(lacking) else WaitKind.CAPACITY,
        "; ".join(detail for detail, _ in told),
        topics=tuple(limit_topic(key, job) for key in lacking),
        until=max((each.until for each in rates if each.until is not None), default=None),
        remedy="; ".join(remedy for _, remedy in told),
    )


def _none_left(lacking: Collection[str], door: Door) -> Wait | None:
    """The same for a direct call, which is filed nowhere: it looks again by itself."""
    if not lacking:
        return None
    told = [used_up(key, door) for key in lacking]
    return Wait(
        WaitKind.CAPACITY,
        "; ".join(detail for detail, _ in told),
        remedy="; ".join(remedy for _, remedy in told),
    )


def used_up(key: str, door: Door) -> tuple[str, str]:
    """That nothing is left under this key, in words, and what would change it."""
    view = door.rates.get(key)
    if view is not None:
        return f"rate {view.rate.key}: {view.text} is used up", "wait until its time"
    if key == ENTRY:
        shown = (
            "the one place for entries of the jobs file is in use"
            if door.parallel == 1
            else f"all {door.parallel} places for entries of the jobs file are in use"
        )
        return shown, "wait for an entry's job to end, or raise jobsfile.parallel"
    kind, _, word = key.partition(":")
    limit, setting = door.limits[key], f"scheduler.limits.{kind}.{word}"
    if limit == 0:
        return f"none of {kind} {word} may run", f"{setting} is 0; raise it"
    shown = f"{kind} {word} is in use" if limit == 1 else f"all {limit} of {kind} {word} are in use"
    return shown, f"wait for a job that uses it to end, or raise {setting}"


def borrows(job: Job, door: Door) -> JobId | None:
    """Whose place the job takes when it goes through the door, if not one of its own."""
    if not door.lenders:
        return None
    door = left_by_direct(door) or door
    needed = _lacks_a_place(job, door) or bool(_lacking(job, door))
    return lender_for(job, door) if needed else None


def enter(job: Job, door: Door, lender: JobId | None) -> Door:
    """The door after this job went through it, in a place of its own or the lender's."""
    trouble = door.trouble and door.trouble._replace(probing=True)
    places = door.places
    if job.type == FUNCTION and places is not None:
        places -= 1
    lent = () if lender is None else _lent_by(lender, door)
    keys = limited_keys(job, door)
    if keys:
        door = door._replace(usage=with_taken(keys, door.usage, lent))
    if not job.is_entry and SLOT not in lent:
        door = door._replace(running=door.running + 1)
    if lender is None:
        return door._replace(trouble=trouble, places=places)
    lenders = {
        chain: tuple(each for each in lending if each != lender)
        for chain, lending in door.lenders.items()
    }
    return door._replace(lenders=lenders, trouble=trouble, places=places)


def with_taken(
    keys: Iterable[str], usage: Mapping[str, int], lent: Collection[str] = ()
) -> dict[str, int]:
    """What is in use when someone takes these, but for what is lent to it."""
    used = dict(usage)
    for key in keys:
        if key not in lent:
            used[key] = used.get(key, 0) + 1
    return used
