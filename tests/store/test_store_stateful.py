"""A store always agrees with a small model of it, whatever happened: 150 stories of 30 acts.

A server is told fewer of them: what decides is the same, and each query is a journey.
`HEADWAY_EXAMPLES=5000 make test ARGS=tests/store/test_store_stateful.py` tells as many others.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from psycopg import sql
from sling_stories import SlingStories as Stories

from headway.store import open_store
from headway.store.store import Store
from headway.store.tables.claims import ClaimsTable
from headway.testing.clock import FakeClock
from ready import open_ready

EXAMPLES = os.environ.get("HEADWAY_EXAMPLES")
STEPS = 30


def tell(
    stories: Callable[[], Stories], *, phases: Sequence[Phase] = tuple(Phase), examples: int = 150
) -> None:
    """The same stories each time, unless HEADWAY_EXAMPLES asks for a number of others."""
    run_state_machine_as_test(
        stories,
        settings=settings(
            max_examples=int(EXAMPLES or examples),
            phases=phases,
            stateful_step_count=STEPS,
            derandomize=EXAMPLES is None,
            database=None,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def open_file(folder: Path, clock: FakeClock) -> Store:
    store = open_ready(f"sqlite://{folder}/headway.db", clock)
    # What is checked here needs no durability, and the examples are many.
    store.database.execute("pragma synchronous = off", {})  # type: ignore[attr-defined]
    return store


@pytest.mark.long
def test_a_store_in_a_file_does_what_the_model_says() -> None:
    tell(lambda: Stories(open_file))


@pytest.mark.long
def test_a_store_on_a_server_does_what_the_model_says(postgres_url: str) -> None:
    def open_there(folder: Path, clock: FakeClock) -> Store:
        store = open_store(postgres_url, clock)
        store.database.execute("set synchronous_commit = off", {})  # type: ignore[attr-defined]
        return store

    def another() -> Stories:
        empty(postgres_url)
        return Stories(open_there)

    tell(another, examples=40)


def empty(url: str) -> None:
    """Bring a schema back to its beginning; quicker than making another."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "select relname, exists (select 1 from pg_trigger where tgrelid = pg_class.oid "
            "                        and not tgisinternal) "
            "from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r' "
            "and relname not in ('marks', 'schema_version')"
        ).fetchall()
        for name, guarded in tables:
            around = ("disable", "enable") if guarded else ()
            statements = [f"alter table {{}} {verb} trigger user" for verb in around]
            statements.insert(1, "delete from {}")
            for statement in statements:
                connection.execute(sql.SQL(statement).format(sql.Identifier(name)))
        connection.execute(
            "update marks set value = case when name like 'next_%_id' then 1"
            " when name = 'webhook_cursor' then -1 else 0 end"
        )


class Unfenced(ClaimsTable):
    """Claims that take any word about a job, whoever says it."""

    def finish(self, finishes: Any) -> list[bool]:
        claims = [(each, self.of_job(each.job_id)) for each in finishes]
        return super().finish(
            [each._replace(token=claim.token) if claim else each for each, claim in claims]
        )


class UnfencedStore(Store):
    @contextmanager
    def write(self) -> Iterator[Any]:
        with super().write() as tx:
            vars(tx)["claims"] = Unfenced(tx._db)
            yield tx


def test_a_store_that_heeds_a_dead_claim_is_found_out() -> None:
    def open_broken(folder: Path, clock: FakeClock) -> Store:
        store = open_file(folder, clock)
        store.__class__ = UnfencedStore
        return store

    with pytest.raises(AssertionError) as found:
        # The stories of this seed come to a dead claim soon, those of most others after hundreds.
        tell(seed(4)(lambda: Stories(open_broken)), phases=(Phase.generate,), examples=1500)
    assert "stale_token_speaks" in [entry.name for entry in found.traceback]
