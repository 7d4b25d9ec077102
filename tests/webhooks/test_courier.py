"""Deliveries from the event to the reply: what is sent, what follows, what is written down."""

import random
import threading
from typing import Any

import pytest
from post import Post
from receiver import Handler, Received, status

from both_stores import on_a_file
from harness import wait_for
from headway.base.errors import ConflictError, StoreBusyError
from headway.core.states import Status
from headway.store import patience
from headway.webhooks import courier

SECONDS = 1_000_000
HOUR = 3_600.0


@pytest.mark.req("E8", "D12", "D15")
def test_the_end_of_a_run_is_sent_once_with_the_document_of_the_job(post: Post) -> None:
    post.add()
    job = post.run("true")
    post.deliver()
    (got,) = post.receiver.got
    assert got.document["data"]["job"] == post.bench.client.document(job)
    assert (got.type, got.path) == ("job.completed", "/ci")
    assert got.document["data"]["job"]["status"] == "COMPLETED"
    assert post.the_delivery()["state"] == "delivered"
    post.after(HOUR)
    assert len(post.receiver.got) == 1


@pytest.mark.req("E8", "D12")
@pytest.mark.parametrize(
    ("argv", "options", "types"),
    [
        (("true",), {}, ["job.completed"]),
        (("false",), {}, ["job.failed"]),
        (("sh", "-c", "exit 7"), {"skip_exit_codes": (7,)}, ["job.skipped"]),
        (("false",), {"retries": 1, "retry_base": 0}, ["job.failed", "job.failed"]),
    ],
)
def test_each_end_of_a_run_is_exactly_one_notification(
    post: Post, argv: tuple[str, ...], options: dict[str, Any], types: list[str]
) -> None:
    post.add()
    post.run(*argv, **options)
    post.deliver()
    assert post.receiver.types == types
    jobs = [each.document["data"]["job"] for each in post.receiver.got]
    assert [f"job.{each['status'].lower()}" for each in jobs] == types
    runs = {each.document["data"]["job"]["run"]["run_id"] for each in post.receiver.got}
    assert len(runs) == len(types)


@pytest.mark.req("E8")
def test_a_job_that_is_cancelled_or_blocked_is_one_notification(post: Post) -> None:
    post.add()
    waiting = post.bench.submit("true", delay=3_600 * SECONDS)
    post.bench.submit("true", after=(waiting,))
    post.bench.client.cancel([waiting])
    post.bench.step()
    post.deliver()
    assert post.receiver.types == ["job.blocked", "job.cancelled"]


@pytest.mark.req("D15")
def test_three_retries_with_longer_and_longer_pauses_then_failed(post: Post) -> None:
    """DEC-009."""
    post.receiver.usual = status(500)  # fault F2
    post.add()
    job = post.run()
    post.deliver()
    assert len(post.receiver.got) == 1
    for sent, pause in ((2, 30), (3, 60), (4, 120)):
        post.after(pause - 1)
        assert len(post.receiver.got) == sent - 1
        post.after(1)
        assert len(post.receiver.got) == sent
    (failed,) = post.webhooks.deliveries(state="failed")
    assert (failed["tries"], failed["status_code"], failed["job"]) == (4, 500, f"job-{job}")
    assert failed["error"] == "500 Internal Server Error"
    assert len(set(post.receiver.ids)) == 1 and len({e.body for e in post.receiver.got}) == 1
    (event,) = post.events("webhook_failed")
    assert (event["endpoint"], event["delivery"], event["deliveries"]) == ("ci", failed["id"], 1)
    assert post.bench.kinds(job)[-1] == "webhook_failed"


