"""What every store does with the scheduler's own rows, with functions, and for views."""

from pathlib import Path
from typing import Any

import pytest
from recording import verbs
from stocked import (
    HOST,
    SECOND,
    START,
    add,
    job,
    parking,
    start,
    unclaim_of,
)

from headway.base.errors import ConflictError, InvalidInputError
from headway.core.facts import REPORT_VALID_FOR, TaskView
from headway.core.model import (
    HostTrouble,
    Job,
    LockMode,
    Pause,
    Stage,
    Wait,
    WaitKind,
)
from headway.core.states import ACTIVE, TERMINAL, WAITING, Status
from headway.store import open_store
from headway.store.records import (
    Progress,
    Search,
    WorkerRecord,
)
from headway.store.store import Store
from headway.testing.clock import FakeClock

SHARED, EXCLUSIVE = LockMode.SHARED, LockMode.EXCLUSIVE
TIMED = Wait(WaitKind.TIME, "waiting for its time")


def stages(tx: Any, *jobs: Job) -> list[Stage | None]:
    found = tx.jobs.by_id([each.id for each in jobs])
    return [found[each.id].stage for each in jobs]


def ids(jobs: list[Job]) -> list[int]:
    return [each.id for each in jobs]


# -- the scheduler's own ------------------------------------------------------------------------


@verbs("settings.all", "settings.set")
def test_settings_keep_their_types(store: Store) -> None:
    with store.write() as tx:
        assert tx.settings.all() == {}
        tx.settings.set("scheduler.max_active", 3, by="ann")
        tx.settings.set("scheduler.spawn_delay", "1s", by="ann")
        tx.settings.set("scheduler.max_active", -1, by="bob")
        assert tx.settings.all() == {"scheduler.max_active": -1, "scheduler.spawn_delay": "1s"}


@verbs("settings.pause", "settings.resume", "settings.pause_in_force")
def test_the_first_pause_stays_in_force(store: Store) -> None:
    pause = Pause("ann", "moving house", START)
    with store.write() as tx:
        assert tx.settings.pause_in_force() is None and not tx.settings.resume()
        assert tx.settings.pause(pause)
        assert not tx.settings.pause(Pause("bob", None, START + 1))
        assert tx.settings.pause_in_force() == pause
        assert tx.settings.resume() and not tx.settings.resume()
        assert tx.settings.pause_in_force() is None
        assert tx.settings.pause(Pause("bob", None, START))


@verbs("settings.host_pauses")
def test_a_pause_of_one_host_holds_up_no_other(store: Store) -> None:
    mine, for_all = Pause("crash-loop", "dead", START, HOST.id), Pause("ann", None, START)
    with store.write() as tx:
        assert tx.settings.pause(mine) and not tx.settings.pause(mine._replace(reason="again"))
        assert tx.settings.host_pauses() == [mine]
        assert tx.settings.pause_in_force(HOST.id) == tx.settings.pause_in_force() == mine
        assert tx.settings.pause_in_force("another") is None
        assert tx.settings.pause(for_all)
        assert (
            tx.settings.pause_in_force(HOST.id) == tx.settings.pause_in_force("another") == for_all
        )
        assert tx.settings.resume() and tx.settings.host_pauses() == [] and not tx.settings.resume()


@verbs("hosts.open_breaker", "hosts.close_breaker", "hosts.trouble")
def test_each_host_has_its_own_breaker(store: Store) -> None:
    first = HostTrouble(WaitKind.STORAGE, "no space", 1, START + 1)
    with store.write() as tx:
        assert tx.hosts.trouble(HOST.id) is None and not tx.hosts.close_breaker(HOST.id)
        tx.hosts.open_breaker(HOST.id, first)
        worse = first._replace(kind=WaitKind.PRESSURE, failures=2, probe_at=START + 3)
        tx.hosts.open_breaker(HOST.id, worse)
        tx.hosts.open_breaker("elsewhere", first)
        assert (tx.hosts.trouble(HOST.id), tx.hosts.trouble("elsewhere")) == (worse, first)
        assert tx.hosts.close_breaker(HOST.id)
        assert (tx.hosts.trouble(HOST.id), tx.hosts.trouble("elsewhere")) == (None, first)


