"""Notes that a worker leaves beside its lock, for people and for the next worker: why it cannot do
its work, and that it left, if that could not be stored.

They are files, because the store itself may be what cannot be written or reached.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from headway.base.home import Home
from headway.base.units import show_instant
from headway.base.worker_lock import STAYS, WorkerLock

_KEYS = ("pid", "what", "error", "failures", "since")


def note_trouble(home: Home, **record: Any) -> None:
    """With these keys: `pid`, `what` it cannot do, the last `error`, `failures`, `since`."""
    with suppress(OSError):
        _write(home.worker_trouble, json.dumps(record), os.O_TRUNC)


def forget_trouble(home: Home) -> None:
    with suppress(OSError):
        os.unlink(home.worker_trouble)


def trouble_of(home: Home) -> dict[str, Any] | None:
    """Why the worker that is there cannot do its work; what another one left does not count."""
    record = _read(home.worker_trouble)
    if not isinstance(record, dict) or any(key not in record for key in _KEYS):
        return None
    lock = WorkerLock(home.worker_lock)
    if not lock.is_held(STAYS) or record["pid"] != lock.read_pid():
        return None
    return {**record, "since": show_instant(record["since"])}


def note_end(home: Home, worker_id: str, ending: str) -> None:
    """It left in good order, but could not write that to the store."""
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


def in_short_of(trouble: dict[str, Any]) -> str:
    """The reason why a worker that is there cannot do its work."""
    return f"the worker cannot {trouble['what']}: {trouble['error']}"
