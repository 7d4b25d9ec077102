"""Which host and home this is, so that a claim says who can judge it.

The host id is random and kept in the home together with what it was made for. A copied home or a
recreated container is another host: it gets a new id and leaves the old one's claims alone.
"""

import json
import os
from contextlib import suppress
from typing import NamedTuple

from headway.home import Home
from headway.supervise.proc import boot_id

OLDEST_KERNEL = (5, 4)


class Host(NamedTuple):
    id: str
    boot_id: str
    home: str
    name: str = ""  # what people call the machine


def queues_of(shared: bool, host: Host) -> tuple[str, ...]:
    """The queues that a host serves: the common one and, in a store of several, its own."""
    return ("", host.id) if shared else ("",)


def this_host(home: Home) -> Host:
    return Host(_host_id(home), boot_id(), home.path, os.uname().nodename)


def seen_host(home: Home) -> Host:
    """The same for who only reads: nothing is written where no id is kept yet."""
    made_for = _made_for(home.path) if os.path.isdir(home.path) else None
    known = None if made_for is None else _kept(home.host_id, made_for)
    return Host(known or os.urandom(8).hex(), boot_id(), home.path, os.uname().nodename)


def was_made_here(home: Home) -> bool:
    """Whether a Headway on this machine gave this very folder its host id: a copy has another
    inode, and what came with a clone cannot know which one it will get."""
    return _kept(home.host_id, _made_for(home.path)) is not None


def known_host_id(home: Home) -> str | None:
    """The id as it is kept, without making one."""
    try:
        with open(home.host_id, encoding="utf-8") as file:
            return str(json.load(file)["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def kernel_version(release: str) -> tuple[int, int]:
    numbers = [int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit()]
    major, minor, *_ = [*numbers, 0, 0]
    return major, minor


def _host_id(home: Home) -> str:
    made_for = _made_for(home.path)
    while True:
        known = _read(home.host_id, made_for)
        if known is not None:
            return known
        _make(home.host_id, made_for)


def _made_for(path: str) -> list[str | int]:
    status = os.stat(path)
    return [_machine_id(), status.st_dev, status.st_ino]


def _kept(path: str, made_for: list[str | int]) -> str | None:
    """The id that was made for this folder, if that is what the file has."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        return str(document["id"]) if document["made_for"] == made_for else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _read(path: str, made_for: list[str | int]) -> str | None:
    known = _kept(path, made_for)
    if known is not None or not os.path.lexists(path):
        return known
    # Torn, or made for another folder: it goes, unless someone has just exchanged it.
    with suppress(FileNotFoundError):
        os.unlink(path)
    return None


def _make(path: str, made_for: list[str | int]) -> None:
    """Put a new id in place; if another process was faster, its id stands."""
    fresh = f"{path}.{os.urandom(4).hex()}.tmp"
    descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"id": os.urandom(8).hex(), "made_for": made_for}, file)
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        os.unlink(fresh)


def _machine_id() -> str:
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