@verbs("hosts.reset_launches")
def test_a_reset_forgets_strikes_and_breakers(store: Store) -> None:
    with store.write() as tx:
        struck, timed, plain = add(tx), add(tx, not_before=START + 9), add(tx)
        claim = start(tx, struck)
        tx.claims.undo(
            [unclaim_of(claim, not_before=START + 5, launch_failures=2, launch_wait="launch")]
        )
        struck = tx.jobs.by_id([struck.id])[struck.id]
        for each in (struck, timed):
            tx.waits.park([parking(each, wait=TIMED, wake_at=each.not_before)])
        tx.waits.park([parking(plain, "x")])
        tx.hosts.open_breaker(HOST.id, HostTrouble(WaitKind.STORAGE, "no space", 1, START))
        assert tx.hosts.reset_launches() == 1
        struck = tx.jobs.by_id([struck.id])[struck.id]
        assert (struck.launch_failures, struck.launch_wait, struck.not_before) == (0, None, None)
        assert stages(tx, struck, timed, plain) == [Stage.WOKEN, Stage.PARKED, Stage.PARKED]
        assert tx.jobs.by_id([timed.id])[timed.id].not_before == START + 9
        assert tx.hosts.trouble(HOST.id) is None and tx.waits.next_wake() == START + 9


@verbs("hosts.add_worker", "hosts.worker_settled", "hosts.end_worker", "hosts.recent_workers")
def test_the_lives_of_workers_are_kept_newest_first(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        for number in range(3):
            worker = WorkerRecord(f"w{number}", 100 + number, "auto", START + number, *[None] * 3)
            tx.hosts.add_worker(worker, host_id=HOST.id, home="/home", boot_id="boot")
        other = WorkerRecord("far", 1, "auto", START + 9, None, None, None)
        tx.hosts.add_worker(other, host_id="elsewhere", home="/home", boot_id="boot")
    clock.advance(60)
    with store.write() as tx:
        tx.hosts.worker_settled("w1")
        tx.hosts.end_worker("w2", "idle")
        later = START + 60 * SECOND
        assert tx.hosts.recent_workers(HOST.id, 2) == [
            WorkerRecord("w2", 102, "auto", START + 2, None, later, "idle"),
            WorkerRecord("w1", 101, "auto", START + 1, later, None, None),
        ]
        assert len(tx.hosts.recent_workers(HOST.id, 10)) == 3


@verbs("settings.marks", "settings.set_mark", "settings.add_to_mark")
def test_marks_are_set_and_added_to(store: Store) -> None:
    with store.write() as tx:
        assert tx.settings.marks()["log_bytes"] == 0
        tx.settings.add_to_mark("log_bytes", 700)
        tx.settings.add_to_mark("log_bytes", -200)
        tx.settings.set_mark("last_dispatch_count", 4)
        marks = tx.settings.marks()
        assert (marks["log_bytes"], marks["last_dispatch_count"]) == (500, 4)


@verbs("tidy")
def test_tidying_changes_nothing_that_can_be_read(store: Store) -> None:
    with store.write() as tx:
        job = add(tx)
    store.tidy()
    with store.read() as tx:
        assert tx.jobs.by_id([job.id])[job.id] == job


@verbs("backup")
@pytest.mark.req("D8")
def test_a_backup_is_a_whole_store_though_others_write(store: Store, tmp_path: Path) -> None:
    """# fault C6"""
    with store.write() as tx:
        jobs = [add(tx) for _ in range(50)]
    copy = tmp_path / "copy.db"
    store.backup(str(copy))
    with store.write() as tx:
        add(tx)
    with pytest.raises(ConflictError, match="exists already"):
        store.backup(str(copy))
    restored = open_store(f"sqlite://{copy}", FakeClock(START))
    with restored.read() as tx:
        assert [job.id for job in tx.jobs.active()] == [job.id for job in jobs]
    restored.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir() if "new" in each.name) == []


@verbs("jobs.readable", "jobs.running")
def test_a_row_that_cannot_be_read_is_left_out_or_stood_in_for(store: Store) -> None:
    with store.write() as tx:
        sound, broken = add(tx), add(tx, priority=3)
        start(tx, broken)
    store.database.execute(  # type: ignore[attr-defined]
        f"update jobs set labels = '{{' where id = {broken.id}", {}
    )
    with store.read() as tx:
        ids_ = [sound.id, broken.id]
        assert list(tx.jobs.readable(ids_)) == [sound.id]
        jobs = tx.jobs.running(ids_)
        assert jobs[sound.id] == sound
        stand_in = jobs[broken.id]
        assert (stand_in.chain, stand_in.priority) == (broken.chain, 3)
        assert stand_in.retry.max_attempts == 0


# -- functions ------------------------------------------------------------------------------------


