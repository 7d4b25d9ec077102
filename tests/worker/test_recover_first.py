"""What an old worker left is judged before anything else is started, and by what is written."""

from collections.abc import Callable

import pytest

from harness import Bench, Site, wait_for
from headway.base.host import this_host
from headway.core.states import Status
from headway.store.new_jobs import Event
from headway.supervise.evidence import Evidence
from headway.worker.one_pass import single_step


def left_by_an_old_worker(bench: Bench) -> tuple[int, int]:
    """A claim that was never launched, and a job behind it for which there is a slot now."""
    bench.engine.launches.launch = lambda claims: None  # type: ignore[method-assign]
    old = bench.submit("true")
    bench.step()
    assert bench.status(old) is Status.RUNNING
    bench.client.set_setting("scheduler.max_active", 2)
    return old, bench.submit("true")


def order(events: list[Event], *wanted: tuple[str, int]) -> list[tuple[str, int]]:
    told = [(event.kind, event.job_id or 0) for event in events]
    return [each for each in told if each in wanted]


@pytest.mark.req("E21")
@pytest.mark.parametrize("by", ["a worker", "a single pass"])
def test_claims_are_judged_before_anything_is_started(
    make_bench: Callable[..., Bench], by: str, store_url: str | None
) -> None:
    bench = make_bench(max_active=1)
    old, new = left_by_an_old_worker(bench)
    if by == "a worker":
        site = Site(bench.folder, store_url=store_url)
        try:
            site.worker()
            site.until_ended(old, new)
        finally:
            site.close()
    else:
        host = this_host(bench.home)
        single_step(bench.store, bench.home, bench.config, host, bench.clock, limit=2)
        bench.until_begun()
        bench.crash().recover()
        bench.until_ended(old, new)
    with bench.store.read() as tx:
        events = tx.events.since(0, 1000)
    assert order(events, ("unclaimed", old), ("running", new)) == [
        ("unclaimed", old),
        ("running", new),
    ]


@pytest.mark.req("V98")
def test_an_outcome_that_was_saved_before_a_reboot_is_the_truth_and_nothing_runs_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault A7
    ledger = bench.folder / "ledger"
    job = bench.submit("sh", "-c", f"echo ran >> {ledger}", retries=3, retry_base=0)
    bench.step()
    with bench.store.read() as tx:
        claim = tx.claims.of_job(job)
    assert claim is not None
    wait_for(lambda: Evidence(claim.folder, claim.token).read_outcome() is not None)
    boot = bench.folder / "boot_id"
    boot.write_text("another-boot\n")
    monkeypatch.setenv("HEADWAY_BOOT_ID_FILE", str(boot))
    bench.crash().recover()
    assert bench.status(job) is Status.SUCCEEDED
    assert bench.client.document(job)["run"]["exit_code"] == 0
    assert bench.last(job).id == job
    assert ledger.read_text() == "ran\n"
