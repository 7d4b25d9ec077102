"""By what every store tells that nothing is to be looked at but calls."""

import select
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from called import CLAIMANT, UndoneError, add_call, end_of, taken
from recording import verbs
from stocked import HOST, SECOND, START, Opener, add, finish_of, job, parking, start

from harness import wait_for
from headway.base.errors import InvalidInputError
from headway.core.model import (
    FUNCTIONS,
    Job,
    Lock,
    Stage,
)
from headway.store import open_store
from headway.store.new_jobs import Alike, Model
from headway.store.records import Lending
from headway.store.store import Store
from headway.testing.clock import FakeClock
from postgres import fresh_schema

# -- who else wrote -----------------------------------------------------------------------------


def others_wrote(store: Any) -> bool:
    with store.write() as tx:
        return bool(tx.others_wrote())


@verbs("others_wrote")
def test_nobody_else_has_written_until_another_connection_commits(
    store: Store, opener: Opener
) -> None:
    other = opener()
    assert others_wrote(store), "before anyone has asked"
    assert not others_wrote(store)
    with store.write() as tx:
        add(tx)
        assert not tx.others_wrote()
    with suppress(UndoneError), store.write() as tx:
        add(tx)
        raise UndoneError
    with suppress(UndoneError), store.write() as tx:
        assert not tx.others_wrote()
        raise UndoneError
    assert not others_wrote(store)
    with other.read() as tx:
        assert len(tx.jobs.active()) == 1
    with suppress(UndoneError), other.write() as tx:
        add(tx)
        raise UndoneError
    assert not others_wrote(store), "what was undone was never there"
    with other.write() as tx:
        add(tx)
    assert others_wrote(store)
    assert not others_wrote(store)


@verbs("others_wrote")
def test_a_commit_of_our_own_does_not_hide_that_of_another(store: Store, opener: Opener) -> None:
    other = opener()
    others_wrote(store)
    with other.write() as tx:
        add(tx)
    with store.write() as tx:
        add(tx)
    assert others_wrote(store)


@verbs("others_wrote")
def test_what_was_asked_in_vain_was_asked(store: Store, opener: Opener) -> None:
    other = opener()
    others_wrote(store)
    with other.write() as tx:
        add(tx)
    with suppress(UndoneError), store.write() as tx:
        assert tx.others_wrote()
        raise UndoneError
    assert not others_wrote(store)


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@verbs("others_wrote", "join")
def test_in_a_transaction_of_the_callers_own_nothing_is_known(store: Store, url: str) -> None:
    import psycopg

    others_wrote(store)
    with psycopg.connect(url) as connection, store.join(connection) as tx:
        assert tx.others_wrote() and tx.others_wrote()
    assert others_wrote(store), "and it is another's for everyone else"


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@verbs("join")
def test_a_connection_that_finds_other_tables_is_refused(
    store: Store, postgres_server: str
) -> None:
    """Or the job would be one of another store, and nobody would be told."""
    import psycopg

    with fresh_schema(postgres_server) as elsewhere:
        open_store(elsewhere, FakeClock(START), create=True).close()
        for url in (elsewhere, postgres_server):
            with (
                psycopg.connect(url) as connection,
                pytest.raises(InvalidInputError, match="search_path"),
                store.join(connection),
            ):
                raise AssertionError("joined")
            with psycopg.connect(elsewhere) as connection:
                assert connection.execute("select 1 from jobs").fetchall() == []


# -- whether anyone waits -----------------------------------------------------------------------


@verbs("calls.anyone_awaits", "calls.finish")
def test_someone_waits_for_another_until_that_one_has_ended(store: Store) -> None:
    with store.write() as tx:
        assert not tx.calls.anyone_awaits()
        first = add_call(tx)
        waiting = add(tx, after=(first.id,))
        assert tx.calls.anyone_awaits()
    with store.read() as tx:
        assert tx.calls.anyone_awaits()
    with store.write() as tx:
        calls = taken([first])
        tx.calls.claim(CLAIMANT, calls)
        assert tx.calls.finish([end_of(calls[0])], actor="worker", awaited=True)
        assert tx.jobs.by_id([waiting.id])[waiting.id].stage is Stage.WOKEN
    with store.read() as tx:
        assert not tx.calls.anyone_awaits()


