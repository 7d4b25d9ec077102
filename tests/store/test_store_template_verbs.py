"""What every store does with templates, and with what could not be launched."""

from pathlib import Path

from recording import verbs
from stocked import HOST, SECOND, START, add, finish_of, start, unclaim_of

from headway.core.model import HostTrouble, WaitKind
from headway.core.states import Status
from headway.store import open_store
from headway.store.records import OpenBreaker, Template
from headway.store.store import Store
from headway.testing.clock import FakeClock

BUILD = {"job": {"argv": ["make", "{what}"], "retries": 3}, "params": {"what": None}}


@verbs("templates.put", "templates.by_name", "templates.all")
def test_a_template_is_kept_and_another_takes_its_place(store: Store) -> None:
    first = Template("build", BUILD, START, "ann")
    with store.write() as tx:
        assert tx.templates.by_name(["build"]) == {} and tx.templates.all() == []
        tx.templates.put(first)
        tx.templates.put(Template("a", {"job": {}, "params": {}}, START, "bob"))
        assert tx.templates.by_name(["build", "none"]) == {"build": first}
        assert [each.name for each in tx.templates.all()] == ["a", "build"]
        second = Template("build", {"job": {}, "params": {}}, START + 1, "bob")
        tx.templates.put(second)
    with store.read() as tx:
        assert tx.templates.by_name(["build"]) == {"build": second}


def test_a_backup_has_the_templates(store: Store, tmp_path: Path) -> None:
    template = Template("build", BUILD, START, "ann")
    with store.write() as tx:
        tx.templates.put(template)
    store.backup(str(tmp_path / "copy.db"))
    copy = open_store(f"sqlite://{tmp_path}/copy.db", FakeClock(START))
    with copy.read() as tx:
        assert tx.templates.all() == [template]
    copy.close()


@verbs("templates.archive")
def test_a_template_is_archived_once_and_comes_back_when_it_is_replaced(store: Store) -> None:
    template = Template("build", BUILD, START, "ann")
    with store.write() as tx:
        assert not tx.templates.archive("build")
        tx.templates.put(template)
        assert tx.templates.archive("build") and not tx.templates.archive("build")
        assert tx.templates.by_name(["build"])["build"].archived_at == tx.now()
        tx.templates.put(template)
        assert tx.templates.by_name(["build"])["build"].archived_at is None


@verbs("hosts.open_breakers")
def test_the_breakers_of_all_hosts_are_told_with_their_beginning(store: Store) -> None:
    full = HostTrouble(WaitKind.STORAGE, "no space", 1, START + 1)
    with store.write() as tx:
        assert tx.hosts.open_breakers() == []
        tx.hosts.open_breaker(HOST.id, full)
        worse = full._replace(failures=2, probe_at=START + 3)
        tx.hosts.open_breaker(HOST.id, worse)
        tx.hosts.open_breaker("elsewhere", full)
        assert tx.hosts.open_breakers() == [
            OpenBreaker("elsewhere", full, START),
            OpenBreaker(HOST.id, worse, START),
        ]


@verbs("hosts.struck_jobs", "hosts.cool_down")
def test_jobs_that_wait_after_a_failed_launch_are_counted(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx) for _ in range(4)]
        assert tx.hosts.struck_jobs(9) == (0, [])
        for slot, each in enumerate(jobs[:2], 1):
            claim = start(tx, each, slot)
            tx.claims.undo(
                [unclaim_of(claim, cause="gone", launch_failures=1, launch_wait="launch")]
            )
        tx.hosts.cool_down(jobs[3].id, WaitKind.LAUNCH, "still gone")
        count, found = tx.hosts.struck_jobs(2)
        assert (count, [each.id for each in found]) == (3, [jobs[0].id, jobs[1].id])
        cooled = tx.jobs.by_id([jobs[3].id])[jobs[3].id]
        assert (cooled.launch_wait, cooled.last_failure) == (WaitKind.LAUNCH, "still gone")
        assert tx.hosts.reset_launches() == 3
        assert tx.hosts.struck_jobs(9) == (0, [])


@verbs("hosts.strike_out")
def test_the_last_strike_is_counted_while_its_claim_is_live(store: Store) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        tx.hosts.strike_out(claim.job_id, "another token", 7, "no")
        assert tx.jobs.by_id([claim.job_id])[claim.job_id].launch_failures == 0
        tx.hosts.strike_out(claim.job_id, claim.token, 3, "gone")
        assert tx.claims.finish(
            [finish_of(claim, status=Status.FAILED, reason="circuit-broken: gone")]
        )
        tx.hosts.strike_out(claim.job_id, claim.token, 9, "too late")
        job = tx.jobs.by_id([claim.job_id])[claim.job_id]
        assert (job.status, job.launch_failures, job.last_failure) == (Status.FAILED, 3, "gone")


@verbs("hosts.circuit_broken")
def test_jobs_that_could_not_be_launched_are_found_by_their_end(store: Store) -> None:
    ends = {"circuit-broken: gone": 5, "exit code 1": 6, "circuit-broken: still gone": 7}
    with store.write() as tx:
        for reason, second in ends.items():
            claim = start(tx, add(tx))
            end = finish_of(
                claim,
                status=Status.FAILED,
                reason=reason,
                finished_at=START + second * SECOND,
            )
            assert tx.claims.finish([end]) == [True]
        count, found = tx.hosts.circuit_broken(START, 9)
        assert (count, [each.id for each in found]) == (2, [3, 1])
        assert tx.hosts.circuit_broken(START + 6 * SECOND, 9)[0] == 1
        assert [each.id for each in tx.hosts.circuit_broken(START, 1)[1]] == [3]
        assert tx.hosts.circuit_broken(START + 8 * SECOND, 9) == (0, [])
