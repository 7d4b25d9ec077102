"""What Headway takes while it has little to do: an idle worker, and jobs that only sleep."""

import statistics
import time

from homes import home, submit, until_up, worker
from measure import Figures, Lab, children, cpu_seconds, pss_bytes, wait_for, wake_ups

SLEEPERS = 20


def idle(lab: Lab) -> Figures:
    """CPU time and wake-ups of a foreground worker and its parent with an empty queue.

    A window of 20 s in each of the three rounds (quick: 5 s), after 3 s to come to rest.
    """
    window = 5.0 if lab.quick else 20.0
    with home(lab.fresh("idle"), max_active=8) as client, worker(client) as process:
        pids = [process.pid, until_up(client, process)]
        time.sleep(3.0)
        begin = time.monotonic()
        cpu, woken = _spent(pids)
        time.sleep(window)
        cpu_after, woken_after = _spent(pids)
        taken = time.monotonic() - begin
    return {
        "idle.cpu_percent": 100 * (cpu_after - cpu) / taken,
        "idle.wake_ups": (woken_after - woken) / taken,
    }


def memory(lab: Lab) -> Figures:
    """PSS of one supervisor, and of the worker, while 20 commands sleep."""
    with home(lab.fresh("memory"), max_active=SLEEPERS) as client, worker(client) as process:
        parent = until_up(client, process)
        ids = submit(client, SLEEPERS, "sleep", "300")
        supervisors = wait_for(lambda: _with_child(parent))
        each = [pss_bytes(pid) for pid in supervisors]
        figures = {
            "memory.supervisor_mb": statistics.median(each) / 1e6,
            "memory.parent_mb": pss_bytes(parent) / 1e6,
            "memory.worker_mb": pss_bytes(process.pid) / 1e6,
        }
        client.cancel(ids)
        wait_for(lambda: not children(parent))
    return figures


def _spent(pids: list[int]) -> tuple[float, int]:
    return sum(map(cpu_seconds, pids)), sum(map(wake_ups, pids))


def _with_child(parent: int) -> list[int]:
    """All supervisors, once each of them has its command running."""
    supervisors = children(parent)
    running = len(supervisors) == SLEEPERS and all(map(children, supervisors))
    return supervisors if running else []
