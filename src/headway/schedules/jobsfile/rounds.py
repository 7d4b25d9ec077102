"""The rounds of the jobs file: which entries are due, may they run, and the jobs they make.

A round is a look at what is due, then questions about it, then jobs. The questions (functions,
conditions, the poll) are asked in the background; what the store knows is looked at in the step's
transaction, which also makes the jobs. So at most one job of an entry is active, whoever else makes
rounds, and an end that a dead worker did not write down is found in the rows of the jobs.

What took too long when it was last asked is asked apart from the rest, so that it holds up nobody.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from headway.base.background import Background
from headway.base.clock import SECOND, Clock
from headway.base.crashpoints import reach
from headway.base.errors import StoreError
from headway.base.home import Home
from headway.base.host import Host
from headway.core.model import OF_JOBS_FILE, Job, JobId
from headway.core.periodic import (
    CLOCK_TOLERANCE,
    after_a_clock_went_back,
    ask_again_after,
    due_at,
    next_look,
    not_in_future,
)
from headway.core.states import Status
from headway.jobs.insert import Origin, add_jobs
from headway.jobs.settings import Config
from headway.schedules.jobsfile.entries import Declared, in_one_line
from headway.schedules.jobsfile.job_of_entry import run_of, spec_of
from headway.schedules.jobsfile.model import (
    AGENT,
    FILE,
    NO_AGENTS,
    REMOTE,
    SCRIPT,
    WORKFLOW,
    Entry,
)
from headway.schedules.jobsfile.poll_files import forget_polls, keep_poll, kept_polls, poll_files_of
from headway.schedules.jobsfile.questions import Asking, EntryAnswers, EntryQuestions, took_too_long
from headway.schedules.jobsfile.reload import READ, Noticing
from headway.store.new_jobs import Event
from headway.store.records import EntryRecord, RunRecord
from headway.store.transaction import ReadTx, WriteTx

ASK, ASK_SLOWLY = ASKING_KINDS = ("ask", "ask slowly")
WATCH_JOBS = 1 * SECOND  # while one is active: others may end it
WATCH_WORK = 2 * SECOND  # while an entry waits only for other work, or for the end of it


class _EntryRecords(NamedTuple):
    """The store's records of the entries, with the ends of their jobs."""

    before: Mapping[str, EntryRecord]
    records: dict[str, EntryRecord]
    active: Mapping[str, Job]  # by what made it


class _Inquiry(NamedTuple):
    """The questions that were asked, the entries as they were then, and the answers."""

    entries: tuple[Entry, ...]
    answers: EntryAnswers = EntryAnswers()
    poll_file: str | None = None


