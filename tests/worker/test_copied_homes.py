"""A copy of a home settles what it cannot own, and touches nothing of the original."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_recovery import claim_of, evidence_of, started

from harness import Bench, wait_for
from headway.admin.doctor import examine
from headway.base.proc import start_time
from headway.core.states import Status
from headway.jobs.specification import parse_lock
from headway.jobs.views.why import why
from headway.supervise.records import Started

Copy = Callable[[Bench], Bench]


@pytest.fixture
def store_url() -> None:
    """A store on a server is not copied with a home."""
    return


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    made: list[Bench] = []

    def copy_of(original: Bench) -> Bench:
        folder = tmp_path / f"copy-{len(made)}"
        folder.mkdir()
        subprocess.run(["cp", "-a", original.home.path, str(folder)], check=True)
        made.append(Bench(folder))
        return made[-1]

    yield copy_of
    for bench in made:
        bench.engine.recover()
        bench.close()


def running(bench: Bench, **options: object) -> tuple[int, Started]:
    script = f"while ! test -e {bench.folder}/gate; do sleep 0.01; done; exit 5"
    job = bench.submit("sh", "-c", script, **options)
    bench.step()
    record = started(bench, job).read_started()
    assert record is not None
    return job, record


def is_untouched(record: Started) -> bool:
    return (
        start_time(record.supervisor_pid) == record.supervisor_start
        and start_time(record.child_pid) == record.child_start
    )


@pytest.mark.parametrize(
    "cgroup", [pytest.param("auto", marks=pytest.mark.root), pytest.param("off")]
)
def test_what_ran_in_the_original_is_over_in_the_copy_and_goes_on_there(
    make_bench: Callable[..., Bench], copy: Copy, cgroup: str
) -> None:
    original = make_bench(settings={"processes.cgroup": cgroup})
    job, record = running(original, locks=(parse_lock("repo"),))
    there = copy(original)
    told = why(there.client.context, job)["objections"]
    assert original.home.path in told[0]["detail"], "told before anybody settles it"
    before = list(examine(there.home.path, None, {}, "/"))
    there.engine.recover()
    settled = there.job(job)
    assert settled.status is Status.FAILED
    reason = settled.reason or ""
    assert reason.startswith("Scheduler crash recovery: outcome_unknown")
    assert original.home.path in reason, "it says where it may still run"
    other = there.submit("true", locks=(parse_lock("repo"),))
    there.until_ended(other)
    assert there.status(other) is Status.SUCCEEDED, "slot and lock are free"
    for _ in range(2):  # twice gives the same
        there.crash().recover()
        assert there.kinds(job).count("failed") == 1
    assert is_untouched(record) and original.status(job) is Status.RUNNING
    (original.folder / "gate").touch()
    original.until_ended(job)
    assert original.client.document(job)["run"]["exit_code"] == 5
    assert there.client.document(job)["run"]["exit_code"] is None
    (about,) = [each for each in before if each.check == "hosts"]
    assert about.level == "yellow" and f"job-{job}" in about.detail
    after = examine(there.home.path, None, {}, "/")
    assert [each.level for each in after if each.check == "hosts"] == ["green"]


def test_an_outcome_that_was_copied_is_the_truth(bench: Bench, copy: Copy) -> None:
    done = bench.submit("sh", "-c", "exit 3")
    bench.step()
    wait_for(lambda: evidence_of(bench, done).read_outcome())
    there = copy(bench)
    there.engine.recover()
    assert there.client.document(done)["run"]["exit_code"] == 3


def test_what_ended_after_the_copy_was_made_is_not_known_to_it(bench: Bench, copy: Copy) -> None:
    job, _ = running(bench)
    there = copy(bench)
    (bench.folder / "gate").touch()
    bench.until_ended(job)
    there.engine.recover()
    assert "outcome_unknown" in (there.job(job).reason or "")


def test_a_claim_without_a_start_is_not_started_by_a_copy(bench: Bench, copy: Copy) -> None:
    """Its files may have been copied before its row: that nothing was started is not proven."""
    ledger = bench.folder / "ledger"
    job = bench.submit("sh", "-c", f"echo ran >> {ledger}")
    bench.engine.launches.launch = lambda claims: None  # type: ignore[method-assign]
    bench.step()
    there = copy(bench)
    there.engine.recover()
    there.until_ended(job)
    assert there.status(job) is Status.FAILED and not ledger.exists()
    bench.crash().recover()
    bench.until_ended(job)
    assert ledger.read_text() == "ran\n"


def test_a_cancel_in_the_copy_reaches_nothing_of_the_original(bench: Bench, copy: Copy) -> None:
    job, record = running(bench)
    there = copy(bench)
    there.client.cancel([job])
    there.engine.recover()
    assert there.status(job) is Status.CANCELLED
    assert is_untouched(record) and not evidence_of(bench, job).is_cancelled()


def test_a_tree_that_the_original_still_looks_for_holds_no_lock_in_the_copy(
    make_bench: Callable[..., Bench], copy: Copy
) -> None:
    original = make_bench(settings={"processes.cgroup": "off"})
    job, record = running(original, locks=(parse_lock("repo"),))
    os.kill(record.supervisor_pid, signal.SIGKILL)
    original.until_ended(job)
    there = copy(original)
    there.engine.recover()
    with there.store.read() as tx:
        assert tx.claims.unproven() == [] and tx.claims.locks_held() == []


def test_a_copy_of_a_copy_settles_what_ran_in_either(bench: Bench, copy: Copy) -> None:
    first, _ = running(bench)
    middle = copy(bench)
    middle.client.set_setting("scheduler.max_active", 2)
    second, record = running(middle)
    last = copy(middle)
    last.engine.recover()
    assert {last.status(first), last.status(second)} == {Status.FAILED}
    assert is_untouched(record)


def test_a_copy_in_the_very_place_of_the_original_settles_it_too(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    """As a folder that was unpacked from an archive, after the original was moved away."""
    original = make_bench()
    job, record = running(original)
    original.engine.close()
    aside = tmp_path / "aside"
    os.rename(original.home.path, aside)
    subprocess.run(["cp", "-a", str(aside), original.home.path], check=True)
    copied = make_bench()
    copied.engine.recover()
    assert "outcome_unknown" in (copied.job(job).reason or "")
    assert is_untouched(record)
    os.kill(record.supervisor_pid, signal.SIGKILL)
    original.close = lambda: None  # type: ignore[method-assign]


def test_a_home_that_was_moved_takes_up_what_runs(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    before = make_bench()
    job, record = running(before)
    before.engine.close()
    before.store.close()
    before.close = lambda: None  # type: ignore[method-assign]
    moved = tmp_path / "moved"
    moved.mkdir()
    os.rename(before.home.path, moved / ".headway")
    after = Bench(moved)
    after.engine.recover()
    assert after.status(job) is Status.RUNNING and "readopted" in after.kinds(job)
    assert is_untouched(record)
    (before.folder / "gate").touch()
    after.until_ended(job)
    assert after.client.document(job)["run"]["exit_code"] == 5
    after.close()


def as_another_machine(bench: Bench) -> None:
    """The same folder, which a container that was made anew takes for another one."""
    path = Path(bench.home.host_id)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "made_for": ["another", *document["made_for"][1:]]}))


def test_what_holds_its_lock_in_this_very_folder_is_no_copy(bench: Bench) -> None:
    job, record = running(bench)
    known = bench.client.context.host.id
    as_another_machine(bench)
    engine = bench.crash()
    assert engine.tools.host.id != known and engine.tools.host.before == (known,)
    engine.recover()
    assert bench.status(job) is Status.RUNNING and is_untouched(record)
    (bench.folder / "gate").touch()
    bench.until_ended(job)
    assert bench.client.document(job)["run"]["exit_code"] == 5


def test_what_died_with_a_container_is_settled_by_the_next(bench: Bench) -> None:
    job, record = running(bench)
    as_another_machine(bench)
    os.kill(record.supervisor_pid, signal.SIGKILL)
    wait_for(lambda: start_time(record.supervisor_pid) is None)
    wait_for(lambda: start_time(record.child_pid) is None)  # until its exec it has the lock, too
    bench.crash().recover()
    assert "outcome_unknown" in (bench.job(job).reason or "")


def test_another_home_on_the_same_file_is_no_copy(bench: Bench, tmp_path: Path) -> None:
    """One that names the store by its URL has its own worker, which judges its claims."""
    folder = tmp_path / "other"
    folder.mkdir()
    other = Bench(folder, store_url=f"sqlite://{bench.home.database}")
    job, record = running(other)
    bench.crash().recover()
    assert bench.status(job) is Status.RUNNING and is_untouched(record)
    other.client.cancel([job])
    other.until_ended(job)
    other.close()


def test_a_copy_that_shares_its_store_leaves_the_original_alone(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    url = f"sqlite://{tmp_path}/shared.db"
    original = make_bench(store_url=url)
    job, record = running(original)
    folder = tmp_path / "copy"
    folder.mkdir()
    subprocess.run(["cp", "-a", original.home.path, str(folder)], check=True)
    there = Bench(folder, store_url=url)
    there.engine.recover()
    there.step()
    assert there.status(job) is Status.RUNNING and is_untouched(record)
    assert claim_of(there, job).host_id == original.client.context.host.id
    there.engine.close()
    there.store.close()
