"""A Headway home in a scratch folder: a client in this process, a real worker in another."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.base.worker_lock import STAYS, WorkerLock
from headway.client import Client, connect
from headway.core.model import Run
from headway.jobs.request import Request
from measure import children, wait_for

HEADWAY: tuple[str, ...] = (sys.executable, "-m", "headway")


def environment(folder: Path) -> dict[str, str]:
    """The same small environment for every contender."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "USER": "bench"}


def open_client(folder: Path, store_url: str | None = None) -> Client:
    """A home in this folder whose workers come only from here."""
    home = folder / ".headway"
    home.mkdir(0o700, exist_ok=True)
    (home / "config.toml").write_text("[worker]\nautostart = false\n")
    return connect(
        home=str(home), store_url=store_url, create=True, environ=environment(folder), actor="bench"
    )


@contextmanager
def home(folder: Path, *, max_active: int) -> Iterator[Client]:
    client = open_client(folder)
    client.set_setting("scheduler.max_active", max_active)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def worker(client: Client, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A foreground worker; it may not be up yet when the block begins."""
    store = ["--store", client.context.home.store_url] if client.context.home.store_url else []
    process = subprocess.Popen(
        [*HEADWAY, "--home", client.context.home.path, *store, "work", *options],
        env={**client.context.environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def until_up(client: Client, process: subprocess.Popen[bytes]) -> int:
    """Wait until the worker has its place and its parent; the parent's pid."""
    lock = WorkerLock(client.context.home.worker_lock)
    wait_for(lambda: lock.is_held(STAYS))
    return int(wait_for(lambda: children(process.pid))[0])


def until_drained(client: Client, *, every: float = 0.02, within: float = 300.0) -> None:
    """Wait until the store says that no job is active."""
    wait_for(lambda: not _active(client), every=every, within=within)


def _active(client: Client) -> bool:
    with client.context.store.read() as tx:
        return tx.jobs.anything_active()


def submit(client: Client, count: int, *argv: str) -> list[int]:
    request = Request(argv=argv)
    return [each.job_id for each in client.submit_many([request] * count)]


def runs(client: Client, ids: list[int]) -> dict[int, Run]:
    with client.context.store.read() as tx:
        return tx.jobs.runs(ids)


def printed_instant(client: Client, job_id: int) -> float:
    """When the job itself says that it began: the output of `date +%s%N`, in seconds."""
    return int(Path(client.context.home.job(job_id), "stdout.log").read_text()) / 1e9


def refuse_failures(client: Client, ids: list[int]) -> None:
    """A figure counts only if every job did what it was to do."""
    found = runs(client, ids)
    failed = [run for run in found.values() if run.exit_code != 0]
    if failed or len(found) != len(ids):
        first = f"; the first: {failed[0]}" if failed else ""
        raise RuntimeError(
            f"of {len(ids)} jobs {len(failed)} failed, {len(ids) - len(found)} have no run{first}"
        )