class Rounds:
    def __init__(
        self,
        home: Home,
        config: Config,
        host: Host,
        clock: Clock,
        *,
        worker_id: str,
        shared: bool,
        in_thread: bool,
        say: Callable[[str], None],
    ) -> None:
        self.asking = Asking(home, config)
        self.background = Background(in_thread=in_thread)
        self.declared = Declared(host.id, worker_id, say)
        self._home = home
        self._config = config
        self._host_id = host.id
        self._worker_id = worker_id
        self._queue = host.id if shared else ""
        self._origin = Origin(FILE, home.worktrees, host if shared else None)
        self._file = Noticing(home.path, clock, self.background)
        self._again: dict[str, tuple[int, int]] = {}  # held: not before then, left alone so long
        self._look_at: int | None = None  # None: there is nothing to check
        self._delay: float | None = None
        self._paused = False
        self._polls = kept_polls(home)
        self._clock = clock
        self._seen: tuple[int, float] | None = None  # what both clocks showed in the last step
        self._clock_set = True  # it may have been, since the entries were last checked
        self._undone = False  # whether the last step was not committed
        # What the present step has done, for when it is committed.
        self._taken: list[str] = []
        self._needed: set[str] | None = None
        self._to_ask: dict[str, list[Entry]] = {}
        self._made: list[JobId] = []
        self._asked: dict[str, frozenset[str]] = {}  # the entries that are being asked about

    # -- around the step -----------------------------------------------------------------------

    def notice(self) -> bool:
        """Whether the jobs file has changed since the last step."""
        return self._file.look()

    @property
    def awake(self) -> bool:
        """Whether a worker must stay for the sake of an entry."""
        return bool(self.declared.enabled)

    @property
    def pending(self) -> bool:
        """Whether the next step will take in what was read or answered."""
        return any(map(self.background.ready, (READ, *ASKING_KINDS)))

    def ended(self, makers: Iterable[str | None]) -> None:
        """Jobs that these made were settled in this step."""
        if self.declared.entries and any(each and each.startswith(OF_JOBS_FILE) for each in makers):
            self._look_at = 0

    def step(self, tx: WriteTx) -> None:
        """Without a jobs file this asks nothing of the store, but for the first time."""
        self._taken, self._needed, self._to_ask, self._made = [], None, {}, []
        if (self.declared.entries and self._clock_went_back(tx.now())) or self._undone:
            self._look_anew(tx)
        self._undone = True
        if self.background.ready(READ):
            self._taken.append(READ)
            self.declared.load(tx, self.background.see(READ))
            self._again.clear()
            self._look_at = 0 if self.declared.entries else None
        self._delay, self._paused = None, False
        answered = [
            asking_kind for asking_kind in ASKING_KINDS if self.background.ready(asking_kind)
        ]
        if answered or (self._look_at is not None and self._look_at <= tx.now()):
            self._paused = (
                tx.settings.pause_in_force(self._host_id) is not None
            )  # the verb that resumes wakes us
            if not self._paused:
                self._go_on(tx, answered)
        if self._look_at is not None and not self._paused:
            self._delay = max(0, self._look_at - tx.now()) / SECOND

    def _look_anew(self, tx: ReadTx) -> None:
        """Forget everything; the next step reads it again."""
        self.declared.recall_poll(tx)
        self._again.clear()
        self._look_at = 0 if self.declared.entries else None

    def _clock_went_back(self, now: int) -> bool:
        """Instants that are remembered may then lie far ahead."""
        seen, self._seen = self._seen, (now, self._clock.since_boot())
        if seen is None:
            return False
        passed = int((self._seen[1] - seen[1]) * SECOND)
        went_back = now - seen[0] - passed < -CLOCK_TOLERANCE
        self._clock_set = self._clock_set or went_back
        return went_back

    def _go_on(self, tx: WriteTx, answered: list[str]) -> None:
        for asking_kind in answered:
            self._taken.append(asking_kind)
            self._conclude(tx, self.background.see(asking_kind))
        if not answered:
            self._begin(tx)

    def committed(self) -> None:
        """The step was committed: go on from there."""
        self._undone = False
        if self._made:
            reach("rounds.made")
        for kind in self._taken:
            self.background.drop(kind)
            self._asked.pop(kind, None)
        if self._needed is not None:  # all were checked
            self._clock_set = False
            self._polls = forget_polls(self._polls, self._needed)
        for asking_kind, entries in self._to_ask.items():
            self._asked[asking_kind] = frozenset(entry.name for entry in entries)
            self.background.start(asking_kind, partial(self._ask, tuple(entries)))
        self._taken, self._needed, self._to_ask, self._made = [], None, {}, []

    def next_in(self) -> float | None:
        """The seconds until the next round, if one is to be made."""
        return 0.0 if self.pending and not self._paused else self._delay

    def close(self) -> None:
        self.asking.stop()

    # -- a round -------------------------------------------------------------------------------

    def _begin(self, tx: WriteTx) -> None:
        """Find what is due; make at once the jobs of entries without questions."""
        known = self._look(tx)
        due = self._due(tx, known)
        ready = self._without_objection(tx, known, due)
        self._make(tx, known, [entry for entry in ready if not _asks(entry)], None)
        self._write(tx, known)
        for entry in filter(_asks, ready):
            asking_kind = ASK_SLOWLY if self._is_slow(entry, known) else ASK
            if not self.background.busy(asking_kind):  # else its end brings the next check
                self._to_ask.setdefault(asking_kind, []).append(entry)

    def _is_slow(self, entry: Entry, known: _EntryRecords) -> bool:
        polls = entry.group == REMOTE and took_too_long(self.declared.poll_trouble)
        return polls or took_too_long(known.records[entry.name].held)

    def _conclude(self, tx: WriteTx, inquiry: _Inquiry) -> None:
        """Make the jobs of those that may run; others are held back, with the reason."""
        known = self._look(tx)
        self._note_poll(tx, inquiry)
        now, ready = tx.now(), []
        for entry in inquiry.entries:
            record = known.records.get(entry.name)
            if record is None or self.declared.entries.get(entry.name) != entry:
                continue  # it is another one by now
            if record.next_at is None or record.next_at > now:
                continue
            reason = inquiry.answers.held.get(entry.name)
            if reason is None:
                ready.append(entry)
            else:
                self._hold(tx, known, entry, reason)
        ready = self._without_objection(tx, known, ready)
        self._make(tx, known, ready, inquiry.poll_file)
        self._write(tx, known)
        self._look_at = now  # others may have become due meanwhile

    def _ask(self, entries: tuple[Entry, ...]) -> _Inquiry:
        """In the background."""
        asked = [
            EntryQuestions(
                entry.name,
                entry.group,
                run=entry.run if entry.type == SCRIPT else None,
                conditions=tuple(each for each in entry.conditions if each != NO_AGENTS),
                wants_poll=_gets_poll(entry),
            )
            for entry in entries
        ]
        try:
            answers = self.asking.ask(asked)
            data = answers.poll_data
            path = keep_poll(self._home, data) if data is not None else None
        except Exception as error:  # one that is not foreseen must not end the rounds
            reason = f"it could not be asked: {type(error).__name__}: {error}"
            return _Inquiry(entries, EntryAnswers({entry.name: reason for entry in entries}))
        return _Inquiry(entries, answers._replace(poll_data=None), path)

    def _look(self, tx: ReadTx) -> _EntryRecords:
        """The records of all entries that are declared; jobs that have ended are taken in."""
        entries, before = self.declared.entries, tx.jobsfile.entries(self._host_id)
        # Also jobs of entries that are gone from the file: they may need what was polled.
        makers = sorted({f"{OF_JOBS_FILE}{name}" for name in (*before, *entries)})
        active = {
            job.schedule_id or "": job
            for job in tx.jobsfile.active_made_by(makers)
            if job.queue == self._queue
        }
        records = {name: before.get(name, EntryRecord(name)) for name in entries}
        over = {
            record.name: record.last_job
            for record in records.values()
            if record.next_at is None
            and record.last_job is not None
            and entries[record.name].schedule_id not in active
        }
        last = _last_jobs(tx, over.values()) if over else {}
        known = _EntryRecords(before, records, active)
        for name, record in records.items():
            if name not in self.declared.timings:
                continue
            job = active.get(entries[name].schedule_id)
            try:
                records[name] = self._up_to_date(record, job, last.get(over.get(name, 0)), tx.now())
            except Exception as error:  # of its rule, which concerns no other entry
                self.declared.give_up(name, error)
        self._needed = poll_files_of(active.values())
        return known

    def _up_to_date(
        self, record: EntryRecord, active: Job | None, last: Job | None, now: int
    ) -> EntryRecord:
        if active is not None:  # also one that somebody has run again
            return record._replace(last_job=active.id, next_at=None)
        timing = self.declared.timings[record.name]
        if record.next_at is not None:
            if not self._clock_set:
                return record
            at = after_a_clock_went_back(
                timing, next_at=record.next_at, ended=record.last_end_at, now=now
            )
            return record._replace(last_end_at=not_in_future(record.last_end_at, now), next_at=at)
        if record.last_job is None:
            return record._replace(next_at=next_look(timing, started=None, ended=None, since=now))
        ended = min(last.finished_at, now) if last and last.finished_at else now
        started = min(last.started_at or last.created_at, ended + CLOCK_TOLERANCE) if last else now
        return record._replace(
            last_job=last.id if last else record.last_job,
            last_end_at=ended,
            last_status=last.status.value if last else None,
            next_at=next_look(timing, started=started, ended=ended, since=0),
        )

    def _due(self, tx: ReadTx, known: _EntryRecords) -> list[Entry]:
        """In the order of the file; also finds when to check again."""
        now, due, times = tx.now(), [], []
        under_way = {name for asked in self._asked.values() for name in asked}
        busy: bool | None = None
        for name, timing in self.declared.timings.items():
            entry, at = self.declared.entries[name], known.records[name].next_at
            if at is None:
                times.append(now + WATCH_JOBS)
            if at is None or not entry.enabled or name in under_way:
                continue
            if timing.follows_other_work and at <= now:
                busy = tx.jobsfile.other_work() if busy is None else busy
                at = due_at(timing, ended=known.records[name].last_end_at, next_at=at, busy=busy)
                times.append(now + WATCH_WORK)
            at = max(at, self._again.get(name, (0, 0))[0])
            if at <= now:
                due.append(entry)
            else:
                times.append(at)
        self._look_at = min(times, default=None)
        return due

    def _without_objection(
        self, tx: WriteTx, known: _EntryRecords, entries: Iterable[Entry]
    ) -> list[Entry]:
        """Those that the store itself knows nothing against."""
        ready = []
        for entry in entries:
            if NO_AGENTS in entry.conditions and tx.jobsfile.running_of_type(AGENT):
                self._hold(tx, known, entry, f"condition {NO_AGENTS} does not hold")
            else:
                ready.append(entry)
        return ready

    # -- what comes of it ----------------------------------------------------------------------

    def _make(
        self, tx: WriteTx, known: _EntryRecords, entries: Iterable[Entry], poll_file: str | None
    ) -> None:
        specs, makers = [], []
        first: dict[str, JobId] = {}  # the job of each entry; of a run the first
        for entry in entries:
            given = poll_file if _gets_poll(entry) else None
            try:
                if entry.type == WORKFLOW:
                    first[entry.name] = self._start_run(tx, entry)
                else:
                    specs.append(spec_of(entry, self._home, self._config, given))
                    makers.append(entry)
            except StoreError:
                raise
            except Exception as error:  # also one that nobody foresaw must not stop the others
                self._hold(tx, known, entry, in_one_line(error))
        for entry, made in zip(
            makers, add_jobs(tx, specs, self._origin) if specs else (), strict=True
        ):
            first[entry.name] = made.job_id
        if not first:
            return
        for name, job_id in first.items():
            record = known.records[name]
            known.records[name] = record._replace(
                last_job=job_id, next_at=None, held=None, held_at=None
            )
            self._again.pop(name, None)
            self._made.append(job_id)
        self._look_by(tx.now() + WATCH_JOBS)
        if poll_file is not None and self._needed is not None:
            self._needed.add(poll_file)

    def _start_run(self, tx: WriteTx, entry: Entry) -> JobId:
        from headway.workflows.prepared import add_prepared

        prepared = run_of(tx, entry, self._home, self._config)
        return add_prepared(tx, prepared, self._origin).jobs[0]

    def _hold(self, tx: WriteTx, known: _EntryRecords, entry: Entry, reason: str) -> None:
        """It stays due; each reason is recorded once."""
        now, waited = tx.now(), self._again.get(entry.name, (0, 0))[1]
        wait = ask_again_after(waited, self.declared.timings[entry.name])
        self._again[entry.name] = (now + wait, wait)
        self._look_by(now + wait)
        self._say_held(tx, known, entry.name, reason)

    def _say_held(self, tx: WriteTx, known: _EntryRecords, name: str, reason: str) -> None:
        record = known.records[name]
        if record.held == reason:
            return
        known.records[name] = record._replace(held=reason, held_at=tx.now())
        event = Event("entry_held", None, {"entry": name, "reason": reason})
        tx.events.add([event], actor=self._worker_id)

    def _look_by(self, at: int) -> None:
        self._look_at = at if self._look_at is None else min(self._look_at, at)

    def _note_poll(self, tx: WriteTx, inquiry: _Inquiry) -> None:
        if inquiry.poll_file is not None:
            self._polls.add(inquiry.poll_file)
        polled, trouble = inquiry.answers.polled, inquiry.answers.poll_trouble
        if polled is None or (not polled and self.declared.poll_trouble is None):
            return
        tx.jobsfile.note_poll(self._host_id, trouble, polled=polled)
        if trouble is not None and trouble != self.declared.poll_trouble:
            data = {"reason": trouble}
            tx.events.add([Event("poll_failed", None, data)], actor=self._worker_id)
        self.declared.poll_trouble = trouble

    def _write(self, tx: WriteTx, known: _EntryRecords) -> None:
        for name, reason in self.declared.unusable.items():
            self._say_held(tx, known, name, reason)
        tx.jobsfile.put_entries(
            self._host_id,
            [each for name, each in known.records.items() if each != known.before.get(name)],
        )


