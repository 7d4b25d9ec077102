"""kill -9 of everything that can be killed, with a ledger that the jobs themselves write."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from harness import Site, wait_for
from headway.core.states import Status
from headway.supervise.evidence import Evidence


def ledger_job(ledger: Path, name: int, seconds: float) -> tuple[str, ...]:
    script = f"echo start-{name} >> {ledger}; sleep {seconds}; echo end-{name} >> {ledger}"
    return ("sh", "-c", script)


def gated_job(ledger: Path, name: int, gate: Path) -> tuple[str, ...]:
    """One that lives until the gate is there, however slow everything else is."""
    wait = f"until test -e {gate}; do sleep 0.05; done"
    return ("sh", "-c", f"echo start-{name} >> {ledger}; {wait}; echo end-{name} >> {ledger}")


def entries(ledger: Path) -> Counter[str]:
    return Counter(ledger.read_text().split()) if ledger.exists() else Counter()


def running(site: Site) -> list[int]:
    with site.client.context.store.read() as tx:
        return [claim.job_id for claim in tx.claims.live()]


def all_started(site: Site, count: int) -> list[int]:
    """Wait until that many jobs run and have their start record."""

    def ready() -> list[int]:
        with site.client.context.store.read() as tx:
            claims = tx.claims.live()
        have = [c.job_id for c in claims if Evidence(c.folder, c.token).read_started()]
        return have if len(have) == count else []

    found: list[int] = wait_for(ready, what=f"{count} running jobs")
    return found


@pytest.mark.req("E24", "D25")
def test_killing_the_worker_loses_nothing_and_repeats_nothing(site: Site) -> None:  # fault A1
    ledger, gate = site.folder / "ledger", site.folder / "gate"
    site.client.set_setting("scheduler.max_active", 4)
    jobs = [site.submit(*gated_job(ledger, n, gate)) for n in range(20)]
    worker = site.worker()
    first_four = all_started(site, 4)
    worker.kill()
    worker.wait()
    assert all(site.status(job) is Status.RUNNING for job in first_four)
    site.worker()
    wait_for(lambda: all("readopted" in site.kinds(job) for job in first_four))
    gate.touch()
    site.until_ended(*jobs)
    assert {site.status(job) for job in jobs} == {Status.SUCCEEDED}
    wanted = Counter(f"{word}-{n}" for n in range(20) for word in ("start", "end"))
    assert entries(ledger) == wanted
    readopted = [job for job in jobs if "readopted" in site.kinds(job)]
    assert set(readopted) == set(first_four)


def test_killing_a_supervisor_fails_its_job_alone(site: Site) -> None:  # fault B7
    ledger = site.folder / "ledger"
    site.client.set_setting("scheduler.max_active", 2)
    jobs = [site.submit(*ledger_job(ledger, n, 0.6)) for n in range(4)]
    site.worker()
    victim, other = all_started(site, 2)
    with site.client.context.store.read() as tx:
        claim = tx.claims.of_job(victim)
    assert claim is not None
    record = Evidence(claim.folder, claim.token).read_started()
    assert record is not None
    wait_for(lambda: entries(ledger)[f"start-{victim - 1}"])
    os.kill(record.supervisor_pid, signal.SIGKILL)
    site.until_ended(*jobs)
    assert site.status(victim) is Status.FAILED
    error = site.client.document(victim)["run"]["error"]
    assert error == "Scheduler crash recovery: outcome_unknown"
    assert [site.status(job) for job in jobs if job != victim] == [Status.SUCCEEDED] * 3
    counted = entries(ledger)
    assert counted[f"end-{victim - 1}"] == 0 and counted[f"start-{victim - 1}"] == 1
    assert other in jobs


def parent_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("PPid:")[2].split()[0])


def test_killing_the_parent_stops_no_job(site: Site) -> None:
    ledger = site.folder / "ledger"
    site.client.set_setting("scheduler.max_active", 3)
    jobs = [site.submit(*ledger_job(ledger, n, 0.5)) for n in range(9)]
    site.worker()
    all_started(site, 3)
    with site.client.context.store.read() as tx:
        records = [Evidence(each.folder, each.token).read_started() for each in tx.claims.live()]
    (parent,) = {parent_of(each.supervisor_pid) for each in records if each is not None}
    os.kill(parent, signal.SIGKILL)
    site.until_ended(*jobs)
    assert {site.status(job) for job in jobs} == {Status.SUCCEEDED}
    assert set(entries(ledger).values()) == {1}


@pytest.mark.req("E22")
def test_killing_everything_leaves_the_provable_truth_and_no_process(site: Site) -> None:
    ledger = site.folder / "ledger"
    site.client.set_setting("scheduler.max_active", 4)
    jobs = [site.submit(*ledger_job(ledger, n, 0.7)) for n in range(8)]
    worker = site.worker()
    victims = all_started(site, 4)
    wait_for(lambda: entries(ledger).total() == 4)
    with site.client.context.store.read() as tx:
        records = [Evidence(c.folder, c.token).read_started() for c in tx.claims.live()]
    supervisors = [record.supervisor_pid for record in records if record]
    for pid in [worker.pid, *supervisors, *site.processes()]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    worker.wait()
    wait_for(lambda: not site.processes(), what="everything to be gone")
    site.worker()
    site.until_ended(*jobs)
    for job in jobs:
        counted = entries(ledger)
        assert counted[f"start-{job - 1}"] == 1, "nothing runs twice"
        if job in victims:
            assert site.status(job) is Status.FAILED
            error = site.client.document(job)["run"]["error"]
            assert error.startswith("Scheduler crash recovery")
        else:
            assert site.status(job) is Status.SUCCEEDED


def test_a_poisoned_worker_start_pauses_dispatch_and_running_jobs_go_on(  # fault A14
    make_site: Callable[..., Site],
) -> None:
    site = make_site(config="[worker]\nautostart = false\n")
    gate = site.folder / "gate"
    running_job = site.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.02; done")
    worker = site.worker()
    all_started(site, 1)
    worker.kill()
    worker.wait()
    for _ in range(2):
        dying = site.start_worker(env={"HEADWAY_POINTS": "engine.recovered=kill"})
        assert dying.wait(timeout=30) == -signal.SIGKILL
    queued = site.submit("true")
    site.worker()
    status = wait_for(lambda: _paused(site), what="the pause")
    assert status[0] == "crash-loop" and "last 3 workers died" in status[1]
    gate.touch()
    site.until_ended(running_job)
    assert site.status(running_job) is Status.SUCCEEDED
    assert site.status(queued) is Status.QUEUED
    site.run("scheduler", "resume")
    site.until_ended(queued)


def _paused(site: Site) -> tuple[str, str] | None:
    with site.client.context.store.read() as tx:
        pause = tx.settings.pause_in_force()
    return (pause.actor, pause.reason or "") if pause else None
