"""Have a worker started from outside of a direct call.

A worker that the command itself started would be part of its tree and end with it, and so would the
worker's jobs. So a process inside asks the caller, which is no part of that tree. It asks over an
abstract socket named by the token, which disappears with the caller. Anybody on the host can see
the name, so each side checks that the other is the same user.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from contextlib import suppress

from headway.base.crashpoints import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

ANSWER_SECONDS = 10.0
REQUEST_SECONDS = 1.0
LARGEST_REQUEST = 1 << 17
_CREDENTIALS = "3i"


class Outside:
    """The caller's side: receives requests for a worker."""

    def __init__(self, token: str, start: Callable[[dict[str, Any]], object]) -> None:
        self._start = start
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self._socket.bind(_address(token))
        self._socket.listen()

    def fileno(self) -> int:
        """Readable when somebody asks."""
        return self._socket.fileno()

    def answer(self) -> None:
        """Start what is asked for; a wrong request, or one that cannot be met, is passed over:
        a process that wants a worker asks again."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            asking, _ = self._socket.accept()
            with asking:
                asking.settimeout(REQUEST_SECONDS)
                if not _is_ours(asking):
                    return
                self._start(json.loads(asking.recv(LARGEST_REQUEST)))

    def close(self) -> None:
        self._socket.close()


def ask_outside(token: str, request: Mapping[str, Any]) -> bool:
    """From inside: have the caller start a worker, and wait until it has; False if there is no such
    caller."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.settimeout(ANSWER_SECONDS)
        try:
            asking.connect(_address(token))
            if not _is_ours(asking):
                return False
            asking.sendall(json.dumps(dict(request)).encode())
        except OSError:
            return False
        reach("direct.worker_wanted")
        with suppress(OSError):
            asking.recv(1)  # end of file, once it is done; a stopped process reads it later
    return True


def _address(token: str) -> bytes:
    return b"\0headway-direct-" + token.encode()


def _is_ours(other: socket.socket) -> bool:
    size = struct.calcsize(_CREDENTIALS)
    credentials = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, user, _ = struct.unpack(_CREDENTIALS, credentials)
    return bool(user == os.geteuid())