@pytest.mark.req("D27")
def test_what_failed_is_told_to_others_and_never_of_itself(post: Post) -> None:
    """Two endpoints that are down must not tell each other of it for ever (D27)."""
    post.receiver.usual = status(500)
    post.add("one", "*")
    post.add("two", "webhook.failed")
    post.run()
    for _ in range(30):
        post.deliver()
        post.clock.advance(130)
    of_failures = [each for each in post.receiver.got if each.type == "webhook.failed"]
    assert {each.path for each in of_failures} == {"/two"}
    assert not post.webhooks.deliveries(state="pending")
    types = {event["type"] for event in post.events("webhook_failed")}
    assert types and "webhook.failed" not in types
    sent = len(post.receiver.got)
    post.after(24 * HOUR)
    assert len(post.receiver.got) == sent


def test_the_standard_schedule_has_ten_tries(post: Post) -> None:
    post.receiver.usual = status(500)  # fault F2
    post.add(schedule="standard")
    post.run()
    post.deliver()
    pauses = [5.0, 300.0, 1_800.0, *(hours * HOUR for hours in (2, 5, 10, 14, 20, 24))]
    for sent, pause in enumerate(pauses, 2):
        post.after(pause)
        assert len(post.receiver.got) == sent
    assert post.the_delivery()["state"] == "failed"


@pytest.mark.req("D15")
def test_a_failed_delivery_is_replayed_with_the_same_id_and_bytes(post: Post) -> None:
    post.receiver.usual = status(500)
    post.add()
    post.run()
    post.deliver()
    for pause in (30, 60, 120):
        post.after(pause)
    post.receiver.usual = status(204)
    replayed = post.webhooks.replay(post.the_delivery()["id"])
    assert (replayed["state"], replayed["tries"]) == ("pending", 0)
    post.deliver()
    assert post.the_delivery()["state"] == "delivered"
    assert len(set(post.receiver.ids)) == 1 and len({e.body for e in post.receiver.got}) == 1


def test_all_that_failed_since_an_instant_is_replayed(post: Post) -> None:
    post.receiver.usual = status(410)
    post.add("early")
    post.run()
    post.deliver()
    post.clock.advance(HOUR)
    since = post.bench.client.now()
    post.webhooks.resume("early")
    post.run()
    post.run()
    post.deliver()
    assert sorted(post.states().values()) == ["failed"] * 3
    assert post.webhooks.replay_since(since) == 0, "it is disabled, so they would fail again"
    with pytest.raises(ConflictError, match="`headway webhooks resume early`"):
        post.webhooks.replay(next(iter(post.states())))
    post.webhooks.resume("early")
    assert post.webhooks.replay_since(since) == 2
    assert sorted(post.states().values()) == ["failed", "pending", "pending"]


def test_one_that_says_gone_is_disabled_and_gets_nothing_more(post: Post) -> None:
    post.receiver.usual = status(410)  # fault F9
    post.add()
    for _ in range(3):
        post.run()
    post.deliver()
    endpoint = post.webhooks.show("ci")
    assert (endpoint["state"], endpoint["failed"], endpoint["pending"]) == ("disabled", 3, 0)
    assert len(post.events("webhook_disabled")) == 1
    sent = len(post.receiver.got)
    post.run()
    post.after(HOUR)
    assert len(post.receiver.got) == sent
    assert post.webhooks.resume("ci")
    post.receiver.usual = status(204)
    post.run()
    post.deliver()
    assert len(post.receiver.got) == sent + 1, "what came in between is not made up for"


def test_one_that_asks_to_wait_gets_nothing_before(post: Post) -> None:
    post.receiver.usual = status(429, Retry_After="600")  # fault F9
    post.add()
    post.run()
    post.deliver()
    post.receiver.usual = status(204)
    post.run()
    post.after(599)
    assert len(post.receiver.got) == 1, "neither the same nor another"
    post.after(1)
    assert len(post.receiver.got) == 3
    assert sorted(post.states().values()) == ["delivered", "delivered"]


