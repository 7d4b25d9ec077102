"""What is in a store: the database itself, whether its rows fit together, and the job folders."""

import os
from collections.abc import Iterator

from headway.admin.doctor.finding import (
    GREEN,
    RED,
    RESTORE,
    YELLOW,
    Finding,
    OpenedHome,
    StoreCheck,
    changed_at,
    entries,
    folder_size,
    job_ids,
    size_of,
)
from headway.admin.doctor.jobsfile import has_jobs_file
from headway.admin.doctor.webhooks import webhooks
from headway.admin.doctor.worktrees import worktrees
from headway.base.clock import SECOND
from headway.base.epoch import shown_epoch
from headway.base.errors import HeadwayError
from headway.base.host import known_host, known_host_id
from headway.base.units import show_duration, show_instant, show_size
from headway.core.groups import shown_group
from headway.core.model import Claim, Wait, WaitKind, shown
from headway.core.reservations import is_expired
from headway.core.states import Status
from headway.core.wait_words import how_to_import
from headway.jobs.copied_claims import copied
from headway.jobs.run_trouble import hindrance
from headway.jobs.settings import unusable_settings
from headway.jobs.views.hosts import claims_elsewhere
from headway.store import queries
from headway.store.inspect import INVARIANTS, inspect

LARGE_WAL = 64 << 20
STALE_AFTER = 7 * 86_400 * SECOND
CLOCK_OFF, CLOCK_WRONG = 2 * SECOND, 60 * SECOND
OLDEST_SERVER = 140_000


def _server(place: OpenedHome) -> Iterator[Finding]:
    if place.path is not None:
        return
    from headway.store.postgres.address import Address
    from headway.store.postgres.database import driver_version

    number = place.store.server_version()
    detail = f"PostgreSQL {number // 10_000}.{number % 10_000}, psycopg {driver_version()}"
    if number < OLDEST_SERVER:
        yield Finding("server", RED, detail, "use PostgreSQL 14 or newer")
    else:
        yield Finding("server", GREEN, f"{detail}, {Address(place.url)}")


def _store(place: OpenedHome) -> Iterator[Finding]:
    """First of all whether it can be read, then whether its pages and indexes are sound."""
    problems = _damage(place)
    if problems:
        yield Finding("store", RED, "; ".join(problems[:3]), RESTORE)
    elif place.path is None:
        yield Finding("store", GREEN, "the server answers")
    else:
        yield Finding("store", GREEN, f"{place.path} is sound, SQLite says")


def _damage(place: OpenedHome) -> list[str]:
    """What SQLite finds; looked at once more if the file came into use during the first look."""
    log = f"{place.path}-wal"
    in_use = os.path.exists(log)
    try:
        problems = place.store.damage()
    except HeadwayError as error:
        problems = [str(error)]
    if not problems or in_use or not os.path.exists(log):
        return problems
    again = inspect(place.url, place.clock)
    try:
        return again.damage()
    finally:
        again.close()


def _schema(place: OpenedHome) -> Iterator[Finding]:
    number, own = place.store.schema(), queries.schema_version()
    if number > own:
        detail = f"{number}, which is newer than this Headway knows ({own})"
        yield Finding("schema", RED, detail, "upgrade Headway")
    elif number == 0 and place.path is not None:
        yield Finding("schema", RED, "this is no store of Headway", RESTORE)
    elif number < own:
        detail = f"{number}, older than this Headway's {own}"
        yield Finding("schema", YELLOW, detail, "nothing to do: the next command migrates it")
    elif missing := place.store.missing_objects():
        detail = f"{number}, but without {', '.join(missing[:5])}"
        anew = "headway restore FILE --force" if place.path else "restore it into an empty database"
        yield Finding("schema", RED, detail, f"headway backup FILE, then {anew}")
    else:
        yield Finding("schema", GREEN, str(number))


def _wal(place: OpenedHome) -> Iterator[Finding]:
    if place.path is None:
        return
    size = size_of(f"{place.path}-wal")
    if size > LARGE_WAL:
        detail = f"the log has {show_size(size)}"
        yield Finding("wal", YELLOW, detail, "end commands that have been reading for long")
    else:
        yield Finding("wal", GREEN, show_size(size))


