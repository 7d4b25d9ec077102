"""The short way to the server: values, errors, and what stays prepared."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headway.store.postgres import wire as pgwire
from headway.store.postgres.address import Address, Connection
from headway.store.postgres.wire import PREPARE_AFTER, Wire

ODD = ["", "a", "'", '"', "\\", "{}", ",", "null", "é\n\t", "%(x)s $1", "🙂"]


@pytest.fixture
def connection(postgres_url: str) -> Iterator[Connection]:
    with Address(postgres_url).connect() as connection:
        yield connection


def ask(wire: Wire, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
    return wire.run([(statement, parameters)])[0].rows


@pytest.mark.parametrize("value", ODD)
def test_a_text_arrives_as_it_is(connection: Connection, value: str) -> None:
    for _ in range(PREPARE_AFTER + 2):
        assert ask(connection.wire, "select %(x)s::text, %(x)s::text", x=value) == [(value, value)]


@pytest.mark.parametrize("value", [None, 0, -1, 1 << 62, True, False, 0.1, -1e300])
def test_a_number_arrives_as_it_is(connection: Connection, value: Any) -> None:
    kind = {bool: "boolean", float: "double precision"}.get(type(value), "bigint")
    assert ask(connection.wire, f"select %(x)s::{kind}", x=value) == [(value,)]


@pytest.mark.parametrize("value", [[], ODD, ["x"]])
def test_a_list_of_texts_arrives_as_it_is(connection: Connection, value: list[str]) -> None:
    assert ask(connection.wire, "select %(x)s::text[]", x=value) == [(value,)]


def test_a_list_of_numbers_arrives_as_it_is(connection: Connection) -> None:
    value = [1, -5, 1 << 40]
    assert ask(connection.wire, "select %(x)s::bigint[]", x=value) == [(value,)]


@pytest.mark.parametrize("value", ["a\0b", ["a\0b"], {"a": 1}, "\ud800"])
def test_what_cannot_be_sent_harms_nothing(connection: Connection, value: Any) -> None:
    with pytest.raises((psycopg.DataError, TypeError, UnicodeEncodeError)):
        connection.wire.run([("select 1", {}), ("select %(x)s", {"x": value})])
    assert ask(connection.wire, "select 1") == [(1,)]


def test_answers_come_in_order_and_count_what_was_changed(connection: Connection) -> None:
    found = connection.wire.run(
        [
            ("create temporary table t (a bigint)", {}),
            ("insert into t select generate_series(1, %(n)s)", {"n": 5}),
            ("update t set a = a + 1 where a > 3", {}),
            ("select max(a), count(*) from t", {}),
        ]
    )
    assert [each.changes for each in found][1:] == [5, 2, 1]
    assert [each.rows for each in found] == [[], [], [], [(6, 5)]]


def test_after_a_failure_nothing_is_done_and_nothing_is_taken_for_prepared(
    connection: Connection,
) -> None:
    wire = connection.wire
    for _ in range(PREPARE_AFTER + 3):
        wire.run([("begin", {})])
        with pytest.raises(psycopg.errors.DivisionByZero):
            wire.run([("select 1 / %(x)s", {"x": 0}), ("select 7 + %(x)s", {"x": 1})])
        wire.run([("rollback", {})])
    for _ in range(PREPARE_AFTER + 3):
        assert ask(wire, "select 7 + %(x)s", x=1) == [(8,)]


def test_more_than_any_buffer_holds_goes_both_ways(connection: Connection) -> None:
    """A server that cannot get rid of its answers takes no more questions."""
    text = "x" * 100_000
    found = connection.wire.run(
        [("select %(x)s::text, %(n)s::bigint", {"x": text, "n": n}) for n in range(300)]
    )
    assert [each.rows for each in found] == [[(text, n)] for n in range(300)]


def test_a_lost_line_is_an_operational_error(connection: Connection, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as operator:
        operator.execute("select pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        ask(connection.wire, "select 1")
    assert connection.closed


def test_answers_to_what_was_started_come_with_those_to_the_next(
    connection: Connection,
) -> None:
    wire = connection.wire
    for _ in range(4):  # also when it has been prepared
        wire.start([("select 1 + %(x)s", {"x": 1})])
        wire.start([("select 2 + %(x)s", {"x": 1})])
        found = wire.run([("select 3 + %(x)s", {"x": 1})])
        assert [each.rows for each in found] == [[(2,)], [(3,)], [(4,)]]
    wire.start([("select 1 / %(x)s", {"x": 0})])
    with pytest.raises(psycopg.errors.DivisionByZero):
        wire.run([("select 3 + %(x)s", {"x": 1})])
    assert ask(wire, "select 7 + %(x)s", x=1) == [(8,)]


def test_no_more_stays_prepared_than_a_server_can_bear(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgwire, "MOST_PREPARED", 10)
    wire = connection.wire
    kept = "select count(*) from pg_prepared_statements"
    counts = []
    for number in range(30):
        for _ in range(PREPARE_AFTER + 1):
            assert ask(wire, f"select {number} + %(x)s", x=1) == [(number + 1,)]
        counts.append(connection.execute(kept).fetchall()[0][0])
    assert max(counts) == 10 and counts.count(1) == 3
    wire.run([("begin", {})])
    for number in range(30):
        for _ in range(PREPARE_AFTER + 1):
            assert ask(wire, f"select {number} - %(x)s", x=1) == [(number - 1,)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        ask(wire, "select 1 / %(x)s", x=0)
    wire.run([("rollback", {})])
    assert ask(wire, "select 3 + %(x)s", x=1) == [(4,)]
    assert connection.execute(kept).fetchall()[0][0] < 10