@on_a_file
def test_an_endpoint_that_fails_for_an_hour_pauses_itself_until_a_trial_succeeds(
    post: Post,
) -> None:
    post.receiver.usual = status(500)
    post.add(schedule="standard")
    for _ in range(25):
        post.run()
    post.deliver()
    assert post.webhooks.show("ci")["state"] == "active", "not within an hour"
    post.after(5)
    post.after(300)
    post.after(HOUR)
    endpoint = post.webhooks.show("ci")
    assert endpoint["state"] == "paused" and "failures in a row" in endpoint["reason"]
    assert len(post.events("webhook_paused")) == 1
    sent = len(post.receiver.got)
    post.after(2 * HOUR)  # then all are due
    assert len(post.receiver.got) == sent + 1, "one trial an hour"
    post.after(HOUR - 1)
    assert len(post.receiver.got) == sent + 1
    post.receiver.usual = status(204)
    post.after(1)
    post.after(24 * HOUR)
    endpoint = post.webhooks.show("ci")
    assert (endpoint["state"], endpoint["failures"], endpoint["pending"]) == ("active", 0, 0)
    assert len(post.events("webhook_resumed")) == 1


@on_a_file
def test_what_waits_for_seven_days_has_failed(post: Post) -> None:
    post.add()
    post.webhooks.pause("ci")
    post.run()
    post.deliver()
    assert post.the_delivery()["state"] == "pending"
    post.after(7 * 24 * HOUR + 1)
    failed = post.the_delivery()
    assert (failed["state"], failed["error"]) == ("failed", "it has waited for 7 days")
    assert post.receiver.got == []


@on_a_file
def test_what_is_over_is_forgotten_in_time(post: Post) -> None:
    post.add()
    post.receiver.answers = [status(410)]
    post.run()
    post.deliver()
    post.webhooks.resume("ci")
    post.run()
    post.deliver()
    assert sorted(post.states().values()) == ["delivered", "failed"]
    post.after(4 * 24 * HOUR)
    assert sorted(post.states().values()) == ["failed"]
    post.after(27 * 24 * HOUR)
    assert post.states() == {}


@on_a_file
def test_all_that_is_over_is_forgotten_however_much_that_is(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "FORGOTTEN_AT_ONCE", 1)
    post.add()
    for _ in range(4):
        post.run()
    post.deliver()
    assert set(post.states().values()) == {"delivered"}
    post.clock.advance(4 * 24 * HOUR)
    for _ in range(4):
        post.courier.turn()
    assert post.states() == {}


# -- pausing by hand ---------------------------------------------------------------------------


def test_a_paused_endpoint_gets_everything_once_it_is_resumed(post: Post) -> None:
    post.add()
    assert post.webhooks.pause("ci") and not post.webhooks.pause("ci")
    post.run()
    post.after(HOUR)
    assert post.receiver.got == [] and post.the_delivery()["state"] == "pending"
    assert post.webhooks.resume("ci") and not post.webhooks.resume("ci")
    post.deliver()
    assert post.receiver.types == ["job.completed"]


# -- jobs' own URLs ----------------------------------------------------------------------------


@pytest.mark.req("D15")
def test_the_url_of_a_job_is_told_of_its_end_alone(post: Post) -> None:
    url = post.receiver.url("/mine")
    job = post.run("false", webhooks=(url,), retries=1, retry_base=0)
    post.run("true")
    post.deliver()
    assert post.receiver.types == ["job.failed", "job.failed"]
    assert {each.path for each in post.receiver.got} == {"/mine"}
    ours = post.webhooks.deliveries(job=job)
    assert {(each["endpoint"], each["origin"]) for each in ours} == {
        (None, f"http://127.0.0.1:{post.receiver.port}")
    }
    assert post.bench.client.document(job)["webhooks"] == [
        f"http://127.0.0.1:{post.receiver.port}"
    ], "the rest of a URL is as good as a password"
    assert "/mine" not in post.receiver.got[0].body.decode()


def test_a_retry_by_hand_tells_the_url_again(post: Post) -> None:
    job = post.run("false", webhooks=(post.receiver.url("/a"), post.receiver.url("/b")))
    post.deliver()
    assert [each.path for each in post.receiver.got] != [] and post.cursor() >= 0
    post.courier.leave()
    assert post.cursor() == -1, "it is over, and nobody is to be told anything"
    post.bench.client.retry(job)
    post.bench.until_ended(job)
    post.deliver()
    assert sorted(each.path for each in post.receiver.got) == ["/a", "/a", "/b", "/b"]
    assert len(set(post.receiver.ids)) == 4


