"""What is around a store: the host, the home, its file system, and what lies there."""

import os
import stat
from collections.abc import Iterator

from headway.admin.doctor.agents import runners
from headway.admin.doctor.finding import (
    GREEN,
    RED,
    YELLOW,
    CheckedHome,
    Finding,
    HomeCheck,
    HostCheck,
    changed_at,
    counted_files,
    entries,
    named,
    size_of,
)
from headway.admin.doctor.jobsfile import jobs_file
from headway.admin.doctor.services import service
from headway.base.clock import SECOND
from headway.base.errors import HeadwayError
from headway.base.home import Home, refuse_unsafe
from headway.base.host import OLDEST_KERNEL, kernel_version
from headway.base.units import show_size

LOW_SPACE = 100 << 20
LEFT_AFTER = 3600 * SECOND


def _system() -> Iterator[Finding]:
    system = os.uname()
    detail = f"{system.sysname} {system.release}"
    old = system.sysname != "Linux" or kernel_version(system.release) < OLDEST_KERNEL
    yield (
        Finding("system", RED, detail, "use Linux 5.4 or newer")
        if old
        else Finding("system", GREEN, detail)
    )


def _sqlite() -> Iterator[Finding]:
    from headway.store.sqlite.database import (
        OLDEST_SAFE,
        library_version,
        shown_version,
    )

    if library_version() < OLDEST_SAFE:
        detail = f"{shown_version()} can damage a store in WAL mode"
        yield Finding("sqlite", RED, detail, "pip install -U 'apsw>=3.51.3'")
    else:
        yield Finding("sqlite", GREEN, shown_version())


def _cgroup() -> Iterator[Finding]:
    from headway.supervise import cgroup

    base = cgroup.find_base()
    if base is not None:
        trial = cgroup.path_for(base, f"doctor-{os.getpid()}")
        if cgroup.make(trial):
            cgroup.remove(trial)
            yield Finding("cgroup", GREEN, f"usable in {base}")
            return
    yield Finding(
        "cgroup",
        YELLOW,
        "not usable; processes of a job are found by sweeping /proc instead",
        "nothing to do, or run under a delegated cgroup (systemd-run --user --scope)",
    )


def home_finding(home: Home) -> Iterator[Finding]:
    try:
        refuse_unsafe(home.path)
    except HeadwayError as error:
        yield Finding("home", RED, str(error), "see the message")
        return
    mode = stat.S_IMODE(os.stat(home.path).st_mode)
    if mode & 0o077:
        yield Finding("home", YELLOW, f"{home.path} has mode {mode:o}", f"chmod 700 {home.path}")
    else:
        yield Finding("home", GREEN, home.path)


def _places(place: CheckedHome) -> list[tuple[str, str]]:
    """The folders whose file systems count: the home's, and the database's if it is elsewhere."""
    folders = [("home", place.home.path)]
    elsewhere = os.path.dirname(place.path) if place.path else place.home.path
    if elsewhere != place.home.path and os.path.isdir(elsewhere):
        folders.append(("store", elsewhere))
    return folders


def _file_system(place: CheckedHome) -> Iterator[Finding]:
    from headway.store.sqlite.filesystems import file_system, refuse_network_file_system

    for whose, folder in _places(place):
        kind = file_system(folder)
        try:
            refuse_network_file_system(folder, kind)
        except HeadwayError as error:
            accepted = place.config["store.unsafe_fs"]
            yield Finding(
                "file system",
                YELLOW if accepted else RED,
                str(error),
                "headway backup FILE, then restore it with --home on a local disk",
            )
            continue
        yield Finding("file system", GREEN, f"{kind or 'a local disk'} under the {whose}")


def _space(place: CheckedHome) -> Iterator[Finding]:
    for whose, folder in _places(place):
        space = os.statvfs(folder)
        free = space.f_bavail * space.f_frsize
        detail = f"{show_size(free)} free under the {whose}"
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            yield Finding("space", RED, f"{folder} is read-only", "mount it for writing")
        elif free < LOW_SPACE:
            yield Finding("space", YELLOW, detail, "free some space")
        else:
            yield Finding("space", GREEN, detail)


def _leftovers(place: CheckedHome) -> Iterator[Finding]:
    """Files that killed commands left behind, and stores that restores moved aside."""
    left = sorted(_left_behind(place))
    if left:
        detail = f"{counted_files(left)} of commands that were killed: {named(left)}"
        yield Finding("leftovers", YELLOW, detail, f"rm {' '.join(left[:5])}")
    folder, name = os.path.split(place.beside)
    aside = sorted(
        os.path.join(folder, each)
        for each in entries(folder)
        if each.startswith(f"{name}.before-restore-")
    )
    twins = [each for each in aside if place.path and _same_file(each, place.path)]
    if twins:
        detail = f"{named(twins)} is a second name of the store, from a restore that was killed"
        yield Finding("leftovers", YELLOW, detail, f"never open it; rm {twins[0]}")
    kept = [each for each in aside if each not in twins]
    if kept:
        size = sum(size_of(each) for each in kept)
        detail = f"{counted_files(kept)} kept by restores, {show_size(size)}: {named(kept)}"
        yield Finding("leftovers", YELLOW, detail, "remove them when you no longer need them")
    if not left and not aside:
        yield Finding("leftovers", GREEN, "none")


def _left_behind(place: CheckedHome) -> Iterator[str]:
    folder, name = os.path.split(place.beside)
    for each in entries(folder):
        pid = each.removeprefix(f"{name}.").partition(".")[0]
        made = each.startswith(f"{name}.") and ".new" in each and pid.isdigit()
        if made and not os.path.exists(f"/proc/{pid}"):
            yield os.path.join(folder, each)
    before = place.clock.now() - LEFT_AFTER
    for inside in (place.home.path, place.home.environments):
        for each in entries(inside):
            path = os.path.join(inside, each)
            if each.endswith((".tmp", ".aside")) and changed_at(path) < before:
                yield path


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _worker(place: CheckedHome) -> Iterator[Finding]:
    """Whether the worker that is there can do its work."""
    from headway.jobs.worker_trouble import trouble_of

    trouble = trouble_of(place.home)
    if trouble is not None:
        detail = f"it cannot {trouble['what']} since {trouble['since']}: {trouble['error']}"
        yield Finding("worker", RED, detail, f"see the message, and {place.home.worker_log}")


# The order is that of the report.
HOST_CHECKS: tuple[HostCheck, ...] = (_system, _sqlite, _cgroup)
HOME_CHECKS: tuple[HomeCheck, ...] = (
    _file_system,
    _space,
    _leftovers,
    _worker,
    service,
    runners,
    jobs_file,
)
