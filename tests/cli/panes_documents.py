"""Made-up documents of `headway top`, as short as they can be."""

from typing import Any

from headway.base.units import show_instant

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


def ago(seconds: float) -> str | None:
    return show_instant(NOW - round(seconds * SECOND))


def job(number: int, state: str = "queued", **more: Any) -> dict[str, Any]:
    started = None if state in ("queued", "waiting_on_deps", "waiting_on_approval") else ago(60)
    ended = None if state == "running" or started is None else ago(5)
    return {
        "id": f"job-{number}",
        "name": f"name {number}",
        "slug": None,
        "state": state,
        "reason": "exit code 2" if state == "failed" else None,
        "wait": None,
        "params": {"argv": ["make", "all"]},
        "workflow": None,
        "run": None,
        "attempt": 1,
        "after": [],
        "locks": [],
        "created_at": ago(90),
        "started_at": started,
        "finished_at": ended,
        "cancel_requested_at": None,
        "place": number,
        "estimated_wait_seconds": None,
        "usual_seconds": None,
        "last_line": None,
        **more,
    }


def approval(number: int, *, now: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "id": f"job-{number}",
        "name": f"name {number}",
        "state": "waiting_on_approval" if now else "waiting_on_deps",
        "now": now,
        "requested_at": ago(30),
        "requested_by": "bob",
        "question": None,
        "needed": 1,
        "approved_by": [],
        "workflow_run": None,
        "runs": "make deploy",
        "directory": "/srv",
        "revision": f"e-{number}",
        **more,
    }


def delivery(number: int) -> dict[str, Any]:
    return {
        "id": f"d-{number}",
        "type": "job.failed",
        "job": "job-1",
        "ended_at": ago(9),
        "error": "HTTP 500",
        "status_code": 500,
    }


def document(
    *,
    approvals: Any = (),
    failed: Any = (),
    webhooks: Any = (),
    running: Any = (),
    runs: Any = (),
    queue: Any = (),
    ended: Any = (),
    worker: bool = True,
    **status: Any,
) -> dict[str, Any]:
    return {
        "home": "/home/ada/project/.headway",
        "store": None,
        "worker": worker,
        "scheduler": {
            "mode": "deferred",
            "max_active": 4,
            "queued_total": len(queue),
            "active": len(running),
            "paused": False,
            "paused_by": None,
            "paused_at": None,
            "paused_reason": None,
            "paused_hosts": [],
            "worker_trouble": None,
            "pressure": None,
            "breakers": [],
            **status,
        },
        "states": {"queued": len(queue), "running": len(running)},
        "last_day": {"failed": len(failed)},
        "ended_per_minute": 3,
        "needs_you": {"approvals": approvals, "failed": failed, "webhooks": webhooks},
        "running": running,
        "workflow_runs": runs,
        "queue": queue,
        "ended": ended,
        "filtered": False,
        "totals": {},
    }


def run(number: int = 7, **more: Any) -> dict[str, Any]:
    return {
        "id": f"wf-{number}",
        "workflow": "release",
        "state": "running",
        "reason": None,
        "counts": {"running": 1, "succeeded": 2},
        "created_at": ago(70),
        **more,
    }