# -- leases ------------------------------------------------------------------------------------


def test_a_lease_that_ended_is_taken_by_another_courier(post: Post) -> None:
    """As after a crash: the one that had it says nothing any more."""
    post.add()
    post.run()
    dead = post.new_courier()
    dead._start_threads = lambda: None  # type: ignore[method-assign]  # it dies before it sends
    dead.turn()
    assert dead.is_busy
    post.deliver()
    assert post.receiver.got == [], "it is leased"
    post.after(60)
    assert post.the_delivery()["state"] == "delivered"


def test_the_word_of_a_courier_whose_lease_ended_does_not_count(post: Post) -> None:
    post.add()
    post.run()
    slow, release = post.new_courier(), post.receiver
    release.answers = [status(500)]
    slow.turn()
    while slow._active:  # sent, and not written down
        slow._clock.sleep(0)
    post.after(61)  # another has the lease now, sends it and writes that down
    assert post.the_delivery()["state"] == "delivered"
    slow.turn()
    assert post.the_delivery()["state"] == "delivered"
    assert len(set(post.receiver.ids)) == 1 and len(post.receiver.got) == 2


@on_a_file
def test_what_cannot_be_written_down_now_is_written_down_later_and_not_sent_again(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "sleep", lambda seconds: None)
    post.add()
    post.run()
    post.courier.turn()
    wait_for(lambda: post.receiver.got and not post.courier._active)
    with post.bench.store.write(), pytest.raises(StoreBusyError):
        post.courier.turn()
    post.deliver()
    post.after(61)
    assert post.the_delivery()["state"] == "delivered" and len(post.receiver.got) == 1


@pytest.mark.req("D15")
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_a_receiver_does_each_is_delivered_or_has_failed_and_can_be_replayed(
    post: Post, seed: int
) -> None:
    chance = random.Random(seed)
    taken: dict[str, set[bytes]] = {}

    def moody(received: Received, handler: Handler) -> None:
        lot = chance.choice(("204", "500", "302", "429", "503", "hang up"))
        if lot == "hang up":
            handler.close_connection = True
            return
        if lot == "204":
            taken.setdefault(received.id, set()).add(received.body)
        later = {"Retry-After": chance.choice(("0", "90", "4000"))} if lot in ("429", "503") else {}
        handler.reply(int(lot), later)

    def good(received: Received, handler: Handler) -> None:
        taken.setdefault(received.id, set()).add(received.body)
        handler.reply(204)

    post.receiver.usual = moody
    post.add("one")
    post.add("two")
    for _ in range(8):
        post.run()
        post.after(chance.choice((0, 45, 400, 4_000)))
    for _ in range(30):
        if "pending" not in post.states().values():
            break
        post.after(4_000)
    assert set(post.states().values()) == {"delivered", "failed"} and len(post.states()) == 16
    assert {each for each, state in post.states().items() if state == "delivered"} == set(taken)
    post.receiver.usual = good
    for name in ("one", "two"):  # one may have paused itself
        post.webhooks.resume(name)
    replayed = post.webhooks.replay_since(0)
    assert replayed == 16 - len(taken) > 0
    post.deliver()
    assert set(post.states().values()) == {"delivered"} and set(taken) == set(post.states())
    sent = {(each.id, each.body) for each in post.receiver.got}
    assert len(sent) == 16, "the same id, the same bytes"


