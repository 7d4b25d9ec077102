"""What every store does with templates, and with what could not be launched."""

from pathlib import Path

from recording import verbs
from stocked import HOST, SECOND, START, add, finish_of, start, unclaim_of

from headway.core.model import HostTrouble, WaitKind
from headway.core.states import Status
from headway.store import open_store
from headway.store.base import Store
from headway.store.seam_templates import OpenBreaker, Template
from headway.testing import FakeClock

BUILD = {"job": {"argv": ["make", "{what}"], "retries": 3}, "params": {"what": None}}


@verbs("put_template", "templates", "all_templates")
def test_a_template_is_kept_and_another_takes_its_place(store: Store) -> None:
    first = Template("build", BUILD, START, "ann")
    with store.write() as tx:
        assert tx.templates(["build"]) == {} and tx.all_templates() == []
        tx.put_template(first)
        tx.put_template(Template("a", {"job": {}, "params": {}}, START, "bob"))
        assert tx.templates(["build", "none"]) == {"build": first}
        assert [each.name for each in tx.all_templates()] == ["a", "build"]
        second = Template("build", {"job": {}, "params": {}}, START + 1, "bob")
        tx.put_template(second)
    with store.read() as tx:
        assert tx.templates(["build"]) == {"build": second}


def test_a_backup_has_the_templates(store: Store, tmp_path: Path) -> None:
    template = Template("build", BUILD, START, "ann")
    with store.write() as tx:
        tx.put_template(template)
    store.backup(str(tmp_path / "copy.db"))
    copy = open_store(f"sqlite://{tmp_path}/copy.db", FakeClock(START))
    with copy.read() as tx:
        assert tx.all_templates() == [template]
    copy.close()


@verbs("archive_template")
def test_a_template_is_archived_once_and_comes_back_when_it_is_replaced(store: Store) -> None:
    template = Template("build", BUILD, START, "ann")
    with store.write() as tx:
        assert not tx.archive_template("build")
        tx.put_template(template)
        assert tx.archive_template("build") and not tx.archive_template("build")
        assert tx.templates(["build"])["build"].archived_at == tx.now()
        tx.put_template(template)
        assert tx.templates(["build"])["build"].archived_at is None


@verbs("open_breakers")
def test_the_breakers_of_all_hosts_are_told_with_their_beginning(store: Store) -> None:
    full = HostTrouble(WaitKind.STORAGE, "no space", 1, START + 1)
    with store.write() as tx:
        assert tx.open_breakers() == []
        tx.open_breaker(HOST.id, full)
        worse = full._replace(failures=2, probe_at=START + 3)
        tx.open_breaker(HOST.id, worse)
        tx.open_breaker("elsewhere", full)
        assert tx.open_breakers() == [
            OpenBreaker("elsewhere", full, START),
            OpenBreaker(HOST.id, worse, START),
        ]


@verbs("struck_jobs", "cool_down")
def test_jobs_that_wait_after_a_failed_launch_are_counted(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx) for _ in range(4)]
        assert tx.struck_jobs(9) == (0, [])
        for slot, each in enumerate(jobs[:2], 1):
            claim = start(tx, each, slot)
            tx.unclaim([unclaim_of(claim, cause="gone", launch_failures=1, launch_wait="launch")])
        tx.cool_down(jobs[3].id, WaitKind.LAUNCH, "still gone")
        count, found = tx.struck_jobs(2)
        assert (count, [each.id for each in found]) == (3, [jobs[0].id, jobs[1].id])
        cooled = tx.jobs([jobs[3].id])[jobs[3].id]
        assert (cooled.launch_wait, cooled.last_failure) == (WaitKind.LAUNCH, "still gone")
        assert tx.reset_launches() == 3
        assert tx.struck_jobs(9) == (0, [])


@verbs("strike_out")
def test_the_last_strike_is_counted_while_its_claim_is_live(store: Store) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        tx.strike_out(claim.job_id, "another token", 7, "no")
        assert tx.jobs([claim.job_id])[claim.job_id].launch_failures == 0
        tx.strike_out(claim.job_id, claim.token, 3, "gone")
        assert tx.finish([finish_of(claim, status=Status.FAILED, reason="circuit-broken: gone")])
        tx.strike_out(claim.job_id, claim.token, 9, "too late")
        job = tx.jobs([claim.job_id])[claim.job_id]
        assert (job.status, job.launch_failures, job.last_failure) == (Status.FAILED, 3, "gone")


@verbs("circuit_broken")
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
            assert tx.finish([end]) == [True]
        count, found = tx.circuit_broken(START, 9)
        assert (count, [each.id for each in found]) == (2, [3, 1])
        assert tx.circuit_broken(START + 6 * SECOND, 9)[0] == 1
        assert [each.id for each in tx.circuit_broken(START, 1)[1]] == [3]
        assert tx.circuit_broken(START + 8 * SECOND, 9) == (0, [])
