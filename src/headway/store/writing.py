"""The writing verbs of the seam. Each applies a decision that was made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from headway.core.model import (
    HostTrouble,
    Job,
    JobId,
    LockMode,
    Pause,
    Stage,
    Wait,
    lock_topic,
)
from headway.core.states import Move, Status, after
from headway.store.base import (
    Filing,
    HostRecord,
    Progress,
    Unclaim,
    WorkerRecord,
)
from headway.store.calling import CallWriteTx
from headway.store.claiming import ClaimingTx
from headway.store.entering import EntryWriteTx
from headway.store.governor import GovernorWriteTx
from headway.store.graphwriting import GraphWriteTx
from headway.store.limiting import LimitWriteTx
from headway.store.ordering import OrderWriteTx
from headway.store.removing import RetentionWriteTx
from headway.store.reserving import ReservingWriteTx
from headway.store.rows import dump, dump_job
from headway.store.scheduling import ScheduleWriteTx
from headway.store.state import EVERYWHERE
from headway.store.templating import TemplateWriteTx

MOST_SHARERS = 16  # the next ones are woken when these have started


class SqlWriteTx(
    RetentionWriteTx,
    GraphWriteTx,
    LimitWriteTx,
    OrderWriteTx,
    TemplateWriteTx,
    ReservingWriteTx,
    GovernorWriteTx,
    ScheduleWriteTx,
    EntryWriteTx,
    CallWriteTx,
    ClaimingTx,
):
    def _add_edges(self, jobs: Sequence[Job]) -> None:
        """Of those added along with their dependents all is known; of others it is looked up."""
        chains = {job.id: job.chain for job in jobs}
        edges = [
            {"job_id": job.id, "ord": place, "declared": declared}
            for job in jobs
            for place, declared in enumerate(job.after)
            if declared not in chains
        ]
        self._many("add_edges", edges)
        inside = (
            {"job_id": job.id, "ord": place, "declared": declared, "chain": chains[declared]}
            for job in jobs
            for place, declared in enumerate(job.after)
            if declared in chains
        )
        self._many("add_new_edges", inside)

    def _add_topics(self, jobs: Iterable[Job]) -> None:
        """What those wait for that are stored as waiting."""
        self._many("add_waits", (row for job in jobs for row in _topics_of_new(job)))

    def add_retries(self, jobs: Sequence[Job]) -> None:
        """Like add_jobs, for the next jobs of their chains: edges keep their marks."""
        self._many("add_jobs", map(dump_job, jobs))
        for job in jobs:
            if job.after:
                self._tell("copy_edges", from_job=job.retry_of, to_job=job.id)
        self._add_graph(jobs)

    def wake_due(self, now: int, limit: int) -> int:
        if self._whereabouts is not None:
            due = self._whereabouts.next_wake
            if due is None or due > now:
                return 0
        return self._run("wake_due", now=now, limit=limit)

    def wake_topics(self, topics: Iterable[str]) -> None:
        self._many("wake_topic", ({"topic": topic} for topic in topics))

    def wake_first(self, topics: Iterable[str]) -> None:
        """Wake the first of those that wait for each topic; of a lock that it would share, also
        those right behind it who would share it with it, so that nobody passes them at the door."""
        first: list[JobId] = []
        for topic in topics:
            waiters = self._all("first_waiters", topic=topic, limit=MOST_SHARERS)
            first += [job_id for job_id, _ in waiters[:1]]
            sharing = takewhile(lambda waiter: waiter[1] == LockMode.SHARED.value, waiters)
            first += [job_id for job_id, _ in sharing]
        if first:
            self.wake_jobs(list(dict.fromkeys(first)))

    def wake_next(self, topics: Iterable[str], after: Job) -> None:
        """Of those that wait for each topic, wake the first that comes after this job."""
        place = {
            "level": after.dispatch_level,
            "position": after.position,
            "created_at": after.created_at,
            "job_id": after.id,
        }
        self._many("wake_next", ({"topic": topic, **place} for topic in topics))

    def wake_jobs(self, ids: Sequence[JobId]) -> None:
        self._tell("wake_jobs", ids=self._database.json(ids))

    def wake_chains(self, chains: Sequence[JobId]) -> None:
        self._tell("wake_chain_borrowers", chains=self._database.json(chains))

    def wake_everything(self) -> None:
        self._tell("wake_everything")

    def requeue(self, ids: Sequence[JobId], queue: str) -> None:
        """Put jobs into another queue; they keep their place in the order."""
        self._tell("requeue", ids=self._database.json(ids), queue=queue)

    def touch_checked(self, ids: Sequence[JobId]) -> None:
        self._tell("touch_checked", ids=self._database.json(ids), at=self._now)

    def file(self, filings: Iterable[Filing]) -> None:
        filings = list(filings)
        known, looked = self._whereabouts, self._looked
        self._many("clear_waits", ({"job_id": filing.job.id} for filing in filings))
        self._many("file_job", map(self._filed, filings))
        self._many("add_waits", (row for filing in filings for row in _wait_rows(filing)))
        self._follow_filed(known, filings, looked)

    def _filed(self, filing: Filing) -> dict[str, Any]:
        return {
            "id": filing.job.id,
            "status": filing.status.value,
            "stage": filing.stage.value,
            "wait_kind": filing.wait.kind.value,
            "wait_detail": filing.wait.detail,
            "wake_at": filing.wake_at,
            "waited_on": dump(_waited_on(filing.job, filing.wait)),
            "checked_at": self._now if filing.stage is Stage.FILED else None,
        }

    def end_waiting(self, job: Job, status: Status, reason: str, wait: Wait | None) -> bool:
        """A job that never ran comes to its end; False if it is no longer waiting."""
        ended = self._run(
            "end_waiting",
            id=job.id,
            status=status.value,
            reason=reason,
            finished_at=self._now,
            wait_kind=wait.kind.value if wait else None,
            wait_detail=wait.detail if wait else None,
            waited_on=dump(_waited_on(job, wait)),
        )
        self._tell("clear_waits", job_id=job.id)
        return ended == 1

    def change_job(self, job: Job) -> bool:
        """What a person may change of a job that waits; False if it no longer does."""
        changed = self._run(
            "change_job",
            id=job.id,
            name=job.name,
            slug=job.slug,
            labels=dump(job.labels),
            priority=job.priority,
            level=job.dispatch_level,
            position=job.position,
            params=dump(job.params),
        )
        return changed == 1

    def fail_unreadable(self, job_ids: Sequence[JobId], *, worker_id: str) -> None:
        """A waiting job whose row cannot be read fails with exit code 1."""
        for job_id in job_ids:
            reason = f"scheduler data error: {self._unreadable.pop(job_id)}"
            if self._run("fail_unreadable", id=job_id, reason=reason, at=self._now) != 1:
                continue
            topics = [row[0] for row in self._all("topics_of", job_id=job_id)]
            self._tell("clear_waits", job_id=job_id)
            self.wake_first(topics)
            self._tell(
                "add_failed_run", job_id=job_id, at=self._now, worker_id=worker_id, error=reason
            )
            row = self._one("chain_number", job_id=job_id)
            self.chains_failed([row[0] if row else job_id])

    def renew_leases(self, host_id: str, until: int) -> None:
        self._tell("renew_leases", host_id=host_id, until=until)

    def unclaim(self, unclaims: Sequence[Unclaim]) -> list[bool]:
        return [self._unclaim(unclaim) for unclaim in unclaims]

    def _unclaim(self, unclaim: Unclaim) -> bool:
        if self._run("forget_claim", job_id=unclaim.job_id, token=unclaim.token) != 1:
            return False
        if self._state is not None:
            self._state.ended([unclaim.job_id])
        self._tell("forget_open_run", job_id=unclaim.job_id)
        self._tell(
            "unclaim_job",
            id=unclaim.job_id,
            status=after(Status.RUNNING, Move.UNCLAIM).value,
            not_before=unclaim.not_before,
            launch_failures=unclaim.launch_failures,
            launch_wait=unclaim.launch_wait,
            last_failure=unclaim.cause,
        )
        return True

    def release_locks(self, job_id: JobId) -> list[str]:
        if self._whereabouts is not None and not self._whereabouts.held:
            return []
        return [row[0] for row in self._all("release_locks", job_id=job_id)]

    def prove_gone(self, token: str) -> None:
        self._tell("prove_claim_gone", token=token)

    def chains_failed(self, chains: Sequence[JobId]) -> None:
        self._many("fail_chain", ({"chain": chain} for chain in chains))
        self._many("wake_dependents", ({"chain": chain} for chain in chains))

    def chain_reopened(self, chain: JobId) -> None:
        self._tell("reopen_chain", chain=chain)
        self._tell("wake_dependents", chain=chain)

    def request_cancel(self, job_id: JobId, by: str) -> bool:
        return self._run("request_cancel", id=job_id, at=self._now, by=by) == 1

    def set_setting(self, key: str, value: Any, *, by: str) -> None:
        self._tell("set_setting", key=key, value=dump(value), at=self._now, by=by)

    def pause(self, pause: Pause) -> bool:
        scope = pause.host_id or EVERYWHERE
        given = {"actor": pause.actor, "reason": pause.reason, "at": pause.at}
        return self._run("pause", scope=scope, **given) == 1

    def resume(self) -> bool:
        return self._run("resume") > 0

    def open_breaker(self, host_id: str, trouble: HostTrouble) -> None:
        self._tell(
            "open_breaker",
            host_id=host_id,
            kind=trouble.kind.value,
            cause=trouble.cause,
            failures=trouble.failures,
            probe_at=trouble.probe_at,
            at=self._now,
        )

    def close_breaker(self, host_id: str) -> bool:
        return self._run("close_breaker", host_id=host_id) == 1

    def reset_launches(self) -> int:
        """Close every breaker and forget the strikes of waiting jobs; how many jobs that woke."""
        self._tell("close_all_breakers")
        return self._run("reset_strikes")

    def add_worker(self, worker: WorkerRecord, *, host_id: str, home: str, boot_id: str) -> None:
        self._tell(
            "add_worker",
            id=worker.id,
            host_id=host_id,
            home=home,
            boot_id=boot_id,
            pid=worker.pid,
            mode=worker.mode,
            started_at=worker.started_at,
        )

    def know_tasks(self, host_id: str, names: Sequence[str], trouble: str | None) -> None:
        self._tell("know_tasks", host_id=host_id, names=dump(names), trouble=trouble, at=self._now)

    def keep_results(self, results: Sequence[tuple[JobId, Any]]) -> None:
        self._many(
            "keep_results", ({"job_id": job_id, "value": dump(value)} for job_id, value in results)
        )

    def keep_progress(self, progress: Sequence[Progress]) -> None:
        rows = (
            {"job_id": each.job_id, "fraction": repr(each.fraction), "told": each.text}
            for each in progress
        )
        self._many("keep_progress", ({**row, "at": self._now} for row in rows))

    def know_host(self, host: HostRecord) -> None:
        self._tell("know_host", id=host.id, name=host.name, home=host.home, at=self._now)

    def worker_settled(self, worker_id: str) -> None:
        self._tell("worker_settled", id=worker_id, at=self._now)

    def end_worker(self, worker_id: str, ending: str) -> None:
        self._tell("end_worker", id=worker_id, at=self._now, ending=ending)

    def set_mark(self, name: str, value: int) -> None:
        self._tell("set_mark", name=name, value=value)
        if self._state is not None and name in self._state.marks:
            self._state.marks[name] = value

    def add_to_mark(self, name: str, amount: int) -> None:
        self._tell("add_to_mark", name=name, amount=amount)
        if self._state is not None and name in self._state.marks:
            self._state.marks[name] += amount


def _waited_on(job: Job, wait: Wait | None) -> list[str]:
    kinds = list(job.waited_on)
    if wait is not None and wait.kind.value not in kinds:
        kinds.append(wait.kind.value)
    return kinds


def _wait_rows(filing: Filing) -> Iterable[dict[str, Any]]:
    modes = {lock_topic(lock.key): lock.mode.value for lock in filing.job.locks}
    for topic in filing.topics:
        yield _wait_row(filing.job, topic, modes.get(topic), filing.reserves)


def _topics_of_new(job: Job) -> Iterable[dict[str, Any]]:
    """Of a job that is stored as waiting: for others, and for no lock yet."""
    for topic in job.wait.topics if job.wait is not None else ():
        yield _wait_row(job, topic, None, False)


def _wait_row(job: Job, topic: str, mode: str | None, reserves: bool) -> dict[str, Any]:
    return {
        "topic": topic,
        "job_id": job.id,
        "mode": mode,
        "reserves": int(reserves),
        "level": job.dispatch_level,
        "position": job.position,
        "created_at": job.created_at,
    }
