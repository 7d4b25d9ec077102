"""Where the server of a home is: its lock, its file, its host name."""

import json
import os
from typing import NamedTuple
from zlib import crc32

from headway.base.home import Home
from headway.base.worker_lock import WorkerLock

SERVES = 0  # the byte of the lock that a server holds


class ServerPlace(NamedTuple):
    """Where a server of a home is to be found."""

    pid: int
    port: int | None
    socket: str | None
    name: str

    @property
    def url(self) -> str | None:
        return None if self.port is None else f"http://{self.name}:{self.port}"


def host_name_of(home: Home) -> str:
    """`headway-1f2e3d4c.localhost`, which browsers resolve themselves."""
    return f"headway-{crc32(os.fsencode(os.path.realpath(home.path))):08x}.localhost"


def place_of(home: Home) -> ServerPlace | None:
    """The server of this home, if one lives. The kernel's lock says so: the file may be of one that
    is gone, and a stranger may sit on its port."""
    if not server_lock(home).is_held(SERVES):
        return None
    try:
        with open(place_path(home), encoding="utf-8") as file:
            return ServerPlace(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None  # it is just coming up


def server_lock(home: Home) -> WorkerLock:
    """Of the same kind as a worker's. To ask whether it is held does not take it, even for an
    instant: that would turn away a server that begins just then."""
    return WorkerLock(os.path.join(home.run, "web.lock"))


def place_path(home: Home) -> str:
    return os.path.join(home.run, "web.json")
