"""A worker whose server hangs, goes silent or is away: it heeds signals, and goes on afterwards."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hanging import Stoppable, stoppable_server, way_to
from harness import Site, wait_for
from headway.core.states import Status
from postgres import fresh_schema

pytestmark = pytest.mark.long
GRACE = 1
CONFIG = f'[worker]\nautostart = false\ngrace = "{GRACE}s"\n'
Trouble = Callable[[], None]


@pytest.fixture(scope="module")
def server() -> Iterator[Stoppable]:
    with stoppable_server() as made:
        yield made


@pytest.fixture
def url(server: Stoppable) -> Iterator[str]:
    with fresh_schema(server.url) as made:
        yield made


@pytest.fixture(params=["stopped", "silent", "away"])
def trouble(
    request: pytest.FixtureRequest, tmp_path: Path, server: Stoppable, url: str
) -> Iterator[tuple[Site, Trouble]]:
    """A site, and what happens to its server."""
    with way_to(url) as way:
        site = Site(
            tmp_path, config=CONFIG, store_url=url if request.param == "stopped" else way.url
        )

        def happen() -> None:
            if request.param == "stopped":
                server.stop()
            elif request.param == "silent":
                way.silent = True
            else:
                way.refuse()

        yield site, happen
        server.go_on()
        site.client.context.store.patience.end_within(0.0)  # it would ask what is away
        site.close()


class Worker:
    """A worker, what it has said, and how long it takes to leave."""

    def __init__(self, site: Site) -> None:
        self.process = site.worker()
        self.said = ""
        self.until_said("is up")

    def until_said(self, words: str) -> None:
        wait_for(lambda: words in self._listen(), what=f"{words!r} after {self.said!r}")

    def _listen(self) -> str:
        assert self.process.stderr is not None
        while select.select([self.process.stderr], [], [], 0)[0]:
            more = os.read(self.process.stderr.fileno(), 1 << 16).decode()
            if not more:
                break
            self.said += more
        return self.said

    def leaves_after(self, *, ignoring: int = 0) -> float:
        """The seconds from a signal on, after so many others that let it wait."""
        for _ in range(ignoring):
            self.process.send_signal(signal.SIGTERM)
            self.until_said("stopping: waiting for")
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        return time.monotonic() - began


@pytest.mark.req("D22")
def test_a_worker_without_its_server_heeds_a_signal(  # fault A6 D5
    trouble: tuple[Site, Trouble],
) -> None:
    site, happen = trouble
    worker = Worker(site)
    happen()
    worker.until_said("cannot step")
    assert worker.leaves_after() < GRACE + 3


def test_a_second_signal_ends_a_worker_without_its_server_at_once(  # fault A6 D5
    server: Stoppable, url: str, tmp_path: Path
) -> None:
    site = Site(tmp_path, config=CONFIG.replace(f"{GRACE}s", "60s"), store_url=url)
    try:
        job = site.submit("sleep", "60")
        worker = Worker(site)
        wait_for(lambda: site.status(job) is Status.RUNNING)
        with server.hung():
            site.client.context.wake()
            assert worker.leaves_after(ignoring=1) < 3
        site.client.cancel([job])
    finally:
        server.go_on()
        site.close()


@pytest.mark.req("D25")
def test_a_worker_goes_on_when_its_server_does_and_was_never_dead(  # fault D1 D5
    server: Stoppable, url: str, tmp_path: Path
) -> None:
    site = Site(tmp_path, config=CONFIG, store_url=url)
    try:
        go = tmp_path / "go"
        job = site.submit(shell=f"while ! test -e {go}; do sleep 0.02; done; exit 3")
        worker = Worker(site)
        wait_for(lambda: site.status(job) is Status.RUNNING)
        with server.hung():
            site.client.context.wake()
            worker.until_said("cannot step")
            go.touch()
        site.until_ended(job)
        worker.until_said("can step again")
        assert site.client.document(job)["run"]["exit_code"] == 3
        assert site.kinds(job).count("failed") == 1
        with site.client.context.store.read() as tx:
            assert len(tx.hosts.recent_workers(site.client.context.host.id, 5)) == 1
        assert worker.leaves_after() < GRACE + 3
    finally:
        server.go_on()
        site.close()


def test_workers_that_left_without_a_server_are_no_crash_loop(  # fault A14
    server: Stoppable, url: str, tmp_path: Path
) -> None:
    site = Site(tmp_path, config=CONFIG + "crash_loop = 1\n", store_url=url)
    try:
        worker = Worker(site)
        with server.hung():
            assert worker.leaves_after() < GRACE + 3
        Worker(site)
        with site.client.context.store.read() as tx:
            assert tx.settings.pause_in_force() is None
            assert [
                each.ending for each in tx.hosts.recent_workers(site.client.context.host.id, 2)
            ] == [
                None,
                "signal",
            ]
        assert not os.path.exists(site.home.worker_left)
    finally:
        server.go_on()
        site.close()


def test_a_command_says_within_bounds_that_the_server_does_not_answer(  # fault D5
    server: Stoppable, url: str, tmp_path: Path
) -> None:
    site = Site(tmp_path, config=CONFIG, store_url=f"{url}&connect_timeout=2")
    try:
        with server.hung():
            began = time.monotonic()
            done = site.run("submit", "--", "true", check=False)
            assert time.monotonic() - began < 15
        assert done.returncode == 6 and "does not answer" in done.stderr
        assert site.run("submit", "--", "true").returncode == 0
    finally:
        server.go_on()
        site.close()