@verbs("hosts.know_tasks", "hosts.tasks_known")
def test_what_each_host_can_call_is_known(store: Store) -> None:
    with store.write() as tx:
        tx.hosts.know_tasks("here", ["a.f", "a.g"], None)
        tx.hosts.know_tasks("there", [], "importing it failed")
    with store.write() as tx:
        tx.hosts.know_tasks("here", ["a.f"], None)
        assert tx.hosts.tasks_known() == {
            "here": TaskView(frozenset({"a.f"}), None),
            "there": TaskView(frozenset(), "importing it failed"),
        }


@verbs("hosts.tasks_reported")
def test_a_host_counts_as_up_while_it_says_so_and_its_worker_stays(store: Store) -> None:
    record = WorkerRecord("w", 1, "foreground", START, None, None, None)
    clock = store._clock  # type: ignore[attr-defined]
    with store.write() as tx:
        tx.hosts.know_tasks("here", ["a.f"], None)
        tx.hosts.know_tasks("there", ["a.g"], "broken")
        tx.hosts.add_worker(record, host_id="there", home="/there", boot_id="b")
        assert [(each.host_id, each.view, each.is_up) for each in tx.hosts.tasks_reported()] == [
            ("here", TaskView(frozenset({"a.f"}), None), True),
            ("there", TaskView(frozenset({"a.g"}), "broken"), True),
        ]
        tx.hosts.end_worker("w", "signal")
        assert [each.is_up for each in tx.hosts.tasks_reported()] == [True, not store.shared]
    clock.advance(REPORT_VALID_FOR / 1e6 + 1)
    with store.write() as tx:
        assert [each.is_up for each in tx.hosts.tasks_reported()] == [not store.shared] * 2
        tx.hosts.know_tasks("here", ["a.f"], None)
        assert tx.hosts.tasks_reported()[0].is_up


@verbs("join")
def test_only_a_transaction_of_the_same_sort_can_be_joined(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="submit_on"), store.join(object()):
        pass


@verbs("jobs.keep_results", "jobs.results")
def test_the_first_result_of_a_job_is_kept(store: Store) -> None:
    with store.write() as tx:
        one, two, three = add(tx), add(tx), add(tx)
        value = {"a": [1, 2.5, None, "\0\ud800"]}
        tx.jobs.keep_results([(one.id, value), (two.id, False)])
        tx.jobs.keep_results([(one.id, "another")])
        assert tx.jobs.results([one.id, two.id, three.id]) == {one.id: value, two.id: False}


@verbs("jobs.keep_progress", "jobs.progress")
def test_the_last_progress_of_a_job_is_kept(store: Store) -> None:
    with store.write() as tx:
        one, two = add(tx), add(tx)
        tx.jobs.keep_progress([Progress(one.id, 0.25, "a quarter")])
        tx.jobs.keep_progress([Progress(one.id, 0.5, "half")])
        assert tx.jobs.progress([one.id, two.id]) == {one.id: Progress(one.id, 0.5, "half")}


@verbs("graph.dependents_of", "graph.chains_of", "jobs.of_chains")
def test_chains_and_those_that_wait_for_them_are_found_together(store: Store) -> None:
    with store.write() as tx:
        first, other = add(tx), add(tx)
        again = job(tx.jobs.take_ids(1), chain=first.id, retry_of=first.id, attempt=2)
        tx.jobs.add_retries([again])
        waiting = add(tx, after=(first.id, again.id))
        last = add(tx, after=(waiting.id, other.id))
        assert tx.graph.dependents_of([first.id, other.id]) == [waiting.id, last.id]
        assert tx.graph.dependents_of([last.id]) == tx.graph.dependents_of([]) == []
        assert tx.graph.chains_of([again.id, last.id, 999]) == {
            again.id: first.id,
            last.id: last.id,
        }
        found = tx.jobs.of_chains([first.id, other.id, 999])
        assert {chain: ids(jobs) for chain, jobs in found.items()} == {
            first.id: [first.id, again.id],
            other.id: [other.id],
        }


# -- what views show ------------------------------------------------------------------------------


def ended(tx: Any, status: Status, at: int = START, **fields: Any) -> Job:
    """A job that ended without having run."""
    made = add(tx, **fields)
    tx.jobs.end_waiting(made, status, "because", None)
    return made


def found_by(store: Store, **search: Any) -> set[int]:
    with store.read() as tx:
        stretches = list(tx.search.jobs(Search(**search), size=2))
    found = [job.id for each in stretches for job in each.jobs]
    assert found == sorted(set(found), reverse=True), "the newest first, each once"
    return set(found)