@on_a_file
def test_what_waits_behind_a_slow_receiver_is_given_back_in_time(post: Post) -> None:
    """A lease must not run out while it is still to be sent: two would send it then."""
    post.add()  # fault F7
    for _ in range(6):
        post.run()
    post.courier._start_threads = lambda: None  # type: ignore[method-assign]
    post.courier.turn()
    (outgoing,) = post.courier._outgoing.values()
    taken = len(outgoing.waiting)
    assert 0 < taken <= 6
    post.clock.advance(41)
    del post.courier.__dict__["_start_threads"]
    post.courier._start_threads()
    while post.courier._active:
        pass
    assert post.receiver.got == [], "their leases would end before the receiver has answered"
    post.deliver()
    assert len(post.receiver.got) == 6 and len(set(post.receiver.ids)) == 6


def test_two_couriers_at_once_send_each_once(post: Post) -> None:
    post.add("ci", "*")
    for _ in range(10):
        post.run()
    other = post.new_courier()
    for _ in range(3):
        post.courier.turn()
        other.turn()
    post.deliver(other)
    post.deliver()
    assert len(post.receiver.ids) == len(set(post.receiver.ids)) == len(post.states())
    assert set(post.states().values()) == {"delivered"}


@on_a_file
def test_a_slow_receiver_holds_up_nobody_else(post: Post) -> None:
    """Four at once, and no more, wait for it; another endpoint gets its own meanwhile."""
    release = threading.Event()

    def slow(received: Received, handler: Handler) -> None:
        if received.path == "/slow":
            release.wait(30)
        handler.reply(204)

    post.receiver.usual = slow  # fault F1
    post.add("slow")
    post.add("quick")
    for _ in range(8):
        post.run()
    try:

        def all_quick() -> bool:
            post.courier.turn()
            return sum(each.path == "/quick" for each in post.receiver.got) == 8

        wait_for(all_quick, what="the quick one to get all")
        assert sum(each.path == "/slow" for each in post.receiver.got) == 4
    finally:
        release.set()
    post.deliver()
    assert len(post.receiver.got) == 16


@on_a_file
def test_receivers_that_are_slow_hold_no_request_that_others_could_have(post: Post) -> None:
    """So many that each thread waits for one of them; whichever is free next sends to others."""
    answers = threading.Semaphore(0)

    def slow(received: Received, handler: Handler) -> None:
        if received.path != "/quick":
            answers.acquire(timeout=30)
        handler.reply(204)

    def to_quick() -> bool:
        post.courier.turn()
        return any(each.path == "/quick" for each in post.receiver.got)

    def all_threads() -> bool:
        post.courier.turn()
        return len(post.receiver.got) == courier.AT_ONCE

    post.receiver.usual = slow  # fault F1
    for number in range(courier.AT_ONCE // courier.AT_ONCE_PER_RECEIVER):
        post.add(f"slow{number}")
    for _ in range(6):
        post.run()
    try:
        wait_for(all_threads, what="all threads to wait")
        post.add("quick")
        post.run()
        for _ in range(3):
            post.courier.turn()
        assert len(post.receiver.got) == courier.AT_ONCE, "and no more than those"
        answers.release()
        wait_for(to_quick, what="the next request to be that of the quick one")
        assert len(post.receiver.got) <= courier.AT_ONCE + 2
    finally:
        answers.release(100)
    post.deliver()
    assert len(post.receiver.got) == len(post.states()) == 8 * 7 + 1


def test_an_endpoint_without_its_secret_here_gets_nothing_until_it_comes(post: Post) -> None:
    import os

    post.add()
    secret = post.webhooks.secret("ci")
    os.unlink(post.courier.secrets.path)
    post.run()
    post.deliver()
    assert post.receiver.got == []
    with post.bench.store.read() as tx:
        assert [each.holders for each in tx.webhooks.endpoints().values()] == [frozenset()] * 2
    post.webhooks.import_("ci", secret)
    post.deliver()
    assert len(post.receiver.got) == 1


def test_a_state_that_has_ended_is_final_in_the_body(post: Post) -> None:
    post.add()
    job = post.run()
    post.deliver()
    assert post.bench.status(job) is Status.SUCCEEDED
    assert post.receiver.got[0].document["data"]["job"]["state"] == "succeeded"
