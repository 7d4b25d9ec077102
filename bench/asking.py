"""Asks a server over HTTP, in a process of its own; prints what it saw as JSON.

`asking.py rate URL TOKEN CONNECTIONS SECONDS PACE METHOD PATH [BODY]` sends one request after the
other on each connection; PACE is how many a second in all, 0 for as many as it can.
`asking.py listen URL TOKENS CONNECTIONS PATH` listens to events with so many connections, prints a
line when all of them hear, and the rest when its stdin ends.
"""

import asyncio
import json
import re
import sys
import time
from datetime import datetime
from urllib.parse import urlsplit

from measure import quantile

LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.I)
AT = re.compile(rb'"at": "([^"]+)"')
SAMPLED = 25  # of so many listeners one looks at the times; the others only count


class Asker(asyncio.Protocol):
    """Sends a request as soon as the answer to the one before has come."""

    def __init__(self, request: bytes, taken: list[float], pause: float) -> None:
        self._request = request
        self._taken = taken
        self._pause = pause
        self._got = b""
        self._asked = 0.0
        self.codes: set[bytes] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._asked = time.perf_counter()
        if not self._transport.is_closing():
            self._transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, gap, body = self._got.partition(b"\r\n\r\n")
        if not gap:
            return
        found = LENGTH.search(head)
        if len(body) < (int(found[1]) if found else 0):
            return
        self.codes.add(head[9:12])
        taken = time.perf_counter() - self._asked
        self._taken.append(taken)
        self._got = b""
        if self._pause:
            asyncio.get_running_loop().call_later(max(0.0, self._pause - taken), self._ask)
        else:
            self._ask()


async def rate(
    url: str, token: str, connections: int, seconds: float, pace: float, *words: str
) -> dict[str, object]:
    taken: list[float] = []
    pause = connections / pace if pace else 0.0
    askers = [Asker(request_of(url, token, *words), taken, pause) for _ in range(connections)]
    loop, place = asyncio.get_running_loop(), urlsplit(url)
    begin = time.perf_counter()
    for each in askers:
        await loop.create_connection(lambda each=each: each, place.hostname, place.port)
    await asyncio.sleep(seconds)
    while not taken:  # a busy machine may take longer than that for the first
        await asyncio.sleep(0.01)
    passed = time.perf_counter() - begin
    codes = sorted({code.decode() for each in askers for code in each.codes})
    return {
        "rate": len(taken) / passed,
        "p50": quantile(taken, 0.5),
        "p99": quantile(taken, 0.99),
        "codes": codes,
    }


def request_of(url: str, token: str, method: str, path: str, body: str = "") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {urlsplit(url).netloc}",
        f"Authorization: Bearer {token}",
    ]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", body]).encode()


class Hearer(asyncio.Protocol):
    """Counts the events of one stream, and for some says how old they are when they come."""

    def __init__(self, request: bytes, ages: list[float] | None) -> None:
        self._request = request
        self._ages = ages
        self.begun = False
        self.events = 0
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._request)  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True

    def data_received(self, data: bytes) -> None:
        if not self.begun:
            self.begun = b"event: hello" in data or b"event: submitted" in data
        self.events += data.count(b"event: submitted\n")
        if self._ages is not None:
            now = time.time()
            self._ages += [now - _instant(each) for each in AT.findall(data)]


def _instant(text: bytes) -> float:
    return datetime.fromisoformat(text.decode()).timestamp()


async def listen(url: str, tokens: list[str], connections: int, path: str) -> dict[str, object]:
    ages: list[float] = []
    hearers = []
    loop, place = asyncio.get_running_loop(), urlsplit(url)
    for number in range(connections):
        request = request_of(url, tokens[number % len(tokens)], "GET", path)
        request = request[:-2] + b"Accept: text/event-stream\r\n\r\n"
        hearers.append(Hearer(request, ages if number % SAMPLED == 0 else None))
        await loop.create_connection(lambda: hearers[-1], place.hostname, place.port)
    while not all(each.begun for each in hearers):
        await asyncio.sleep(0.01)
    print("all hear", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    heard = [each.events for each in hearers]
    return {
        "least": min(heard),
        "most": max(heard),
        "lost": sum(each.lost for each in hearers),
        "p99": quantile(ages, 0.99) if ages else 0.0,
    }


if __name__ == "__main__":
    mode, address, *rest = sys.argv[1:]
    if mode == "rate":
        token, count, lasts, paced, *asked = rest
        found = asyncio.run(rate(address, token, int(count), float(lasts), float(paced), *asked))
    else:
        secrets, count, where = rest
        found = asyncio.run(listen(address, secrets.split(","), int(count), where))
    print(json.dumps(found))
