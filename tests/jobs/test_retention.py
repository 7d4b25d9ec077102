"""Ended jobs go after their time, rows and files, and never while somebody needs them."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.base.errors import ConflictError, NotFoundError
from headway.core.model import JobId
from headway.core.retention import InTheWay, Obstacle, RetentionRule
from headway.core.states import Status
from headway.jobs.groups import Plan, close, create
from headway.jobs.retention import Collector, forget_old_traces
from headway.store.records import Lending, Marker
from headway.testing.clock import FakeClock
from headway.worker.janitor import AT_ONCE, EVERY, SOON, TRACES_AT_ONCE, Janitor

DAY = 86_400.0
EVERYTHING = RetentionRule(0, None)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(SystemClock().now())


@pytest.fixture
def bench(make_bench: Callable[..., Bench], clock: FakeClock) -> Bench:
    return make_bench(clock=clock, max_active=4)


def janitor(bench: Bench, host_id: str | None = None) -> Janitor:
    host = host_id or bench.client.context.host.id
    return Janitor(bench.store, bench.home, bench.clock, host_id=host, actor="worker-test")


def collector(bench: Bench, rule: RetentionRule | None = EVERYTHING, **options: Any) -> Collector:
    given = {"host_id": bench.client.context.host.id, "actor": "tester", "rule": rule} | options
    return Collector(bench.store, bench.home, **given)


def collect(bench: Bench, rule: RetentionRule | None = EVERYTHING, **options: Any) -> list[JobId]:
    """One whole round; the jobs that went."""
    gone: list[JobId] = []
    one = collector(bench, rule, **options)
    while (removed := one.step()) is not None:
        gone += removed.jobs
    return gone


def present(bench: Bench, jobs: Sequence[JobId]) -> list[JobId]:
    with bench.store.read() as tx:
        return sorted(tx.jobs.by_id(jobs))


def ended(bench: Bench, *argv: str, **options: Any) -> JobId:
    job = bench.submit(*(argv or ("true",)), **options)
    bench.until_ended(job)
    return job


def ended_now(bench: Bench) -> JobId:
    """A job whose end has the time of the fake clock; a command's is told by its supervisor."""
    job = bench.submit("true", delay=1_000_000)
    bench.client.cancel([job])
    os.mkdir(bench.home.job(job))
    return job


# -- the rule, run by the worker's janitor -------------------------------------------------------


def test_the_janitor_removes_what_ended_a_month_ago_with_its_files(
    bench: Bench, clock: FakeClock
) -> None:
    old = ended(bench, "echo", "hello")
    clock.advance(20 * DAY)
    young = ended_now(bench)
    keeper = janitor(bench)
    while keeper.step() == SOON:
        pass
    assert present(bench, [old, young]) == [old, young]
    clock.advance(11 * DAY)
    while keeper.step() == SOON:
        pass
    assert present(bench, [old, young]) == [young]
    assert os.listdir(bench.home.jobs) == [str(young)]
    with pytest.raises(NotFoundError, match=f"there is no job-{old} any more"):
        bench.job(old)
    with bench.store.read() as tx:
        (event,) = [each for each in tx.events.since(0, 1000) if each.kind == "removed"]
    assert event.data == {"jobs": 1, "oldest": f"job-{old}", "newest": f"job-{old}"}
    assert event.actor == "worker-test"


def test_the_janitor_forgets_what_no_job_takes_along(bench: Bench, clock: FakeClock) -> None:
    for number in range(TRACES_AT_ONCE + 1):
        bench.client.set_setting("scheduler.batch_size", number + 1)
    create(bench.client.context, Plan(name="empty"))
    close(bench.client.context, "empty")
    keeper = janitor(bench)

    def left() -> tuple[int, int]:
        with bench.store.read() as tx:
            events = [each for each in tx.events.since(0, 10_000) if each.job_id is None]
            return len(events), len(tx.groups.since(0, 10))

    def clean() -> list[float]:
        delays = [keeper.step()]
        while delays[-1] == SOON:
            delays.append(keeper.step())
        return delays

    before = left()
    clock.advance(29 * DAY)
    clean()
    assert left() == before
    bench.client.set_setting("scheduler.batch_size", 1)
    clock.advance(2 * DAY)
    assert len(clean()) == 3, "some, the rest, and none"
    assert left() == (1, 0)
    clock.advance(31 * DAY)
    clean()
    assert left() == (1, 0), "the newest stays"


