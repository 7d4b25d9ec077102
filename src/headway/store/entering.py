"""The verbs about jobs files and their entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.model import Job
from headway.errors import DataError
from headway.store.changing import Changing
from headway.store.graphreading import GraphReadTx
from headway.store.rows import dump, load
from headway.store.seam_entries import EntryRecord, JobsFile


def _list(text: str, what: str) -> tuple[Any, ...]:
    found = load(text, what)
    if not isinstance(found, list):
        raise DataError(f"{what} cannot be read: it is no list; run `headway doctor`")
    return tuple(found)


class EntryReadTx(GraphReadTx):
    def jobs_file(self, host_id: str) -> JobsFile | None:
        row = self._one("jobs_file", host_id=host_id)
        if row is None:
            return None
        digest, read_at, trouble, entries, loaded_at, poll_trouble, polled_at = row
        what = f"the jobs file of host {host_id}"
        return JobsFile(
            digest,
            read_at,
            _list(trouble, what) if trouble else (),
            None if entries is None else _list(entries, what),
            loaded_at,
            poll_trouble,
            polled_at,
        )

    def entries(self, host_id: str) -> dict[str, EntryRecord]:
        return {row[0]: EntryRecord(*row) for row in self._all("entries_of_host", host_id=host_id)}

    def entry_state(self, host_id: str, name: str) -> Any:
        row = self._one("entry_state", host_id=host_id, name=name)
        return None if row is None or row[0] is None else load(row[0], f"the state of {name}")

    def active_made_by(self, makers: Sequence[str]) -> list[Job]:
        return self._readable(self._all("active_made_by", makers=self._database.json(makers)))

    def other_work(self) -> bool:
        return self._one("other_work") is not None

    def running_of_type(self, type_: str) -> bool:
        return self._one("running_of_type", type=type_) is not None


class EntryWriteTx(EntryReadTx, Changing):
    def put_jobs_file(self, host_id: str, file: JobsFile) -> None:
        self._tell(
            "put_jobs_file",
            host_id=host_id,
            digest=file.digest,
            read_at=file.read_at,
            trouble=dump(file.trouble) if file.trouble else None,
            document=None if file.entries is None else dump(file.entries),
            loaded_at=file.loaded_at,
        )

    def note_poll(self, host_id: str, trouble: str | None, *, polled: bool = True) -> None:
        at = self._now if polled else None
        self._tell("note_poll", host_id=host_id, trouble=trouble, at=at)

    def put_entries(self, host_id: str, records: Sequence[EntryRecord]) -> None:
        self._many("put_entries", ({"host_id": host_id, **each._asdict()} for each in records))

    def keep_entry_state(self, host_id: str, name: str, state: Any) -> None:
        self._tell("keep_entry_state", host_id=host_id, name=name, state=dump(state))

    def forget_entries(self, host_id: str, before: int) -> None:
        self._tell("forget_entries", host_id=host_id, before=before)
