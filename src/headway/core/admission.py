"""Capacity: one door for every path that starts work, and the same arithmetic for every view of it.

Status, dry run and dispatch all ask here, so they cannot disagree.
"""

from headway.core.facts import Door
from headway.core.model import FUNCTION, Job, JobId, Wait, WaitKind
from headway.core.reservations import Reservation


def free_slots(door: Door) -> int | None:
    """How many jobs may start now by the global cap; None is no cap (direct dispatch)."""
    if door.max_active <= 0:
        return None
    return max(0, door.max_active - door.running)


def lender_for(job: Job, door: Door) -> JobId | None:
    """A running job that waits for this one and lends it the slot it holds.

    Not while more run than may: a lent slot adds nothing to what runs, so it mends nothing.
    """
    if 0 < door.max_active < door.running:
        return None
    lenders = door.lenders.get(job.chain, ())
    return lenders[0] if lenders else None


def objection(job: Job, door: Door, now: int) -> Wait | None:
    """Why the door stays shut for this job, or None."""
    return closed(door, now) or _reserved(job, door) or _no_slot(job, door) or _no_place(job, door)


def closed(door: Door, now: int) -> Wait | None:
    """Why the door is shut for everyone, whatever is free."""
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


def direct_objection(asking: Reservation, door: Door, now: int) -> Wait | None:
    """Why a direct call may not have its slot yet, or None."""
    shut = closed(door, now)
    if shut is not None or direct_lender(asking, door) is not None:
        return shut
    if door.reserved is not None and door.reserved.id < asking.id:
        return _goes_first(door.reserved)
    return _all_in_use(door)


def direct_lender(asking: Reservation, door: Door) -> JobId | None:
    """The running job that makes the direct call, if it can have that job's own slot."""
    if 0 < door.max_active < door.running or asking.inside not in door.unlent:
        return None
    return asking.inside


def _reserved(job: Job, door: Door) -> Wait | None:
    """While a direct call waits for the next slot nobody else takes one; what is lent is none."""
    if door.reserved is None or lender_for(job, door) is not None:
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
    return None if lender_for(job, door) is not None else _all_in_use(door)


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


def borrows(job: Job, door: Door) -> JobId | None:
    """Whose slot the job takes when it goes through the door, if not one of its own."""
    if not door.lenders or (free_slots(door) != 0 and door.reserved is None):
        return None
    return lender_for(job, door)


def enter(job: Job, door: Door, lender: JobId | None) -> Door:
    """The door after this job went through it, in a slot of its own or the lender's."""
    trouble = door.trouble and door.trouble._replace(probing=True)
    places = door.places
    if job.type == FUNCTION and places is not None:
        places -= 1
    if lender is None:
        return door._replace(running=door.running + 1, trouble=trouble, places=places)
    lenders = {
        chain: tuple(each for each in lending if each != lender)
        for chain, lending in door.lenders.items()
    }
    return door._replace(lenders=lenders, trouble=trouble, places=places)
