"""Plain calls for the tests of the store, waiting for capacity, taken and ended."""

from collections.abc import Sequence
from typing import Any

from stocked import HOST, START, add

from headway.core.model import (
    FUNCTION,
    FUNCTIONS,
    Job,
    JobId,
    Stage,
)
from headway.core.plaincalls import PlainCall, PlainEnd
from headway.store.records import Claimant, TakenCall
from headway.store.rows import dump
from headway.store.transaction import WriteTx

TASK = "shop.f"
CLAIMANT = Claimant(
    worker_id="worker",
    host_id=HOST.id,
    home=HOST.home,
    boot_id=HOST.boot_id,
    folder="/hosts/a",
    function_host="host-a",
    lease_until=START + 7,
)


def add_call(tx: WriteTx, **fields: Any) -> Job:
    """A call waiting for capacity."""
    call = {"type": FUNCTION, "queue": FUNCTIONS, "stage": Stage.READY}
    return add(tx, **(call | {"params": {"task": TASK, "args": {}}} | fields))


def plain(job: Job, **fields: Any) -> PlainCall:
    return PlainCall(job.id, job.attempt, job.chain, TASK, dump(job.params))._replace(**fields)


def taken(jobs: Sequence[Job]) -> list[TakenCall]:
    return [TakenCall(plain(job), f"token-{job.id}", job.id + 3, START) for job in jobs]


def end_of(each: TakenCall, result: Any = None) -> PlainEnd:
    call, token, slot, _ = each
    finished_at = START + call.job_id
    return PlainEnd(call.job_id, token, slot, call.attempt, call.chain, finished_at, result)


def damage(store: Any, assignment: str, job_id: JobId) -> None:
    """Inside a transaction: write into a row what no verb writes."""
    store.database.execute(f"update jobs set {assignment} where id = {job_id}", {})


class UndoneError(Exception):
    """So much for that."""
