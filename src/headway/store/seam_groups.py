"""The part of the seam about groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from headway.core.model import Job, JobId

if TYPE_CHECKING:  # most transactions have nothing to do with groups
    from headway.core.groups import Group, GroupId, Member, Tally


class ReadsGroups(Protocol):
    def groups(self, ids: Sequence[GroupId]) -> dict[GroupId, Group]: ...
    def group_named(self, name: str) -> Group | None:
        """The newest of that name."""

    def groups_since(self, since: int, limit: int) -> list[Group]:
        """The newest of those that have not ended, or did so since; the newest first."""

    def last_in_group(self, group_id: GroupId) -> int:
        """The highest sequence number; 0 if it has no member."""

    def group_is_active(self, group_id: GroupId) -> bool:
        """Whether any member has not ended."""

    def tally(self, group_id: GroupId) -> Tally: ...
    def members(self, group_id: GroupId, limit: int) -> list[Member]: ...
    def waiting_members(self, group_id: GroupId, *, after: int = 0) -> list[Job]:
        """Those that wait, with a sequence number beyond that one, in their order."""

    def failed_member(self, group_id: GroupId) -> Job | None:
        """The first whose chain has ended without success."""

    def turns(self, jobs: Iterable[Job]) -> dict[JobId, JobId]:
        """Of these jobs, those of sequential groups that are not next: each with the nearest chain
        before it that has not ended."""

    def turns_upstream(self, ids: Sequence[JobId]) -> dict[JobId, JobId]:
        """Of these jobs and of all active ones before them in sequential groups: for each but the
        first of a group the job that goes before it."""

    def chains_behind(self, chains: Sequence[JobId]) -> list[JobId]:
        """Those, active or ended, whose turn in a sequential group comes after one of these."""

    def chains_before(self, chains: Sequence[JobId]) -> list[JobId]: ...


class WritesGroups(Protocol):
    def take_group_id(self) -> GroupId: ...
    def add_group(self, group: Group) -> None: ...
    def close_group(self, group_id: GroupId) -> bool:
        """No other may join it; False if it was closed before."""

    def set_group_ended(self, group_id: GroupId) -> bool:
        """Its end is told now; False if it was before."""

    def reopen_groups(self, chains: Sequence[JobId]) -> None:
        """Groups of these chains that had come to their end run again."""

    def join_group(self, jobs: Sequence[Job]) -> bool:
        """Write the group and the sequence number of waiting jobs that are in no group; False if
        one of them no longer is so."""