def test_beyond_the_number_the_oldest_go_but_none_of_the_last_day(
    bench: Bench, clock: FakeClock
) -> None:
    bench.client.set_setting("scheduler.retention_jobs", 2)
    jobs = []
    for _ in range(4):
        jobs.append(ended_now(bench))
        clock.advance(1)
    assert collect(bench, None) == []
    clock.advance(DAY)
    assert collect(bench, None) == jobs[:2]
    assert collect(bench, None) == []


def test_zero_keeps_for_ever(bench: Bench, clock: FakeClock) -> None:
    for key in ("scheduler.retention_days", "scheduler.retention_jobs"):
        bench.client.set_setting(key, 0)
    ended(bench)
    clock.advance(10_000 * DAY)
    bench.client.pause("the newest")
    assert collect(bench, None) == []
    assert forget_old_traces(bench.store, 10) == 0


def test_by_hand_the_numbers_are_exact(bench: Bench, clock: FakeClock) -> None:
    jobs = [ended_now(bench) for _ in range(3)]
    assert collect(bench, RetentionRule(1, None)) == []
    assert collect(bench, RetentionRule(None, 2)) == jobs[:1]
    clock.advance(1.1 * DAY)
    last = ended_now(bench)
    assert collect(bench, RetentionRule(1, None)) == jobs[1:]
    assert collect(bench, RetentionRule(None, 0)) == [last]


def test_the_janitor_takes_small_bites_and_comes_back_soon(bench: Bench) -> None:
    bench.client.set_setting("scheduler.retention_jobs", 1)
    delayed = [bench.submit("true", delay=1_000_000) for _ in range(AT_ONCE + 1)]
    bench.client.cancel(delayed)
    bench.clock.advance(2 * DAY)  # type: ignore[attr-defined]
    keeper = janitor(bench)
    left = len(delayed)
    delays = []
    while (delay := keeper.step()) == SOON:
        delays.append(delay)
        now = len(present(bench, delayed))
        assert left - now <= AT_ONCE
        left = now
    assert delay == EVERY and len(delays) == 2
    assert present(bench, delayed) == delayed[-1:]


# -- what stays ----------------------------------------------------------------------------------


@pytest.mark.req("V97")
def test_what_an_active_job_comes_after_stays_satisfied_or_not(bench: Bench) -> None:
    done, failed = ended(bench), ended(bench, "false")
    waiting = bench.submit("true", after=(done,), delay=3_600_000_000)
    doomed = bench.submit("true", after=(failed,))  # nobody has looked at it yet
    assert collect(bench) == []
    for job, by in ((done, waiting), (failed, doomed)):
        with pytest.raises(ConflictError, match=f"job-{job} stays: .*comes after it .job-{by}."):
            collector(bench).clean(job)
    bench.client.cancel([waiting, doomed])
    assert sorted(collect(bench)) == [done, failed, waiting, doomed]


@pytest.mark.req("V97")
def test_producers_and_publishers_of_what_an_active_job_needs_stay(bench: Bench) -> None:
    maker = ended(bench, produces=("custom:report:june",))
    publisher = ended(bench)
    patched = ended(bench)
    with bench.store.write() as tx:
        tx.graph.publish([Marker("custom:extra:1", publisher, tx.now())])
    needs = ("custom:report:june", "custom:extra:1", f"command_patch:job-{patched}")
    reader = bench.submit("true", needs=needs, delay=3_600_000_000)
    assert collect(bench) == []
    kept = collector(bench).preview()
    assert kept is not None and kept.jobs == ()
    assert dict(kept.kept) == {
        job: Obstacle(InTheWay.ARTIFACT, reader) for job in (maker, publisher, patched)
    }
    bench.client.cancel([reader])
    assert sorted(collect(bench)) == [maker, publisher, patched, reader]


def test_a_chain_goes_as_a_whole_when_its_last_job_has_ended(
    bench: Bench, clock: FakeClock
) -> None:
    first = bench.submit("false", retries=1, retry_base=40 * 86_400_000_000)
    bench.until(lambda: bench.last(first).id != first)
    clock.advance(35 * DAY)
    assert collect(bench, None) == [] == collect(bench), "it goes on"
    with pytest.raises(ConflictError, match="cancel it first"):
        collector(bench).clean(first)
    last = bench.last(first).id
    bench.client.cancel([first])
    assert collect(bench, None) == [], "its end is young"
    clock.advance(31 * DAY)
    assert collect(bench, None) == [first, last]
    assert os.listdir(bench.home.jobs) == []


