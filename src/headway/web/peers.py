"""The process at the other end of a connection from this machine.

The kernel knows the peer of a unix socket. The owner of a TCP connection over loopback is found by
its port in `/proc/net/tcp` and by the descriptors of this user's processes. Only requests by which
a person decides ask for it. It guards against accidents, not against malice.
"""

import os
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

_INODE = 9  # column of /proc/net/tcp
_ESTABLISHED = "01"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Peer(NamedTuple):
    on_socket: bool = False
    credentials: tuple[int, int] | None = None  # pid and uid, of a unix socket
    port: int | None = None  # of the other end, over loopback

    @staticmethod
    def of(scope: Mapping[str, Any]) -> "Peer":
        found = scope.get("state", {}).get("peer")
        return found if isinstance(found, Peer) else Peer()

    @staticmethod
    def of_connection(connection: socket.socket) -> "Peer":
        if connection.family == socket.AF_UNIX:
            size = struct.calcsize("3i")
            packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            pid, uid, _ = struct.unpack("3i", packed)
            return Peer(on_socket=True, credentials=(pid, uid))
        try:
            address = connection.getpeername()
        except OSError:
            return Peer()  # it has left already
        local = address[0].startswith("127.") or address[0] in ("::1", "::ffff:127.0.0.1")
        return Peer(port=address[1] if local else None)

    def uid(self) -> int | None:
        return self.credentials[1] if self.credentials else None

    def pid(self) -> int | None:
        """The process, if it can be found: that of another user cannot."""
        if self.credentials is not None:
            return self.credentials[0]
        inode = None if self.port is None else _inode_of(self.port)
        return None if inode is None else _process_with(inode)


def _inode_of(port: int) -> str | None:
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), open(path, encoding="ascii") as table:
            for line in table.readlines()[1:]:
                columns = line.split()
                if columns[3] == _ESTABLISHED and int(columns[1].rpartition(":")[2], 16) == port:
                    return columns[_INODE]
    return None


def _process_with(inode: str) -> int | None:
    for pid in _own_processes():
        folder = f"/proc/{pid}/fd"
        with suppress(OSError):
            for name in os.listdir(folder):
                with suppress(OSError):
                    found = _SOCKET.fullmatch(os.readlink(f"{folder}/{name}"))
                    if found is not None and found[1] == inode:
                        return pid
    return None


def _own_processes() -> Iterator[int]:
    user = os.geteuid()
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                yield int(name)
