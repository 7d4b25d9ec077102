"""Schedules: what many cost while none is due, and how long many take that are due at once."""

import time

from headway.base.clock import SystemClock
from headway.client import Client
from headway.schedules.timekeeper import Timekeeper
from homes import home, until_up, worker
from measure import Figures, Lab, cpu_seconds

IDLE = 10_000
DUE = 1_000
HOUR = 3_600_000_000


def schedules(lab: Lab) -> Figures:
    """CPU time of a worker over 30 s (quick: 5 s) with 10,000 schedules that fire in an hour, and
    with none; then 1,000 that are due: the seconds until the job of each is stored, by a worker's
    own code, in durable transactions of 500, while dispatch is paused."""
    idle = lab.size(IDLE)
    return {
        "schedules.idle_percent": _at_rest(lab, idle),
        "schedules.none_percent": _at_rest(lab, 0),
        "schedules.fire_ms_each": 1e3 * _fire(lab, lab.size(DUE)) / lab.size(DUE),
    }


def _at_rest(lab: Lab, count: int) -> float:
    window = 5.0 if lab.quick else 30.0
    with home(lab.fresh("schedules"), max_active=8) as client:
        if count:
            _copy(client, count, HOUR)
        with worker(client) as process:
            pids = [process.pid, until_up(client, process)]
            time.sleep(3.0)
            begin, before = time.monotonic(), sum(map(cpu_seconds, pids))
            time.sleep(window)
            return 100 * (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - begin)


def _fire(lab: Lab, count: int) -> float:
    with home(lab.fresh("firing"), max_active=8) as client:
        client.pause("only the making of jobs is measured")
        _copy(client, count, -1)
        keeper = Timekeeper(client.context.home, SystemClock(), shared=False, actor="bench")
        begin, more = time.perf_counter(), True
        while more:
            with client.context.store.write() as tx:
                more = keeper.step(tx)
            keeper.committed()
        taken = time.perf_counter() - begin
        with client.context.store.read() as tx:
            made = tx.settings.marks()["next_job_id"] - 1
        if made != count:
            raise RuntimeError(f"{made} jobs were made, not {count}")
        return taken


def _copy(client: Client, count: int, due_in: int) -> None:
    """So many schedules, each due then; the first is made as people make them."""
    schedule = client.schedules.add(cron="30 0 * * *", timezone="Europe/Berlin", argv=["true"])
    with client.context.store.write() as tx:
        due = tx.now() + due_in
        begin = due - HOUR
        document = {**schedule.document, "rule": {"every": HOUR, "anchor": begin}}
        for number in range(1, count + 1):
            tx.schedules.put(
                schedule._replace(
                    id=number,
                    name=f"s-{number}",
                    document=document,
                    changed_at=begin,
                    next_slot=due,
                    next_fire_at=due,
                )
            )
        tx.schedules.note_next_fire()