def test_who_waits_for_a_job_finds_it(bench: Bench) -> None:
    done = ended(bench)
    waiter = bench.submit("sleep", "60", grace=0)
    bench.until(lambda: bench.status(waiter) is Status.RUNNING)
    with bench.store.write() as tx:
        claim = tx.claims.of_job(waiter)
        assert claim is not None
        tx.claims.lend(claim.token, Lending(waiter, done, tx.now() + 10**9))
    with pytest.raises(ConflictError, match=f"waits for it .job-{waiter}."):
        collector(bench).clean(done)


def test_a_job_whose_processes_may_live_stays(bench: Bench) -> None:
    job = ended(bench)
    change(bench, f"update claims set state = 'ended' where job_id = {job}")
    with pytest.raises(ConflictError, match="not proven gone"):
        collector(bench).clean(job)
    change(bench, f"update claims set state = 'gone' where job_id = {job}")
    change(bench, f"insert into held_locks (key, job_id, mode) values ('k', {job}, 'shared')")
    with pytest.raises(ConflictError, match="holds locks"):
        collector(bench).clean(job)
    change(bench, "delete from held_locks")
    assert collector(bench).clean(job).jobs == (job,)


def repository(folder: Path) -> Path:
    repo = folder / "repo"
    repo.mkdir()
    for words in ("init -q", "-c user.name=A -c user.email=a@b commit -q --allow-empty -m one"):
        subprocess.run(["git", *words.split()], cwd=repo, check=True)
    return repo


def test_a_worktree_is_taken_back_before_its_job_goes(bench: Bench, tmp_path: Path) -> None:
    repo = repository(tmp_path)
    options = {"cwd": str(repo), "worktree": ""}
    needed = ended(bench, produces=("custom:a:b",), **options)
    going, stubborn = (ended(bench, **options) for _ in range(2))
    bench.submit("true", needs=("custom:a:b",), delay=3_600_000_000)
    folders = {job: Path(bench.home.worktrees, f"job-{job}") for job in (needed, going, stubborn)}
    shutil.rmtree(repo / ".git" / "worktrees" / f"job-{stubborn}")  # git does not know it any more

    assert sorted(collector(bench).preview().jobs) == [going, stubborn]
    assert all(folder.exists() for folder in folders.values()), "a preview changes nothing"
    assert collect(bench) == [going]
    assert [job for job, folder in folders.items() if folder.exists()] == [needed, stubborn]
    with pytest.raises(ConflictError, match="worktree"):
        collector(bench).clean(stubborn)
    shutil.rmtree(folders[stubborn])
    assert collect(bench) == [stubborn]


def test_the_janitor_takes_back_one_worktree_at_a_time_and_a_stubborn_one_once(
    bench: Bench, clock: FakeClock, tmp_path: Path
) -> None:
    options = {"cwd": str(repository(tmp_path)), "worktree": ""}
    jobs = [ended(bench, **options) for _ in range(3)]
    shutil.rmtree(tmp_path / "repo" / ".git" / "worktrees" / f"job-{jobs[1]}")
    folders = [Path(bench.home.worktrees, f"job-{job}") for job in jobs]
    clock.advance(31 * DAY)
    keeper = janitor(bench)
    left = len(folders)
    while keeper.step() == SOON:
        now = sum(each.exists() for each in folders)
        assert left - now <= 1
        left = now
    assert present(bench, jobs) == [jobs[1]] and folders[1].exists()
    clock.advance(EVERY)
    while keeper.step() == SOON:
        pass
    assert bench.kinds(jobs[1]).count("worktree_degraded") == 1, "not every hour"


def test_what_was_not_committed_outlives_the_job(bench: Bench, tmp_path: Path) -> None:  # fault I3
    repo = repository(tmp_path)
    job = bench.submit(shell="echo precious >new", cwd=str(repo), worktree="")
    bench.until_ended(job)
    assert collect(bench) == [job]
    assert not Path(bench.home.job(job)).exists()
    assert "+precious" in Path(bench.home.saved, f"job-{job}.patch").read_text()


