"""The verbs about groups. Each applies a decision that was made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from headway.core.model import Job, JobId
from headway.core.states import Status
from headway.store.changing import Changing
from headway.store.graphreading import GraphReadTx
from headway.store.rows import Row

if TYPE_CHECKING:
    from headway.core.groups import Group, GroupId, Member, Tally


class GroupReadTx(GraphReadTx):
    def groups(self, ids: Sequence[GroupId]) -> dict[GroupId, Group]:
        rows = self._all("groups_by_id", ids=self._database.json(ids))
        return {row[0]: _group(row) for row in rows}

    def group_named(self, name: str) -> Group | None:
        row = self._one("groups_named", name=name)
        return _group(row) if row else None

    def groups_since(self, since: int, limit: int) -> list[Group]:
        return [_group(row) for row in self._all("groups_since", since=since, limit=limit)]

    def last_in_group(self, group_id: GroupId) -> int:
        row = self._one("last_in_group", group_id=group_id)
        return (row[0] or 0) if row else 0

    def group_is_active(self, group_id: GroupId) -> bool:
        return self._one("active_in_group", group_id=group_id) is not None

    def tally(self, group_id: GroupId) -> Tally:
        from headway.core.groups import Tally

        rows = self._all("tally_group", group_id=group_id)
        ran = self._one("ran_in_group", group_id=group_id) is not None
        return Tally({Status(status): count for status, count in rows}, ran)

    def members(self, group_id: GroupId, limit: int) -> list[Member]:
        from headway.core.groups import Member

        rows = self._all("members_of_group", group_id=group_id, limit=limit)
        return [Member(chain, job_id, number, Status(s)) for chain, job_id, number, s in rows]

    def waiting_members(self, group_id: GroupId, *, after: int = 0) -> list[Job]:
        rows = self._all("waiting_in_group", group_id=group_id, sequence_number=after)
        return self._readable(rows)

    def failed_member(self, group_id: GroupId) -> Job | None:
        found = self._readable(self._all("failed_in_group", group_id=group_id))
        return found[0] if found else None

    def turns(self, jobs: Iterable[Job]) -> dict[JobId, JobId]:
        found = {}
        for job in jobs:
            row = self._one(
                "turn_in_group", group_id=job.group_id, sequence_number=job.sequence_number
            )
            if row:
                found[job.id] = row[0]
        return found

    def turns_upstream(self, ids: Sequence[JobId]) -> dict[JobId, JobId]:
        found: dict[JobId, JobId] = {}
        for group_id, last in self._all("last_turns", ids=self._database.json(ids)):
            rows = self._all("turns_until", group_id=group_id, sequence_number=last)
            found |= {mine: ahead for (ahead,), (mine,) in pairwise(rows)}
        return found

    def chains_behind(self, chains: Sequence[JobId]) -> list[JobId]:
        rows = self._all("chains_behind", chains=self._database.json(chains))
        return [row[0] for row in rows]

    def chains_before(self, chains: Sequence[JobId]) -> list[JobId]:
        rows = self._all("chains_before", chains=self._database.json(chains))
        return [row[0] for row in rows]


class GroupWriteTx(GroupReadTx, Changing):
    def take_group_id(self) -> GroupId:
        return int(self._all("take_group_id")[0][0])

    def add_group(self, group: Group) -> None:
        self._tell("add_group", **{**group._asdict(), "mode": group.mode.value})

    def close_group(self, group_id: GroupId) -> bool:
        return self._run("close_group", id=group_id, at=self._now) == 1

    def set_group_ended(self, group_id: GroupId) -> bool:
        return self._run("set_group_ended", id=group_id, at=self._now) == 1

    def reopen_groups(self, chains: Sequence[JobId]) -> None:
        self._tell("reopen_groups", chains=self._database.json(chains))

    def join_group(self, jobs: Sequence[Job]) -> bool:
        return all(
            self._run(
                "join_group",
                id=job.id,
                group_id=job.group_id,
                sequence_number=job.sequence_number,
            )
            == 1
            for job in jobs
        )


def _group(row: Row) -> Group:
    from headway.core.groups import Group, Mode

    group_id, mode, *rest = row
    return Group(group_id, Mode(mode), *rest)
