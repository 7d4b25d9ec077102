"""The numbers of events are the order of commits: who adds one holds the writers' lock until then.

So who has read up to a number has read all that is before it, and none comes there later. Listeners
and couriers rely on it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
import pytest
from others import another, words
from stocked import Opener, job

from headway.base.errors import StoreBusyError
from headway.store import patience
from headway.store.new_jobs import Alike, Event, Model
from headway.store.postgres import session as pgsession
from headway.store.store import Store
from headway.store.transaction import WriteTx

TOLD = [Event("set", None)]
EACH = 60  # transactions of each writer


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for its turn."""
    monkeypatch.setattr(pgsession, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(patience, "sleep", lambda seconds: None)


@contextmanager
def callers_own(store: Store, url: str) -> Iterator[WriteTx]:
    """A transaction of a user's, as `submit_on` writes in it."""
    with psycopg.connect(url) as connection:
        connection.execute("set local lock_timeout = 50")
        with store.join(connection) as tx:
            yield tx


def of_store(store: Store, url: str) -> Any:
    return store.write()


def soon(store: Store, url: str) -> Any:
    return store.write_soon()


def one_alike(store: Store, url: str) -> Any:
    store.add_alike([Alike(Model(job(1)), {0: {}})])
    return nullcontext()


Way = Callable[[Store, str], Any]


@pytest.mark.bulk
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("second", [of_store, soon, one_alike])
@pytest.mark.parametrize("first", [of_store, soon])
def test_nobody_adds_an_event_while_another_has_added_one_and_not_committed(
    store: Store, opener: Opener, url: str, first: Way, second: Way
) -> None:
    check_that_second_waits(store, opener(), url, first, second)


@pytest.mark.bulk
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (of_store, callers_own),
        (callers_own, of_store),
        (callers_own, soon),
        (callers_own, one_alike),
        (callers_own, callers_own),
    ],
)
def test_nor_in_a_transaction_of_a_users(
    store: Store, opener: Opener, url: str, first: Way, second: Way
) -> None:
    check_that_second_waits(store, opener(), url, first, second)


def check_that_second_waits(store: Store, other: Store, url: str, first: Way, second: Way) -> None:
    one_alike(other, url)  # it knows the place of the next, and need not ask
    with first(store, url) as tx:
        tx.events.add(TOLD, actor="first")
        with pytest.raises(StoreBusyError), second(other, url) as theirs:
            theirs.events.add(TOLD, actor="second")
        with other.read() as seen:
            assert [each.actor for each in seen.events.since(0, 10)] == [""]
    with other.read() as seen:
        assert [each.actor for each in seen.events.since(0, 10)] == ["", "first"]


WRITER = """
import psycopg
from headway.store.new_jobs import Alike, Event, Model

store, name, number = opened(), sys.argv[2], int(sys.argv[3])
line = psycopg.connect(sys.argv[1]) if sys.argv[1].startswith("postgres") else None
one = [Alike(Model(job(1)), {0: {}})]

def tell_slowly(tx):
    tx.events.add(told, actor=name)
    for _ in range(5):  # others have time to come between the number and the commit
        tx.events.last()

sys.stdin.readline()
for turn in range(number):
    told = [Event("set", None, {"turn": turn})] * (1 + turn % 3)
    if turn % 3 == 0:
        store.add_alike(one)
    elif turn % 3 == 1 and line is not None:
        with line.transaction(), store.join(line) as tx:
            tell_slowly(tx)
    else:
        with store.write() as tx:
            tell_slowly(tx)
print("done")
"""


@pytest.mark.bulk
def test_one_who_polls_never_sees_a_smaller_number_come_after_a_larger_one(
    store: Store, url: str
) -> None:
    writers = [another(WRITER, url, name, EACH) for name in ("one", "two", "three")]
    for each in writers:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    polled: list[int] = []
    written = False
    while not written:
        written = all(each.poll() is not None for each in writers)
        with store.read() as tx:
            polled += [each.seq for each in tx.events.since(polled[-1] if polled else 0, 1000)]
            assert polled == [each.seq for each in tx.events.since(0, 10_000)], "one came late"
    assert all(words(each) == ["done"] for each in writers)
    assert polled == sorted(set(polled)) and len(polled) > 3 * EACH
