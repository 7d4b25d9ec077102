"""The part of the seam that is about jobs files and their entries."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from headway.core.model import Job, JobId


class JobsFile(NamedTuple):
    """The jobs file of a home as it was last read. A broken one has `trouble`, and `entries` is
    still the last good set, by which the worker goes on."""

    digest: str
    read_at: int
    trouble: tuple[Mapping[str, Any], ...] = ()  # line, key and text of each problem
    entries: tuple[Mapping[str, Any], ...] | None = None  # None: there never was a good one
    loaded_at: int | None = None
    poll_trouble: str | None = None  # why the last poll failed
    polled_at: int | None = None


class EntryRecord(NamedTuple):
    """What is known of one entry. `next_at` is None while its job is active."""

    name: str
    last_job: JobId | None = None
    last_end_at: int | None = None
    last_status: str | None = None
    next_at: int | None = None
    held: str | None = None  # why it was held back when it was due
    held_at: int | None = None
    gone_at: int | None = None  # since when no jobs file has it


class ReadsEntries(Protocol):
    def jobs_file(self, host_id: str) -> JobsFile | None: ...
    def entries(self, host_id: str) -> dict[str, EntryRecord]: ...
    def entry_state(self, host_id: str, name: str) -> Any:
        """What its function kept; None if nothing."""

    def active_made_by(self, makers: Sequence[str]) -> list[Job]:
        """Jobs that have not ended, by what made them."""

    def other_work(self) -> bool:
        """Whether any job is active that no entry of a jobs file made."""

    def running_of_type(self, type_: str) -> bool: ...


class WritesEntries(ReadsEntries, Protocol):
    def put_jobs_file(self, host_id: str, file: JobsFile) -> None:
        """All but what the poll said."""

    def note_poll(self, host_id: str, trouble: str | None, *, polled: bool = True) -> None:
        """What it said just now, or that there is none any more."""

    def put_entries(self, host_id: str, records: Sequence[EntryRecord]) -> None:
        """What their functions keep stays."""

    def keep_entry_state(self, host_id: str, name: str, state: Any) -> None: ...

    def forget_entries(self, host_id: str, before: int) -> None:
        """Those that no jobs file has had since then, and that have no active job."""
