"""From events to deliveries: what is made of each, how far, and what a crash in between leaves."""

import json
from typing import Any

import pytest
from post import Post

from both_stores import on_a_file
from headway.base.errors import ConflictError
from headway.core.retention import RetentionRule
from headway.core.states import Status
from headway.jobs.groups import Plan
from headway.jobs.request import Request
from headway.jobs.retention import gc
from headway.store.new_jobs import Event
from headway.webhooks.bodies import LARGEST, body_of
from headway.webhooks.expansion import apply_page, read_page

DAY = 86_400.0


def the_body(post: Post, type_: str) -> dict[str, Any]:
    (found,) = [each for each in post.receiver.got if each.type == type_]
    return found.document


def test_all_types_of_a_short_life(post: Post) -> None:
    post.add("ci", "*")
    post.bench.client.groups.create(Plan(name="pair"))
    post.run(group="pair", last=True)
    asked = post.bench.submit("true", require_approval=True)
    post.bench.step()
    post.bench.client.jobs.approve(asked)
    post.bench.until_ended(asked)
    post.bench.client.pause("lunch")
    post.bench.client.resume()
    post.deliver()
    assert post.receiver.types == sorted(
        ["job.submitted", "job.started", "job.completed"] * 2
        + ["approval.requested", "approval.decided", "group.ended"]
        + ["scheduler.paused", "scheduler.resumed"]
    )
    decided = the_body(post, "approval.decided")["data"]
    assert (decided["event"]["actor"], decided["job"]["id"]) == ("tester", f"job-{asked}")
    ended = the_body(post, "group.ended")["data"]
    assert ended["job"] is None and ended["event"]["data"]["status"] == "COMPLETED"


