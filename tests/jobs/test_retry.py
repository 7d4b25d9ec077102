"""`jobs retry`: a failed segment is run again, upstream stays as it is, no evidence is lost."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from checkouts_of_jobs import make_repository
from harness import Bench
from headway.base.errors import ConflictError
from headway.core.model import ApprovalState
from headway.core.states import Status
from headway.jobs.groups import Plan, submit_group
from headway.jobs.request import Request
from headway.jobs.retry import preview, preview_repeat, repeat, rewind
from headway.store.records import Marker
from headway.testing.clock import FakeClock


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def segment(bench: Bench) -> tuple[int, int, int, int, int]:
    """up -> root (fails) -> follower -> last, and a job beside them."""
    up = bench.submit("true")
    root = bench.submit("sh", "-c", f"test -e {bench.folder}/go", after=(up,))
    follower = bench.submit("true", after=(root,))
    last = bench.submit("true", after=(follower,))
    beside = bench.submit("true", after=(up,))
    bench.until_ended(up, root, follower, last, beside)
    return up, root, follower, last, beside


@pytest.mark.req("V31", "V32", "V33", "V44", "V79")
def test_the_job_and_all_that_follows_run_again(
    bench: Bench, segment: tuple[int, int, int, int, int]
) -> None:
    up, root, follower, last, beside = segment
    assert bench.status(last) is Status.BLOCKED_BY_DEPENDENCY
    (bench.folder / "go").touch()

    rewound = rewind(bench.client.context, root)

    assert (rewound.requested, rewound.root) == (root, root)
    assert rewound.last_successful_point == (up,)
    assert rewound.members == (root, follower, last)
    assert rewound.reset == (6, 7, 8) and rewound.new_root == 6
    ended = bench.until_ended(root, follower, last)
    assert [(job.id, job.status) for job in ended] == [
        (each, Status.SUCCEEDED) for each in (6, 7, 8)
    ]
    assert [bench.status(each) for each in (root, follower, last)] == [
        Status.FAILED,
        Status.BLOCKED_BY_DEPENDENCY,
        Status.BLOCKED_BY_DEPENDENCY,
    ], "what happened stays on record"
    assert len(bench.client.jobs.chain(up)) == len(bench.client.jobs.chain(beside)) == 1


def test_a_succeeded_follower_waits_for_the_new_attempt(bench: Bench) -> None:
    root = bench.submit("true")
    follower = bench.submit("true", after=(root,))
    failing = bench.submit("false", after=(follower,))
    bench.until_ended(root, follower, failing)
    bench.client.pause("look at it")

    rewound = rewind(bench.client.context, root)

    bench.client.resume()
    bench.step(limit=0)
    new_follower = rewound.reset[1]
    assert bench.job(new_follower).after == (root,)
    bench.step()
    assert bench.status(new_follower) is Status.WAITING_ON_DEPS, "its old success does not count"
    assert [job.status for job in bench.until_ended(root, follower, failing)] == [
        Status.SUCCEEDED,
        Status.SUCCEEDED,
        Status.FAILED,
    ]


@pytest.mark.req("V34")
def test_nothing_changes_while_a_member_runs(bench: Bench) -> None:
    root = bench.submit("false")
    bench.until_ended(root)
    fifo = bench.folder / "fifo"
    subprocess.run(["mkfifo", str(fifo)], check=True)
    again = rewind(bench.client.context, root).new_root
    follower = bench.submit("true", after=(root,))
    bench.until_ended(root, follower)
    running = bench.submit("sh", "-c", f"read line < {fifo}", produces=("custom:a:b",))
    consumer = bench.submit("true", needs=("custom:a:b",))
    bench.until(lambda: bench.status(running) is Status.RUNNING)
    before = bench.client.listing(everything=True)

    with pytest.raises(ConflictError, match=f"job-{running} is running"):
        rewind(bench.client.context, running)

    assert bench.client.listing(everything=True) == before
    fifo.write_text("go\n")
    bench.until_ended(running, consumer)
    assert bench.status(again) is Status.FAILED


@pytest.mark.req("V35", "V36", "V69")
def test_waiting_members_are_put_back_to_the_start(bench: Bench) -> None:
    root = bench.submit("false")
    approved = bench.submit("true", after=(root,), require_approval=True)
    bench.client.pause("hold")
    with bench.store.write() as tx:
        job = tx.jobs.by_id([approved])[approved]
        assert job.approval is not None
        tx.graph.set_approval(approved, job.approval._replace(state=ApprovalState.APPROVED))
    bench.client.resume()
    delayed = bench.submit("true", after=(approved,), delay=3_600_000_000)
    bench.step(limit=1)
    bench.client.pause("hold")
    bench.until(lambda: bench.status(root) is Status.FAILED)
    # The planner has not looked at the failure yet: its followers still wait.
    assert bench.status(delayed) in (Status.QUEUED, Status.WAITING_ON_DEPS)

    rewound = rewind(bench.client.context, delayed)

    assert rewound.reset == (delayed,) and rewound.new_root == delayed
    job = bench.job(delayed)
    assert (job.status, job.wait, job.waited_on) == (Status.QUEUED, None, ())
    assert "rewound" in bench.kinds(delayed)


SECOND = 1_000_000
HOUR = 3600 * SECOND


def times(bench: Bench, *chains: int) -> list[int | None]:
    return [bench.last(each).not_before for each in chains]


def test_a_time_that_was_given_outlives_a_rewind(make_bench: Callable[..., Bench]) -> None:
    """Of what waits downstream, of what ended without a run, and of the job itself."""
    clock = FakeClock()
    bench = make_bench(clock=clock)
    at = clock.now() + HOUR
    root = bench.submit("false")
    fixed = bench.submit("true", after=(root,), at=at)
    delayed = bench.submit("true", after=(fixed,), delay=2 * HOUR)
    untimed = bench.submit("true", after=(root,))
    bench.until_ended(root, untimed)
    for what_came_before in ("waits", "waits", "cancelled", "waits", "cancelled"):
        if what_came_before == "cancelled":
            bench.client.cancel([fixed, delayed])
        would = preview(bench.client.context, root).kept_times
        assert would == {bench.last(fixed).id: at, bench.last(delayed).id: times(bench, delayed)[0]}
        kept = rewind(bench.client.context, root).kept_times
        assert kept == {bench.last(fixed).id: at, bench.last(delayed).id: times(bench, delayed)[0]}
        assert (kept == would) == (what_came_before == "waits"), "ended ones get new jobs"
        bench.until_ended(root, untimed)
        assert times(bench, fixed, delayed, untimed) == [at, at + HOUR, None]
        assert [bench.last(each).started_at for each in (fixed, delayed)] == [None, None]
        wait = bench.last(fixed).wait
        assert wait is not None and wait.detail == "waiting for its time"
    rewind(bench.client.context, fixed)
    bench.step()
    assert times(bench, fixed, delayed) == [at, at + HOUR]
    clock.advance(3 * HOUR / SECOND)
    assert preview(bench.client.context, root).kept_times == {}, "it has come"


def test_later_members_of_a_group_keep_their_times(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    at = clock.now() + HOUR
    requests = [Request(argv=("false",)), Request(argv=("true",), at=at), Request(argv=("true",))]
    plan = Plan(on_failure="continue")
    jobs = [each.job_id for each in submit_group(bench.client.context, requests, plan)[1]]
    bench.until_ended(jobs[0])

    rewind(bench.client.context, jobs[0])

    bench.until_ended(jobs[0])
    assert times(bench, *jobs) == [None, at, None]
    assert bench.status(jobs[1]) is Status.QUEUED
    clock.advance(HOUR / SECOND)
    assert [each.status for each in bench.until_ended(*jobs)][1:] == [Status.SUCCEEDED] * 2


def test_what_a_person_retried_goes_with_the_rest_of_its_group(
    make_bench: Callable[..., Bench],
) -> None:
    """Also if it has a time, which is none of a retry that goes on by itself."""
    clock = FakeClock()
    bench = make_bench(clock=clock)
    requests = [Request(argv=("false",)), Request(argv=("true",), delay=HOUR)]
    jobs = [each.job_id for each in submit_group(bench.client.context, requests, Plan())[1]]
    bench.until_ended(*jobs)
    assert bench.status(jobs[1]) is Status.CANCELLED

    rewind(bench.client.context, jobs[0])

    assert bench.last(jobs[1]).submitters_time == bench.job(jobs[1]).not_before
    bench.until_ended(*jobs)
    assert [bench.last(each).status for each in jobs] == [Status.FAILED, Status.CANCELLED]


def test_a_wait_to_try_again_goes(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    root = bench.submit("false", retries=2, retry_base=HOUR, delay=HOUR)
    clock.advance(HOUR / SECOND)
    bench.until(lambda: bench.last(root).attempt == 2)
    second = bench.last(root)
    assert second.submitters_time == bench.job(root).not_before
    assert second.not_before == (bench.job(root).finished_at or 0) + HOUR
    assert preview(bench.client.context, root).kept_times == {}

    rewind(bench.client.context, root)

    job = bench.job(second.id)
    assert job.not_before == second.submitters_time, "which has come"
    bench.until(lambda: bench.last(root).attempt == 3)


def test_a_launch_that_failed_is_no_time_that_was_given(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    at = clock.now() + HOUR
    root = bench.submit(f"{bench.folder}/missing", check=False)
    after = bench.submit("true", after=(root,), at=at)
    bench.until(lambda: bench.job(root).launch_failures == 1)
    assert bench.job(root).not_before is not None

    assert rewind(bench.client.context, root).kept_times == {after: at}

    assert times(bench, root, after) == [None, at]
    assert bench.job(root).launch_failures == 0


@pytest.mark.req("V69")
def test_a_person_is_asked_again(bench: Bench) -> None:
    job = bench.submit("false", require_approval=True)
    with bench.store.write() as tx:
        approval = tx.jobs.by_id([job])[job].approval
        assert approval is not None
        tx.graph.set_approval(
            job, approval._replace(state=ApprovalState.APPROVED, decided_by="ann")
        )
        tx.waits.wake([job])
    bench.until_ended(job)
    assert bench.status(job) is Status.FAILED

    new = bench.job(rewind(bench.client.context, job).new_root)

    assert new.approval is not None
    assert (new.approval.state, new.approval.decided_by) == (ApprovalState.PENDING, None)
    bench.step()
    assert bench.status(new.id) is Status.WAITING_ON_APPROVAL


def files_of(bench: Bench, job: int) -> dict[str, bytes]:
    folder = Path(bench.home.job(job))
    return {each.name: each.read_bytes() for each in folder.glob("*") if each.is_file()}


@pytest.mark.req("V37")
def test_a_job_that_runs_again_begins_without_what_the_last_attempt_left(
    bench: Bench, tmp_path: Path
) -> None:
    """Ended jobs keep their evidence and are followed by new ones; those that wait had none."""
    repo = make_repository(tmp_path)
    go = bench.folder / "go"
    script = f"echo $HEADWAY_JOB_ID; echo e$HEADWAY_JOB_ID >&2; echo x >>readme.txt; test -e {go}"
    failed = bench.submit(
        shell=script, save_patch=True, produces=("custom:report:june",), cwd=str(repo)
    )
    waiting = bench.submit("true", after=(failed,), delay=3_600_000_000)
    outside = bench.submit("true", produces=("custom:report:may", "custom:report:june"))
    with bench.store.write() as tx:
        tx.graph.publish([Marker("custom:report:june", failed, tx.now())])
        tx.graph.publish([Marker("custom:report:may", outside, tx.now())])
    bench.step(limit=1)
    bench.client.pause("hold")
    bench.until(lambda: bench.status(failed) is Status.FAILED)
    assert bench.status(waiting) in (Status.QUEUED, Status.WAITING_ON_DEPS)
    before = files_of(bench, failed)
    assert {"stdout.log", "stderr.log", "outcome.json", "command.patch"} <= before.keys()
    run = bench.client.document(failed)["run"]

    rewound = rewind(bench.client.context, failed)

    new = rewound.new_root
    assert rewound.reset == (waiting, new)
    assert files_of(bench, failed) == before, "the evidence of what happened"
    assert bench.client.document(failed)["run"] == {**run, "artifacts": []}
    for each in rewound.reset:
        assert files_of(bench, each) == {}
        assert bench.client.document(each)["run"] is None
    with bench.store.read() as tx:
        views = tx.graph.artifact_views(["custom:report:june", "custom:report:may"])
    assert [each.published for each in views.values()] == [False, True], "only what is its own"
    go.touch()
    bench.client.resume()
    bench.until(lambda: bench.status(new) is Status.SUCCEEDED)
    after = files_of(bench, new)
    assert (after["stdout.log"], after["stderr.log"]) == (b"job-%d\n" % new, b"ejob-%d\n" % new)
    assert files_of(bench, failed) == before


@pytest.mark.req("V31", "V37")
def test_what_the_set_made_counts_as_missing_until_it_is_made_again(bench: Bench) -> None:
    made = bench.folder / "report.txt"
    producer = bench.submit(
        "sh", "-c", f"touch {made}", produces=("custom:report:june", f"file:{made}")
    )
    consumer = bench.submit("true", needs=("custom:report:june", f"file:{made}"))
    failing = bench.submit("false", needs=("custom:report:june",))
    bench.until_ended(producer, consumer, failing)
    assert bench.status(consumer) is Status.SUCCEEDED
    with bench.store.read() as tx:
        [marker] = tx.graph.markers(["custom:report:june"])
    bench.client.pause("hold")

    rewound = rewind(bench.client.context, producer)

    assert rewound.members == (producer, consumer, failing), "its consumers follow from it"
    with bench.store.read() as tx:
        view = tx.graph.artifact_views(["custom:report:june", f"file:{made}"])
        assert [(each.published, each.withdrawn) for each in view.values()] == [(False, True)] * 2
        [evidence] = tx.graph.markers(["custom:report:june"])
    assert evidence.withdrawn_at is not None and evidence.at == marker.at
    bench.client.resume()
    bench.step()
    assert made.exists(), "the file of the old attempt is there, and does not count"
    assert bench.status(rewound.reset[1]) is Status.WAITING_ON_DEPS
    bench.until_ended(producer, consumer, failing)
    assert bench.status(rewound.reset[1]) is Status.SUCCEEDED


def test_an_artifact_published_again_counts_at_once(bench: Bench) -> None:
    producer = bench.submit("false", produces=("custom:report:june",))
    consumer = bench.submit("true", needs=("custom:report:june",))
    bench.until_ended(producer, consumer)
    rewound = rewind(bench.client.context, producer)
    with bench.store.write() as tx:
        tx.graph.publish([Marker("custom:report:june", rewound.new_root, tx.now())])
        tx.graph.made_one_again("custom:report:june", producer)
    bench.until_ended(consumer)
    assert bench.last(consumer).status is Status.SUCCEEDED


@pytest.mark.req("V43")
@pytest.mark.parametrize("own_repository", [True, False], ids=["own", "of a member"])
def test_refused_in_the_middle_of_a_merge(
    bench: Bench, tmp_path: Path, own_repository: bool
) -> None:
    # fault I1
    repo = bench.folder if own_repository else tmp_path / "elsewhere"
    repo.mkdir(exist_ok=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "commit", "-q", "--allow-empty", "-m", "one")
    options = {} if own_repository else {"cwd": str(repo), "pin_head": ""}
    job = bench.submit("false", **options)
    bench.until_ended(job)
    (repo / ".git" / "MERGE_HEAD").write_text(git(repo, "rev-parse", "HEAD") + "\n")
    before = bench.client.listing(everything=True)

    for verb in (preview, rewind):
        with pytest.raises(ConflictError, match=r"in the middle of a merge.*--abort"):
            verb(bench.client.context, job)

    assert bench.client.listing(everything=True) == before
    (repo / ".git" / "MERGE_HEAD").unlink()
    assert rewind(bench.client.context, job).new_root == job + 1


@pytest.mark.req("V42")
def test_a_conflict_sentinel_of_the_set_is_cleared(bench: Bench) -> None:
    job = bench.submit("false", produces=("merge_sentinel:login",))
    other = bench.submit("true")
    bench.until_ended(job, other)
    folder = Path(bench.home.path) / "merge-conflicts"
    folder.mkdir()
    for slug in ("login", "search"):
        (folder / f"{slug}.json").write_text("{}")

    rewind(bench.client.context, job)

    assert [path.name for path in folder.iterdir()] == ["search.json"]


def test_a_preview_changes_nothing(bench: Bench, segment: tuple[int, int, int, int, int]) -> None:
    _, root, follower, last, _ = segment
    before = bench.client.listing(everything=True)
    assert preview(bench.client.context, root).members == (root, follower, last)
    assert bench.client.listing(everything=True) == before


def test_a_retry_that_backs_off_is_tried_at_once(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(clock=FakeClock())
    job = bench.submit("false", retries=1, retry_base=3_600_000_000)
    bench.until(lambda: bench.last(job).id != job)
    second = bench.last(job)
    assert second.not_before is not None

    assert rewind(bench.client.context, job).new_root == second.id

    bench.until(lambda: bench.status(second.id) is Status.FAILED)
    third = bench.last(job)
    assert third.retries_used == 1, "what is put back by hand has all of its retries again"


def test_what_wholly_succeeded_is_not_run_again(bench: Bench) -> None:
    job = bench.submit("true")
    follower = bench.submit("true", after=(job,))
    bench.until_ended(job, follower)
    with pytest.raises(ConflictError, match="all that follows from it succeeded"):
        rewind(bench.client.context, job)


def test_what_wholly_succeeded_is_repeated_when_asked(bench: Bench) -> None:
    job = bench.submit("true")
    follower = bench.submit("true", after=(job,))
    bench.until_ended(job, follower)
    context = bench.client.context
    assert preview_repeat(context, job).members == (job, follower)
    again = repeat(context, job)
    assert again.reset == (job + 2, job + 3) and again.new_root == job + 2
    bench.until_ended(*again.reset)
    assert bench.status(job + 3) is Status.SUCCEEDED
    bench.client.pause("so that it stays")
    repeat(context, job)
    assert repeat(context, job).new_root == job + 4, "one that waits is put back, not doubled"


# -- blocked jobs ------------------------------------------------------------------------------


def test_why_of_an_ended_job_names_the_next_step(
    bench: Bench, segment: tuple[int, int, int, int, int]
) -> None:
    up, root, follower, last, _ = segment
    why = bench.client.jobs.why
    from_root = f"headway jobs retry job-{root} runs it again, and all that follows from it"
    assert why(follower)["remedy"] == why(last)["remedy"] == from_root
    assert why(root)["remedy"] == (
        f"headway jobs tail job-{root} shows its output; "
        f"headway jobs retry job-{root} runs it again, and all that follows"
    )
    assert why(up)["remedy"] is None
    new = rewind(bench.client.context, root).new_root
    assert why(root)["remedy"] == f"it was retried; its last attempt is job-{new} (queued)"


def test_why_of_a_job_whose_producer_failed_names_the_producer(bench: Bench) -> None:
    maker = bench.submit("false", produces=("custom:report:june",))
    user = bench.submit("true", needs=("custom:report:june",))
    bench.until_ended(maker, user)
    assert f"headway jobs retry job-{maker} " in bench.client.jobs.why(user)["remedy"]


def test_why_of_a_rejected_and_a_cancelled_job(bench: Bench) -> None:
    asking, waiting = bench.submit("true", require_approval=True), bench.submit("sleep", "60")
    bench.client.jobs.reject(asking)
    assert "asks for approval again" in bench.client.jobs.why(asking)["remedy"]
    bench.client.cancel([waiting])
    bench.until_ended(waiting)
    assert bench.client.jobs.why(waiting)["remedy"] is None


def test_why_of_an_unknown_outcome_says_that_it_may_have_done_its_work(bench: Bench) -> None:
    job = bench.submit("true")
    with bench.store.write() as tx:
        waiting = tx.jobs.by_id([job])[job]
        reason = "Scheduler crash recovery: outcome_unknown"
        assert tx.jobs.end_waiting(waiting, Status.FAILED, reason, None)
    assert "it may have done its work" in bench.client.jobs.why(job)["remedy"]


def test_a_retry_that_will_be_blocked_again_names_the_job_to_retry(
    bench: Bench, segment: tuple[int, int, int, int, int]
) -> None:
    _, root, follower, last, _ = segment
    for blocked in (follower, last):
        planned = preview(bench.client.context, blocked)
        assert planned.blocked_by == root
        assert planned.document([])["blocked_by"] == f"job-{root}"
    assert rewind(bench.client.context, last).blocked_by == root
    assert preview(bench.client.context, root).blocked_by is None
    assert "blocked_by" not in rewind(bench.client.context, root).document([])
