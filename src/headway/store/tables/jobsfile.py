"""Jobs files and their entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.base.errors import DataError
from headway.core.model import Job
from headway.store.access import Table
from headway.store.records import EntryRecord, JobsFileRecord
from headway.store.rows import dump, load


class JobsFilesReader(Table):
    """Jobs files as a read transaction shows them."""

    def file(self, host_id: str) -> JobsFileRecord | None:
        row = self._db.one("jobs_file", host_id=host_id)
        if row is None:
            return None
        digest, read_at, trouble, entries, loaded_at, poll_trouble, polled_at = row
        what = f"the jobs file of host {host_id}"
        return JobsFileRecord(
            digest,
            read_at,
            _list(trouble, what) if trouble else (),
            None if entries is None else _list(entries, what),
            loaded_at,
            poll_trouble,
            polled_at,
        )

    def entries(self, host_id: str) -> dict[str, EntryRecord]:
        return {
            row[0]: EntryRecord(*row) for row in self._db.all("entries_of_host", host_id=host_id)
        }

    def entry_state(self, host_id: str, name: str) -> Any:
        """The state that its function kept; None if nothing."""
        row = self._db.one("entry_state", host_id=host_id, name=name)
        return None if row is None or row[0] is None else load(row[0], f"the state of {name}")

    def active_made_by(self, makers: Sequence[str]) -> list[Job]:
        """Jobs that have not ended, by what made them."""
        return self._readable(self._db.all("active_made_by", makers=self._db.json(makers)))

    def other_work(self) -> bool:
        """Whether any job is active that no entry of a jobs file made."""
        return self._db.one("other_work") is not None

    def running_of_type(self, type_: str) -> bool:
        return self._db.one("running_of_type", type=type_) is not None


class JobsFilesTable(JobsFilesReader):
    """Jobs files as a write transaction changes them."""

    def put_file(self, host_id: str, file: JobsFileRecord) -> None:
        """All but what the poll said."""
        self._db.send(
            "put_jobs_file",
            host_id=host_id,
            digest=file.digest,
            read_at=file.read_at,
            trouble=dump(file.trouble) if file.trouble else None,
            document=None if file.entries is None else dump(file.entries),
            loaded_at=file.loaded_at,
        )

    def note_poll(self, host_id: str, trouble: str | None, *, polled: bool = True) -> None:
        """Record the result of the poll, or that there is no poll any more."""
        at = self._db.now if polled else None
        self._db.send("note_poll", host_id=host_id, trouble=trouble, at=at)

    def put_entries(self, host_id: str, records: Sequence[EntryRecord]) -> None:
        """What their functions keep stays."""
        self._db.many("put_entries", ({"host_id": host_id, **each._asdict()} for each in records))

    def keep_entry_state(self, host_id: str, name: str, state: Any) -> None:
        self._db.send("keep_entry_state", host_id=host_id, name=name, state=dump(state))

    def forget_entries(self, host_id: str, before: int) -> None:
        """Those that no jobs file has had since then, and that have no active job."""
        self._db.send("forget_entries", host_id=host_id, before=before)


def _list(text: str, what: str) -> tuple[Any, ...]:
    found = load(text, what)
    if not isinstance(found, list):
        raise DataError(f"{what} cannot be read: it is no list; run `headway doctor`")
    return tuple(found)
