"""Groups of jobs and their members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from headway.core.model import Job, JobId
from headway.core.states import Status
from headway.store.access import Table
from headway.store.rows import Row

if TYPE_CHECKING:
    from headway.core.groups import Group, GroupId, GroupTally, Member


class GroupsReader(Table):
    """Groups as a read transaction shows them."""

    def by_id(self, ids: Sequence[GroupId]) -> dict[GroupId, Group]:
        rows = self._db.all("groups_by_id", ids=self._db.json(ids))
        return {row[0]: _group(row) for row in rows}

    def named(self, name: str) -> Group | None:
        """The newest of that name."""
        row = self._db.one("groups_named", name=name)
        return _group(row) if row else None

    def since(self, since: int, limit: int) -> list[Group]:
        """The newest of those that have not ended, or did so since; the newest first."""
        return [_group(row) for row in self._db.all("groups_since", since=since, limit=limit)]

    def last_number(self, group_id: GroupId) -> int:
        """The highest sequence number; 0 if it has no member."""
        row = self._db.one("last_in_group", group_id=group_id)
        return (row[0] or 0) if row else 0

    def is_active(self, group_id: GroupId) -> bool:
        """Whether any member has not ended, or a run that members belong to may repeat them."""
        asked = ("active_in_group", "unsettled_in_group")
        return any(self._db.one(each, group_id=group_id) is not None for each in asked)

    def of_run(self, run: int) -> list[Group]:
        """The groups that nodes of a workflow run belong to, and that have not ended."""
        return [_group(row) for row in self._db.all("groups_of_run", run=run)]

    def tally(self, group_id: GroupId) -> GroupTally:
        from headway.core.groups import GroupTally

        rows = self._db.all("tally_group", group_id=group_id)
        ran = self._db.one("ran_in_group", group_id=group_id) is not None
        return GroupTally({Status(status): count for status, count in rows}, ran)

    def members(self, group_id: GroupId, limit: int) -> list[Member]:
        from headway.core.groups import Member

        rows = self._db.all("members_of_group", group_id=group_id, limit=limit)
        return [Member(chain, job_id, number, Status(s)) for chain, job_id, number, s in rows]

    def waiting_members(self, group_id: GroupId, *, after: int = 0) -> list[Job]:
        """Those that wait, with a sequence number beyond that one, in their order."""
        rows = self._db.all("waiting_in_group", group_id=group_id, sequence_number=after)
        return self._readable(rows)

    def failed_member(self, group_id: GroupId) -> Job | None:
        """The first whose chain has ended without success; before those cancelled for it."""
        found = self._readable(self._db.all("failed_in_group", group_id=group_id))
        return found[0] if found else None

    def turns(self, jobs: Iterable[Job]) -> dict[JobId, JobId]:
        """Of these jobs, those of sequential groups that are not next: each with the nearest chain
        before it that has not ended."""
        found = {}
        for job in jobs:
            row = self._db.one(
                "turn_in_group", group_id=job.group_id, sequence_number=job.sequence_number
            )
            if row:
                found[job.id] = row[0]
        return found

    def turns_upstream(self, ids: Sequence[JobId]) -> dict[JobId, JobId]:
        """Of these jobs and of all active ones before them in sequential groups: for each but the
        first of a group the job that goes before it."""
        found: dict[JobId, JobId] = {}
        for group_id, last in self._db.all("last_turns", ids=self._db.json(ids)):
            rows = self._db.all("turns_until", group_id=group_id, sequence_number=last)
            found |= {mine: ahead for (ahead,), (mine,) in pairwise(rows)}
        return found

    def chains_behind(self, chains: Sequence[JobId]) -> list[JobId]:
        """Those, active or ended, whose turn in a sequential group comes after one of these."""
        rows = self._db.all("chains_behind", chains=self._db.json(chains))
        return [row[0] for row in rows]

    def chains_before(self, chains: Sequence[JobId]) -> list[JobId]:
        rows = self._db.all("chains_before", chains=self._db.json(chains))
        return [row[0] for row in rows]


class GroupsTable(GroupsReader):
    """Groups as a write transaction changes them."""

    def take_id(self) -> GroupId:
        return int(self._db.all("take_group_id")[0][0])

    def add(self, group: Group) -> None:
        self._db.send("add_group", **{**group._asdict(), "mode": group.mode.value})

    def close(self, group_id: GroupId) -> bool:
        """No other may join it; False if it was closed before."""
        return self._db.change("close_group", id=group_id, at=self._db.now) == 1

    def set_ended(self, group_id: GroupId) -> bool:
        """Its end is recorded now; False if it was before."""
        return self._db.change("set_group_ended", id=group_id, at=self._db.now) == 1

    def reopen(self, chains: Sequence[JobId]) -> None:
        """Groups of these chains that had come to their end run again."""
        self._db.send("reopen_groups", chains=self._db.json(chains))

    def join(self, jobs: Sequence[Job]) -> bool:
        """Write the group and the sequence number of waiting jobs that are in no group; False if
        one of them no longer is so."""
        return all(
            self._db.change(
                "join_group",
                id=job.id,
                group_id=job.group_id,
                sequence_number=job.sequence_number,
            )
            == 1
            for job in jobs
        )


def _group(row: Row) -> Group:
    from headway.core.groups import Group, GroupMode

    group_id, mode, *rest = row
    return Group(group_id, GroupMode(mode), *rest)
