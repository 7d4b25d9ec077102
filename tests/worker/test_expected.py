"""A job that passed its looks long ago is looked for once more when its turn comes, and neither its
slot nor its locks go to others meanwhile."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.core.states import Status
from headway.jobs.specification import parse_lock
from headway.testing.clock import FakeClock


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(clock=FakeClock(SystemClock().now()))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    for words in ("init -q", "-c user.name=A -c user.email=a@b commit -q --allow-empty -m one"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder


def holding(bench: Bench, fifo: Path, **options: object) -> int:
    """A job that runs until `fifo` is written to."""
    subprocess.run(["mkfifo", str(fifo)], check=True)
    job = bench.submit("sh", "-c", f"read line < {fifo}", **options)
    bench.until(lambda: bench.status(job) is Status.RUNNING)
    return job


def minutes_later(bench: Bench) -> None:
    assert isinstance(bench.clock, FakeClock)
    bench.clock.advance(300)


def order_of_starts(bench: Bench, *jobs: int) -> list[int]:
    runs = [(bench.job(job).started_at or 0, job) for job in jobs]
    return [job for _, job in sorted(runs)]


def test_a_stream_of_others_does_not_take_its_slot(
    bench: Bench, repo: Path, tmp_path: Path
) -> None:
    first = holding(bench, tmp_path / "first")
    pinned = bench.submit("true", cwd=str(repo), pin_head="")
    others = [bench.submit("true") for _ in range(3)]
    bench.until(lambda: bench.job(pinned).wait is not None)
    minutes_later(bench)
    (tmp_path / "first").write_text("go\n")
    bench.until_ended(first, pinned, *others)
    assert order_of_starts(bench, pinned, *others) == [pinned, *others]
    assert bench.kinds(pinned).count("waiting_on_deps") <= 1, "one more look is no news"


def test_its_lock_is_promised_to_it_while_the_look_is_made(
    make_bench: Callable[..., Bench], repo: Path, tmp_path: Path
) -> None:
    bench = make_bench(clock=FakeClock(SystemClock().now()), max_active=4)
    lock = (parse_lock("db"),)
    first = holding(bench, tmp_path / "first", locks=lock)
    pinned = bench.submit("true", cwd=str(repo), pin_head="", locks=lock)
    others = [bench.submit("true", locks=lock) for _ in range(3)]
    bench.until(lambda: bench.status(pinned) is Status.WAITING_ON_LOCKS)
    minutes_later(bench)
    (tmp_path / "first").write_text("go\n")
    bench.until_ended(first, pinned, *others)
    assert order_of_starts(bench, pinned, *others) == [pinned, *others]


@pytest.mark.req("V60")
def test_what_the_last_look_shows_counts(bench: Bench, repo: Path, tmp_path: Path) -> None:
    first = holding(bench, tmp_path / "first")
    pinned = bench.submit("true", cwd=str(repo), pin_head="")
    other = bench.submit("true")
    bench.until(lambda: bench.job(pinned).wait is not None)
    commit = "-c user.name=A -c user.email=a@b commit -q --allow-empty -m two"
    subprocess.run(["git", *commit.split()], cwd=repo, check=True)
    minutes_later(bench)
    (tmp_path / "first").write_text("go\n")
    bench.until_ended(first, other)
    assert bench.status(pinned) is Status.WAITING_ON_DEPS
    assert bench.job(pinned).wait is not None
    assert "pinned head mismatch" in bench.client.document(pinned)["wait"]["detail"]


def test_a_cancelled_one_gives_its_slot_back(bench: Bench, repo: Path, tmp_path: Path) -> None:
    first = holding(bench, tmp_path / "first")
    pinned = bench.submit("true", cwd=str(repo), pin_head="")
    bench.until(lambda: bench.job(pinned).wait is not None)
    minutes_later(bench)
    (tmp_path / "first").write_text("go\n")
    bench.until(lambda: bench.status(first) is Status.SUCCEEDED)
    if bench.status(pinned) is not Status.SUCCEEDED:
        bench.client.cancel([pinned])
    after = bench.submit("true")
    bench.until_ended(after)
    assert bench.engine.probes.expected() == 0


def test_who_waits_for_one_more_look_has_missed_nothing(bench: Bench, repo: Path) -> None:
    """Its slot is kept for it, and so there is none: not a reason to say that it could have run."""
    bench.client.pause("for a while")
    bench.submit("sleep", "600", cwd=str(repo), pin_head="")
    bench.until(lambda: not bench.engine.probes.unsure())
    bench.step()
    minutes_later(bench)
    bench.client.resume()
    assert bench.missed_wake_ups() == []