def _integrity(place: OpenedHome) -> Iterator[Finding]:
    """What the database cannot know: that the rows fit together."""
    broken = place.store.broken()
    for name, ids in broken.items():
        jobs = ", ".join(shown(each) for each in ids)
        yield Finding("integrity", RED, f"{jobs}: {INVARIANTS[name]}", f"{RESTORE}; report it")
    with place.store.store.read() as tx:
        tx.jobs.active()
        unreadable = tx.unreadable()
    for job_id, cause in sorted(unreadable.items())[:5]:
        detail = f"{shown(job_id)} cannot be read: {cause}"
        yield Finding("integrity", RED, detail, f"{RESTORE}; else it fails when its turn comes")
    if not broken and not unreadable:
        yield Finding("integrity", GREEN, "all rows fit together")


def _clock(place: OpenedHome) -> Iterator[Finding]:
    before = place.clock.now()
    now = place.store.now()
    off = 0 if place.path else now - (before + place.clock.now()) // 2
    if abs(off) > CLOCK_OFF:
        direction = "behind" if off > 0 else "ahead of"
        detail = f"{show_duration(abs(off))} {direction} the server's"
        yield Finding("clock", _how_wrong(off), detail, "set the clock: timedatectl, chronyc")
    newest = place.store.newest_event()
    early = newest - now if newest is not None else 0
    if early > CLOCK_OFF:
        detail = f"{show_duration(early)} behind the newest event of the store"
        yield Finding("clock", _how_wrong(early), detail, "set the clock, or wait until it passed")
    if abs(off) <= CLOCK_OFF and early <= CLOCK_OFF:
        yield Finding("clock", GREEN, "agrees with the store")


def _events(place: OpenedHome) -> Iterator[Finding]:
    with place.store.store.read() as tx:
        newest, epoch = tx.events.last(), shown_epoch(tx.settings.marks())
    if epoch is None:
        detail = "their numbers have no epoch, so nobody can see that a restore set them back"
        yield Finding("events", RED, detail, RESTORE)
    else:
        yield Finding("events", GREEN, f"the newest is {newest}, in epoch {epoch}")


def _how_wrong(micros: int) -> str:
    return RED if abs(micros) > CLOCK_WRONG else YELLOW


def _folders(place: OpenedHome) -> Iterator[Finding]:
    """Folders without a job, and jobs without a folder."""
    ids = sorted(job_ids(place.home))
    known: set[int] = set()
    for first in range(0, len(ids), 1000):
        known |= place.store.known(ids[first : first + 1000])
    orphans = [each for each in ids if each not in known]
    if orphans:
        folders = [place.home.job(each) for each in orphans]
        oldest = show_instant(min(changed_at(each) for each in folders))
        size = show_size(sum(folder_size(each) for each in folders))
        detail = (
            f"{len(orphans)} in {place.home.jobs} of jobs that the store does not know, {size}, "
            f"the oldest of {oldest}: {', '.join(map(str, orphans[:5]))}"
        )
        yield Finding(
            "folders", YELLOW, detail, "look into them, then remove them; no job gets their numbers"
        )
    missing = _missing_folders(place, set(ids))
    if missing:
        detail = f"{', '.join(map(shown, missing[:5]))}: running, but the folder is gone"
        yield Finding("folders", RED, detail, "headway jobs cancel; the outcome cannot be known")
    unsafe = [each for each in _hindered(place) if each[1].kind is WaitKind.STORAGE]
    for claim, wait in unsafe[:5]:
        yield Finding("folders", RED, f"{shown(claim.job_id)}: {wait.detail}", wait.remedy)
    if not orphans and not missing and not unsafe:
        yield Finding("folders", GREEN, f"{len(ids)}, each of a job")


def _hindered(place: OpenedHome) -> list[tuple[Claim, Wait]]:
    """The running jobs of this home that something is wrong with."""
    own = known_host(place.home)
    with place.store.store.read() as tx:
        now, live = tx.now(), tx.claims.live()
    shared = place.path is None
    found = (
        (claim, hindrance(claim, own, place.home, now=now, lack=None, shared=shared))
        for claim in live
    )
    return [(claim, wait) for claim, wait in found if wait is not None]


