"""A drain of function jobs during which workers, hosts and supervisors are killed with -9.

The functions write a ledger of their own; it and the database must agree. HEADWAY_DRAIN=20000:100
makes it as large as one likes: so many tasks, so many kills.
"""

import collections
import os
import random
import signal
from pathlib import Path

import pytest

from harness import Site, wait_for
from headway.core.model import JobId
from headway.core.states import TERMINAL, Status
from headway.jobs.request import Request
from headway.jobs.specification import function_spec
from headway.jobs.submit import submit_calls

TASKS = """
import os
import headway

app = headway.App()

@app.task
def note(ledger: str) -> None:
    with open(ledger, "a") as file:
        file.write(f"{headway.current().job_id}\\n")
"""


def size() -> tuple[int, int]:
    tasks, _, kills = os.environ.get("HEADWAY_DRAIN", "1500:12").partition(":")
    return int(tasks), int(kills)


def processes_of(home: str) -> dict[str, list[int]]:
    """The living processes of this home, by what they are."""
    found: dict[str, list[int]] = collections.defaultdict(list)
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            parent = int(Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"headway.functions.host.process" in words and home.encode() in b"\0".join(words):
            found["host"].append(int(entry))
            found["supervisor"].append(parent)
    return found


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.mark.parametrize("max_active", [50, 1], ids=["many at a time", "one by one"])
@pytest.mark.req("E4", "E5", "D3")
def test_killing_anything_during_a_drain_loses_and_repeats_nothing(
    tmp_path: Path, store_url: str | None, max_active: int
) -> None:  # fault A2, A3, B14
    tasks, kills = size()
    lots = random.Random(7)
    config = (
        "[worker]\nautostart = false\ncrash_loop = 0\n[app]\nmodules = ['noted']\nprocesses = 2\n"
    )
    site = Site(tmp_path, config=config, store_url=store_url)
    (tmp_path / "noted.py").write_text(TASKS)
    ledger = tmp_path / "ledger"
    ledger.touch()
    site.client.set_setting("scheduler.max_active", max_active)
    request = Request(name="note")
    spec = function_spec(request, "noted.note", {"ledger": str(ledger)})
    ids = [each.job_id for each in submit_calls(site.client.context, [spec] * tasks)]
    worker = site.start_worker()
    try:
        for number in range(kills):
            share = (number + 1) * tasks // (kills + 1)
            wait_for(lambda share=share: ended(site) >= share or None, what="progress")
            living = processes_of(site.home.path)
            kind = lots.choice(("worker", "host", "supervisor"))
            if kind == "worker" or not living[kind]:
                worker.kill()
                worker.wait()
                worker = site.start_worker()
            else:
                kill(lots.choice(living[kind]))
        wait_for(lambda: ended(site) == tasks, what="all tasks to end", deadline=120.0)
        check(site, ids, ledger)
    finally:
        site.close()


def ended(site: Site) -> int:
    with site.client.context.store.read() as tx:
        return sum(tx.jobs.count_finished(0).values())


def check(site: Site, ids: list[JobId], ledger: Path) -> None:
    called = collections.Counter(int(line) for line in ledger.read_text().split())
    with site.client.context.store.read() as tx:
        jobs = tx.jobs.by_id(ids)
        runs = tx.jobs.runs(ids)
    assert set(jobs) == set(ids), "nothing is lost"
    assert all(job.status in TERMINAL for job in jobs.values())
    assert max(called.values()) == 1, "nothing is called twice"
    for job_id, job in jobs.items():
        if job.status is Status.SUCCEEDED:
            assert called[job_id] == 1, f"job-{job_id} never ran"
        else:
            assert job.reason and "its host died" in job.reason, job
        assert runs[job_id].status in ("COMPLETED", "FAILED")
    begun = {job_id for job_id, job in jobs.items() if job.started_at}
    assert set(called) <= begun, "a start that the store does not know"
    failed = sum(job.status is Status.FAILED for job in jobs.values())
    assert failed <= 2 * size()[1], "only what ran at a kill fails"