def test_the_body_says_what_when_and_in_which_order(post: Post) -> None:
    post.add("ci", "job.*")
    job = post.run()
    post.deliver()
    bodies = sorted(
        (each.document for each in post.receiver.got), key=lambda each: each["sequence"]
    )
    assert [each["type"] for each in bodies] == ["job.submitted", "job.started", "job.completed"]
    events = {event.seq: event for event in post.bench.events(job)}
    assert [each["sequence"] for each in bodies] == sorted(events)
    assert {each["epoch"] for each in bodies} == {post.bench.client.events.epoch()}
    for got in post.receiver.got:
        body = got.document
        assert got.id == f"{body['epoch']}-{body['sequence']}-1"
        assert set(body) == {"type", "timestamp", "epoch", "sequence", "data"}
        assert got.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("params", "result", "labels", "truncated"),
    [
        (1_000, 1_000, 10, None),
        (LARGEST, 10, 10, ["params", "run.params_snapshot", "run.result"]),
        (10, LARGEST, 10, ["params", "run.params_snapshot", "run.result"]),
        (10, 10, LARGEST, ["job", "event"]),
    ],
)
def test_a_large_body_goes_without_what_makes_it_large(
    params: int, result: int, labels: int, truncated: list[str] | None
) -> None:
    job = {
        "id": "job-1",
        "name": "x",
        "state": "succeeded",
        "status": "COMPLETED",
        "labels": {"l": "é" * (labels // 6)},
        "params": {"argv": ["x" * params]},
        "run": {"exit_code": 0, "params_snapshot": {"argv": ["x"]}, "result": "x" * result},
    }
    body = body_of("job.completed", Event("succeeded", 1, {}, "w", 0, 7), "e", job)
    assert len(body) <= LARGEST and body.isascii()
    document = json.loads(body)
    assert document.get("truncated") == truncated
    shown = document["data"]["job"]
    assert (shown["id"], shown["state"]) == ("job-1", "succeeded")
    if truncated is not None and truncated[0] == "params":
        assert shown["params"] is None and shown["run"]["result"] is None
        assert shown["run"]["exit_code"] == 0


def test_a_crash_between_reading_and_writing_makes_the_same_again(post: Post) -> None:
    post.add("ci", "*")
    post.run()
    page, again = read_page(post.courier._context), read_page(post.courier._context)
    assert page is not None and page == again and len(page.made) == 3


def test_of_two_that_expand_at_once_one_does_nothing(post: Post) -> None:
    post.add("ci", "*")
    post.run()
    context = post.courier._context
    page, stale = read_page(context), read_page(context)
    assert page is not None and stale is not None
    with post.bench.store.write() as tx:
        assert apply_page(tx, page) and not apply_page(tx, stale)
    assert read_page(context) is None
    assert len(post.states()) == 3


def test_pages_are_bounded_and_none_is_left_out(post: Post) -> None:
    post.add("ci", "*")
    for _ in range(5):
        post.run()
    pages = []
    while (page := read_page(post.courier._context, 4)) is not None:
        with post.bench.store.write() as tx:
            assert apply_page(tx, page)
        pages.append(page)
    assert [len(page.made) for page in pages] == [4, 4, 4, 3]
    assert [page.is_last for page in pages] == [False, False, False, True]
    assert len(post.states()) == 15


def test_events_that_nobody_wants_are_passed_over_at_once(post: Post) -> None:
    post.add("ci", "group.ended")
    for _ in range(3):
        post.run()
    page = read_page(post.courier._context, 1)
    assert page is not None and (page.made, page.is_last) == ((), True)
    with post.bench.store.read() as tx:
        assert page.to == tx.events.last()


@on_a_file
def test_a_job_whose_rows_cannot_be_read_holds_up_nobody(post: Post) -> None:
    post.add()
    broken, sound = post.run("true"), post.run("true")
    post.bench.store.database.begin_write()
    post.bench.store.database.execute(
        "update evidence set document = 'x' where job_id = :id", {"id": broken}
    )
    post.bench.store.database.commit()
    post.deliver()
    jobs = {each.document["data"]["job"]["id"]: each.document for each in post.receiver.got}
    assert set(jobs) == {f"job-{broken}", f"job-{sound}"}
    assert "cannot be read" in jobs[f"job-{broken}"]["data"]["job"]["error"]


# -- retention ---------------------------------------------------------------------------------


def test_a_job_stays_until_its_end_was_made_a_delivery_of(post: Post) -> None:
    post.add()
    job = post.run()
    with pytest.raises(ConflictError, match="webhooks have yet to be told of its end"):
        post.bench.client.jobs.clean(job)
    context = post.bench.client.context
    assert gc(context, RetentionRule(0, None)).jobs == ()
    post.deliver()
    assert gc(context, RetentionRule(0, None)).jobs == (job,)
    assert len(post.states()) == 1, "what endpoints got is kept"


def test_after_seven_days_it_goes_all_the_same_and_that_is_said(post: Post) -> None:
    post.add()
    job = post.run()
    context = post.bench.client.context
    post.clock.advance(7 * DAY - 60)
    assert gc(context, RetentionRule(0, None)).jobs == ()
    post.clock.advance(120)
    assert gc(context, RetentionRule(0, None)).jobs == (job,)
    (removed,) = post.events("removed")
    assert (removed["jobs"], removed["not_notified"]) == (1, 1)
    post.deliver()
    assert post.receiver.got == []


def test_without_endpoints_nothing_is_held_back(post: Post) -> None:
    job = post.run()
    post.bench.client.jobs.clean(job)
    assert "not_notified" not in post.events("removed")[0]


def test_the_deliveries_of_a_jobs_own_url_go_with_it(post: Post) -> None:
    job = post.run(webhooks=(post.receiver.url(),))
    post.deliver()
    assert len(post.webhooks.deliveries(job=job)) == 1
    post.bench.client.jobs.clean(job)
    assert post.states() == {}


# -- backup and restore ------------------------------------------------------------------------


@on_a_file
def test_after_a_restore_no_id_means_another_event(post: Post, tmp_path: Any) -> None:
    """What the backup has keeps its ids, also if it was delivered since; what is new has others."""
    from headway.admin.restore import Restorer
    from headway.store import open_store

    post.add("ci", "job.completed")
    old = post.run()
    backup = post.bench.client.admin.backup(str(tmp_path / "backup.db"))
    post.run()
    post.deliver()
    before = {each.id: each.body for each in post.receiver.got}
    assert len(before) == 2
    home, clock = post.bench.home, post.bench.clock
    url = f"sqlite://{home.database}"
    Restorer(home, url, clock, actor="ada", force=True, unsafe_fs=True).restore(backup)
    post.receiver.got.clear()
    post.bench.store.close()
    post.bench.store = store = open_store(url, clock)
    restored = post.courier_of(open_store(url, clock))
    new = post.client_of(open_store(url, clock)).submit(Request(argv=("true",))).job_id
    with store.write() as tx:
        assert tx.jobs.end_waiting(tx.jobs.by_id([new])[new], Status.SKIPPED, "said so", None)
        tx.events.add([Event("succeeded", new, {})], actor="test")
    post.deliver(restored)
    after = {each.id: each for each in post.receiver.got}
    again = [each for each in after.values() if each.document["data"]["job"]["id"] == f"job-{old}"]
    assert [each.body for each in again] == [before[again[0].id]]
    others = [each for each in after.values() if each not in again]
    assert len(others) == 1 and others[0].id not in before
    assert others[0].document["epoch"] != again[0].document["epoch"]
    assert restored.secrets.all(), "the secrets are in no backup, and stay where they are"
