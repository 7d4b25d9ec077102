"""Endpoints as their users meet them: what is refused, what is shown, what each gets."""

import pytest
from post import Post

from both_stores import on_a_file
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.core.webhooks import ENDS
from headway.jobs.graph_file import misfits, request_of


@on_a_file
@pytest.mark.parametrize(
    ("name", "url", "options", "words"),
    [
        ("", "https://x.example/", {}, "cannot be the name"),
        ("1st", "https://x.example/", {}, "cannot be the name"),
        ("endpoint-3", "https://x.example/", {}, "cannot be the name"),
        ("a b", "https://x.example/", {}, "cannot be the name"),
        ("ci", "https://ada:pw@x.example/", {}, "user or a password"),
        ("ci", "http://10.0.0.1/", {}, r'webhooks.allow = \["10.0.0.1:80"\]'),
        ("ci", "http://8.8.8.8:22/", {}, "port 22 is neither"),
        ("ci", "https://x.example/", {"types": ["job.fail"]}, "no type 'job.fail'"),
        ("ci", "https://x.example/", {"schedule": "slow"}, "is not one of quick, standard"),
    ],
)
def test_an_endpoint_that_cannot_be_is_refused_and_nothing_is_kept(
    post: Post, name: str, url: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        post.webhooks.add(name, url, **options)  # type: ignore[arg-type]
    assert post.webhooks.list() == [] and post.cursor() == -1
    assert post.courier.secrets.all() == {}


@on_a_file
def test_a_job_with_a_url_that_cannot_be_is_refused(post: Post) -> None:
    for url, words in (
        ("ftp://x.example/", "no URL to send to"),
        ("http://10.0.0.1/", r'webhooks.allow = \["10.0.0.1:80"\]'),
    ):
        with pytest.raises(InvalidInputError, match=words):
            post.bench.submit("true", webhooks=(url,))
    with pytest.raises(InvalidInputError, match="may have 8 webhooks"):
        many = tuple(f"https://x.example/{number}" for number in range(9))
        post.bench.submit("true", webhooks=many)


def test_the_document_of_an_endpoint(post: Post) -> None:
    made = post.add("ci", "job.*", "group.ended", schedule="standard")
    shown = post.webhooks.show("endpoint-1")
    assert shown == post.webhooks.list()[0]
    assert {key: made[key] for key in shown} == shown and made["secret"].startswith("whsec_")
    assert "secret" not in shown
    changing = ("created_at", "changed_at", "fingerprint", "url", "origin")
    assert {key: shown[key] for key in shown if key not in changing} == {
        "id": "endpoint-1",
        "name": "ci",
        "types": ["job.*", "group.ended"],
        "state": "active",
        "reason": None,
        "schedule": "standard",
        "overlap_until": None,
        "signs_here": True,
        "failures": 0,
        "held_until": None,
        "pending": 0,
        "delivered": 0,
        "failed": 0,
        "created_by": "tester",
    }
    assert shown["origin"] == f"http://127.0.0.1:{post.receiver.port}"
    assert post.add("second")["types"] == list(ENDS)


def test_what_there_is_not_is_said(post: Post) -> None:
    for verb in (post.webhooks.show, post.webhooks.pause, post.webhooks.remove, post.webhooks.test):
        for reference in ("none", "endpoint-9", "endpoint-0", "(jobs)"):
            with pytest.raises(NotFoundError, match="webhooks list"):
                verb(reference)
    for verb in (post.webhooks.delivery, post.webhooks.replay):
        with pytest.raises(NotFoundError, match="webhooks deliveries"):
            verb("0-1-1")


def test_an_endpoint_gets_what_comes_after_it_alone(post: Post) -> None:
    post.run()
    assert post.cursor() == -1, "nothing is made of events while nobody listens"
    post.add("first")
    post.run()
    post.add("second")
    job = post.run()
    post.deliver()
    got = sorted((each.path, each.document["data"]["job"]["id"]) for each in post.receiver.got)
    assert got == [
        ("/first", f"job-{job - 1}"),
        ("/first", f"job-{job}"),
        ("/second", f"job-{job}"),
    ]


def test_a_removed_endpoint_takes_its_deliveries_along(post: Post) -> None:
    post.add()
    post.webhooks.pause("ci")
    post.run()
    post.deliver()
    assert len(post.states()) == 1
    removed = post.webhooks.remove("ci")
    assert (removed["name"], removed["pending"]) == ("ci", 1)
    assert post.states() == {} and post.cursor() == -1
    post.run()
    post.deliver()
    assert post.receiver.got == []
    kinds = ("webhook_added", "webhook_paused", "webhook_removed")
    assert [len(post.events(kind)) for kind in kinds] == [1, 1, 1]


def test_one_that_is_removed_while_it_is_sent_to_does_no_harm(post: Post) -> None:
    post.add()
    post.run()
    post.courier.turn()
    post.webhooks.remove("ci")
    post.deliver()
    assert post.states() == {}


def test_deliveries_are_found_by_state_job_and_time(post: Post) -> None:
    from receiver import status

    post.add()
    post.receiver.answers = [status(410)]
    first = post.run()
    post.deliver()
    post.webhooks.resume("ci")
    post.clock.advance(60)
    since = post.bench.client.now()
    second = post.run("false", retries=1, retry_base=0)
    post.deliver()
    everything = post.webhooks.deliveries()
    assert [each["job"] for each in everything] == [
        f"job-{second + 1}",
        f"job-{second}",
        f"job-{first}",
    ]
    assert [each["job"] for each in post.webhooks.deliveries(state="failed")] == [f"job-{first}"]
    assert len(post.webhooks.deliveries(job=second)) == 2, "of its whole chain"
    assert len(post.webhooks.deliveries(since=since)) == 2
    assert len(post.webhooks.deliveries(limit=1)) == 1
    one = post.webhooks.delivery(everything[0]["id"])
    assert one["body"].encode() == post.receiver.got[-1].body or len(post.receiver.got) == 3
    with pytest.raises(ConflictError, match="is disabled"):
        post.receiver.answers = [status(410)]
        post.run()
        post.deliver()
        post.webhooks.pause("ci")
    for wrong in ({"state": "sent"}, {"limit": 0}, {"limit": 1_001}):
        with pytest.raises(InvalidInputError):
            post.webhooks.deliveries(**wrong)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        post.webhooks.deliveries(job=999)


def test_what_is_pending_is_not_replayed(post: Post) -> None:
    post.add()
    post.webhooks.pause("ci")
    post.run()
    post.deliver()
    with pytest.raises(ConflictError, match="is pending"):
        post.webhooks.replay(post.the_delivery()["id"])


def test_a_test_is_sent_at_once_and_leaves_no_trace(post: Post) -> None:
    from receiver import status

    post.add()
    post.webhooks.pause("ci")
    tried = post.webhooks.test("ci")
    assert (tried["delivered"], tried["status_code"], tried["error"]) == (True, 204, None)
    (got,) = post.receiver.got
    assert got.type == "webhook.test" and got.headers["webhook-signature"].startswith("v1,")
    post.receiver.usual = status(500)
    assert post.webhooks.test("ci")["error"] == "500 Internal Server Error"
    assert post.states() == {} and post.webhooks.show("ci")["failures"] == 0


def test_an_entry_of_a_graph_may_have_urls(post: Post) -> None:
    wrong: list[str] = []
    entry = {"argv": ["true"], "webhooks": [post.receiver.url("/graph")]}
    request = request_of(entry, 0, wrong)
    assert request is not None and wrong == []
    post.bench.until_ended(post.bench.client.submit(request).job_id)
    post.deliver()
    assert [each.path for each in post.receiver.got] == ["/graph"]
    assert list(misfits({"webhooks": "https://x.example/"})) != [], "it is a list"
