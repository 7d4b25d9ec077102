"""Which host and home this is, so that a claim says who can judge it.

The host id is random and kept in the home together with what it was made for. A copied home or a
recreated container is another host: it gets a new id, remembers those from before, and never acts
on their processes.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from headway.base.home import Home
from headway.base.proc import boot_id

OLDEST_KERNEL = (5, 4)
MOST_REMEMBERED = 16  # ids of homes that this one is a copy of


class Host(NamedTuple):
    id: str
    boot_id: str
    home: str
    name: str = ""  # what people call the machine
    before: tuple[str, ...] = ()  # the ids of homes that this one is a copy of


def queues_of(shared: bool, host: Host) -> tuple[str, ...]:
    """The queues that a host serves: the common one and, in a store of several, its own."""
    return ("", host.id) if shared else ("",)


def this_host(home: Home) -> Host:
    known = _kept(home) or _made(home)
    return Host(known.id, boot_id(), home.path, os.uname().nodename, known.before)


def known_host(home: Home) -> Host:
    """The same, as far as it is known without making anything: a copy that nobody has opened yet
    has no id, and the one that it came with is of before."""
    unknown = Host("", boot_id(), home.path, os.uname().nodename)
    known = _document(home.host_id)
    if known is None:
        return unknown
    if known.made_for != _made_for(home):
        return unknown._replace(before=(*known.before, known.id))
    return unknown._replace(id=known.id, before=known.before)


def was_made_here(home: Home) -> bool:
    """Whether a Headway on this machine gave this very folder its host id: a copy has another
    inode, and what came with a clone cannot know which one it will get."""
    return bool(known_host(home).id)


def known_host_id(home: Home) -> str | None:
    """The id as it is kept, without making one."""
    return known_host(home).id or None


def kernel_version(release: str) -> tuple[int, int]:
    numbers = [int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit()]
    major, minor, *_ = [*numbers, 0, 0]
    return major, minor


class _Kept(NamedTuple):
    """What the file says."""

    id: str
    made_for: list[str | int]
    before: tuple[str, ...] = ()


def _made_for(home: Home) -> list[str | int]:
    status = os.stat(home.path)
    return [_machine_id(), status.st_dev, status.st_ino]


def _kept(home: Home) -> _Kept | None:
    """What is kept, if it was made for this folder."""
    known = _document(home.host_id)
    return known if known is not None and known.made_for == _made_for(home) else None


def _document(path: str) -> _Kept | None:
    """What is kept, for whatever folder it was made; None if it is missing or torn."""
    try:
        with open(path, encoding="utf-8") as file:
            document: dict[str, Any] = json.load(file)
        before = tuple(str(each) for each in document.get("before", ()))
        return _Kept(str(document["id"]), list(document["made_for"]), before)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _made(home: Home) -> _Kept:
    """Put a new id in place; if another process was faster, its id stands."""
    with _alone(home.path):
        known = _kept(home)
        if known is not None:
            return known
        earlier = _document(home.host_id)
        before = () if earlier is None else (*earlier.before, earlier.id)[-MOST_REMEMBERED:]
        fresh = _Kept(os.urandom(8).hex(), _made_for(home), before)
        path = f"{home.host_id}.{os.urandom(4).hex()}.tmp"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump(fresh._asdict(), file)
            os.replace(path, home.host_id)
        except BaseException:
            os.unlink(path)
            raise
        return fresh


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """One process at a time: a process that read the old id must not replace the new one."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _machine_id() -> str:
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
