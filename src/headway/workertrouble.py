"""What a worker leaves beside its lock, for those who ask and for the next one: that it cannot do
its work, and why; and that it left, if the store could not be told.

In files, because it may be the store itself that cannot be written or reached.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from headway.home import Home
from headway.supervise.workerlock import STAYS, WorkerLock
from headway.units import show_instant

_KEYS = ("pid", "what", "error", "failures", "since")


def note_trouble(home: Home, **told: Any) -> None:
    """With these keys: `pid`, `what` it cannot do, the last `error`, `failures`, `since`."""
    with suppress(OSError):
        _write(home.worker_trouble, json.dumps(told), os.O_TRUNC)


def forget_trouble(home: Home) -> None:
    with suppress(OSError):
        os.unlink(home.worker_trouble)


def trouble_of(home: Home) -> dict[str, Any] | None:
    """Why the worker that is there cannot do its work; what another one left does not count."""
    told = _read(home.worker_trouble)
    if not isinstance(told, dict) or any(key not in told for key in _KEYS):
        return None
    lock = WorkerLock(home.worker_lock)
    if not lock.is_held(STAYS) or told["pid"] != lock.read_pid():
        return None
    return {**told, "since": show_instant(told["since"])}


def note_end(home: Home, worker_id: str, ending: str) -> None:
    """It left in good order, and the store could not be told."""
    with suppress(OSError):
        _write(home.worker_left, json.dumps([worker_id, ending]) + "\n", os.O_APPEND)


def unrecorded_ends(home: Home) -> Iterator[tuple[str, str]]:
    """The workers that did so, and how."""
    with suppress(OSError), open(home.worker_left, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            with suppress(ValueError):
                worker_id, ending = json.loads(line)
                yield str(worker_id), str(ending)


def forget_ends(home: Home) -> None:
    with suppress(OSError):
        os.unlink(home.worker_left)


def _read(path: str) -> Any:
    with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        return json.load(file)
    return None


def _write(path: str, text: str, flag: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flag
    fd = os.open(path, flags, 0o600)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
