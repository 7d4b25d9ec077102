"""Jobs that are part of the caller's own transaction: there with its commit, or never."""

import sqlite3
from collections.abc import Callable

import psycopg
import pytest
from shop import Shop

from headway.base.errors import InvalidInputError
from headway.core.states import Status

MakeShop = Callable[..., Shop]
SAY = "@app.task\ndef say(word: str): note(word)\n"


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    return make_shop(SAY)


def count(shop: Shop) -> int:
    with shop.bench.store.read() as tx:
        return sum(tx.jobs.count_active().values())


@pytest.fixture
def connection(postgres_url: str) -> psycopg.Connection:  # type: ignore[type-arg]
    return psycopg.connect(postgres_url)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
class TestOnPostgres:
    def test_a_commit_makes_them_visible(
        self, shop: Shop, connection: psycopg.Connection[tuple[int]]
    ) -> None:
        connection.execute("create table orders (number int)")
        connection.commit()
        connection.execute("insert into orders values (1)")
        one, two = shop.module.app.submit_on(connection, shop.say.call("one"), shop.say.call("two"))
        assert count(shop) == 0, "not before the commit"
        connection.commit()
        jobs = shop.ended(one, two)
        assert {job.status for job in jobs} == {Status.SUCCEEDED}
        assert sorted(shop.ledger()) == ["one", "two"]
        connection.close()

    def test_a_rollback_leaves_nothing(
        self, shop: Shop, connection: psycopg.Connection[tuple[int]]
    ) -> None:
        shop.module.app.submit_on(connection, shop.say.call("never"))
        connection.rollback()
        assert count(shop) == 0
        shop.ended(shop.say.submit("next"))
        assert shop.ledger() == ["next"]
        connection.close()

    def test_a_mistake_is_named_before_anything_is_written(
        self, shop: Shop, connection: psycopg.Connection[tuple[int]]
    ) -> None:
        with pytest.raises(InvalidInputError, match="argument word is an int"):
            shop.module.app.submit_on(connection, shop.say.call(1))
        with pytest.raises(InvalidInputError, match=r"needs a psycopg\.Connection, not Connection"):
            shop.module.app.submit_on(sqlite3.connect(":memory:"), shop.say.call("x"))
        connection.autocommit = True
        with pytest.raises(InvalidInputError, match="commits by itself"):
            shop.module.app.submit_on(connection, shop.say.call("x"))
        with connection.transaction():
            shop.module.app.submit_on(connection, shop.say.call("x"))
        assert count(shop) == 1
        connection.close()
        with pytest.raises(InvalidInputError, match="this one is closed"):
            shop.module.app.submit_on(connection, shop.say.call("x"))

    def test_a_transaction_that_has_failed_takes_no_job(
        self, shop: Shop, connection: psycopg.Connection[tuple[int]]
    ) -> None:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("select 1 / 0")
        with pytest.raises(InvalidInputError, match="has failed; roll it back"):
            shop.module.app.submit_on(connection, shop.say.call("x"))
        connection.rollback()
        shop.module.app.submit_on(connection, shop.say.call("x"))
        connection.commit()
        assert count(shop) == 1
        connection.close()


@pytest.mark.parametrize("store_url", [None], ids=["sqlite"])
def test_sqlite_says_that_it_cannot(shop: Shop) -> None:
    with pytest.raises(InvalidInputError) as caught:
        shop.module.app.submit_on(sqlite3.connect(":memory:"), shop.say.call("x"))
    assert "PostgreSQL" in str(caught.value)
    assert count(shop) == 0