def change(bench: Bench, statement: str) -> None:
    with bench.store.write():
        bench.store.database.execute(statement, {})  # type: ignore[attr-defined]


# -- what a removal leaves -----------------------------------------------------------------------


@pytest.mark.req("V47")
def test_a_satisfied_edge_outlives_its_predecessor_and_an_open_one_blocks(bench: Bench) -> None:
    done, failed = ended(bench), ended(bench, "false")
    bench.client.pause("until the rows are gone")
    lucky = bench.submit("true", after=(done,))
    unlucky = bench.submit("true", after=(failed,))
    for job in (done, failed):
        change(bench, f"delete from jobs where id = {job}")
    bench.client.resume()
    bench.until_ended(lucky, unlucky)
    assert bench.status(lucky) is Status.SUCCEEDED
    assert bench.status(unlucky) is Status.BLOCKED_BY_DEPENDENCY
    assert bench.job(unlucky).reason == f"missing job dependency job-{failed}"


def test_a_retry_after_its_predecessor_went_still_knows_that_it_had_succeeded(
    bench: Bench,
) -> None:
    done = ended(bench)
    job = ended(bench, "false", after=(done,))
    assert collector(bench).clean(done).jobs == (done,)
    bench.client.retry(job)
    (last,) = bench.until_ended(job)
    assert (last.attempt, last.status) == (2, Status.FAILED), "it ran"


def test_removed_logs_count_no_more(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(settings={"logs.budget": "1KiB"})
    job = ended(bench, "head", "-c", "4096", "/dev/zero")
    blocked = bench.submit("true")
    bench.step()
    wait = bench.client.document(blocked)["wait"]
    assert wait["kind"] == "storage"
    removed = collector(bench).clean(job)
    assert removed.log_bytes == 4096
    with bench.store.read() as tx:
        assert tx.settings.marks()["log_bytes"] == 0
    (last,) = bench.until_ended(blocked)
    assert last.status is Status.SUCCEEDED


def test_an_id_is_never_given_out_again(bench: Bench) -> None:
    job = ended(bench)
    collector(bench).clean(job)
    assert bench.submit("true") == job + 1


def test_a_key_is_free_again_when_its_job_is_gone(bench: Bench) -> None:
    job = ended(bench, key="nightly")
    assert ended(bench, key="nightly") == job
    collector(bench).clean(job)
    assert ended(bench, key="nightly") != job


def test_a_folder_that_cannot_be_removed_is_tried_again(bench: Bench) -> None:
    job = ended(bench)
    folder = Path(bench.home.job(job))
    moved = folder.parent.rename(bench.folder / "elsewhere")
    folder.parent.touch()
    said: list[str] = []
    assert collect(bench, trouble=said.append) == [job]
    assert "cannot remove" in said[0]
    folder.parent.unlink()
    moved.rename(folder.parent)
    assert collect(bench) == [] and not folder.exists()


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(lambda path, moved: path.symlink_to(moved), id="link"),
        pytest.param(lambda path, moved: path.touch(), id="file"),
        pytest.param(lambda path, moved: os.mkfifo(path), id="fifo"),
    ],
)
def test_what_was_planted_in_the_place_of_a_folder_goes_and_nothing_else(
    bench: Bench, plant: Callable[[Path, Path], None]
) -> None:
    job = ended(bench)
    folder = Path(bench.home.job(job))
    moved = folder.rename(bench.folder / "elsewhere")
    plant(folder, moved)
    said: list[str] = []
    assert collect(bench, trouble=said.append) == [job]
    assert not os.path.lexists(folder) and list(moved.iterdir()) and not said


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_each_host_removes_its_own_files(bench: Bench) -> None:
    """Whoever comes first removes the rows; the other one has the files, and its own note."""
    job = ended(bench)
    assert collect(bench, host_id="another") == [job]
    assert os.path.isdir(bench.home.job(job)) is False, "the home is the same here"
    with bench.store.read() as tx:
        assert tx.retention.files_to_remove("another", 0, 10) == []
        assert tx.retention.files_to_remove(bench.client.context.host.id, 0, 10) == [job]
    os.mkdir(bench.home.job(job))
    assert collect(bench) == [] and os.listdir(bench.home.jobs) == []
    with bench.store.read() as tx:
        assert tx.retention.files_to_remove(bench.client.context.host.id, 0, 10) == []
