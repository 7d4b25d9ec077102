"""The entries that a worker goes by: those of the jobs file, or of the last good one if the present
one is broken. The store keeps that set, so that a worker which comes up with a broken file has it,
too."""

from collections.abc import Callable, Mapping

from headway.base.errors import DataError, HeadwayError
from headway.core.periodic import Timing, next_look, not_in_future
from headway.schedules.jobsfile.job_of_entry import timing_of
from headway.schedules.jobsfile.model import Entry, entry_of
from headway.schedules.jobsfile.reload import Read
from headway.store.new_jobs import Event
from headway.store.records import EntryRecord, JobsFileRecord
from headway.store.transaction import ReadTx, WriteTx

LONGEST_REASON = 1000

Entries = Mapping[str, Entry]


class Declared:
    def __init__(
        self, host_id: str, worker_id: str, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self.timings: dict[str, Timing] = {}
        self.unusable: dict[str, str] = {}  # entries whose rule means nothing here, and why
        self.poll_trouble: str | None = None
        self._host_id = host_id
        self._worker_id = worker_id
        self._say = say

    @property
    def enabled(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.enabled]

    def load(self, tx: WriteTx, read: Read) -> None:
        """Take over what was read; each content is stored and reported once."""
        known, damage = self._known(tx)
        before = _entries_of(known)
        news = read.digest != (known.digest if known else "") or damage
        self.poll_trouble = known.poll_trouble if known else None
        self._go_by(before if read.problems else {each.name: each for each in read.entries})
        if news and read.problems:
            self._refuse(tx, read, known, damage)
        elif news:
            self._accept(tx, read, damage)
            self._place(tx, before)

    def recall_poll(self, tx: ReadTx) -> None:
        """As the store knows what the last poll said."""
        known, _ = self._known(tx)
        self.poll_trouble = known.poll_trouble if known else None

    def _known(self, tx: ReadTx) -> tuple[JobsFileRecord | None, dict[str, str]]:
        """The entries that the store keeps. A damaged row counts as none, and is written anew."""
        try:
            return tx.jobsfile.file(self._host_id), {}
        except DataError as error:
            return None, {"damage": in_one_line(error)}

    def give_up(self, name: str, error: Exception) -> None:
        """Its rule says nothing; that concerns no other entry."""
        self.timings.pop(name, None)
        self.unusable[name] = in_one_line(error)

    def _go_by(self, entries: Entries) -> None:
        self.entries, self.timings, self.unusable = dict(entries), {}, {}
        for name, entry in entries.items():
            try:
                self.timings[name] = timing_of(entry)
            except Exception as error:  # also one that nobody foresaw must not stop the others
                self.give_up(name, error)

    def _refuse(
        self, tx: WriteTx, read: Read, known: JobsFileRecord | None, damage: Mapping[str, str]
    ) -> None:
        last = known or JobsFileRecord("", tx.now())
        broken = last._replace(digest=read.digest, read_at=tx.now(), trouble=read.problems)
        tx.jobsfile.put_file(self._host_id, broken)
        data = {"problems": list(read.problems), "entries": len(self.entries), **damage}
        tx.events.add([Event("jobs_file_refused", None, data)], actor=self._worker_id)
        first, more = read.problems[0], len(read.problems) - 1
        where = f"line {first['line']}: {first['key']}: {first['text']}"
        rest = f" (and {more} more)" if more else ""
        self._say(f"the jobs file is broken, the last good entries run on: {where}{rest}")

    def _accept(self, tx: WriteTx, read: Read, damage: Mapping[str, str]) -> None:
        documents = tuple(each.document() for each in read.entries)
        now = tx.now()
        tx.jobsfile.put_file(self._host_id, JobsFileRecord(read.digest, now, (), documents, now))
        data = {"entries": len(documents), "enabled": len(self.enabled), **damage}
        tx.events.add([Event("jobs_file_loaded", None, data)], actor=self._worker_id)
        self._say(f"the jobs file has {data['entries']} entries, {data['enabled']} are enabled")

    def _place(self, tx: WriteTx, before: Entries) -> None:
        """Store when new entries, or those with a changed rule, are first checked, and since when
        others are gone."""
        records = tx.jobsfile.entries(self._host_id)
        changed = []
        for name, entry in self.entries.items():
            record = records.get(name, EntryRecord(name))
            old = before.get(name)
            if old != entry or record.gone_at is not None:
                record = record._replace(held=None, held_at=None, gone_at=None)
            active = record.next_at is None and record.last_job is not None
            if name in self.timings and not active and (old is None or _rule(old) != _rule(entry)):
                record = self._placed(record, tx.now())
            if record != records.get(name):
                changed.append(record)
        gone = [
            each._replace(gone_at=tx.now())
            for name, each in records.items()
            if name not in self.entries and each.gone_at is None
        ]
        tx.jobsfile.put_entries(self._host_id, [*changed, *gone])

    def _placed(self, record: EntryRecord, now: int) -> EntryRecord:
        ended = not_in_future(record.last_end_at, now)
        try:
            at = next_look(self.timings[record.name], started=None, ended=ended, since=now)
        except Exception as error:
            self.give_up(record.name, error)
            return record
        return record._replace(next_at=at)


def in_one_line(error: Exception) -> str:
    """The error in one line, for a reader who did not write the code."""
    words = " ".join(str(error).split())[:LONGEST_REASON]
    if isinstance(error, HeadwayError):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _rule(entry: Entry) -> tuple[object, ...]:
    """The rule by which it is due; an entry that was disabled does not catch up."""
    intervals = (entry.interval, entry.interval_active, entry.interval_idle)
    return (*intervals, entry.cron, entry.timezone, entry.enabled)


def _entries_of(known: JobsFileRecord | None) -> dict[str, Entry]:
    """The last good set; one that another version wrote, with other words, counts as none."""
    if known is None or known.entries is None:
        return {}
    try:
        entries = [entry_of(dict(each)) for each in known.entries]
    except (TypeError, KeyError, ValueError):
        return {}
    return {entry.name: entry for entry in entries}
