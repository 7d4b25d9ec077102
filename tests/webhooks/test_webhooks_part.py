"""The worker's side: a courier lives while there is work for one, and costs nothing else."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from post import Post
from receiver import Receiver, status

from both_stores import on_a_file
from harness import Bench, Site, wait_for
from headway.core.webhooks import DID_NOTHING
from headway.webhooks.part import WebhooksPart
from several import Hosts

ALLOW = 'webhooks.allow = ["127.0.0.1"]\n'
DAY = 86_400.0


@pytest.fixture
def alone(make_bench: Callable[..., Bench], receiver: Receiver) -> Iterator[Bench]:
    """A bench whose steps start couriers, which are processes."""
    bench = make_bench(settings={"webhooks.allow": ("127.0.0.1",)})
    Path(bench.home.config).write_text(ALLOW)
    yield bench
    kill(bench)


def part_of(bench: Bench) -> WebhooksPart:
    return bench.engine.part(WebhooksPart)


def kill(bench: Bench) -> None:
    pid = part_of(bench).courier
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_step_without_endpoints_asks_nothing_and_starts_nothing(bench: Bench) -> None:
    asked: list[str] = []
    database = bench.store.database
    execute, ask = database.execute, database.ask

    def recording(sql: str, parameters: object) -> object:
        asked.append(sql)
        return execute(sql, parameters)  # type: ignore[arg-type]

    def recording_all(questions: object) -> object:
        asked.extend(sql for sql, _ in questions)  # type: ignore[attr-defined]
        return ask(questions)  # type: ignore[arg-type]

    database.execute, database.ask = recording, recording_all  # type: ignore[method-assign]
    bench.until_ended(bench.submit("true"))
    about = [sql for sql in asked if "endpoints" in sql or "deliveries" in sql]
    assert asked and about == [] and bench.store.queries["last_event"].sql not in asked
    assert part_of(bench).courier is None


@pytest.mark.req("D15")
def test_the_worker_starts_a_courier_that_delivers(alone: Bench, receiver: Receiver) -> None:
    alone.client.webhooks.add("ci", receiver.url())
    job = alone.submit("true")
    alone.until(lambda: receiver.got, "a delivery")
    assert receiver.types == ["job.completed"]
    assert receiver.got[0].document["data"]["job"]["id"] == f"job-{job}"
    assert part_of(alone).courier is not None
    assert part_of(alone).delay() is None, "one that lives needs no step"


def test_one_courier_at_a_time_and_another_after_it_died(alone: Bench, receiver: Receiver) -> None:
    alone.client.webhooks.add("ci", receiver.url())
    alone.until_ended(alone.submit("true"))
    first = alone.until(lambda: part_of(alone).courier)
    alone.until_ended(alone.submit("true"))
    assert part_of(alone).courier == first
    alone.until(lambda: len(receiver.got) == 2, "both deliveries")
    kill(alone)
    alone.until_ended(alone.submit("true"))
    second = alone.until(lambda: part_of(alone).courier, "another courier")
    assert second != first
    alone.until(lambda: len(receiver.got) == 3, "the third delivery")


@on_a_file
def test_the_pause_before_the_next_grows_while_couriers_end_at_once(post: Post) -> None:
    part = post.bench.engine.part(WebhooksPart)
    del part.__dict__["start"]
    post.add()
    post.bench.client.pause("an event")
    pauses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.executable", "/bin/false")
        for _ in range(4):
            post.bench.step()
            wait_for(lambda: part._process is not None and part._process.has_ended())
            post.bench.step()
            pauses.append(part.delay())
            post.clock.advance(part.delay() or 0)
    assert pauses == [1.0, 2.0, 4.0, 8.0]


@on_a_file
def test_one_that_had_nothing_to_do_here_is_not_begun_again_at_once(post: Post) -> None:
    part = post.bench.engine.part(WebhooksPart)
    post.add()
    post.run()

    class Ended:
        status, started_at, pid = DID_NOTHING, 0.0, 1

        def has_ended(self) -> bool:
            return True

        def close(self) -> None: ...

    part._process = Ended()  # type: ignore[assignment]
    post.bench.step()
    assert part.delay() == 1.0


def test_the_next_step_is_when_the_next_delivery_is_due(post: Post) -> None:
    post.receiver.usual = status(500)
    post.add()
    post.run()
    post.deliver()
    assert 29 < post.bench.step() <= 30 or part_of(post.bench).delay() == 30.0
    assert part_of(post.bench).delay() == 30.0
    with post.bench.store.read() as tx:
        assert part_of(post.bench).needs_worker(tx, 0.0)
    post.webhooks.pause("ci")
    post.deliver()
    post.bench.step()
    assert (part_of(post.bench).delay() or 0) > 6 * DAY
    with post.bench.store.read() as tx:
        assert not part_of(post.bench).needs_worker(tx, 6 * DAY)


@on_a_file
@pytest.mark.req("D15")
def test_an_idle_worker_stays_until_the_usual_tries_are_over(post: Post) -> None:
    """Else a receiver that is down for minutes would leave a delivery pending until somebody
    submits something else."""

    def stays(idle: float) -> bool:
        with post.bench.store.read() as tx:
            return part_of(post.bench).needs_worker(tx, idle)

    post.receiver.usual = status(500)
    post.add()
    post.run()
    for pause in (0, 30, 60, 120):
        assert stays(2.0)
        post.after(pause)
    assert post.the_delivery()["state"] == "failed" and not stays(2.0)
    post.webhooks.remove("ci")
    post.add("slow", "job.completed", schedule="standard")
    post.run()
    for pause in (0, 5):
        assert stays(2.0)
        post.after(pause)
    assert not stays(2.0) and not stays(299.0) and stays(300.0)


def test_what_no_host_can_sign_is_no_work(post: Post) -> None:
    post.add()
    os.unlink(post.courier.secrets.path)
    post.run()
    post.deliver()
    post.bench.step()
    assert (part_of(post.bench).delay() or 0) > 6 * DAY


@on_a_file
@pytest.mark.parametrize("signs", [True, False])
def test_what_nobody_may_send_fails_after_seven_days_though_nothing_happens(
    post: Post, signs: bool
) -> None:
    post.add()
    if signs:
        post.webhooks.pause("ci")
    else:
        os.unlink(post.courier.secrets.path)
    post.run()
    post.deliver()
    part = part_of(post.bench)
    assert post.the_delivery()["state"] == "pending"
    with post.bench.store.write() as tx:
        part.step(tx)
    delay = part.delay()
    assert delay is not None and 6 * DAY < delay < 8 * DAY
    post.clock.advance(delay)
    started: list[bool] = []
    part.start = lambda: started.append(True)  # type: ignore[method-assign]
    with post.bench.store.write() as tx:
        part.step(tx)
    part.committed()
    assert started == [True]
    post.deliver(post.new_courier())
    assert post.the_delivery()["state"] == "failed" and post.receiver.got == []


def test_a_host_without_the_secret_leaves_it_to_the_one_that_has_it(
    hosts: Hosts, receiver: Receiver
) -> None:
    """Two homes on one store; a secret is brought from the one to the other."""
    here, there = hosts(settings={"webhooks.allow": ("127.0.0.1",)})
    posts = [Post(each, receiver) for each in (here, there)]
    try:
        secret = here.client.webhooks.add("ci", receiver.url())["secret"]
        here.until_ended(here.submit("true"))
        posts[1].deliver()
        assert receiver.got == [] and posts[1].the_delivery()["state"] == "pending"
        assert there.client.webhooks.show("ci")["signs_here"] is False
        posts[0].deliver()
        assert len(receiver.got) == 1
        there.client.webhooks.import_("ci", secret)
        here.until_ended(here.submit("true"))
        posts[1].deliver()
        assert len(receiver.got) == 2
        with here.store.read() as tx:
            holders = [each.holders for each in tx.webhooks.endpoints().values() if each.id]
        assert holders == [{each.client.context.host.id for each in (here, there)}]
    finally:
        for post in posts:
            post.close()


# -- with the real program ---------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, config=ALLOW + '[worker]\nidle = "2s"\nautostart = true\n')
    yield made
    made.close()


def couriers(site: Site) -> list[int]:
    return [pid for pid, words in site.processes().items() if "webhooks.courier" in words]


@on_a_file
def test_an_idle_worker_stays_while_a_delivery_is_due_soon(
    site: Site, receiver: Receiver, store_url: None
) -> None:
    """And its courier goes with it, after it has told of the worker's end."""
    receiver.answers = [status(503, Retry_After="3")]
    site.run("webhooks", "add", "ci", receiver.url(), "--type", "job.completed")
    site.run("webhooks", "add", "ops", receiver.url("/ops"), "--type", "worker.left")
    site.run("submit", "true")
    wait_for(lambda: len(receiver.got) >= 2, what="the second try")
    assert receiver.types[:2] == ["job.completed"] * 2
    wait_for(lambda: site.background_pid() is None, what="the worker to leave")
    wait_for(lambda: receiver.types == ["job.completed"] * 2 + ["worker.left"])
    wait_for(lambda: not couriers(site), what="its courier to follow")


@on_a_file
def test_a_courier_ends_with_a_worker_that_was_killed(
    site: Site, receiver: Receiver, store_url: None
) -> None:
    site.run("webhooks", "add", "ci", receiver.url())
    site.run("submit", "true")
    wait_for(lambda: receiver.got and couriers(site))
    (courier,) = couriers(site)
    assert os.getpriority(os.PRIO_PROCESS, courier) >= 5
    os.kill(site.background_pid() or 0, signal.SIGKILL)
    wait_for(lambda: not couriers(site), what="the courier to leave")
