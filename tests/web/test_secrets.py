"""Canaries: no token, secret, password or value of an environment is in an answer or in a log
(fault H8)."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served import Served, bearer

from harness import Bench
from headway.admin.tokens import csrf_value
from headway.web.application import ON_ALL_ANSWERS
from headway.web.routes import ROUTES
from new_deliveries import new_delivery

OF_THE_SERVER = "canary-of-the-servers-environment"
OF_THE_FILE = "canary-of-env-in-the-file"
OF_THE_JOB = "canary-of-a-jobs-environment"
PASSWORD = "canary-password"
WORDS = {"job": "job-1", "run": "1", "group": "kept", "stream": "stdout", "template": "kept",
         "schedule": "kept", "key": "scheduler.max_active", "runner": "x"}  # fmt: skip


@pytest.fixture
def full(
    postgres_url: str,  # the first, so that it goes last
    serve: Callable[..., Served],
    make_bench: Callable[..., Bench],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Served, list[str]]]:
    """A home that is full of secrets, and all of these."""
    monkeypatch.setenv("OF_THE_SERVER", OF_THE_SERVER)
    mark = "&" if "?" in postgres_url else "?"
    url = f"{postgres_url}{mark}password={PASSWORD}"
    settings = {"env": {"OF_THE_FILE": OF_THE_FILE}, "store.url": url}
    bench = make_bench(store_url=url, settings=settings, max_active=2)
    served = serve(bench, level=logging.DEBUG)
    env = {"OF_THE_JOB": OF_THE_JOB}
    served.submit("true", name="kept", env=env)
    served.ask("PUT", "templates/kept", {"argv": ["true"], "env": env})
    served.post(
        "schedules", {"name": "kept", "cron": "0 0 * * *", "job": {"argv": ["true"], "env": env}}
    )
    served.post("groups", {"name": "kept", "open": True})
    code = served._client.tokens.login_code(role="read", host="127.0.0.1")
    with served.wire() as wire:
        begun = wire.ask("POST", "/login", [("Origin", f"http://{wire.host}")], {"code": code})
    session = begun.header("set-cookie").partition("=")[2].partition(";")[0]
    tokens = [served.token(role) for role in ("read", "submit", "operate", "admin")]
    digests = [each.digest for each in served._client.tokens.list()]
    yield (
        served,
        [
            *(OF_THE_SERVER, OF_THE_FILE, OF_THE_JOB, PASSWORD, code, session, csrf_value(session)),
            *tokens,
            *digests,
        ],
    )


def test_no_answer_and_no_line_of_the_log_has_a_secret(
    full: tuple[Served, list[str]],
) -> None:  # fault H8
    served, secrets = full
    asked: list[tuple[str, str, Any]] = []
    for route in ROUTES:
        words = route.path.split("/")
        path = "/".join(WORDS.get(each[1:-1], "x") if "{" in each else each for each in words)
        if route.media.startswith("text/event-stream"):
            continue
        asked.append((route.method, path, None if route.body is None else {}))
        asked.append((route.method, f"{path}?unknown={OF_THE_SERVER[:6]}", None))
    asked += [
        ("GET", "/api/v1/jobs/1?include=chain,events", None),
        ("GET", "/api/v1/graph?format=svg&all=true", None),
        ("PATCH", "/api/v1/jobs/1", {"env": {"MORE": OF_THE_JOB}}),
        ("POST", "/api/v1/jobs", {"argv": ["true"], "env": {"A": OF_THE_JOB}}),
        ("POST", "/api/v1/jobs", {"argv": ["true"], "env": {"A": OF_THE_JOB, "1=": "x"}}),
    ]
    codes = set()
    for method, path, body in asked:
        heard = served.ask_as(served.token("admin"), method, path, body)
        codes.add(heard.status)
        said = heard.body.decode("utf-8", "replace") + json.dumps(heard.headers)
        assert not [each for each in secrets if each in said], (method, path, said)
    assert {200, 201, 400, 404} <= codes and 500 not in codes
    log = "\n".join(served.log.lines)
    assert log and not [each for each in secrets if each in log]


def test_no_secret_of_a_webhook_is_said_and_its_url_to_admins_alone(
    served: Served,
) -> None:  # fault H8
    """A URL is often as good as a password. What adds one shows its secret, that once."""
    path = "canary-of-a-webhooks-path"
    url = f"https://203-0-113-9.example/{path}"  # a name that nothing resolves
    client = served.bench.client
    secrets = [client.webhooks.add("kept", url)["secret"], client.webhooks.secret()]
    served.submit("true", name="kept", webhooks=[f"{url}-of-a-job"])
    served.post("groups", {"name": "kept", "open": True})
    made = new_delivery(1)
    with served.bench.store.write() as tx:
        tx.webhooks.add_deliveries([made])
    words = {**WORDS, "endpoint": "kept", "delivery": made.id}
    for route in ROUTES:
        if route.method != "GET" or route.media.startswith("text/event-stream"):
            continue
        parts = route.path.split("/")
        there = "/".join(words.get(each[1:-1], "x") if "{" in each else each for each in parts)
        for role in ("read", "operate", "admin"):
            said = served.ask("GET", there, role=role).body.decode("utf-8", "replace")
            assert not [each for each in secrets if each in said], (there, role)
            assert f"{path}-of-a-job" not in said, (there, role)
            assert role == "admin" or path not in said, (there, role)
    assert path in served.ask("GET", "webhooks/kept").body.decode()
    log = "\n".join(served.log.lines)
    assert path not in log and not [each for each in secrets if each in log]


def test_a_wrong_secret_is_not_repeated(shared: Served) -> None:
    wrong = "hw_canary-wrong"
    for headers in (bearer(wrong), [("Cookie", f"headway={wrong}")]):
        heard = shared.ask_as(None, "GET", "jobs", None, headers)
        assert heard.status == 401 and wrong.encode() not in heard.body
        assert wrong not in json.dumps(heard.headers)


def test_something_unexpected_gives_its_id_alone(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{OF_THE_SERVER} in /some/path")

    monkeypatch.setattr("headway.jobs.views.locks.locks", break_)
    served = serve()
    heard = served.ask("GET", "locks")
    assert heard.status == 500 and heard.json["title"] == "unexpected"
    assert OF_THE_SERVER.encode() not in heard.body and b"/some/path" not in heard.body
    assert heard.json["instance"] in served.log.errors.pop()


def test_every_answer_has_the_same_guards(shared: Served) -> None:
    for method, path, role in (
        ("GET", "jobs", "read"), ("GET", "jobs", None), ("GET", "/healthz", None),
        ("GET", "/", "read"), ("GET", "/login", None), ("POST", "jobs", "read"),
        ("GET", "/nothing", "read"),
        ("DELETE", "jobs/99", "admin"), ("GET", "/metrics", "read"), ("HEAD", "events", "read"),
    ):  # fmt: skip
        heard = shared.ask(method, path, role=role)
        for name, value in ON_ALL_ANSWERS.items():
            assert heard.header(name) == value, (path, name)
        assert len(heard.header("x-request-id")) == 16
        assert "server" not in heard.headers
