"""Jobs and facts for the core's tests: everything has a default, a test names what it is about."""

from collections.abc import Mapping
from typing import Any

from headway.core.facts import Capacity, Facts, Holder, LockView, Reserver
from headway.core.model import Job, JobId, Lock, LockMode, RetryPolicy
from headway.core.states import Status

SECOND = 1_000_000
NOW = 1_000_000 * SECOND
OPEN = Capacity(max_active=-1)


def job(job_id: JobId = 1, **fields: Any) -> Job:
    defaults: dict[str, Any] = {
        "id": job_id,
        "name": f"name-{job_id}",
        "type": "command",
        "status": Status.QUEUED,
        "priority": 0,
        "position": 100 * job_id,
        "params": {"argv": ["true"]},
        "created_at": NOW - SECOND,
        "chain": job_id,
    }
    return Job(**(defaults | fields))


def running(job_id: JobId = 1, **fields: Any) -> Job:
    return job(job_id, **({"status": Status.RUNNING, "stage": None} | fields))


def facts(capacity: Capacity = OPEN, **fields: Any) -> Facts:
    return Facts(now=NOW, capacity=capacity, **fields)


def shared(key: str) -> Lock:
    return Lock(key, LockMode.SHARED)


def exclusive(key: str) -> Lock:
    return Lock(key, LockMode.EXCLUSIVE)


def held(key: str, mode: LockMode, *by: JobId) -> Mapping[str, LockView]:
    return {key: LockView(holders=tuple(Holder(each, mode) for each in by))}


def promised(key: str, mode: LockMode, to: Job) -> Mapping[str, LockView]:
    return {key: LockView(reservers=(Reserver(to.id, mode, to.order),))}


def retries(count: int, **fields: Any) -> RetryPolicy:
    return RetryPolicy(max_attempts=count, **fields)
