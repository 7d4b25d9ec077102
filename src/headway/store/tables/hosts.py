"""Hosts, their workers and functions, and launches that failed there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.facts import REPORT_VALID_FOR, TaskView
from headway.core.model import HostTrouble, Job, JobId, WaitKind
from headway.store.access import Table
from headway.store.records import HostRecord, OpenBreaker, TasksReport, WorkerRecord
from headway.store.rows import dump, load, load_job


class HostsReader(Table):
    """Hosts as a read transaction shows them."""

    def all(self) -> dict[str, HostRecord]:
        return {row[0]: HostRecord(*row) for row in self._db.all("hosts")}

    def trouble(self, host_id: str) -> HostTrouble | None:
        return self._present().breakers.get(host_id)

    def recent_workers(self, host_id: str, limit: int) -> list[WorkerRecord]:
        rows = self._db.all("recent_workers", host_id=host_id, limit=limit)
        return [WorkerRecord(*row) for row in rows]

    def tasks_known(self) -> dict[str, TaskView]:
        """By host, the functions that it can call, or why it cannot."""
        rows = self._db.all("tasks_known")
        return {row[0]: TaskView(frozenset(load(row[1], "tasks")), row[2]) for row in rows}

    def tasks_reported(self) -> list[TasksReport]:
        """The same, with how certain it is that the host is still up."""
        several = self._db.at_once
        return [
            TasksReport(
                host_id,
                TaskView(frozenset(load(names, "tasks")), trouble),
                at,
                not several or (not left and self._db.now - at <= REPORT_VALID_FOR),
            )
            for host_id, names, trouble, at, left in self._db.all("tasks_reported")
        ]

    def open_breakers(self) -> list[OpenBreaker]:
        """Of every host, the oldest first."""
        return [
            OpenBreaker(host_id, HostTrouble(WaitKind(kind), cause, failures, probe_at), opened_at)
            for host_id, kind, cause, failures, probe_at, opened_at in self._db.all("open_breakers")
        ]

    def struck_jobs(self, limit: int) -> tuple[int, list[Job]]:
        """Those that wait after a failed launch: how many, and the first of them."""
        return self._counted("count_struck", "struck_jobs", limit)

    def circuit_broken(self, since: int, limit: int) -> tuple[int, list[Job]]:
        """Those that ended since then because they could not be launched, the latest first."""
        return self._counted("count_circuit_broken", "circuit_broken", limit, since=since)

    def _counted(self, count: str, some: str, limit: int, **asked: Any) -> tuple[int, list[Job]]:
        row = self._db.one(count, **asked)
        number = row[0] if row else 0
        rows = self._db.all(some, limit=limit, **asked) if number else []
        return number, [load_job(each) for each in rows]


class HostsTable(HostsReader):
    """Hosts as a write transaction changes them."""

    def know(self, host: HostRecord) -> None:
        self._db.send("know_host", id=host.id, name=host.name, home=host.home, at=self._db.now)

    def add_worker(self, worker: WorkerRecord, *, host_id: str, home: str, boot_id: str) -> None:
        self._db.send(
            "add_worker",
            id=worker.id,
            host_id=host_id,
            home=home,
            boot_id=boot_id,
            pid=worker.pid,
            mode=worker.mode,
            started_at=worker.started_at,
        )

    def worker_settled(self, worker_id: str) -> None:
        self._db.send("worker_settled", id=worker_id, at=self._db.now)

    def end_worker(self, worker_id: str, ending: str) -> None:
        self._db.send("end_worker", id=worker_id, at=self._db.now, ending=ending)

    def open_breaker(self, host_id: str, trouble: HostTrouble) -> None:
        self._db.send(
            "open_breaker",
            host_id=host_id,
            kind=trouble.kind.value,
            cause=trouble.cause,
            failures=trouble.failures,
            probe_at=trouble.probe_at,
            at=self._db.now,
        )

    def close_breaker(self, host_id: str) -> bool:
        return self._db.change("close_breaker", host_id=host_id) == 1

    def reset_launches(self) -> int:
        """Close every breaker and forget the strikes of waiting jobs; how many jobs that woke."""
        self._db.send("close_all_breakers")
        return self._db.change("reset_strikes")

    def know_tasks(self, host_id: str, names: Sequence[str], trouble: str | None) -> None:
        self._db.send(
            "know_tasks", host_id=host_id, names=dump(names), trouble=trouble, at=self._db.now
        )

    def strike_out(self, job_id: JobId, token: str, failures: int, cause: str) -> None:
        """Count the failed launch that ends a running job; nothing, if its claim has ended."""
        self._db.send("strike_out", job_id=job_id, token=token, failures=failures, cause=cause)

    def cool_down(self, job_id: JobId, kind: WaitKind, cause: str) -> None:
        """Say of a job that waits for its time that it does so after launches that failed."""
        self._db.send("cool_down", job_id=job_id, launch_wait=kind.value, last_failure=cause)