def _supervisors(place: OpenedHome) -> Iterator[Finding]:
    """Running jobs that nobody looks after, or whose end nobody has taken in."""
    hindered = [each for each in _hindered(place) if each[1].kind is WaitKind.PRESSURE]
    for claim, wait in hindered[:5]:
        detail = f"{shown(claim.job_id)}: {wait.detail}"
        yield Finding("supervisors", YELLOW, detail, wait.remedy)
    if not hindered:
        yield Finding("supervisors", GREEN, "each running job is looked after")


def _missing_folders(place: OpenedHome, present: set[int]) -> list[int]:
    own = known_host_id(place.home)
    with place.store.store.read() as tx:
        live = tx.claims.live()
    return sorted(
        claim.job_id
        for claim in live
        if claim.host_id == own and claim.job_id not in present and not os.path.isdir(claim.folder)
    )


def _environments(place: OpenedHome) -> Iterator[Finding]:
    horizon = place.clock.now() - STALE_AFTER
    with place.store.store.read() as tx:
        needed = tx.jobs.env_digests_in_use(tx.now() - STALE_AFTER)
        waiting = {job.env_digest for job in tx.jobs.active() if job.env_digest}
    folder = place.home.environments
    present = {each for each in entries(folder) if not each.endswith((".tmp", ".aside"))}
    gone = waiting - present
    if gone and place.path is not None:
        detail = f"{len(gone)} that active jobs need are gone from {folder}"
        yield Finding("environments", RED, detail, "put them back, or cancel and submit again")
    stale = [each for each in present - needed if changed_at(os.path.join(folder, each)) < horizon]
    if stale:
        detail = f"{len(stale)} of {len(present)} are stale"
        yield Finding("environments", YELLOW, detail, "nothing to do: the next worker removes them")
    elif not gone or place.path is None:
        yield Finding("environments", GREEN, f"{len(present)}, none is stale")


def _worker(place: OpenedHome) -> Iterator[Finding]:
    from headway.base.worker_lock import worker_is_there

    with place.store.store.read() as tx:
        active = tx.jobs.count_active()
        scheduled = tx.settings.marks()["next_fire_at"] != 0
    running = active.pop(Status.RUNNING, 0)
    if worker_is_there(place.home.worker_lock):
        yield Finding("worker", GREEN, "there")
    elif running or active:
        detail = f"none, but {running} running and {sum(active.values())} waiting jobs"
        yield Finding("worker", YELLOW, detail, "headway work")
    elif scheduled or has_jobs_file(place.home):
        detail = "none, but there are schedules, or a jobs file"
        yield Finding("worker", YELLOW, detail, "headway service install, or headway work")
    else:
        yield Finding("worker", GREEN, "none, and none is needed")


def _pause(place: OpenedHome) -> Iterator[Finding]:
    with place.store.store.read() as tx:
        pause, of_hosts, names = (
            tx.settings.pause_in_force(""),
            tx.settings.host_pauses(),
            tx.hosts.all(),
        )
    if pause is None and not of_hosts:
        yield Finding("pause", GREEN, "not paused")
    for each in ([pause] if pause is not None else []) + of_hosts:
        where = names.get(each.host_id or "")
        host = f"{where.name} ({where.home}) is " if where else f"{each.host_id or ''} is "
        detail = f"{host if each.host_id else ''}paused by {each.actor}"
        detail += f": {each.reason}" if each.reason else ""
        yield Finding("pause", YELLOW, detail, "headway scheduler resume")


def _reservations(place: OpenedHome) -> Iterator[Finding]:
    """Direct calls; one that nobody renews is removed by the next who looks."""
    with place.store.store.read() as tx:
        now, standing = tx.now(), tx.reservations.all()
    late = [each for each in standing if is_expired(each, now)]
    for each in late:
        detail = (
            f"{each.name} of {each.holder} was not renewed since {show_instant(each.expires_at)}"
        )
        yield Finding("direct calls", YELLOW, detail, "nothing to do: the next worker removes it")
    if not late:
        detail = f"{len(standing)}, each looked after" if standing else "none"
        yield Finding("direct calls", GREEN, detail)


