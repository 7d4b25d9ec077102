"""The strict HTTP/1.1 protocol of uvicorn, with additions of ours.

- A request must have come, and an answer must be read, within a bounded time.
- Whoever asks can find out which process is at the other end of a connection.
- What is no HTTP is refused in the form of all other refusals.
"""

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from headway.web.application import ON_ALL_ANSWERS
from headway.web.peers import Peer
from headway.web.problems import new_request_id, problem

WITHIN = 10.0  # seconds for a whole request, from its first byte or the opening of the connection
UNREAD_FOR = 20.0  # seconds in which a client must read at least
LEAST_READ = 64 << 10  # bytes of an answer, or all of it


class BoundedProtocol(H11Protocol):
    """Closes a connection whose request drips, or whose answer is not read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._give_up: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that we hear of all that waits to be read
        self.app_state = {
            **self.app_state,
            "peer": Peer.of_connection(transport.get_extra_info("socket")),
        }
        self._begin()

    def data_received(self, data: bytes) -> None:
        if self._give_up is None:
            self._begin()
        super().data_received(data)
        if self._is_whole():
            self._settle()

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        self._all_is_read()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._settle()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """To what is no HTTP, or has too long a head: as all other refusals."""
        said = "this is no HTTP request, or its head has more than 16 KiB"
        found = problem(400, "bad-request", said, new_request_id())
        body = json.dumps(found.document).encode()
        headers = {
            **ON_ALL_ANSWERS,
            "content-type": "application/problem+json",
            "content-length": str(len(body)),
            "connection": "close",
        }
        named = [(name.encode(), value.encode()) for name, value in headers.items()]
        start = h11.Response(status_code=400, headers=named, reason=b"Bad Request")
        for event in (start, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    # -- what comes ----------------------------------------------------------------------------

    def _begin(self) -> None:
        self._give_up = self.loop.call_later(WITHIN, self.transport.abort)

    def _settle(self) -> None:
        if self._give_up is not None:
            self._give_up.cancel()
            self._give_up = None

    def _is_whole(self) -> bool:
        """Whether the request has come to its end. Of a kept connection `cycle` is that of the
        request before, which says nothing of a head that has begun to come."""
        return self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)

    # -- what goes -----------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        self._all_is_read()
        super().resume_writing()

    def _expect_reading(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(UNREAD_FOR, self._check_reading, left)

    def _check_reading(self, before: int) -> None:
        """A close would wait for ever until the rest is read."""
        if before - self.transport.get_write_buffer_size() < LEAST_READ:
            self.transport.abort()
        else:
            self._expect_reading()

    def _all_is_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