def pause_nothing(tx: Any, call: Job) -> None:
    """Nothing at all beside calls waiting for capacity and calls that run."""
    start(tx, call)
    add_call(tx)


def waiting_for_capacity(tx: Any, call: Job) -> None:
    add(tx, stage=Stage.READY)


def waiting_for_capacity_of_ours(tx: Any, call: Job) -> None:
    add(tx, stage=Stage.READY, queue=HOST.id)


def woken(tx: Any, call: Job) -> None:
    add_call(tx, stage=Stage.WOKEN)


def cancelling(tx: Any, call: Job) -> None:
    start(tx, call)
    tx.jobs.request_cancel(call.id, "ann")


def unproven(tx: Any, call: Job) -> None:
    tx.claims.finish([finish_of(start(tx, call), tree_gone=False)])


def lending(tx: Any, call: Job) -> None:
    start(tx, call)
    tx.claims.lend("lending", Lending(call.id, 99, START + 99))


def limited(tx: Any, call: Job) -> None:
    tx.waits.park([parking(add(tx, resources=("gpu",)), "limit:resource:gpu")])


def reserved(tx: Any, call: Job) -> None:
    from stocked import reservation

    tx.reservations.add(reservation(1))


NOT_ALONE = [
    *(
        waiting_for_capacity,
        waiting_for_capacity_of_ours,
        woken,
        cancelling,
        unproven,
        lending,
        limited,
        reserved,
    ),
]


@verbs("calls.are_alone")
def test_calls_are_alone_beside_those_who_lie_elsewhere(store: Store) -> None:
    with store.write() as tx:
        pause_nothing(tx, add_call(tx))
        add(tx, stage=Stage.READY, queue="another-host")
        tx.waits.park([parking(add(tx, locks=(Lock("k"),)), "lock:k")])
        tx.waits.park([parking(add(tx, after=(1,)), "chain:1", wake_at=START + SECOND)])
    for begin in (store.read, store.write):
        with begin() as tx:
            assert tx.calls.are_alone(["", HOST.id])


@pytest.mark.parametrize("act", NOT_ALONE)
@verbs("calls.are_alone")
def test_calls_are_not_alone_if_anything_else_is_to_be_done(
    store: Store, act: Callable[[Any, Job], None]
) -> None:
    with store.write() as tx:
        call = add_call(tx)
        assert tx.calls.are_alone(["", HOST.id])
        act(tx, call)
        assert not tx.calls.are_alone(["", HOST.id]), "also in the transaction that did it"
    for begin in (store.read, store.write):
        with begin() as tx:
            assert not tx.calls.are_alone(["", HOST.id])


def hears(store: Store) -> bool:
    """Whether somebody else committed, as soon as a server tells of anything: who asks before it
    does learns only that somebody did."""
    hints = store.hints()
    if hints is not None:
        select.select([hints], [], [], 10)
    return store.changed()


@pytest.mark.bulk
@verbs("undisturbed", "changed", "others_wrote")
def test_a_server_tells_when_undisturbed(store: Store, opener: Opener) -> None:
    mine, theirs = store, opener()
    plain_call = Alike(Model(job(0, type="function", queue=FUNCTIONS, stage=Stage.READY)), {0: {}})
    command = Alike(Model(job(0)), {0: {}})
    mine.hints()
    theirs.add_alike([plain_call])  # the first of a client may take the way that is there for all
    mine.changed()
    with mine.write() as tx:
        tx.others_wrote()
        tx.settings.set_mark("log_bytes", 1)
    for kind, is_call in ((plain_call, True), (command, False), (plain_call, True)):
        theirs.add_alike([kind])
        wait_for(lambda: hears(mine), what="the word of it")
        assert mine.undisturbed() == (is_call and mine.shared)
        with mine.write() as tx:
            assert tx.others_wrote() == (not is_call or not mine.shared)
            tx.settings.set_mark("log_bytes", 2)