def _launching(place: OpenedHome) -> Iterator[Finding]:
    breakers = place.store.breakers()
    own = known_host_id(place.home)
    for each in breakers:
        where = "" if each.host_id == own else f" on host {each.host_id}"
        yield Finding(
            "launching",
            YELLOW,
            f"{each.kind}: {each.cause} ({each.failures} failures){where}",
            "free what is used up, then headway scheduler reset",
        )
    if not breakers:
        yield Finding("launching", GREEN, "no failures")


def _groups(place: OpenedHome) -> Iterator[Finding]:
    """A group tells its end with that of its last member."""
    unwritten = place.store.unwritten_groups()
    for each in unwritten:
        name = shown_group(each)
        detail = f"{name} has ended, but its end was not told"
        yield Finding("groups", YELLOW, detail, f"headway groups close {name}; report it")
    if not unwritten:
        yield Finding("groups", GREEN, "each that ended has told it")


def _functions(place: OpenedHome) -> Iterator[Finding]:
    """The tasks that can be called, and modules that cannot be imported."""
    with place.store.store.read() as tx:
        views = tx.hosts.tasks_known()
        names = tx.hosts.all()
    for host_id, view in sorted(views.items()):
        where = f" on {names[host_id].name}" if host_id in names else ""
        if view.trouble is not None:
            step = how_to_import(view.trouble)
            yield Finding("functions", YELLOW, f"{view.trouble}{where}", step)
        elif view.names:
            detail = f"{len(view.names)} known{where}: {', '.join(sorted(view.names)[:10])}"
            yield Finding("functions", GREEN, detail)
    yield from _stale_modules(place)


def _stale_modules(place: OpenedHome) -> Iterator[Finding]:
    """A host of functions keeps what it imported, whatever became of the files."""
    from headway.admin.modules import changed_modules
    from headway.base.worker_lock import worker_is_there

    changed = changed_modules(place.home) if worker_is_there(place.home.worker_lock) else []
    if changed:
        names = ", ".join(changed)
        detail = f"{names} {'has' if len(changed) == 1 else 'have'} changed since the import"
        step = "restart `headway work`, or `headway stop` for a worker in the background"
        yield Finding("functions", YELLOW, detail, step)


def _hosts(place: OpenedHome) -> Iterator[Finding]:
    """Jobs of other hosts that nobody looks after. They may still run, so nobody else may."""
    own = known_host(place.home)
    with place.store.store.read() as tx:
        live = tx.claims.live()
        copies = copied(live, own, place.home) if place.path else []
        came = {claim.token for claim in copies}
        rest = [claim for claim in live if claim.token not in came]
        others = claims_elsewhere(tx, rest, own.id)
    if copies:
        jobs = ", ".join(shown(claim.job_id) for claim in copies[:5])
        homes = sorted({each.home for each in live if each.token in came})
        detail = f"this home is a copy: {jobs} ran, and may still run, in {', '.join(homes)}"
        yield Finding("hosts", YELLOW, detail, "headway work settles them here as outcome_unknown")
    elif own.before and place.path:
        yield Finding("hosts", GREEN, "this home is a copy, and nothing of the original is left")
    late = [each for each in others if each["expired"]]
    for each in late:
        who = f"{each['host'] or each['host_id']} ({each['home']})"
        detail = f"{each['expired']} jobs of {who}, with leases run out since {each['expired_at']}"
        yield Finding("hosts", YELLOW, detail, "headway work there; only that host can judge them")
    if others and not late:
        yield Finding("hosts", GREEN, f"{len(others)} others look after their jobs")


def _settings(place: OpenedHome) -> Iterator[Finding]:
    """Values that the store keeps and that do not count."""
    with place.store.store.read() as tx:
        unusable = unusable_settings(tx.settings.all())
    for each in unusable:
        yield Finding("settings", YELLOW, each.problem, each.remedy)


# The order is that of the report. A red one of the first list ends it; the last list is for stores
# with the schema of this program.
STORE_CHECKS: tuple[StoreCheck, ...] = (_server, _store)
SCHEMA_CHECKS: tuple[StoreCheck, ...] = (_schema, _wal)
CONTENT_CHECKS: tuple[StoreCheck, ...] = (
    _integrity,
    _events,
    _clock,
    _folders,
    _environments,
    worktrees,
    _worker,
    _supervisors,
    _pause,
    _settings,
    _reservations,
    _launching,
    _groups,
    _functions,
    _hosts,
    webhooks,
)
