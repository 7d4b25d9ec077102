"""Cancel and timeout: final for the chain, the whole process tree gone, the truth told."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench, wait_for
from headway.base.errors import ConflictError
from headway.core.states import Status

# Leaves its session, double-forks, ignores TERM and holds the pipe: everything at once.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1], "a") as f: f.write(f"{os.getpid()}\\n")
        while True: time.sleep(1)
    os._exit(0)
with open(sys.argv[1], "a") as f: f.write(f"{os.getpid()}\\n")
while True: time.sleep(1)
"""


def living(pids: Path) -> list[int]:
    return [pid for pid in map(int, pids.read_text().split()) if os.path.exists(f"/proc/{pid}")]


def two_pids(pids: Path) -> bool:
    return pids.exists() and len(pids.read_text().split()) == 2


CGROUPS = [
    pytest.param("off", id="sweep"),
    pytest.param("auto", id="cgroup", marks=pytest.mark.root),
]


@pytest.mark.req("V78", "E27")
@pytest.mark.parametrize("cgroup", CGROUPS)
def test_cancel_leaves_no_process_of_a_stubborn_tree(  # fault B1, B2, B3
    make_bench: Callable[..., Bench], cgroup: str
) -> None:
    bench = make_bench(settings={"processes.cgroup": cgroup})
    pids = bench.folder / "pids"
    job = bench.submit("python3", "-c", STUBBORN, str(pids), grace=200_000, retries=3)
    bench.until(lambda: two_pids(pids))
    bench.client.cancel([job])
    bench.until_ended(job)
    assert living(pids) == []
    document = bench.client.document(job)
    assert (document["state"], document["status"]) == ("cancelled", "CANCELLED")
    run = document["run"]
    assert (run["status"], run["exit_code"], run["error"]) == ("FAILED", 143, "cancelled")
    assert document["reason"] == "cancelled by tester"
    assert len(bench.client.jobs.chain(job)) == 1, "a cancel is final for the chain"


@pytest.mark.parametrize("cgroup", CGROUPS)
def test_a_deadline_leaves_no_process_of_a_stubborn_tree(  # fault B1, B2
    make_bench: Callable[..., Bench], cgroup: str
) -> None:
    bench = make_bench(settings={"processes.cgroup": cgroup})
    pids = bench.folder / "pids"
    job = bench.submit("python3", "-c", STUBBORN, str(pids), timeout=3_000_000, grace=100_000)
    bench.until_ended(job)
    assert two_pids(pids) and living(pids) == []
    document = bench.client.document(job)
    assert (document["state"], document["run"]["exit_code"]) == ("failed", 124)
    assert document["reason"] == "timed out after 3 s"


def test_a_command_that_falls_silent_is_ended(bench: Bench) -> None:
    job = bench.submit(shell="echo up; exec sleep 600", idle_timeout="300ms", grace=100_000)
    bench.until_ended(job)
    document = bench.client.document(job)
    assert (document["state"], document["run"]["exit_code"]) == ("failed", 124)
    assert document["reason"] == "no output for 0.3 s"


@pytest.mark.req("V78")
def test_a_waiting_job_is_cancelled_without_a_run(bench: Bench) -> None:
    first = bench.submit("sleep", "60")
    second = bench.submit("true", after=(first,))
    third = bench.submit("true", after=(second,))
    bench.step()
    bench.client.cancel([second])
    bench.step()
    document = bench.client.document(second)
    assert (document["state"], document["run"]) == ("cancelled", None)
    assert bench.job(third).reason == f"dependency failed for job job-{second} (cancelled)"


def test_cancelling_an_earlier_job_of_a_chain_cancels_its_active_one(bench: Bench) -> None:
    job = bench.submit("false", retries=3, retry_base=3_600_000_000)
    bench.until(lambda: bench.last(job).id != job)
    (result,) = bench.client.cancel([job])
    assert (result.asked_for, result.job_id) == (job, bench.last(job).id)
    assert bench.last(job).status is Status.CANCELLED
    with pytest.raises(ConflictError, match="already ended"):
        bench.client.cancel([job])


def test_the_true_outcome_stands_when_it_came_before_the_signal(bench: Bench) -> None:
    job = bench.submit("false", retries=3, retry_base=0)
    bench.step()
    outcomes = Path(bench.home.job(job))
    wait_for(lambda: list(outcomes.glob("outcome.*.json")))
    bench.client.cancel([job])
    bench.until_ended(job)
    assert bench.status(job) is Status.FAILED
    assert bench.job(job).reason == "exit code 1"
    assert len(bench.client.jobs.chain(job)) == 1, "but it makes no automatic retry"


def test_a_job_cancelled_between_claim_and_start_never_runs(bench: Bench) -> None:
    ledger = bench.folder / "ledger"
    job = bench.submit("sh", "-c", f"echo ran >> {ledger}")
    launched: list[object] = []
    bench.engine.launches.launch = launched.extend  # type: ignore[method-assign]
    bench.step()
    assert bench.status(job) is Status.RUNNING and launched
    bench.client.cancel([job])
    bench.crash().recover()
    assert bench.status(job) is Status.CANCELLED
    assert bench.client.document(job)["run"] is None
    bench.turn()
    assert not ledger.exists()


def test_locks_are_free_again_after_a_cancel(bench: Bench) -> None:
    from headway.jobs.specification import parse_lock

    bench.client.set_setting("scheduler.max_active", 2)
    holder = bench.submit("sleep", "60", locks=(parse_lock("repo"),))
    waiter = bench.submit("true", locks=(parse_lock("repo"),))
    bench.step()
    assert bench.status(waiter) is Status.WAITING_ON_LOCKS
    bench.client.cancel([holder])
    bench.until_ended(waiter)
    assert bench.status(waiter) is Status.SUCCEEDED


def test_a_cancel_reaches_the_command_though_whoever_asked_has_died(bench: Bench) -> None:
    began = bench.folder / "began"
    job = bench.submit("sh", "-c", f"touch {began}; sleep 60")
    bench.until(began.exists)
    with bench.store.write() as tx:  # and is killed before it tells the supervisor
        assert tx.jobs.request_cancel(job, "tester")
    bench.until_ended(job)
    run = bench.client.document(job)["run"]
    assert (bench.status(job), run["exit_code"]) == (Status.CANCELLED, 143)
    assert run["duration_ms"] < 9_000, "by its supervisor, and not by force"


def test_a_job_that_is_cancelled_while_it_waits_has_its_follow_up(bench: Bench) -> None:
    bench.client.pause("later")
    job = bench.submit("true", on_finish=("true",))
    bench.client.cancel([job])
    with bench.store.read() as tx:
        (following,) = tx.jobs.active()
    assert following.params["env"]["HEADWAY_FINISHED_STATE"] == "cancelled"