def _asks(entry: Entry) -> bool:
    """Whether something must be asked that the store does not know."""
    return entry.type == SCRIPT or any(each != NO_AGENTS for each in entry.conditions)


def _gets_poll(entry: Entry) -> bool:
    return entry.type == SCRIPT and entry.group == REMOTE


def _last_jobs(tx: ReadTx, ids: Iterable[JobId]) -> dict[JobId, Job]:
    """For each of these the last job of its chain; none if it was removed."""
    lasts = tx.graph.chain_lasts(sorted(set(ids)))
    jobs = tx.jobs.readable(sorted(set(lasts.values())))
    runs = sorted({job.workflow_run for job in jobs.values() if job.workflow_run is not None})
    ends = tx.workflows.by_id(runs) if runs else {}
    return {
        asked: _as_run(jobs[last], ends.get(jobs[last].workflow_run or 0))
        for asked, last in lasts.items()
        if last in jobs
    }


def _as_run(job: Job, run: RunRecord | None) -> Job:
    """The job; one of a run has the times and the end of that."""
    if run is None:
        return job
    status = _STATUS.get(run.state, Status.FAILED)
    return job._replace(status=status, started_at=run.created_at, finished_at=run.ended_at)


_STATUS = {"succeeded": Status.SUCCEEDED, "cancelled": Status.CANCELLED}
