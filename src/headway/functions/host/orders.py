"""What the worker sends to a host: orders to call a function, and a few words to obey.

    r TOKEN JOB_ID ATTEMPT PARAMS    run: PARAMS are those of the job, as they are stored, in JSON,
                                     with `products`, the files that it is to make, `node`, what
                                     it is in a workflow's run, and `steps`, those of earlier tries
    {"cancel": TOKEN}                end this call, or never begin it
    {"give_back": true}              never begin what was ordered and not begun
    {"leave": true}                  begin nothing more, and exit when nothing runs

A line each. They come in pieces of any size, so what is not yet a whole line is kept.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_decode = json.JSONDecoder().raw_decode


def read_order(order: str) -> tuple[str, int, int, dict[str, Any]]:
    """Token, job, attempt and params. ValueError if it makes no sense."""
    _, token, job_id, attempt, params = order.split(" ", 4)
    read = _decode(params)[0]
    if not isinstance(read, dict):
        raise ValueError(f"not the params of a call: {params}")
    return token, int(job_id), int(attempt), read


class Orders:
    """Orders that were not begun. One thread at a time may `hear`, any may take."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque()
        self._torn = bytearray()

    def receive(self, data: bytes, obey: Callable[[dict[str, Any]], None]) -> None:
        """Keep the orders, and have the rest obeyed. ValueError if it makes no sense."""
        if self._torn or not data.endswith(b"\n"):
            data = self._whole_lines(data)
        for line in data.decode().split("\n"):
            if line.startswith("r "):
                self.waiting.append(line)
            elif line:
                message = json.loads(line)
                if not isinstance(message, dict):
                    raise ValueError(f"not a message: {line}")
                obey(message)

    def _whole_lines(self, data: bytes) -> bytes:
        end = data.rfind(b"\n") + 1
        if not end:
            self._torn += data
            return b""
        whole = bytes(self._torn) + data[:end]
        self._torn[:] = data[end:]
        return whole

    def take_all(self) -> list[str]:
        """The tokens of all that waits, which no longer does."""
        taken = []
        while self.waiting:
            try:
                taken.append(self.waiting.popleft().split(" ", 2)[1])
            except IndexError:  # another thread was quicker
                break
        return taken
