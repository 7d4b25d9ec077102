"""`headway doctor`: check the host, the folder and the store; every finding names the next step.

It looks and changes nothing, and it works when little else does: a damaged store is a finding.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click

from headway.cli.init import OLDEST_KERNEL, kernel_version
from headway.cli.render import emit, fields, paint
from headway.cli.scope import Scope
from headway.clock import SECOND, SystemClock
from headway.config import load_config
from headway.errors import HeadwayError
from headway.home import Home, find_home, refuse_unsafe
from headway.units import show_size

LOW_SPACE = 100 << 20
LARGE_WAL = 64 << 20
STALE_AFTER = 7 * 86_400
GREEN, YELLOW, RED = "green", "yellow", "red"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    level: str
    detail: str
    next_step: str | None = None


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def doctor(scope: Scope, as_json: bool) -> int:
    """Check the host, the folder and the store.

    Exit 1 if something is red.
    """
    findings = list(examine(scope))
    red = any(each.level == RED for each in findings)
    if as_json:
        emit({"ok": not red, "findings": [_document(each) for each in findings]})
        return int(red)
    marks = {GREEN: "ok", YELLOW: "warn", RED: "BAD"}
    room = max(len(each.check) for each in findings)
    for each in findings:
        mark = paint(marks[each.level].ljust(4), each.level)
        told = each.detail + (f" -> {each.next_step}" if each.next_step else "")
        lines = fields([(each.check.ljust(room), told)], indent=" " * 6)
        print(f"{mark}  {lines[0].lstrip()}")
        for line in lines[1:]:
            print(line)
    return int(red)


def examine(scope: Scope) -> Iterator[Finding]:
    yield _system()
    yield _sqlite()
    yield _cgroup()
    home, exists = find_home(scope.home, os.environ, os.getcwd())
    if not exists:
        yield Finding("home", YELLOW, f"there is no {home.path}", "headway init")
        return
    yield from _folder(home)
    try:
        config = load_config(home)
    except HeadwayError as error:
        yield Finding("config", RED, str(error), "correct the file")
        return
    yield Finding("config", GREEN, "config.toml is sound")
    url = scope.store or os.environ.get("HEADWAY_STORE") or config["store.url"]
    on_server = url.startswith(("postgresql://", "postgres://"))
    about_store = list(_server(url) if on_server else _store(home, url))
    yield from about_store
    if all(each.level != RED for each in about_store):
        yield from _scheduler(scope, home)


def _system() -> Finding:
    system = os.uname()
    told = f"{system.sysname} {system.release}"
    if system.sysname != "Linux" or kernel_version(system.release) < OLDEST_KERNEL:
        return Finding("system", RED, told, "use Linux 5.4 or newer")
    return Finding("system", GREEN, told)


def _sqlite() -> Finding:
    import apsw

    from headway.store.sqlite import OLDEST_SAFE

    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_SAFE:
        return Finding("sqlite", RED, f"{version} can damage a store", "pip install -U apsw")
    return Finding("sqlite", GREEN, version)


def _cgroup() -> Finding:
    from headway.supervise import cgroup

    base = cgroup.find_base()
    if base is not None:
        trial = cgroup.path_for(base, f"doctor-{os.getpid()}")
        if cgroup.make(trial):
            cgroup.remove(trial)
            return Finding("cgroup", GREEN, f"usable in {base}")
    return Finding(
        "cgroup",
        YELLOW,
        "not usable; processes of a job are found by sweeping /proc instead",
        "nothing to do, or run under a delegated cgroup (systemd-run --user --scope)",
    )


def _folder(home: Home) -> Iterator[Finding]:
    try:
        refuse_unsafe(home.path)
        mode = stat.S_IMODE(os.stat(home.path).st_mode)
        if mode & 0o077:
            yield Finding(
                "home", YELLOW, f"{home.path} has mode {mode:o}", f"chmod 700 {home.path}"
            )
        else:
            yield Finding("home", GREEN, home.path)
    except HeadwayError as error:
        yield Finding("home", RED, str(error), "see the message")
    from headway.store.sqlite import file_system, refuse_network_file_system

    try:
        refuse_network_file_system(home.path, file_system(home.path))
        yield Finding("file system", GREEN, file_system(home.path) or "a local disk")
    except HeadwayError as error:
        yield Finding("file system", RED, str(error), "headway --home DIR on a local disk")
    space = os.statvfs(home.path)
    free = space.f_bavail * space.f_frsize
    if free < LOW_SPACE:
        yield Finding("space", YELLOW, f"{show_size(free)} free", "free some space")
    else:
        yield Finding("space", GREEN, f"{show_size(free)} free")


def _server(url: str) -> Iterator[Finding]:
    from headway.store import open_store
    from headway.store.queries import schema_version

    try:
        open_store(url, SystemClock()).close()
    except HeadwayError as error:
        yield Finding("store", RED, str(error), "start the server, or correct the URL")
        return
    yield Finding("store", GREEN, f"the server answers, schema {schema_version()}")


def _store(home: Home, url: str) -> Iterator[Finding]:
    from headway.store.queries import schema_version
    from headway.store.sqlite import open_database

    path = url.removeprefix("sqlite://") if url else home.database
    try:
        database = open_database(path, create=False)
    except HeadwayError as error:
        yield Finding("store", RED, str(error), "restore a backup, or move the file away")
        return
    try:
        problems = database.quick_check()
        wal = database.wal_bytes()
    except HeadwayError as error:
        yield Finding("store", RED, str(error), "restore a backup")
        return
    finally:
        with suppress(Exception):
            database.close()
    if problems:
        yield Finding("store", RED, "; ".join(problems[:3]), "restore a backup")
    else:
        yield Finding("store", GREEN, f"{path}, schema {schema_version()}, sound")
    if wal > LARGE_WAL:
        yield Finding("wal", YELLOW, f"the log has {show_size(wal)}", "end long-running readers")
    else:
        yield Finding("wal", GREEN, show_size(wal))


def _scheduler(scope: Scope, home: Home) -> Iterator[Finding]:
    """What only a store that opens can tell."""
    from headway.views import scheduler_status

    try:
        client = scope.connect()
        told = scheduler_status(client)
        with client.store.read() as tx:
            needed = tx.env_digests_in_use(tx.now() - STALE_AFTER * SECOND)
    except HeadwayError as error:
        yield Finding("scheduler", RED, str(error), "see store")
        return
    checks: tuple[Callable[[dict[str, Any]], Finding], ...] = (_worker, _pause, _breaker)
    for check in checks:
        yield check(told)
    yield _environments(home, needed)
    client.close()


def _worker(told: dict[str, Any]) -> Finding:
    if told["worker"]:
        return Finding("worker", GREEN, "there")
    if told["queued_total"] or told["active"]:
        return Finding("worker", YELLOW, "none, but there are active jobs", "headway work")
    return Finding("worker", GREEN, "none, and none is needed")


def _pause(told: dict[str, Any]) -> Finding:
    if not told["paused"]:
        return Finding("pause", GREEN, "not paused")
    reason = f": {told['paused_reason']}" if told["paused_reason"] else ""
    return Finding(
        "pause", YELLOW, f"paused by {told['paused_by']}{reason}", "headway scheduler resume"
    )


def _breaker(told: dict[str, Any]) -> Finding:
    breaker = told["breaker"]
    if breaker is None:
        return Finding("launching", GREEN, "no failures")
    return Finding(
        "launching",
        YELLOW,
        f"{breaker['kind']}: {breaker['cause']} ({breaker['failures']} failures)",
        "free what is used up, then headway scheduler reset",
    )


def _environments(home: Home, needed: set[str]) -> Finding:
    horizon = SystemClock().now() / SECOND - STALE_AFTER
    stale = 0
    with suppress(FileNotFoundError), os.scandir(home.environments) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                old = entry.stat(follow_symlinks=False).st_mtime < horizon
                stale += old and entry.name not in needed
    if stale:
        return Finding("environments", YELLOW, f"{stale} are stale", "the next worker removes them")
    return Finding("environments", GREEN, "none is stale")


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "level": finding.level,
        "detail": finding.detail,
        "next": finding.next_step,
    }
