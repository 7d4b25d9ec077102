"""Numbers of descriptors are given out again: nobody may be found under one that is not his."""

import os
import selectors
import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from harness import Bench, wait_for
from headway.base.watchlist import Watching, Watchlist


@pytest.fixture
def watchlist() -> Iterator[Watchlist]:
    made = Watchlist()
    yield made
    made.close()


def a_pipe() -> tuple[int, int]:
    """The first end can be read at once."""
    reading, writing = os.pipe()
    os.write(writing, b"x")
    return reading, writing


def heard(watchlist: Watchlist) -> list[object]:
    return [key.data() for key, _ in watchlist.select(0)]


def test_what_is_watched_is_heard_until_its_owner_ends_it(watchlist: Watchlist) -> None:
    reading, writing = a_pipe()
    watching = watchlist.watch(reading, lambda: "it rings")
    assert heard(watchlist) == ["it rings"]
    watching.close()
    watching.end()
    assert heard(watchlist) == [] and not os.path.exists(f"/proc/self/fd/{reading}")
    os.close(writing)


def test_a_number_that_was_left_behind_belongs_to_who_has_it_now(watchlist: Watchlist) -> None:
    reading, writing = a_pipe()
    old = watchlist.watch(reading, lambda: "old")
    os.close(reading)
    assert watchlist.dead() == [reading]
    again, other = a_pipe()
    assert again == reading
    new = watchlist.watch(again, lambda: "new")
    assert heard(watchlist) == ["new"] and watchlist.dead() == []
    old.end()
    assert heard(watchlist) == ["new"], "the end of the old one is not the end of the new one"
    new.close()
    os.close(writing)
    os.close(other)


def test_what_ended_in_the_same_moment_is_not_heard_any_more(watchlist: Watchlist) -> None:
    ends = [a_pipe(), a_pipe()]
    watched: list[Watching] = []
    told: list[int] = []

    def end_both(number: int) -> None:
        told.append(number)
        for each in watched:
            each.end()

    for number, (reading, _) in enumerate(ends):
        watched.append(watchlist.watch(reading, lambda number=number: end_both(number)))  # type: ignore[misc]
    heard(watchlist)
    assert len(told) == 1
    for pair in ends:
        for each in pair:
            os.close(each)


def test_what_rests_is_silent_until_it_goes_on(watchlist: Watchlist) -> None:
    reading, writing = a_pipe()
    watching = watchlist.watch(reading, lambda: "it rings")
    watching.rest()
    assert heard(watchlist) == []
    watching.go_on()
    watching.go_on()
    assert heard(watchlist) == ["it rings"]
    watching.rest()
    watching.close()
    watching.go_on()
    assert heard(watchlist) == []
    os.close(writing)


def test_room_is_waited_for_only_while_it_is_wanted(watchlist: Watchlist) -> None:
    one, other = socket.socketpair()
    watching = watchlist.watch(one, lambda: "room")
    assert heard(watchlist) == []
    watching.also_for_room(True)
    assert heard(watchlist) == ["room"]
    watching.also_for_room(False)
    assert heard(watchlist) == []
    watching.close()
    other.close()


# -- the line on which a server tells of commits --------------------------------------------------


@pytest.fixture
def store_url(postgres_url: str) -> str:
    """Only a server has one."""
    return postgres_url


def listener_of(bench: Bench) -> int:
    line = bench.store.hints()
    assert line is not None
    return line.fileno()


def test_a_line_that_is_lost_leaves_no_number_behind(  # fault D1
    bench: Bench, postgres_url: str
) -> None:
    worker = bench.new_worker()
    watchlist = worker._engine.launches.watchlist
    worker._watch_hints()
    number = listener_of(bench)
    database: Any = bench.store.database  # type: ignore[attr-defined]
    backend = database.listener.server_pid
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(%s)", [backend])
    wait_for(lambda: [worker._changed()] and database.listener is None, what="the line to end")
    assert watchlist.dead() == []
    pidfd = os.pidfd_open(os.getpid())  # gets the first number that is free
    taken = [pidfd]
    while taken[-1] < number:
        taken.append(os.dup(pidfd))
    assert number in taken
    watchlist.register(number, selectors.EVENT_READ, lambda: None)
    watchlist.unregister(number)
    for each in taken:
        os.close(each)
    worker._watch_hints()
    assert worker._changed() in (True, False) and watchlist.dead() == []
    watchlist.close()


def test_a_line_is_waited_for_from_when_it_is_made_until_it_is_closed(
    bench: Bench,
) -> None:
    watchlist = Watchlist()
    bench.store.watch_hints(lambda line: watchlist.watch(line, lambda: "news").end)
    assert not watchlist.get_map()
    number = listener_of(bench)
    assert list(watchlist.get_map()) == [number]
    bench.store.database.listener.close()  # type: ignore[attr-defined]
    assert not watchlist.get_map()
    watchlist.close()
