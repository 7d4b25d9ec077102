"""A courier that dies at each point, and the next one: nothing is lost, and what comes twice is the
same."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import pytest
from post import Post
from receiver import Receiver

from actors import forks
from both_stores import on_a_file
from harness import Site, wait_for
from headway.base import crashpoints
from headway.base.clock import SECOND, SystemClock
from headway.webhooks.courier import main

ALLOW = 'webhooks.allow = ["127.0.0.1"]\n'
JOBS = 6


def be_courier(home: str, environ: dict[str, str], points: str, line: Connection) -> None:
    os.environ.clear()
    os.environ.update(environ)
    crashpoints.arm(points)
    os.dup2(line.fileno(), 0)
    line.close()
    os._exit(main(home))


class Dying(NamedTuple):
    """A courier beside the bench. It leaves when its line is closed."""

    process: BaseProcess
    line: Connection

    def code(self) -> int | None:
        self.process.join(60)
        return self.process.exitcode


@contextmanager
def courier(post: Post, points: str = "") -> Iterator[Dying]:
    home = post.bench.home
    Path(home.config).write_text(ALLOW)
    environ = {**os.environ, **({"HEADWAY_STORE": home.store_url} if home.store_url else {})}
    theirs, ours = Pipe(duplex=False)
    process = forks().Process(target=be_courier, args=(home.path, environ, points, theirs))
    process.start()
    theirs.close()
    try:
        yield Dying(process, ours)
    finally:
        ours.close()
        process.kill()
        process.join()


def check_settled(post: Post, jobs: list[int]) -> None:
    """The next courier comes when the leases of the dead one are over."""
    behind = SystemClock().now() - post.clock.now()  # the real courier went by the real clock
    post.clock.advance(behind / SECOND + 61)
    post.deliver()
    bodies: dict[str, set[bytes]] = {}
    for each in post.receiver.got:
        bodies.setdefault(each.id, set()).add(each.body)
    assert all(len(each) == 1 for each in bodies.values()), "the same id, the same bytes"
    ended = [
        each.document["data"]["job"]["id"]
        for each in {each.id: each for each in post.receiver.got}.values()
        if each.type == "job.completed"
    ]
    assert sorted(ended) == sorted(f"job-{job}" for job in jobs), "each end once, and none lost"
    assert set(post.states()) == set(bodies) and set(post.states().values()) == {"delivered"}


@pytest.mark.req("E8", "D15")
@pytest.mark.parametrize(
    ("point", "visit"),
    [
        ("webhooks.expand", 1),
        ("courier.leased", 1),
        ("courier.leased", 2),
        ("courier.sent", 1),
        ("courier.sent", 5),
        ("courier.tidied", 1),
    ],
)
def test_a_courier_that_dies_there_loses_nothing(post: Post, point: str, visit: int) -> None:
    post.add("ci", "*")  # fault F6
    jobs = [post.run() for _ in range(JOBS)]
    with courier(post, f"{point}=kill@{visit}") as dying:
        assert dying.code() == -signal.SIGKILL
    check_settled(post, jobs)


@on_a_file
def test_a_courier_that_dies_after_its_last_words_has_said_them(post: Post) -> None:
    post.add("ci", "*")
    jobs = [post.run() for _ in range(JOBS)]
    left = "courier.left"
    with courier(post, f"{left}=kill") as dying:
        dying.line.close()  # as if the worker had left
        assert dying.code() == -signal.SIGKILL
    assert len(post.receiver.got) == 3 * JOBS
    check_settled(post, jobs)
    assert len(post.receiver.got) == 3 * JOBS


def test_two_couriers_that_are_killed_again_and_again_lose_nothing(post: Post) -> None:
    """At their first point, their second, and so on, whatever that is."""
    post.add("ci", "*")
    jobs = []
    for number in range(1, 9):
        jobs.append(post.run())
        with courier(post, f"*=kill@{number}") as one, courier(post, f"*=kill@{9 - number}") as two:
            for each in (one, two):
                each.line.close()
                each.code()
    check_settled(post, jobs)


@on_a_file
def test_a_worker_that_dies_with_a_courier_just_begun_loses_nothing(
    tmp_path: Path, receiver: Receiver, store_url: None
) -> None:
    site, started = Site(tmp_path, config=ALLOW), "courier.started"
    try:
        site.run("webhooks", "add", "ci", receiver.url())
        mark = tmp_path / "mark"
        dying = site.worker(
            env={"HEADWAY_POINTS": f"{started}=kill", "HEADWAY_TEST_MARK": str(mark)}
        )
        job = site.submit("true")
        site.client.context.wake()
        assert dying.wait(60) == -signal.SIGKILL and mark.read_text().startswith(started)
        site.worker()
        site.until_ended(job)
        wait_for(lambda: receiver.types == ["job.completed"], what="its end to be told")
    finally:
        site.close()
