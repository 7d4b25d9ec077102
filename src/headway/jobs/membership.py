"""Groups inside of a transaction: make one, find it again, put jobs into it, close it."""

import re
from collections.abc import Iterable, Mapping, Sequence

from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.core.groups import (
    POLICIES,
    Group,
    GroupId,
    GroupMode,
    GroupStatus,
    fate_of_rest,
    shown_group,
    status_of,
)
from headway.core.model import Job, JobId, JobSpec, shown
from headway.jobs.lifecycle import write_group_end
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx

GROUP_ID = re.compile(r"(?:group-|#)?([1-9][0-9]{0,17})")
LONGEST_NAME = 200


def find_group(tx: ReadTx, text: str) -> Group:
    """By its id (`group-3`, `3`), or the newest of that name."""
    match = GROUP_ID.fullmatch(text.strip())
    found = tx.groups.by_id([int(match[1])]).get(int(match[1])) if match else tx.groups.named(text)
    if found is not None:
        return found
    if match:
        name = shown_group(int(match[1]))
        raise NotFoundError(f"there is no {name}; `headway groups list --all`")
    raise NotFoundError(
        f"there is no group {text!r}; `headway groups list --all`, or `groups create --name` one"
    )


def called(group: Group) -> str:
    """As people know it: `group-3 (nightly)`."""
    return shown_group(group.id) + (f" ({group.name})" if group.name else "")


def new_group(
    tx: WriteTx,
    *,
    mode: str = GroupMode.SEQUENTIAL,
    on_failure: str = "stop",
    name: str | None = None,
    subject: str | None = None,
    actor: str,
) -> Group:
    """An open group without members. A name is free once its group has ended."""
    if mode not in list(GroupMode):
        raise InvalidInputError(f"mode {mode!r} is not one of {', '.join(GroupMode)}")
    if on_failure not in POLICIES:
        raise InvalidInputError(f"on-failure {on_failure!r} is not one of {', '.join(POLICIES)}")
    if name is not None:
        _check_name(tx, name)
    group = Group(
        id=tx.groups.take_id(),
        mode=GroupMode(mode),
        on_failure=on_failure,
        created_at=tx.now(),
        created_by=actor,
        name=name,
        subject=subject,
    )
    tx.groups.add(group)
    data = {"group": shown_group(group.id), "mode": group.mode.value, "on_failure": on_failure}
    named = {"name": name} if name is not None else {}
    tx.events.add([Event("group_created", None, {**data, **named})], actor=actor)
    return group


def _check_name(tx: ReadTx, name: str) -> None:
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise InvalidInputError(
            f"a group's name has 1 to {LONGEST_NAME} printable characters: {name!r}"
        )
    if GROUP_ID.fullmatch(name.strip()):
        raise InvalidInputError(f"the name {name!r} looks like the id of a group; use a word")
    known = tx.groups.named(name)
    if known is not None and known.ended_at is None:
        raise ConflictError(
            f"{called(known)} has not ended; `headway groups close` it, or use another name"
        )


def stopped_by(tx: ReadTx, group: Group) -> Job | None:
    """The member whose failure has stopped a group: until it is retried, nobody joins."""
    culprit = tx.groups.failed_member(group.id)
    return culprit if culprit is not None and fate_of_rest(group, culprit) is not None else None


def close_group(tx: WriteTx, group: Group, *, actor: str) -> GroupStatus:
    """No other joins it; with its last member's end it ends, and perhaps that was before."""
    if tx.groups.close(group.id):
        tx.events.add([Event("group_closed", None, {"group": shown_group(group.id)})], actor=actor)
        group = group._replace(closed_at=tx.now())
    return write_group_end(tx, group, actor=actor)


def join_group(tx: WriteTx, jobs: Iterable[Job], group_id: GroupId) -> None:
    """Put waiting jobs at the end of a group, also of one that is closed: who tracks what they are
    about tracks them."""
    last = tx.groups.last_number(group_id)
    tx.groups.join(
        [
            job._replace(group_id=group_id, sequence_number=number)
            for number, job in enumerate(jobs, last + 1)
        ]
    )


def enrol(
    tx: WriteTx, jobs: Sequence[Job], specs: Mapping[JobId, JobSpec], *, actor: str
) -> list[Job]:
    """New jobs, which are not stored yet, with their places in the groups that their specifications
    name: at the end, in the order of the submission."""
    groups: dict[str, Group] = {}
    places: dict[GroupId, int] = {}
    closed: set[GroupId] = set()
    placed = []
    for job in jobs:
        spec = specs.get(job.id)
        if spec is None or spec.group is None:
            placed.append(job)
            continue
        if spec.group not in groups:
            groups[spec.group] = group = _to_join(tx, spec.group)
            places.setdefault(group.id, tx.groups.last_number(group.id))
        group = groups[spec.group]
        if group.id in closed:
            raise InvalidInputError(f"{job.name}: stands behind the last job of {called(group)}")
        places[group.id] += 1
        placed.append(job._replace(group_id=group.id, sequence_number=places[group.id]))
        if spec.last:
            closed.add(group.id)
    for group in {each.id: each for each in groups.values() if each.id in closed}.values():
        tx.groups.close(group.id)
        tx.events.add([Event("group_closed", None, {"group": shown_group(group.id)})], actor=actor)
    return placed


def _to_join(tx: ReadTx, text: str) -> Group:
    """The group, if it takes new members."""
    group = find_group(tx, text)
    if group.closed_at is not None:
        status = status_of(group, tx.groups.tally(group.id))
        raise ConflictError(
            f"{called(group)} is closed ({status}): nobody joins it any more; "
            "`headway groups create` makes another"
        )
    culprit = stopped_by(tx, group)
    if culprit is not None:
        raise ConflictError(
            f"{called(group)} has stopped: {shown(culprit.id)} is {culprit.status}; "
            f"headway jobs retry {shown(culprit.id)}, or `headway groups close` it and make another"
        )
    return group