@verbs("search.jobs")
def test_a_search_goes_down_from_the_newest_in_stretches(store: Store, clock: FakeClock) -> None:
    """Whatever the clock did, and in whatever order the jobs have ended."""
    with store.write() as tx:
        skipped, cancelled, waiting = (
            [add(tx, created_at=START - each).id for each in range(count)] for count in (4, 3, 9)
        )
    for each in (*reversed(skipped), *reversed(cancelled)):
        clock.advance(1)
        with store.write() as tx:
            status = Status.SKIPPED if each in skipped else Status.CANCELLED
            tx.jobs.end_waiting(tx.jobs.by_id([each])[each], status, "because", None)
    everything = {*skipped, *cancelled, *waiting}
    for search, expected in (
        (Search(), everything),
        (Search(statuses=WAITING), {*waiting}),
        (Search(ended_since=START), everything),
        (Search(ended_since=START + 4 * SECOND + 1), {*cancelled, *waiting}),
        (Search(ended_since=START, statuses=TERMINAL), {*skipped, *cancelled}),
        (Search(statuses=TERMINAL - {Status.SUCCEEDED}), {*skipped, *cancelled}),
        (Search(statuses=frozenset({Status.SKIPPED, Status.QUEUED})), {*skipped, *waiting}),
        (Search(statuses=frozenset({Status.FAILED})), set()),
    ):
        assert found_by(store, **search._asdict()) == expected
        with store.read() as tx:
            for place in (1, 4, 12):
                below = tx.search.jobs(search, below=place, size=2)
                rest = {job.id for each in below for job in each.jobs}
                assert rest == {each for each in expected if each < place}


