"""The stores that can be tortured: a file in the home, or a schema of a server started for it."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def store_url(store: str) -> Iterator[str | None]:
    """None: the file."""
    if store == "sqlite":
        yield None
        return
    from postgres import fresh_schema, server

    with server() as url, fresh_schema(url) as schema:
        yield schema
