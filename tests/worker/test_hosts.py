"""Several hosts, one store: a job runs where it belongs, and nobody judges another's claims.

On PostgreSQL only, because a SQLite store belongs to one host.
"""

from pathlib import Path

import pytest

from harness import Bench, wait_for
from headway.admin.doctor import examine
from headway.base.clock import SECOND
from headway.core.model import Claim, Stage
from headway.core.states import Status
from headway.jobs.dry_run import dry_run
from headway.jobs.specification import parse_lock
from headway.jobs.views.status import scheduler_status
from headway.jobs.views.why import why
from headway.supervise.evidence import Evidence
from headway.testing.clock import FakeClock
from headway.worker.outcomes import RECOVER_EVERY
from headway.worker.process import POLL
from headway.worker.tools import LEASE
from several import Hosts, mine

START = 1_700_000_000 * SECOND


def started(bench: Bench, job: int) -> Claim:
    claim = next(each for each in mine(bench) if each.job_id == job)
    evidence = Evidence(claim.folder, claim.token)
    wait_for(lambda: evidence.read_started() is not None, what="the start record")
    return claim


def test_a_job_runs_where_it_was_submitted(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    job = here.submit("true")
    for _ in range(3):
        there.step()
    waiting = there.job(job)
    assert (waiting.status, waiting.stage) == (Status.QUEUED, Stage.WOKEN), "its wake is pending"
    assert dry_run(there.client.context, 5).to_dispatch == ()
    assert [each.id for each in dry_run(here.client.context, 5).to_dispatch] == [job]
    told = why(there.client.context, job)["objections"]
    assert [each["kind"] for each in told] == ["target"]
    assert here.home.path in told[0]["detail"]
    assert why(here.client.context, job)["objections"] == []
    here.until_ended(job)
    assert here.status(job) is Status.SUCCEEDED


def test_a_schedule_is_fired_by_any_host_and_its_job_runs_where_it_belongs(hosts: Hosts) -> None:
    clock = FakeClock(START)
    here, there = hosts(max_active=8, clock=clock)
    here.client.schedules.add(name="bound", every="1m", shell="pwd")
    here.client.schedules.add(name="free", every="1m", shell="pwd", any_host=True)
    clock.advance(60)
    there.step()
    bound, free = here.job(1), here.job(2)
    assert (bound.queue, free.queue) == (here.client.context.host.id, "")
    assert bound.status is Status.QUEUED and there.job(2).status is Status.RUNNING
    here.until_ended(1)
    there.until_ended(2)
    with here.store.read() as tx:
        assert tx.hosts.all()[here.client.context.host.id].home == here.home.path, (
            "nobody renamed it"
        )
    written = Path(here.home.job(1), "stdout.log").read_text()
    assert written.strip() == str(here.folder)
    for _ in range(3):
        here.step()
        there.step()
    assert len(here.client.schedules.slots("bound")) == 1, "one of the two fired it"


def test_many_jobs_of_another_host_do_not_hide_ones_own(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    for _ in range(250):  # more than a round looks at, and all before it in the order
        there.submit("true", priority=5)
    job = here.submit("true")
    here.until_ended(job)
    assert there.client.listing(states=["succeeded"])[0]["id"] == f"job-{job}"


def test_any_host_may_run_what_was_submitted_so(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    here.client.context.environ = {
        **here.client.context.environ,
        "SECRET": "x",
        "PATH": "/nowhere:/bin",
    }
    there.engine.recover()
    there.config.env = {"GREETING": "hello"}
    job = here.submit("sh", "-c", "env; pwd", any_host=True)
    there.until_ended(job)
    assert there.status(job) is Status.SUCCEEDED
    output = Path(there.home.job(job), "stdout.log").read_text()
    assert "GREETING=hello\n" in output, "the other host's own [env]"
    assert "SECRET" not in output and "/nowhere" not in output, "an environment stays on its host"
    assert output.endswith(f"\n{there.folder}\n"), "the other host's checkout"
    document = here.client.document(job)["run"]
    assert document["host"] == there.client.context.host.name
    assert document["stdout_path"] == f"{there.home.job(job)}/stdout.log"
    assert there.client.document(job)["run"]["host"] is None


def test_submitted_so_and_run_here_it_has_its_own_environment(hosts: Hosts) -> None:
    here, _ = hosts()
    here.client.context.environ = {**here.client.context.environ, "MINE": "yes"}
    job = here.submit("env", any_host=True)
    here.until_ended(job)
    assert "MINE=yes\n" in Path(here.home.job(job), "stdout.log").read_text()


def test_retries_and_what_follows_stay_on_the_host(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    job = here.submit("false", retries=1, retry_base=0, on_finish=("true",))
    here.until_ended(job)
    there.step()
    with there.store.read() as tx:
        jobs = tx.jobs.by_id([job, job + 1, job + 2])
    assert {each.queue for each in jobs.values()} == {here.client.context.host.id}
    assert [each.name for each in jobs.values()] == ["false", "false", f"on-finish job-{job + 1}"]
    here.until_ended(job + 2)


def test_what_one_host_ends_starts_what_waits_on_another(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    first = here.submit("true")
    second = there.submit("true", after=(first,))
    there.step()
    assert there.status(second) is Status.WAITING_ON_DEPS
    here.until_ended(first)
    there.until_ended(second)
    assert there.status(second) is Status.SUCCEEDED


def test_the_cap_and_the_locks_hold_over_all_hosts(hosts: Hosts) -> None:
    here, there = hosts(max_active=1)
    first = here.submit("sleep", "60")
    second = there.submit("true")
    here.step()
    there.step()
    assert there.job(second).wait.kind == "capacity"  # type: ignore[union-attr]
    here.client.set_setting("scheduler.max_active", 8)
    third = here.submit("sleep", "60", locks=(parse_lock("repo"),))
    fourth = there.submit("true", locks=(parse_lock("repo"),))
    here.step()
    there.until_ended(second)
    assert there.status(fourth) is Status.WAITING_ON_LOCKS
    here.client.cancel([first, third])
    here.until_ended(first, third)
    there.until_ended(fourth)


@pytest.mark.parametrize("lease", ["fresh", "expired"])
def test_nobody_judges_a_claim_of_another_host(hosts: Hosts, lease: str) -> None:
    clock = FakeClock(START)
    here, there = hosts(clock=clock, max_active=8)
    living, dead, unborn = (here.submit("sleep", "60") for _ in range(3))
    here.step()
    for job in (living, dead, unborn):
        started(here, job)
    # Of the three nobody here would doubt what became of them: one lives, one has lost its
    # supervisor and its folder, one has no start record.
    lost = started(here, dead)
    here.engine.launches.end_supervisor(lost)
    record = started(here, unborn)
    Path(record.folder, f"started.{record.token}").rename(Path(record.folder, "aside"))
    before = mine(here)
    here.engine.launches._launcher.stop(kill=True)  # the host falls silent
    clock.advance(LEASE / SECOND + 1 if lease == "expired" else 1)
    there.crash().recover()
    for _ in range(3):
        clock.advance(RECOVER_EVERY + 1 if lease == "expired" else 0.5)
        there.step()
    assert mine(here) == before, "no claim was touched"
    assert [there.status(each) for each in (living, dead, unborn)] == [Status.RUNNING] * 3
    assert Path(here.home.job(living)).is_dir() and not Path(there.home.job(living)).exists()
    (told,) = scheduler_status(there.client.context)["elsewhere"]
    assert told["host"] == here.client.context.host.name and told["home"] == here.home.path
    assert len(told["running"]) == 3
    assert told["expired"] == (3 if lease == "expired" else 0)
    assert scheduler_status(here.client.context)["elsewhere"] == []
    findings = examine(there.home.path, there.home.store_url, {}, "/")  # by the server's clock
    (about_hosts,) = [each for each in findings if each.check == "hosts"]
    assert about_hosts.level == "yellow" and "3 jobs of" in about_hosts.detail
    Path(record.folder, "aside").rename(Path(record.folder, f"started.{record.token}"))
    here.new_engine().recover()
    assert here.status(dead) is Status.FAILED
    assert here.status(living) is Status.RUNNING, "taken up again by its own host"


def test_a_worker_renews_the_leases_of_what_it_looks_after(hosts: Hosts) -> None:
    clock = FakeClock(START)
    here, there = hosts(clock=clock, max_active=8)
    job = here.submit("sleep", "60")
    here.step()
    claim = started(here, job)
    assert claim.lease_until == START + LEASE
    for _ in range(10):
        clock.advance(here.step())
    assert clock.now() > START + LEASE, "without renewal it would have expired"
    assert scheduler_status(there.client.context)["elsewhere"][0]["expired"] == 0


def test_a_cancel_from_another_host_reaches_the_command(hosts: Hosts) -> None:
    here, there = hosts(max_active=8)
    job = here.submit("sleep", "60")
    here.step()
    claim = started(here, job)
    there.client.cancel([job])
    assert not Evidence(claim.folder, claim.token).is_cancelled(), (
        "only its own host may write there"
    )
    here.until_ended(job)
    assert (here.status(job), here.job(job).reason) == (Status.CANCELLED, "cancelled by tester")


def test_what_others_committed_unheard_may_be_more_than_calls(hosts: Hosts) -> None:
    """Without notices, as over a pooler, a worker looks every second."""
    here, there = hosts()
    worker = here.new_worker()
    worker._changed()
    worker._wishes.disturbed = False
    there.client.pause("a look at the machine")
    assert not worker._changed_meanwhile(worker._checked_at), "just now it has looked"
    assert worker._changed_meanwhile(worker._checked_at + POLL) and worker._wishes.disturbed
    worker._engine.launches.watchlist.close()


def test_a_worker_is_woken_by_the_commits_of_others_and_not_by_its_own(hosts: Hosts) -> None:
    here, there = hosts()
    worker = here.new_worker()
    worker._watch_hints()
    worker._changed()
    worker._wishes.woken = False
    with here.store.write() as tx:
        tx.settings.set_mark("last_dispatch_count", 1)
    worker._wait(5.0)  # until its notification has come
    assert not worker._wishes.woken
    there.submit("true")
    worker._wait(5.0)
    assert worker._wishes.woken
    worker._engine.launches.watchlist.close()
