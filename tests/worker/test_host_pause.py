"""A host whose workers die young is held up by itself; the other hosts of its store go on."""

from pathlib import Path

from harness import Bench
from headway.admin.doctor import examine
from headway.core.states import Status
from headway.jobs.dry_run import dry_run
from headway.jobs.views.status import scheduler_status
from headway.jobs.views.why import why
from headway.worker.one_pass import single_step
from several import Hosts

DEATHS = 3


def die_young(bench: Bench, times: int = DEATHS) -> None:
    """So many workers come up and are never heard of again; then comes the next one."""
    for _ in range(times + 1):
        worker = bench.new_worker()
        worker._register()
        worker._engine.launches.watchlist.close()


def test_workers_that_die_young_hold_up_their_own_host_alone(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    running = here.submit("sleep", "60")
    here.step()
    die_young(here)
    bound, free = here.submit("true"), here.submit("true", any_host=True)
    for _ in range(3):
        here.step()
    assert here.status(running) is Status.RUNNING, "what runs goes on"
    assert (here.status(bound), here.status(free)) == (Status.QUEUED, Status.QUEUED)
    there.until_ended(free)
    other = there.submit("true")
    there.until_ended(other)
    assert there.status(free) is there.status(other) is Status.SUCCEEDED
    here.step()
    assert here.status(bound) is Status.QUEUED
    assert dry_run(here.client.context, 5).to_dispatch == ()


def test_a_pause_of_another_host_holds_up_no_entry_here(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    die_young(here)

    def one_pass(bench: Bench) -> list[int]:
        (Path(bench.home.path) / "jobs.yaml").write_text(
            "jobs:\n  tidy: {type: command, run: [/bin/true], interval: 60}\n"
        )
        host = bench.client.context.host
        return single_step(bench.store, bench.home, bench.config, host, bench.clock, limit=1)

    assert one_pass(here) == []
    assert one_pass(there) == [1]
    there.engine.recover()  # what another engine has started, too, is awaited here
    there.until_ended(1)
    assert there.status(1) is Status.SUCCEEDED


def test_a_held_up_host_still_takes_in_what_ends_there(hosts: Hosts) -> None:
    here, _ = hosts(max_active=8)
    gate = here.folder / "gate"
    job = here.submit(shell=f"until test -e {gate}; do sleep 0.02; done")
    here.step()
    die_young(here)
    gate.touch()
    here.until_ended(job)
    assert here.status(job) is Status.SUCCEEDED
    again = here.crash()
    again.recover()
    with here.store.read() as tx:
        assert tx.settings.pause_in_force(here.client.context.host.id) is not None, (
            "recovery changes nothing of it"
        )


def test_everyone_can_see_which_host_is_held_up_and_why(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    job = here.submit("true")
    die_young(here)
    reason = "the last 3 workers died within a minute of their start"
    (objection,) = why(here.client.context, job)["objections"]
    assert (objection["kind"], objection["remedy"]) == ("paused", "headway scheduler resume")
    assert objection["detail"] == f"paused by crash-loop: {reason}"
    told = scheduler_status(here.client.context)
    assert (told["paused"], told["paused_by"], told["paused_reason"]) == (
        True, "crash-loop", reason,
    )  # fmt: skip
    assert told["paused_hosts"] == []
    (elsewhere,) = [
        o for o in why(there.client.context, job)["objections"] if o["kind"] == "target"
    ]
    assert "paused by crash-loop" in elsewhere["detail"] and here.home.path in elsewhere["detail"]
    told = scheduler_status(there.client.context)
    assert (told["paused"], told["paused_by"]) == (False, None)
    (other,) = told["paused_hosts"]
    assert (other["host_id"], other["home"]) == (here.client.context.host.id, here.home.path)
    assert (other["paused_by"], other["paused_reason"]) == ("crash-loop", reason)
    for bench in (here, there):
        findings = examine(bench.home.path, bench.home.store_url, {}, "/")
        (about,) = [each for each in findings if each.check == "pause"]
        assert about.level == "yellow" and here.home.path in about.detail
        assert about.detail.endswith(f"is paused by crash-loop: {reason}")
    with here.store.read() as tx:
        (paused,) = [each for each in tx.events.since(0, 100) if each.kind == "paused"]
    assert paused.data["host_id"] == here.client.context.host.id


def test_who_resumes_on_any_host_lets_every_host_go_on(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    die_young(here)
    there.client.pause("a look at the store")
    job = here.submit("true")
    here.step()
    assert why(here.client.context, job)["objections"][0]["detail"].startswith("paused by tester")
    assert there.client.resume() and not there.client.resume()
    here.until_ended(job)
    die_young(here, times=1)
    with here.store.read() as tx:
        assert tx.settings.pause_in_force() is None, "the deaths of before are forgiven"


def test_only_of_a_store_that_is_shared_one_host_is_held_up(bench: Bench) -> None:
    die_young(bench)
    with bench.store.read() as tx:
        pause = tx.settings.pause_in_force()
    assert pause is not None and pause.actor == "crash-loop"
    assert pause.host_id == (bench.client.context.host.id if bench.store.shared else None)
