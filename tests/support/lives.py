"""Jobs with a past, as rows: nothing of them has run."""

from typing import Any

from headway.core.model import Claim, Job, JobId
from headway.core.states import TERMINAL, Status
from headway.store.store import Store
from headway.store.transaction import WriteTx


def lived(
    store: Store,
    status: Status,
    created: int,
    started: int | None = None,
    finished: int | None = None,
    *,
    slot: int = 1,
    **fields: Any,
) -> JobId:
    """A job that was made, started and ended at these instants; one that ran has a claim."""
    database: Any = store.database  # type: ignore[attr-defined]
    with store.write() as tx:
        job = _added(tx, created, **fields)
        if started is not None:
            tx.claims.begin([(job, _claim(job.id, slot, started))])
        gone = status in TERMINAL or status is Status.RUNNING
        database.execute(
            f"update jobs set status = '{status}', started_at = {started or 'null'}, "
            f"finished_at = {finished or 'null'}, stage = {'null' if gone else 'stage'} "
            f"where id = {job.id}",
            {},
        )
        if finished is not None:
            let_go(store, job.id)
    return job.id


def let_go(store: Store, job_id: JobId) -> None:
    """Its claim has ended."""
    database: Any = store.database  # type: ignore[attr-defined]
    database.execute(f"update claims set state = 'gone' where job_id = {job_id}", {})


def _added(tx: WriteTx, created: int, **fields: Any) -> Job:
    job_id = tx.jobs.take_ids(1)
    plain: dict[str, Any] = {
        "id": job_id,
        "name": f"name-{job_id}",
        "type": "command",
        "status": Status.QUEUED,
        "priority": 0,
        "position": 100 * job_id,
        "params": {"argv": ["true"]},
        "created_at": created,
        "chain": job_id,
    }
    job = Job(**(plain | fields))
    tx.jobs.add([job])
    return job


def _claim(job_id: JobId, slot: int, at: int) -> Claim:
    return Claim(
        job_id=job_id,
        token=f"token-{job_id}",
        slot=slot,
        worker_id="worker",
        host_id="host",
        home="/",
        boot_id="boot",
        folder=f"/jobs/{job_id}",
        claimed_at=at,
    )
