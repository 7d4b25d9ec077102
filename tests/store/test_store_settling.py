"""What the settler writes: each end once, under its token, with everything that follows from it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stocked import HOST, SECOND, System, claim_for

from headway.core.backoff import probe_delay
from headway.core.groups import Group, GroupMode
from headway.core.model import (
    Claim,
    HostTrouble,
    Job,
    Lock,
    LockMode,
    Rate,
    RetryPolicy,
    WaitKind,
)
from headway.core.settle import Ending, HostFailed, Judgement, NeverRan, Outcome, Verdict
from headway.core.states import WAITING, Status
from headway.jobs import lifecycle as consequences
from headway.store.tables.waits import MOST_SHARERS
from headway.supervise.evidence import Evidence
from headway.worker.settler import Settler

REPO = (Lock("repo"),)
HOURLY = (Rate("api", 1, 3600 * SECOND),)
DOCUMENT = {"reason": "exited", "logs": {"stdout": {"bytes": 9, "dropped": 2}}}


def exited(system: System, code: int = 0, **fields: Any) -> Verdict:
    ended = Outcome(Ending.EXITED, system.clock.now(), exit_code=code)
    return Verdict(ended, **{"tree_gone": True, **fields})


def started(system: System, **fields: Any) -> tuple[Job, Claim]:
    """A job that runs, and its claim."""
    made = system.submit(**fields)
    (claim,) = system.until_quiet()
    return system.look(lambda tx: tx.jobs.by_id([made.id]))[made.id], claim


def job_of(system: System, job_id: int) -> Job:
    found: Job = system.look(lambda tx: tx.jobs.by_id([job_id]))[job_id]
    return found


def kinds(system: System, job_id: int) -> list[str]:
    return [each.kind for each in system.look(lambda tx: tx.events.of_job(job_id))]


def trouble(system: System) -> HostTrouble:
    return HostTrouble(WaitKind.PRESSURE, "no more processes", 1, system.clock.now())


def group_of(system: System) -> int:
    with system.store.write() as tx:
        made = Group(1, GroupMode.SEQUENTIAL, "stop", tx.now(), "ann")
        tx.groups.add(made)
    return made.id


# -- what follows from a success that has nothing to show --------------------------------------


def test_a_success_without_a_document_frees_its_lock_for_who_waits(system: System) -> None:
    system.set_max_active(2)
    _, claim = started(system, locks=REPO)
    waiter = system.submit(locks=REPO)
    assert system.until_quiet() == []
    system.judge(claim, exited(system))
    assert system.look(lambda tx: tx.claims.locks_held()) == []
    (next_one,) = system.until_quiet()
    assert next_one.job_id == waiter.id


def test_a_success_without_a_document_has_its_follow_up(system: System) -> None:
    _, claim = started(system, on_finish=("echo", "done"))
    system.judge(claim, exited(system))
    (following,) = system.look(lambda tx: tx.jobs.active())
    assert following.params["argv"] == ["echo", "done"]


def test_a_probe_that_succeeds_frees_capacity(system: System) -> None:
    with system.store.write() as tx:
        tx.hosts.open_breaker(HOST.id, trouble(system))
    _, claim = started(system)
    assert claim.probe
    system.judge(claim, exited(system))
    assert system.look(lambda tx: tx.hosts.trouble(HOST.id)) is None


def test_the_end_of_the_trouble_is_told_once(system: System) -> None:
    with system.store.write() as tx:
        tx.hosts.open_breaker(HOST.id, trouble(system))
        system.settler.host_recovered(tx)
        system.settler.host_recovered(tx)
    events = system.look(lambda tx: tx.events.since(0, 1000))
    assert [each.actor for each in events if each.kind == "host_recovered"] == ["worker"]


def test_a_probe_that_never_ran_proves_nothing(system: System) -> None:
    with system.store.write() as tx:
        tx.hosts.open_breaker(HOST.id, trouble(system))
    job, claim = started(system)
    system.cancel(job.id)
    system.judge(claim, NeverRan("x"))
    assert job_of(system, job.id).status is Status.CANCELLED
    assert system.look(lambda tx: tx.hosts.trouble(HOST.id)) is not None


@pytest.mark.parametrize(
    ("probe", "begun", "recovered"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_a_probe_that_has_begun_frees_capacity_before_it_ends(
    system: System, tmp_path: Path, probe: bool, begun: bool, recovered: bool
) -> None:
    evidence = Evidence(str(tmp_path / "7"), "t" * 32)
    evidence.prepare({})
    if begun:
        Path(evidence.started).write_text("{}")
    claim = claim_for(7, folder=evidence.folder, token=evidence.token, probe=probe)
    with system.store.write() as tx:
        tx.hosts.open_breaker(HOST.id, trouble(system))
        system.settler.look_at_probes(tx, [claim_for(6, folder="/none"), claim])
        assert (tx.hosts.trouble(HOST.id) is None) is recovered
    told = [each.kind for each in system.look(lambda tx: tx.events.since(0, 1000))]
    assert told.count("host_recovered") == int(recovered)


def test_without_trouble_no_probe_is_looked_at(system: System) -> None:
    """Whose folder nobody may read, say."""
    claim = claim_for(7, folder="/proc/1/root/none", probe=True)
    with system.store.write() as tx:
        system.settler.look_at_probes(tx, [claim])
    events = system.look(lambda tx: tx.events.since(0, 1000))
    assert [each.kind for each in events if each.kind == "host_recovered"] == []


def test_who_waits_for_a_success_without_a_document_goes(system: System) -> None:
    job, claim = started(system)
    system.submit(after=(job.id,))
    assert system.until_quiet() == []
    system.judge(claim, exited(system))
    assert len(system.until_quiet()) == 1


def test_an_end_is_of_the_instant_that_its_outcome_names(system: System) -> None:
    job, claim = started(system)
    at = system.clock.now() + 3 * SECOND
    system.clock.advance(60)
    verdict = Verdict(Outcome(Ending.EXITED, at, exit_code=0), True, DOCUMENT)
    system.judge(claim, verdict)
    assert job_of(system, job.id).finished_at == at
    store: Any = system.store
    rows = store.database.execute("select token, kind, document from evidence", {})
    assert [(token, kind, json.loads(said)) for token, kind, said in rows] == [
        (claim.token, "outcome", DOCUMENT)
    ]


def test_the_tree_of_what_never_ran_is_gone(system: System) -> None:
    job, claim = started(system)
    system.cancel(job.id)
    system.judge(claim, NeverRan("x"))
    assert system.look(lambda tx: tx.claims.unproven()) == []


def test_who_ran_before_the_trouble_proves_nothing_about_the_host(system: System) -> None:
    _, claim = started(system)
    with system.store.write() as tx:
        tx.hosts.open_breaker(HOST.id, trouble(system))
    system.judge(claim, exited(system, document=DOCUMENT))
    assert system.look(lambda tx: tx.hosts.trouble(HOST.id)) is not None


def test_a_members_success_lets_the_next_one_go(system: System) -> None:
    system.set_max_active(2)
    group = group_of(system)
    _, claim = started(system, group_id=group, sequence_number=1)
    later = system.submit(group_id=group, sequence_number=2)
    assert system.until_quiet() == []
    system.judge(claim, exited(system))
    assert [each.job_id for each in system.until_quiet()] == [later.id]


def test_what_the_logs_keep_is_counted(system: System) -> None:
    _, claim = started(system)
    before = system.look(lambda tx: tx.settings.marks())["log_bytes"]
    system.judge(claim, exited(system, document=DOCUMENT))
    assert system.look(lambda tx: tx.settings.marks())["log_bytes"] == before + 7


# -- a tree that may live ------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1])
def test_a_lock_is_kept_while_the_tree_may_live(system: System, code: int) -> None:
    system.set_max_active(2)
    job, claim = started(system, locks=REPO)
    waiter = system.submit(locks=REPO)
    system.until_quiet()
    system.judge(claim, exited(system, code, tree_gone=False))
    assert [each.job_id for each in system.look(lambda tx: tx.claims.locks_held())] == [job.id]
    assert system.until_quiet() == []
    assert [each.token for each in system.look(lambda tx: tx.claims.unproven())] == [claim.token]
    system.prove_gone(claim)
    assert [each.job_id for each in system.until_quiet()] == [waiter.id]


# -- the fences ----------------------------------------------------------------------------------

JUDGEMENTS: dict[str, Callable[[System], Judgement]] = {
    "success": lambda system: exited(system),
    "success with a document": lambda system: exited(system, document=DOCUMENT),
    "failure": lambda system: exited(system, 1),
    "undoing": lambda system: NeverRan("nothing was started"),
    "host trouble": lambda system: HostFailed(WaitKind.PRESSURE, "no more processes"),
}


@pytest.mark.parametrize("said", JUDGEMENTS)
def test_a_word_about_a_claim_that_is_over_changes_nothing(system: System, said: str) -> None:
    """Of who remembers the job as it was claimed, and comes after another worker's verdict: the
    job runs again by then, under another token, with its lock and its start."""
    system.set_max_active(2)
    group = group_of(system)
    fields = {"locks": REPO, "rates": (Rate("api", 9, SECOND),), "on_finish": ("echo",)}
    fields |= {"retry": RetryPolicy(max_attempts=3), "group_id": group, "sequence_number": 1}
    job, old = started(system, produces=("custom:out",), **fields)
    system.judge(old, NeverRan("the worker died"))
    (new,) = system.until_quiet()
    assert new.job_id == job.id and new.token != old.token
    before = everything(system)
    with system.store.write() as tx:
        assert system.settler.apply(tx, [(old, JUDGEMENTS[said](system))], {job.id: job}) == []
    assert everything(system) == before
    assert system.look(lambda tx: tx.claims.of_job(job.id)) == new


@pytest.mark.parametrize("remembered", [False, True])
@pytest.mark.parametrize("said", JUDGEMENTS)
def test_a_word_about_a_job_that_has_ended_changes_nothing(
    system: System, said: str, remembered: bool
) -> None:
    job, claim = started(system, locks=REPO, rates=HOURLY, retry=RetryPolicy(max_attempts=3))
    system.cancel(job.id)
    system.judge(claim, exited(system, 1, tree_gone=False))
    before = everything(system)
    with system.store.write() as tx:
        word = (claim, JUDGEMENTS[said](system))
        assert system.settler.apply(tx, [word], {job.id: job} if remembered else {}) == []
    assert everything(system) == before
    assert job_of(system, job.id).status is Status.FAILED
    assert late_outcomes(system) == ([claim.token] if said == "success with a document" else [])


def late_outcomes(system: System) -> list[str]:
    store: Any = system.store
    rows = store.database.execute("select token from evidence where kind = 'late_outcome'", {})
    return [token for (token,) in rows]


def everything(system: System) -> Any:
    """What a late word must leave alone."""
    return system.look(
        lambda tx: (
            tx.jobs.active(),
            tx.claims.live(),
            tx.claims.locks_held(),
            tx.limits.newest_starts("api", 0, 9),
            [(each.kind, each.job_id) for each in tx.events.since(0, 1000)],
            tx.hosts.trouble(HOST.id),
            tx.settings.marks(),
        )
    )


def test_a_late_word_that_was_written_down_is_kept_as_evidence(system: System) -> None:
    job, old = started(system)
    system.judge(old, NeverRan("the worker died"))
    system.until_quiet()
    with system.store.write() as tx:
        system.settler.apply(tx, [(old, exited(system, document=DOCUMENT))], {job.id: job})
    assert late_outcomes(system) == [old.token]


def test_of_two_words_about_one_claim_the_first_counts(system: System) -> None:
    job, claim = started(system, on_finish=("echo",))
    with system.store.write() as tx:
        words = [(claim, exited(system)), (claim, exited(system, 1))]
        for word in words:
            system.settler.apply(tx, [word], {job.id: job})
    assert job_of(system, job.id).status is Status.SUCCEEDED
    assert [kind for kind in kinds(system, job.id) if kind in ("succeeded", "failed")] == [
        "succeeded"
    ]
    assert len(system.look(lambda tx: tx.jobs.active())) == 1, "one follow-up"


# -- an undoing ----------------------------------------------------------------------------------


def test_an_undoing_is_told_and_frees_what_was_taken(system: System) -> None:
    job, claim = started(system, locks=REPO)
    outcome = Outcome(Ending.SPAWN_ERROR, system.clock.now(), errno=2, error="no such file")
    system.judge(claim, Verdict(outcome, tree_gone=True))
    system.clock.advance(60)
    before = job_of(system, job.id)
    assert (before.launch_failures, before.launch_wait) == (1, WaitKind.LAUNCH)
    (claim,) = system.until_quiet()
    ahead = system.submit(locks=REPO, priority=1)
    system.judge(claim, NeverRan("the worker died"))
    undoings = [
        e for e in system.look(lambda tx: tx.events.of_job(job.id)) if e.kind == "unclaimed"
    ]
    assert [(each.data["cause"], each.actor) for each in undoings] == [
        ("no such file", "worker"),
        ("the worker died", "worker"),
    ]
    again = job_of(system, job.id)
    for field in ("launch_failures", "launch_wait", "not_before", "attempt"):
        assert getattr(again, field) == getattr(before, field), field
    assert again.status is Status.QUEUED
    assert [each.job_id for each in system.until_quiet()] == [ahead.id]


def test_a_host_that_could_not_start_is_told_and_leaves_no_capacity(system: System) -> None:
    system.set_max_active(2)
    for failures in (1, 2):
        _, claim = started(system)
        system.judge(claim, HostFailed(WaitKind.STORAGE, "disk full"))
        found = system.look(lambda tx: tx.hosts.trouble(HOST.id))
        now = system.clock.now()
        assert (found.kind, found.cause, found.failures) == (
            WaitKind.STORAGE,
            "disk full",
            failures,
        )
        assert found.probe_at == now + probe_delay(failures)
        assert system.until_quiet() == []
        with system.store.write() as tx:
            consequences.end_all_unstarted(
                tx, tx.jobs.active(), Status.CANCELLED, "enough", actor="ann"
            )
        system.clock.advance(120)
    events = system.look(lambda tx: tx.events.since(0, 1000))
    told = [dict(each.data) for each in events if each.kind == "host_trouble"]
    said = {"kind": "storage", "cause": "disk full"}
    assert told == [{**said, "failures": 1}, {**said, "failures": 2}]


def test_a_command_that_cannot_be_launched_gets_its_strikes_and_a_cooldown(
    system: System,
) -> None:
    with system.store.write() as tx:
        tx.settings.set("scheduler.cooldown", "1h", by="ann")
    job = system.submit()
    for _ in range(3):
        (claim,) = system.until_quiet()
        outcome = Outcome(Ending.SPAWN_ERROR, system.clock.now(), errno=2, error="no such file")
        system.judge(claim, Verdict(outcome, tree_gone=True))
        end = system.clock.now()
        system.clock.advance(60)
    broken = job_of(system, job.id)
    assert broken.reason == "circuit-broken: no such file"
    assert (broken.launch_failures, broken.last_failure) == (3, "no such file")
    (next_one,) = system.look(lambda tx: tx.jobs.active())
    assert next_one.not_before == end + 3600 * SECOND
    assert (next_one.launch_wait, next_one.last_failure) == (WaitKind.LAUNCH, "no such file")


def test_the_chance_of_a_retry_is_the_settlers(system: System) -> None:
    system.settler = Settler(HOST, "worker", chance=lambda: 0.5)
    policy = RetryPolicy(max_attempts=1, base=10 * SECOND, jitter=1.0)
    job, claim = started(system, retry=policy)
    system.judge(claim, exited(system, 1))
    (following,) = system.look(lambda tx: tx.jobs.active())
    assert following.not_before == system.clock.now() + 15 * SECOND
    (told,) = [e for e in system.look(lambda tx: tx.events.of_job(job.id)) if e.kind == "retried"]
    assert dict(told.data) == {
        "reason": "exit code 1",
        "not_before": following.not_before,
        "by": f"job-{following.id}",
    }


def test_a_success_is_told_without_a_reason(system: System) -> None:
    job, claim = started(system)
    system.judge(claim, exited(system))
    last = system.look(lambda tx: tx.events.of_job(job.id))[-1]
    assert (last.kind, dict(last.data)) == ("succeeded", {"attempt": 1, "exit_code": 0})


@pytest.mark.parametrize("cancelled", [False, True])
def test_an_end_is_told_with_attempt_exit_code_and_reason(system: System, cancelled: bool) -> None:
    job, claim = started(system)
    if cancelled:
        system.cancel(job.id)
        system.judge(claim, NeverRan("x"))
    else:
        system.judge(claim, exited(system, 7))
    last = system.look(lambda tx: tx.events.of_job(job.id))[-1]
    reason = "cancelled by ann before it started" if cancelled else "exit code 7"
    code = {} if cancelled else {"exit_code": 7}
    assert dict(last.data) == {"attempt": 1, "reason": reason, **code}
    assert (last.kind, last.actor) == ("cancelled" if cancelled else "failed", "worker")
    ended = job_of(system, job.id)
    assert (ended.reason, ended.finished_at) == (reason, system.clock.now())
    run = system.look(lambda tx: tx.jobs.runs([job.id])).get(job.id)
    assert run is None if cancelled else (run.exit_code, run.error) == (7, "exit code 7")


# -- rates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("judgement", [NeverRan("x"), HostFailed(WaitKind.PRESSURE, "x")])
@pytest.mark.parametrize("cancelled", [False, True])
def test_a_start_that_never_was_does_not_count_in_its_rate(
    system: System, judgement: Judgement, cancelled: bool
) -> None:
    job, claim = started(system, rates=HOURLY)
    assert len(system.look(lambda tx: tx.limits.newest_starts("api", 0, 9))) == 1
    if cancelled:
        system.cancel(job.id)
    system.judge(claim, judgement)
    assert system.look(lambda tx: tx.limits.newest_starts("api", 0, 9)) == []
    status = job_of(system, job.id).status
    assert status is Status.CANCELLED if cancelled else status in WAITING


@pytest.mark.parametrize("ending", [Ending.CANCELLED, Ending.EXITED, Ending.OUTCOME_UNKNOWN])
def test_a_start_that_was_counts_however_it_ended(system: System, ending: Ending) -> None:
    job, claim = started(system, rates=HOURLY)
    system.cancel(job.id)
    outcome = Outcome(ending, system.clock.now(), exit_code=1)
    system.judge(claim, Verdict(outcome, tree_gone=True))
    assert len(system.look(lambda tx: tx.limits.newest_starts("api", 0, 9))) == 1


# -- retries -------------------------------------------------------------------------------------


def test_a_stored_retry_has_every_field_that_its_job_had(system: System) -> None:
    fields: dict[str, Any] = {
        "slug": "nightly",
        "labels": {"team": "red"},
        "priority": 3,
        "locks": REPO,
        "retry": RetryPolicy(3, 5, 7, 0.5, ("1", "signal")),
        "env_digest": "e" * 64,
        "on_finish": ("echo", "done"),
        "submitted_by": "ann",
        "needs": (),
        "produces": ("custom:out",),
        "resources": ("gpu",),
        "rates": HOURLY,
        "target": "sonnet",
        "subject": "beads:x-1",
        "template_id": "template-1",
        "schedule_id": "schedule-3",
        "params": {"argv": ["make"], "timeout_seconds": 5},
    }
    job, claim = started(system, **fields)
    system.judge(claim, exited(system, 1))
    (following,) = system.look(lambda tx: tx.jobs.active())
    assert {name: getattr(following, name) for name in fields} == fields
    assert (following.retry_of, following.chain, following.attempt) == (job.id, job.chain, 2)
    assert (following.position, following.dispatch_level) == (job.position, 3)


def test_a_group_has_not_ended_while_one_of_its_chains_goes_on(system: System) -> None:
    """Both members end in one step, and one of them is tried again."""
    system.set_max_active(2)
    with system.store.write() as tx:
        group = Group(1, GroupMode.PARALLEL, "continue", tx.now(), "ann")
        tx.groups.add(group._replace(closed_at=tx.now()))
    one = system.submit(group_id=1, sequence_number=1)
    two = system.submit(group_id=1, sequence_number=2, retry=RetryPolicy(max_attempts=1))
    claims = {each.job_id: each for each in system.until_quiet()}
    with system.store.write() as tx:
        words = [(claims[one.id], exited(system)), (claims[two.id], exited(system, 1))]
        system.settler.apply(tx, words)
    assert system.look(lambda tx: tx.groups.by_id([1]))[1].ended_at is None


# -- more who share a lock than are woken at once ------------------------------------------------


@pytest.mark.parametrize("before_them", [0, 1, 2 * MOST_SHARERS])
def test_all_who_share_a_lock_go_when_it_is_free(system: System, before_them: int) -> None:
    system.set_max_active(-1)
    _, claim = started(system, locks=REPO)
    shared = (Lock("repo", LockMode.SHARED),)
    sharers = [system.submit(locks=shared).id for _ in range(3 * MOST_SHARERS)]
    # Those reserve what they would share, and lack another: nobody who shares must wait for them.
    started(system, locks=(Lock("other"),))
    both = (Lock("other"), *shared)
    ahead = [system.submit(locks=both, priority=5).id for _ in range(before_them)]
    assert system.until_quiet() == []
    system.judge(claim, exited(system))
    began = {each.job_id for each in system.step().started}
    assert began == set(sharers), "in one step: nothing else would make another"
    assert {job_of(system, each).status for each in ahead} <= {Status.WAITING_ON_LOCKS}
