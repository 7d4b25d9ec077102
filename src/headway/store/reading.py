"""The reading verbs of the seam."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from headway.core.facts import TOLD_FOR, Holder, LockView, Reserver, TaskView
from headway.core.model import (
    Claim,
    HostTrouble,
    Job,
    JobId,
    LockMode,
    Pause,
    Run,
    lock_topic,
)
from headway.core.states import TERMINAL, Status
from headway.errors import DataError
from headway.store.base import (
    Event,
    HostRecord,
    Lending,
    Progress,
    Search,
    Slots,
    TasksTold,
    WorkerRecord,
)
from headway.store.rows import (
    Row,
    like,
    like_label,
    load,
    load_claim,
    load_job,
    load_outline,
    load_run,
    stand_in,
)
from headway.store.state import State, load_state
from headway.store.transaction import Asking

NEVER = 1 << 62


class SqlReadTx(Asking):
    def _readable(
        self, rows: Iterable[tuple[Any, ...]], read: Callable[[Row], Job] = load_job
    ) -> list[Job]:
        """The jobs of these rows; one that cannot be read is remembered and stops nobody else."""
        jobs = []
        for row in rows:
            try:
                jobs.append(read(row))
            except DataError as error:
                self._unreadable[row[0]] = str(error)
        return jobs

    def unreadable(self) -> dict[JobId, str]:
        """The rows that listings of this transaction met and could not read, with the error."""
        return self._unreadable

    def jobs(self, ids: Sequence[JobId]) -> dict[JobId, Job]:
        rows = self._all("jobs_by_id", ids=self._database.json(ids))
        return {row[0]: load_job(row) for row in rows}

    def readable_jobs(self, ids: Sequence[JobId]) -> dict[JobId, Job]:
        """Like `jobs`, without those whose rows cannot be read."""
        rows = self._all("jobs_by_id", ids=self._database.json(ids))
        return {job.id: job for job in self._readable(rows)}

    def running_jobs(self, ids: Sequence[JobId]) -> dict[JobId, Job]:
        """Jobs to be settled. One whose row cannot be read gets a stand-in without parameters and
        policy: its outcome is known all the same, and it must not keep the others from theirs.

        Who settles asks for the state, too; where questions travel it comes along."""
        given = {"ids": self._database.json(ids)}
        if self._state is None and self._named.at_once:
            state, rows = self._ask({"present_state": {}, "jobs_by_id": given})
            self._state, self._whereabouts = load_state(state)
        else:
            rows = self._all("jobs_by_id", **given)
        found = {}
        for row in rows:
            try:
                found[row[0]] = load_job(row)
            except DataError:
                found[row[0]] = stand_in(row)
        return found

    def job_by_key(self, key: str) -> Job | None:
        row = self._one("job_by_key", key=key)
        return load_job(row) if row else None

    def last_in_chain(self, chain: JobId) -> Job | None:
        row = self._one("last_in_chain", chain=chain)
        return load_job(row) if row else None

    def chain(self, chain: JobId) -> list[Job]:
        return [load_job(row) for row in self._all("chain_of", chain=chain)]

    def active_jobs(self) -> list[Job]:
        return self._readable(self._all("active_jobs"))

    def finished_jobs(self, since: int, limit: int) -> list[Job]:
        return self._readable(self._all("finished_jobs", since=since, limit=limit))

    def find_jobs(self, search: Search, *, before: Job | None, limit: int) -> list[Job]:
        rows = self._all(
            "find_jobs",
            statuses=self._database.json(sorted(search.statuses)),
            ended_since=search.ended_since if search.statuses & TERMINAL else NEVER,
            created_since=search.created_since,
            every_group=int(not search.groups),
            groups=self._database.json(search.groups),
            name=like(search.name),
            label=like_label(search.labels),
            before_at=before.created_at if before else NEVER,
            before_id=before.id if before else 0,
            limit=limit,
        )
        return self._readable(rows)

    def count_active(self) -> dict[Status, int]:
        return {Status(status): count for status, count in self._all("count_active")}

    def count_finished(self, since: int) -> dict[Status, int]:
        rows = self._all("count_finished", since=since)
        return {Status(status): count for status, count in rows}

    def count_ended(self) -> tuple[int, int]:
        """All jobs that ended, and of these the blocked ones that nobody retried."""
        ended, blocked = self._all("count_ended")[0]
        return ended, blocked

    def outlines_shown(self, limit: int) -> list[Job]:
        return self._readable(self._all("outlines_shown", limit=limit), load_outline)

    def outlines_all(self, limit: int) -> list[Job]:
        return self._readable(self._all("outlines_all", limit=limit), load_outline)

    def outlines(self, ids: Sequence[JobId]) -> dict[JobId, Job]:
        rows = self._all("outlines_by_id", ids=self._database.json(ids))
        return {job.id: job for job in self._readable(rows, load_outline)}

    def chain_ends(self, chains: Sequence[JobId]) -> dict[JobId, Job]:
        rows = self._all("outlines_of_ends", chains=self._database.json(chains))
        return {job.chain: job for job in self._readable(rows, load_outline)}

    def anything_active(self) -> bool:
        if self._state is not None and self._state.taken:
            return True
        return self._one("any_active") is not None

    def anything_woken(self) -> bool:
        return self._one("any_woken") is not None

    def runs(self, ids: Sequence[JobId]) -> dict[JobId, Run]:
        rows = self._all("runs_by_job", ids=self._database.json(ids))
        return {row[0]: load_run(row) for row in rows}

    def evidence(self, ids: Sequence[JobId]) -> dict[JobId, dict[str, Any]]:
        """What supervisors reported: job -> kind of evidence -> document."""
        return evidence_in(self._all("evidence_by_job", ids=self._database.json(ids)))

    def env_digests_in_use(self, since: int) -> set[str]:
        """Those of active jobs, and of jobs that ended since then."""
        return {row[0] for row in self._all("env_digests_in_use", since=since)}

    def ready(self, limit: int, queues: Sequence[str] = ("",)) -> list[Job]:
        """The head of these queues at the door, in dispatch order."""
        if self._whereabouts is not None:
            queues = [each for each in queues if each in self._whereabouts.ready]
        return self._queued("ready", limit, queues)

    def _queued(self, query: str, limit: int, queues: Sequence[str]) -> list[Job]:
        found = [self._readable(self._all(query, limit=limit, queue=each)) for each in queues]
        if len(found) == 1:
            return found[0]
        return sorted((job for jobs in found for job in jobs), key=lambda job: job.order)[:limit]

    def count_at_door(self) -> int:
        return int(self._all("count_at_door")[0][0])

    def place_in_queue(self, job: Job) -> tuple[int, int]:
        """How many jobs stand before this one at the door, and how many stand there in all."""
        rows = self._all(
            "ahead_in_queue",
            level=job.dispatch_level,
            position=job.position,
            created_at=job.created_at,
            id=job.id,
        )
        return rows[0][0], rows[0][1]

    def next_wake(self) -> int | None:
        if self._whereabouts is not None:
            return self._whereabouts.next_wake
        row = self._one("next_wake")
        return row[0] if row else None

    def stale_waiters(self, before: int, limit: int, queues: Sequence[str] = ("",)) -> list[Job]:
        found = (
            self._all("stale_waiters", before=before, limit=limit, queue=each) for each in queues
        )
        return [job for rows in found for job in self._readable(rows)]

    def lock_views(self, keys: Iterable[str]) -> dict[str, LockView]:
        keys = list(keys)
        if not keys:
            return {}
        holders: dict[str, list[Holder]] = {key: [] for key in keys}
        for key, job_id, mode in self._all("lock_holders", keys=self._database.json(keys)):
            holders[key].append(Holder(job_id, LockMode(mode)))
        return {key: LockView(tuple(holders[key]), self._first_reservers(key)) for key in keys}

    def _first_reservers(self, key: str) -> tuple[Reserver, ...]:
        found = []
        for mode in LockMode:
            row = self._one("first_reservers", topic=lock_topic(key), mode=mode.value)
            if row:
                job_id, _, level, position, created_at = row
                found.append(Reserver(job_id, mode, (-level, position, created_at, job_id)))
        return tuple(found)

    def live_claims(self) -> list[Claim]:
        return [load_claim(row) for row in self._all("live_claims")]

    def unproven_claims(self) -> list[Claim]:
        if self._whereabouts is not None and not self._whereabouts.unproven:
            return []
        return [load_claim(row) for row in self._all("unproven_claims")]

    def claims(self, tokens: Sequence[str]) -> dict[str, Claim]:
        rows = self._all("claims_by_token", tokens=self._database.json(tokens))
        return {row[1]: load_claim(row) for row in rows}

    def cancelling_jobs(self) -> set[JobId]:
        self._present()  # whoever asks this asks for the rest, too
        if self._whereabouts is not None and not self._whereabouts.cancelling:
            return set()
        return {row[0] for row in self._all("cancelling_jobs")}

    def claim_of(self, job_id: JobId) -> Claim | None:
        row = self._one("claim_of_job", job_id=job_id)
        return load_claim(row) if row else None

    def last_claims(self, ids: Sequence[JobId]) -> dict[JobId, Claim]:
        """The newest claim of each job that ever had one, whatever became of it."""
        rows = self._all("claims_of_jobs", ids=self._database.json(ids))
        return {row[0]: load_claim(row) for row in rows}

    def slots(self) -> Slots:
        return self._present().slots

    def lendings(self) -> list[Lending]:
        return list(self._present().lendings)

    def awaited_chains(self, chain: JobId) -> list[JobId]:
        return [row[0] for row in self._all("awaited_edges", chain=chain)]

    def settings(self) -> dict[str, Any]:
        return dict(self._present().settings)

    def pause_in_force(self, host_id: str | None = None) -> Pause | None:
        state = self._present()
        if host_id is not None:
            return state.pause or state.host_pauses.get(host_id)
        return state.pause or next(iter(state.host_pauses.values()), None)

    def host_pauses(self) -> list[Pause]:
        return list(self._present().host_pauses.values())

    def host_trouble(self, host_id: str) -> HostTrouble | None:
        return self._present().breakers.get(host_id)

    def _present(self) -> State:
        """Asked for once, until this transaction itself changes something of it."""
        if self._state is None:
            self._state, self._whereabouts = load_state(self._all("present_state"))
        return self._state

    def recent_workers(self, host_id: str, limit: int) -> list[WorkerRecord]:
        rows = self._all("recent_workers", host_id=host_id, limit=limit)
        return [WorkerRecord(*row) for row in rows]

    def tasks_known(self) -> dict[str, TaskView]:
        """By host, the functions that it can call, or why it cannot."""
        rows = self._all("tasks_known")
        return {row[0]: TaskView(frozenset(load(row[1], "tasks")), row[2]) for row in rows}

    def tasks_told(self) -> list[TasksTold]:
        several = self._named.at_once
        return [
            TasksTold(
                host_id,
                TaskView(frozenset(load(names, "tasks")), trouble),
                at,
                not several or (not left and self._now - at <= TOLD_FOR),
            )
            for host_id, names, trouble, at, left in self._all("tasks_told")
        ]

    def ready_calls_besides(self, limit: int, tasks: Collection[str], window: int) -> list[Job]:
        given = self._database.json(sorted(tasks))
        return self._readable(
            self._all("ready_calls_besides", limit=limit, keys=given, window=window)
        )

    def results(self, ids: Sequence[JobId]) -> dict[JobId, Any]:
        rows = self._all("results", ids=self._database.json(ids))
        return {row[0]: load(row[1], f"the result of job-{row[0]}") for row in rows}

    def progress(self, ids: Sequence[JobId]) -> dict[JobId, Progress]:
        rows = self._all("progress", ids=self._database.json(ids))
        return {row[0]: Progress(row[0], float(row[1]), row[2]) for row in rows}

    def hosts(self) -> dict[str, HostRecord]:
        return {row[0]: HostRecord(*row) for row in self._all("hosts")}

    def marks(self) -> dict[str, int]:
        return dict(self._present().marks)

    def events_of(self, job_id: JobId) -> list[Event]:
        return [_event(row) for row in self._all("events_of_job", job_id=job_id)]

    def events_since(self, seq: int, limit: int) -> list[Event]:
        return [_event(row) for row in self._all("events_since", seq=seq, limit=limit)]

    def last_event(self) -> int:
        row = self._one("last_event")
        return row[0] or 0 if row else 0


def evidence_in(rows: Iterable[Row]) -> dict[JobId, dict[str, Any]]:
    found: dict[JobId, dict[str, Any]] = {}
    for job_id, kind, document in rows:
        document = load(document, f"the {kind} of job-{job_id}")
        found.setdefault(job_id, {})[kind] = document
    return found


def _event(row: tuple[Any, ...]) -> Event:
    seq, at, actor, kind, job_id, data = row
    return Event(kind, job_id, load(data, f"event {seq}"), actor, at, seq)
