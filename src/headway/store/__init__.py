"""The only package that knows SQL, and the only source of truth.

A `Store` gives transactions. A transaction has nouns (`tables`, and `bulk` for many at once) over
the named queries in `sql/`; `sqlite` and `postgres` are the databases underneath. `open_store`
finds the right one for a URL. No rule of the scheduler may enter, and nothing but base and core is
imported. Inside: users rely on none of its modules, and on no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.base.errors import InvalidInputError

if TYPE_CHECKING:
    from headway.base.clock import Clock
    from headway.store.store import Store


def open_store(
    url: str,
    clock: Clock,
    *,
    create: bool = False,
    unsafe_fs: bool = False,
    poll_only: bool = False,
    reading: bool = False,
) -> Store:
    """Open the store at `url` (`sqlite:///absolute/path`); `create` makes a missing file. A
    process that is only `reading` makes no schema on a server, and finds an empty store there.

    A network file system is refused, unless `unsafe_fs` says to use it all the same. `poll_only`
    is for servers behind a pooler in transaction mode.
    """
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/"):
        from headway.store.sqlite.database import open_database
        from headway.store.sqlite.store import SqliteStore

        return SqliteStore(open_database(rest, create=create, unsafe_fs=unsafe_fs), clock)
    if scheme in ("postgresql", "postgres"):
        try:
            from headway.store.postgres.database import has_schema
            from headway.store.postgres.database import open_database as open_postgres
        except ImportError as error:
            raise InvalidInputError(
                f"a PostgreSQL store needs psycopg: pip install 'headway[postgres]' ({error})"
            ) from None
        from headway.store.postgres.store import PostgresStore

        if reading and not has_schema(url, poll_only=poll_only):
            return open_nothing(clock)
        return PostgresStore(open_postgres(url, poll_only=poll_only), clock)
    raise InvalidInputError(
        f"store.url is {url!r}; use sqlite:///absolute/path or postgresql://host/database"
    )


def open_nothing(clock: Clock) -> Store:
    """An empty store that is nowhere, for reads where none was made. It cannot be written."""
    from headway.store.sqlite.database import open_nothing as open_database
    from headway.store.sqlite.store import SqliteStore

    return SqliteStore(open_database(), clock)
