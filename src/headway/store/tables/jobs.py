"""Jobs, with their runs, evidence, results and progress."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import DataError
from headway.core.model import POSITION_GAP, Job, JobId, Run, Stage, Wait
from headway.core.states import TERMINAL, Status
from headway.store.access import Table
from headway.store.new_jobs import Places
from headway.store.rows import (
    Row,
    dump,
    dump_approval,
    dump_job,
    load,
    load_job,
    load_marker,
    load_outline,
    load_run,
    stand_in,
    waited_on,
)

if TYPE_CHECKING:
    from headway.store.records import Progress, Records, WaitCounts

# In the order of the query that counts them; what it does not name is queued.
_COUNTED = (
    Status.QUEUED,
    Status.WAITING_ON_DEPS,
    Status.WAITING_ON_LOCKS,
    Status.WAITING_ON_APPROVAL,
)


class JobsReader(Table):
    """Jobs as a read transaction shows them."""

    def by_id(self, ids: Sequence[JobId]) -> dict[JobId, Job]:
        rows = self._db.all("jobs_by_id", ids=self._db.json(ids))
        return {row[0]: load_job(row) for row in rows}

    def readable(self, ids: Sequence[JobId]) -> dict[JobId, Job]:
        """Like `jobs`, without those whose rows cannot be read."""
        rows = self._db.all("jobs_by_id", ids=self._db.json(ids))
        return {job.id: job for job in self._readable(rows)}

    def active_with_slug(self, slug: str, *, limit: int) -> list[Job]:
        """The oldest of those that have not ended."""
        return [load_job(row) for row in self._db.all("active_with_slug", slug=slug, limit=limit)]

    def last_with_slug(self, slug: str) -> Job | None:
        """Of those that have ended the one that ended last."""
        row = self._db.one("last_with_slug", slug=slug)
        return None if row is None else load_job(row)

    def running(self, ids: Sequence[JobId]) -> dict[JobId, Job]:
        """Jobs to be settled. One whose row cannot be read gets a stand-in without parameters and
        policy: its outcome is known all the same, and it must not keep the others from theirs.

        The settler asks for the state, too; where questions travel it comes along."""
        given = {"ids": self._db.json(ids)}
        if self._cache.state is None and self._db.at_once:
            state, rows = self._db.ask({"present_state": {}, "jobs_by_id": given})
            from headway.store.scheduler_state import load_state

            self._cache.state, self._cache.presence = load_state(state)
        else:
            rows = self._db.all("jobs_by_id", **given)
        found = {}
        for row in rows:
            try:
                found[row[0]] = load_job(row)
            except DataError:
                found[row[0]] = stand_in(row)
        return found

    def by_key(self, key: str) -> Job | None:
        row = self._db.one("job_by_key", key=key)
        return load_job(row) if row else None

    def last_in_chain(self, chain: JobId) -> Job | None:
        row = self._db.one("last_in_chain", chain=chain)
        return load_job(row) if row else None

    def chain(self, chain: JobId) -> list[Job]:
        return [load_job(row) for row in self._db.all("chain_of", chain=chain)]

    def active(self) -> list[Job]:
        return self._readable(self._db.all("active_jobs"))

    def finished(self, since: int, limit: int) -> list[Job]:
        return self._readable(self._db.all("finished_jobs", since=since, limit=limit))

    def ended_without_success(
        self, since: int, limit: int, *, most: int, statuses: Collection[Status] = TERMINAL
    ) -> list[Job]:
        """Those that ended since then, as one of these, and that nobody retried, the newest first,
        but causes before what they block. Of all that ended, the newest `most` are looked at."""
        given = {"since": since, "limit": limit, "most": most}
        rows = self._db.all(
            "ended_without_success", statuses=self._db.json(sorted(statuses)), **given
        )
        return self._readable(rows)

    def count_waiting(self) -> WaitCounts:
        """It takes longer the more wait."""
        from headway.store.records import WaitCounts

        found = dict.fromkeys(_COUNTED, 0)
        ready = 0
        for stage, total, *shown in self._db.all("count_waiting"):
            counts = [total - sum(shown), *shown]
            for status, count in zip(_COUNTED, counts, strict=True):
                found[status] += int(count)
            ready += 0 if stage == Stage.PARKED else total
        return WaitCounts({status: count for status, count in found.items() if count}, ready)

    def count_waits(self) -> dict[str, int]:
        """By the kind of wait. It takes longer the more wait."""
        return dict(self._db.all("count_waits"))

    def oldest_ready(self) -> int | None:
        """When the oldest job that waits for capacity alone was made."""
        row = self._db.one("oldest_ready")
        return row[0] if row else None

    def count_active(self) -> dict[Status, int]:
        running = self._db.all("count_running")[0][0]
        waiting = self.count_waiting().statuses
        return {**waiting, Status.RUNNING: running} if running else waiting

    def count_finished(self, since: int) -> dict[Status, int]:
        rows = self._db.all("count_finished", since=since)
        return {Status(status): count for status, count in rows}

    def count_ended(self) -> tuple[int, int]:
        """All jobs that ended, and of these the blocked ones that nobody retried."""
        ended, blocked = self._db.all("count_ended")[0]
        return ended, blocked

    def outlines_shown(self, limit: int) -> list[Job]:
        """Active jobs, blocked ones that nobody retried, and what failed and holds those back, by
        `created_at, id`. An outline is a job with what a schedule shows of it, nothing else."""
        return self._readable(self._db.all("outlines_shown", limit=limit), load_outline)

    def outlines_all(self, limit: int) -> list[Job]:
        return self._readable(self._db.all("outlines_all", limit=limit), load_outline)

    def outlines(self, ids: Sequence[JobId]) -> dict[JobId, Job]:
        rows = self._db.all("outlines_by_id", ids=self._db.json(ids))
        return {job.id: job for job in self._readable(rows, load_outline)}

    def chain_ends(self, chains: Sequence[JobId]) -> dict[JobId, Job]:
        """The last job of each chain, in outline."""
        rows = self._db.all("outlines_of_ends", chains=self._db.json(chains))
        return {job.chain: job for job in self._readable(rows, load_outline)}

    def anything_active(self) -> bool:
        if self._cache.state is not None and self._cache.state.taken:
            return True
        return self._db.one("any_active") is not None

    def runs(self, ids: Sequence[JobId]) -> dict[JobId, Run]:
        rows = self._db.all("runs_by_job", ids=self._db.json(ids))
        return {row[0]: load_run(row) for row in rows}

    def evidence(self, ids: Sequence[JobId]) -> dict[JobId, dict[str, Any]]:
        """The reports of supervisors: job -> kind of evidence -> document."""
        return evidence_in(self._db.all("evidence_by_job", ids=self._db.json(ids)))

    def records(self, ids: Sequence[JobId]) -> Records:
        """Asked together; without jobs whose rows cannot be read."""
        from headway.store.records import Records

        asked = ("jobs_by_id", "runs_by_job", "evidence_by_job", "markers_of_jobs")
        given = {"ids": self._db.json(ids)}
        questions = dict.fromkeys((*asked, "outcomes_of_jobs"), given)
        found, runs, evidence, markers, outcomes = self._db.ask(questions)
        jobs = {job.id: job for job in self._readable(found)}
        started = {job.id for job in jobs.values() if job.started_at is not None}
        return Records(
            jobs,
            {row[0]: load_run(row) for row in runs if row[0] in started},
            evidence_in(row for row in evidence if row[0] in started),
            [load_marker(row) for row in markers if row[1] in started],
            dict(outcomes),
        )

    def env_digests_in_use(self, since: int) -> set[str]:
        """Those of active jobs, and of jobs that ended since then."""
        return {row[0] for row in self._db.all("env_digests_in_use", since=since)}

    def of_chains(self, chains: Sequence[JobId]) -> dict[JobId, list[Job]]:
        """The jobs of each of these chains, the last one last."""
        found: dict[JobId, list[Job]] = {}
        rows = self._db.all("jobs_of_chains", chains=self._db.json(chains))
        for job in self._readable(rows):
            found.setdefault(job.chain, []).append(job)
        return found

    def results(self, ids: Sequence[JobId]) -> dict[JobId, Any]:
        rows = self._db.all("results", ids=self._db.json(ids))
        return {row[0]: load(row[1], f"the result of job-{row[0]}") for row in rows}

    def progress(self, ids: Sequence[JobId]) -> dict[JobId, Progress]:
        from headway.store.records import Progress

        rows = self._db.all("progress", ids=self._db.json(ids))
        return {row[0]: Progress(row[0], float(row[1]), row[2]) for row in rows}


class JobsTable(JobsReader):
    """Jobs as a write transaction changes them."""

    def take_ids(self, count: int) -> int:
        return int(self._db.all("take_ids", count=count)[0][0])

    def next_places(self, after: Sequence[JobId] = ()) -> Places:
        """The places of the jobs that are added next, and the state of their predecessors, in one
        question."""
        ends: list[tuple[Any, ...]] = []
        if after:
            ids = self._db.json(after)
            rows, ends = self._db.ask({"next_places": {}, "ends_of_chains": {"ids": ids}})
        else:
            rows = self._db.all("next_places")
        first, ahead, ageing = rows[0]
        said = load(ageing, "setting scheduler.ageing") if ageing is not None else None
        known = {job_id: (chain, Status(status)) for job_id, chain, status in ends}
        return Places(int(first), POSITION_GAP * first + ahead, said, known)

    def add(self, jobs: Sequence[Job]) -> None:
        self._db.many("add_jobs", map(dump_job, jobs))
        self._db.drop_state()  # its mark of the next id is another now
        if any(job.after for job in jobs):
            from headway.store.tables.graph import add_edges

            add_edges(self._db, jobs)
        parked = [job for job in jobs if job.stage is Stage.PARKED]
        if parked:
            from headway.store.tables.waits import add_topics

            add_topics(self._db, parked)
        if any(job.needs or job.produces or "worktree" in job.params for job in jobs):
            from headway.store.tables.graph import add_graph

            add_graph(self._db, jobs)
        self._add_urls(jobs)

    def add_retries(self, jobs: Sequence[Job]) -> None:
        """Like `add`, for the next jobs of their chains: edges keep their marks."""
        from headway.store.tables.graph import add_graph

        self._db.many("add_jobs", map(dump_job, jobs))
        for job in jobs:
            if job.after:
                self._db.send("copy_edges", from_job=job.retry_of, to_job=job.id)
        add_graph(self._db, jobs)
        self._add_urls(jobs)

    def _add_urls(self, jobs: Sequence[Job]) -> None:
        if any(job.webhooks for job in jobs):
            from headway.store.tables.webhooks import add_urls

            add_urls(self._db, jobs)

    def change(self, job: Job) -> bool:
        """Change the fields that a person may change while a job waits; False if it no longer
        waits."""
        changed = self._db.change(
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

    def end_waiting(self, job: Job, status: Status, reason: str, wait: Wait | None) -> bool:
        """A job that never ran comes to its end; False if it is no longer waiting."""
        ended = self._db.change(
            "end_waiting",
            id=job.id,
            status=status.value,
            reason=reason,
            finished_at=self._db.now,
            wait_kind=wait.kind.value if wait else None,
            wait_detail=wait.detail if wait else None,
            waited_on=dump(waited_on(job, wait)),
        )
        self._db.send("clear_waits", job_id=job.id)
        return ended == 1

    def fail_unreadable(self, job_ids: Sequence[JobId], *, worker_id: str) -> None:
        """A waiting job whose row cannot be read fails with exit code 1."""
        from headway.store.tables.waits import WaitsTable

        waits = WaitsTable(self._db)
        for job_id in job_ids:
            reason = f"scheduler data error: {self._db.unreadable.pop(job_id)}"
            if self._db.change("fail_unreadable", id=job_id, reason=reason, at=self._db.now) != 1:
                continue
            topics = [row[0] for row in self._db.all("topics_of", job_id=job_id)]
            self._db.send("clear_waits", job_id=job_id)
            waits.wake_first(topics)
            self._db.send(
                "add_failed_run", job_id=job_id, at=self._db.now, worker_id=worker_id, error=reason
            )
            row = self._db.one("chain_number", job_id=job_id)
            waits.chains_failed([row[0] if row else job_id])

    def request_cancel(self, job_id: JobId, by: str) -> bool:
        return self._db.change("request_cancel", id=job_id, at=self._db.now, by=by) == 1

    def reset(self, jobs: Sequence[Job]) -> None:
        """Waiting jobs are back at the start, as given, and are checked again."""
        self._db.many("clear_waits", ({"job_id": job.id} for job in jobs))
        self._db.many(
            "reset_jobs",
            (
                {
                    "id": job.id,
                    "status": job.status.value,
                    "not_before": job.not_before,
                    "approval": dump_approval(job.approval) if job.approval else None,
                }
                for job in jobs
            ),
        )

    def keep_results(self, results: Sequence[tuple[JobId, Any]]) -> None:
        self._db.many(
            "keep_results", ({"job_id": job_id, "value": dump(value)} for job_id, value in results)
        )

    def keep_progress(self, progress: Sequence[Progress]) -> None:
        rows = (
            {"job_id": each.job_id, "fraction": repr(each.fraction), "told": each.text}
            for each in progress
        )
        self._db.many("keep_progress", ({**row, "at": self._db.now} for row in rows))


def evidence_in(rows: Iterable[Row]) -> dict[JobId, dict[str, Any]]:
    found: dict[JobId, dict[str, Any]] = {}
    for job_id, kind, document in rows:
        document = load(document, f"the {kind} of job-{job_id}")
        found.setdefault(job_id, {})[kind] = document
    return found
