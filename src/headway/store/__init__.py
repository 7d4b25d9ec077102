"""The only package that knows SQL, and the only source of truth.

`base` is the seam, `sqlstore` the one implementation over the named queries in `sql/`, `sqlite` the
database underneath. `open_store` finds the right one for a URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.errors import InvalidInputError

if TYPE_CHECKING:
    from headway.clock import Clock
    from headway.store.base import Store


def open_store(
    url: str,
    clock: Clock,
    *,
    create: bool = False,
    unsafe_fs: bool = False,
    poll_only: bool = False,
    reading: bool = False,
) -> Store:
    """Open the store at `url` (`sqlite:///absolute/path`); `create` makes a missing file. Who is
    only `reading` makes no schema on a server, either, and finds an empty store there.

    A network file system is refused, unless `unsafe_fs` says to use it all the same. `poll_only`
    is for servers behind a pooler in transaction mode.
    """
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/"):
        from headway.store.sqlite import open_database
        from headway.store.sqlitestore import SqliteStore

        return SqliteStore(open_database(rest, create=create, unsafe_fs=unsafe_fs), clock)
    if scheme in ("postgresql", "postgres"):
        try:
            from headway.store.postgres import has_schema
            from headway.store.postgres import open_database as open_postgres
        except ImportError as error:
            raise InvalidInputError(
                f"a PostgreSQL store needs psycopg: pip install 'headway[postgres]' ({error})"
            ) from None
        from headway.store.pgstore import PostgresStore

        if reading and not has_schema(url, poll_only=poll_only):
            return open_nothing(clock)
        return PostgresStore(open_postgres(url, poll_only=poll_only), clock)
    raise InvalidInputError(
        f"store.url is {url!r}; use sqlite:///absolute/path or postgresql://host/database"
    )


def open_nothing(clock: Clock) -> Store:
    """An empty store that is nowhere, for who reads where none was made; it cannot be written."""
    from headway.store.sqlite import open_nothing as open_database
    from headway.store.sqlitestore import SqliteStore

    return SqliteStore(open_database(), clock)
