"""`/readyz`: whether the server can do its work, for those who send it requests or restart it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from served import Served, on_both_stores

from harness import wait_for
from headway.base.errors import StoreError
from headway.base.verb_threads import VerbThreads
from headway.jobs.context import Context
from headway.web import tail
from headway.web.handlers import server


def test_a_worker_is_reported_and_no_condition(served: Served) -> None:
    said = served.get("/readyz", role="read")
    assert said == {"ready": True, "last_event": served.bench.client.events.last(), "worker": False}


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """While a word stands in it, nothing new can be found out."""
    words: list[str] = []
    found = Context.changes

    def changes(self: Context) -> int:
        if words:
            raise StoreError("the disk is gone")
        return found(self)

    monkeypatch.setattr(Context, "changes", changes)
    monkeypatch.setattr(tail, "AFTER_TROUBLE", 0.01)
    monkeypatch.setattr(server, "LONGEST_SILENCE", 0.5)
    return words


def is_ready(served: Served) -> bool:
    heard = served.ask("GET", "/readyz", role="read")
    if heard.status == 503:
        assert heard.json["title"] == "not-ready" and heard.headers["retry-after"] == "1"
        assert "no event was read for" in heard.json["detail"]
    return heard.status == 200


def test_it_is_not_ready_while_somebody_listens_and_no_event_can_be_read(
    served: Served, silent: list[str]
) -> None:
    with served.stream("events") as following:
        assert next(following.frames).event == "hello"
        wait_for(lambda: is_ready(served))
        silent.append("now")
        wait_for(lambda: not is_ready(served))
        silent.clear()
        wait_for(lambda: is_ready(served))


def test_a_reader_of_events_that_rests_is_ready_however_long(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LONGEST_SILENCE", -1.0)
    assert is_ready(served)
    with served.stream("events") as following:
        assert next(following.frames).event == "hello"
        assert not is_ready(served)


@on_both_stores
def test_it_is_not_ready_when_another_headway_has_changed_the_schema(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread, which has opened the store before: another one would see it when it opens it."""
    monkeypatch.setattr("headway.web.server.VerbThreads", partial(VerbThreads, count=1))
    served = serve()
    assert is_ready(served)
    with schema_of_another(served):
        heard = served.ask("GET", "/readyz", role="read")
        assert (heard.status, heard.json["title"]) == (503, "store-unavailable")
        assert "schema 999" in heard.json["detail"]
    assert is_ready(served)


@contextmanager
def schema_of_another(served: Served) -> Iterator[None]:
    home = served.bench.home
    line: Any = (
        sqlite3.connect(home.database, isolation_level=None)
        if home.store_url is None
        else psycopg.connect(home.store_url, autocommit=True)
    )
    is_file = home.store_url is None
    ask = "pragma user_version" if is_file else "select version from schema_version"
    change = "pragma user_version = " if is_file else "update schema_version set version = "
    before = line.execute(ask).fetchone()[0]
    line.execute(f"{change}999")
    try:
        yield
    finally:
        line.execute(f"{change}{before}")
        line.close()
