"""The part of the seam about slung work: targets, open jobs by their subjects, tracking groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from headway.core.model import Job, JobId

if TYPE_CHECKING:
    from headway.core.targets import Target


class GovernorReading(Protocol):
    def targets(self) -> dict[str, Target]: ...
    def open_about(self, subjects: Sequence[str]) -> dict[str, Job]:
        """The job that is open for each of these subjects; there is one at most."""

    def open_with_subject(self, limit: int) -> list[Job]:
        """The open jobs that are about any subject, in dispatch order."""

    def open_with_subject_after(self, after: JobId, limit: int) -> list[Job]:
        """The same by their ids, and only later ones: for those who go through all of them."""

    def places_in_queue(self) -> dict[JobId, int]:
        """The place at the door, from 1, of each job that is about a subject and stands there."""

    def groups_tracking(self, subjects: Sequence[str]) -> dict[str, int]:
        """The group that a sling made, that tracks each of these and has not ended; the newest if
        there are more."""


class GovernorWriting(GovernorReading, Protocol):
    def add_target(self, target: Target) -> bool:
        """False if there is one of that name."""

    def remove_target(self, name: str) -> bool: ...