@verbs("search.jobs")
def test_jobs_are_found_by_state_time_and_label(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        old = ended(tx, Status.CANCELLED, created_at=START - 5)
        clock.advance(10)
    with store.write() as tx:
        new = ended(tx, Status.SKIPPED, labels={"team": 'a"b%', "x": "y"})
        active = add(tx, labels={"team": "a"})

    def found(**search: Any) -> set[int]:
        return found_by(store, **search)

    everything = {old.id, new.id, active.id}
    assert found() == everything
    assert found(ended_since=START + 5 * SECOND) == {new.id, active.id}
    assert found(created_since=START) == {new.id, active.id}
    assert found(statuses=frozenset({Status.CANCELLED, Status.QUEUED})) == {old.id, active.id}
    assert found(statuses=frozenset({Status.CANCELLED, Status.SKIPPED})) == {old.id, new.id}
    assert found(statuses=TERMINAL, created_since=START) == {new.id}
    assert found(statuses=frozenset({Status.QUEUED})) == {active.id}
    assert found(statuses=frozenset()) == set()
    assert found(labels={"team": 'a"b%'}) == {new.id}
    assert found(labels={"team": "a"}) == {active.id}
    assert found(labels={"eam": "a"}) == set()


GLOBS = {
    "*": {"build", "b_ild", "100%", "back\\slash", "[x]"},
    "b*": {"build", "b_ild", "back\\slash"},
    "b_ild": {"b_ild"},
    "b?ild": {"build", "b_ild"},
    "100%": {"100%"},
    "*%": {"100%"},
    "*\\slash": {"back\\slash"},
    "b[uv]ild": {"build"},
    "b[!u]ild": {"b_ild"},
    "[[]x]": {"[x]"},
    "nothing*": set(),
}


@verbs("search.jobs")
def test_jobs_are_found_by_subject_target_and_chain(store: Store) -> None:
    with store.write() as tx:
        one = add(tx, subject="gt-1", target="here")
        two = add(tx, subject="gt-2", target="there")
        again = add(tx, chain=one.id)
    assert found_by(store, subjects=("gt-1", "gt-2")) == {one.id, two.id}
    assert found_by(store, subjects=("gt-1",), targets=("there",)) == set()
    assert found_by(store, targets=("here", "there")) == {one.id, two.id}
    assert found_by(store, targets=("there",), statuses=ACTIVE) == {two.id}
    assert found_by(store, chains=(one.id,)) == {one.id, again.id}
    assert found_by(store, chains=()) == set()


@verbs("search.jobs")
@pytest.mark.parametrize("glob", GLOBS)
def test_a_pattern_of_a_name_lets_through_all_that_it_should(store: Store, glob: str) -> None:
    with store.write() as tx:
        for name in GLOBS["*"]:
            add(tx, name=name)
    with store.read() as tx:
        stretches = tx.search.jobs(Search(name=glob), size=99)
        found = {job.name for each in stretches for job in each.jobs}
    assert GLOBS[glob] <= found
    if "[" not in glob:
        assert found == GLOBS[glob]


@verbs("jobs.ended_without_success")
def test_the_newest_that_ended_without_success_are_found_unless_retried(
    store: Store, clock: FakeClock
) -> None:
    made = {}
    for status in (
        *(Status.FAILED, Status.CANCELLED, Status.BLOCKED_BY_DEPENDENCY),
        *(Status.BLOCKED_BY_APPROVAL, Status.SUCCEEDED, Status.SKIPPED),
    ):
        with store.write() as tx:
            made[status] = ended(tx, status).id
        clock.advance(1)
    with store.write() as tx:
        add(tx)
        retried = made[Status.CANCELLED]
        tx.jobs.add_retries([job(tx.jobs.take_ids(1), chain=retried, retry_of=retried)])
    newest = [
        made[each]
        for each in (Status.BLOCKED_BY_APPROVAL, Status.FAILED, Status.BLOCKED_BY_DEPENDENCY)
    ]
    with store.read() as tx:
        assert ids(tx.jobs.ended_without_success(0, 99, most=99)) == newest
        assert ids(tx.jobs.ended_without_success(0, 1, most=99)) == newest[:1]
        assert ids(tx.jobs.ended_without_success(0, 99, most=3)) == newest[:1]
        since = tx.now() - 4_500_000
        assert ids(tx.jobs.ended_without_success(since, 99, most=99)) == [newest[0], newest[2]]
        some = {Status.FAILED, Status.SUCCEEDED}
        assert ids(tx.jobs.ended_without_success(0, 1, most=99, statuses=some)) == newest[1:2]


@verbs(
    "jobs.outlines_shown",
    "jobs.outlines_all",
    "jobs.count_ended",
    "jobs.chain_ends",
    "jobs.outlines",
)
def test_a_schedule_shows_active_and_blocked_jobs_and_what_blocks_them(store: Store) -> None:
    with store.write() as tx:
        active = add(tx, created_at=START + 9)
        failed = ended(tx, Status.FAILED)
        blocked = ended(tx, Status.BLOCKED_BY_DEPENDENCY, after=(failed.id,))
        alone = ended(tx, Status.FAILED)
        retried = ended(tx, Status.BLOCKED_BY_APPROVAL)
        again = job(tx.jobs.take_ids(1), chain=retried.id, retry_of=retried.id)
        tx.jobs.add_retries([again])
        tx.waits.chains_failed([failed.id])
    with store.read() as tx:
        assert ids(tx.jobs.outlines_shown(99)) == [failed.id, blocked.id, again.id, active.id]
        assert ids(tx.jobs.outlines_shown(2)) == [failed.id, blocked.id]
        assert alone.id not in ids(tx.jobs.outlines_shown(99))
        assert sorted(ids(tx.jobs.outlines_all(99))) == list(range(1, 7))
        assert tx.jobs.count_ended() == (4, 1)
        ends = tx.jobs.chain_ends([retried.id, failed.id, 999])
        assert {chain: end.id for chain, end in ends.items()} == {
            retried.id: again.id,
            failed.id: failed.id,
        }
        assert set(tx.jobs.outlines([active.id, 999])) == {active.id}


@verbs("jobs.outlines")
def test_an_outline_has_what_a_schedule_shows(store: Store) -> None:
    with store.write() as tx:
        first = add(tx)
        made = add(
            tx,
            slug="slug",
            after=(first.id,),
            needs=("custom:a:b",),
            produces=("custom:c:d",),
            repo="/repo",
        )
        tx.waits.park([parking(made, "chain:1")])
        call = add(tx, type="function", params={"task": "t"}, stage=Stage.READY)
        whole = tx.jobs.by_id([made.id])[made.id]
        outline = tx.jobs.outlines([made.id])[made.id]
        kept = (
            "id name type status created_at chain slug after stage wait queue needs produces repo"
        )
        for name in kept.split():
            assert getattr(outline, name) == getattr(whole, name), name
        assert outline.params == {}
        assert tx.jobs.outlines([call.id])[call.id].params == {"task": "t"}


@verbs("jobs.outlines_shown", "unreadable")
def test_a_row_that_cannot_be_read_is_left_out_of_a_schedule(store: Store) -> None:
    with store.write() as tx:
        broken, sound = add(tx), add(tx)
        store.database.execute(  # type: ignore[attr-defined]
            f"update jobs set after_ids = 'x' where id = {broken.id}", {}
        )
        assert ids(tx.jobs.outlines_shown(9)) == [sound.id]
        assert list(tx.unreadable()) == [broken.id]
