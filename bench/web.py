"""The server: what a request costs beside the verb behind it, what listeners cost, what it costs
the worker to have one, and what it takes while nobody asks."""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from asking import request_of
from headway.client import Client
from headway.jobs.request import Request
from homes import HEADWAY, home, open_client, refuse_failures, submit, until_drained, worker
from measure import HERE, Figures, Lab, cpu_seconds, pss_bytes, wait_for

CONNECTIONS = 16
LISTENERS = 500
STREAMS_EACH = 20  # of one token
PACE = 50  # events, or reads, a second
WRITERS = 4  # connections that submit: the server has as many threads
API = "/api/v1"


class Serving(NamedTuple):
    pid: int
    url: str
    token: str
    ready: float  # seconds until it listened


def web(lab: Lab) -> Figures:
    """Reads: GET of one job by 16 connections, its CPU beside that of the document in process.
    Lists: 50 of 1,000,000 waiting jobs beside 50 of 1,000, one connection. Submits: by 4
    connections, beside `Client.submit` in a loop. Drains: `flat` at 8 slots alone, beside an idle
    server, and with 50 reads a second. Streams: 500 listeners and one, 50 events a second, beside
    uvicorn alone that sends as much; the memory that 60,000 events more take while one listener
    never reads. Rest: until it listens beside `python -c pass`; CPU and PSS when nobody asks.
    """
    return {
        **_at_rest(lab),
        **_reads(lab),
        **_lists(lab),
        **_submits(lab),
        **_drains(lab),
        **_streams(lab),
        **_unread(lab),
    }


@contextmanager
def server_of(client: Client) -> Iterator[Serving]:
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*HEADWAY, "--home", client.context.home.path, "serve", "--json"],
        env={**client.context.environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        ready = time.perf_counter() - begin
        port = said["url"].rpartition(":")[2]
        token = client.tokens.add(f"bench-{process.pid}", role="submit")
        yield Serving(process.pid, f"http://127.0.0.1:{port}", token, ready)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def _rate(
    serving: Serving, connections: int, seconds: float, *asked: str, pace: float = 0
) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "asking.py"), "rate", serving.url, serving.token]
    command += [str(connections), str(seconds), str(pace), *asked]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=60 + seconds
    )
    found: dict[str, Any] = json.loads(done.stdout)
    if not all(code.startswith("2") for code in found["codes"]):
        raise RuntimeError(f"{asked}: {found['codes']}")
    return found


def _window(lab: Lab) -> float:
    return 2.0 if lab.quick else 5.0


# -- rest ----------------------------------------------------------------------------------------


def _at_rest(lab: Lab) -> Figures:
    window = 5.0 if lab.quick else 20.0
    bare, ready = [], []
    with home(lab.fresh("web-rest"), max_active=8) as client:
        for _ in range(5):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], check=True)
            bare.append(time.perf_counter() - begin)
            with server_of(client) as serving:
                ready.append(serving.ready)
        with server_of(client) as serving:
            _rate(serving, 1, 0.2, "GET", f"{API}/jobs")
            time.sleep(2.0)
            before, begin = cpu_seconds(serving.pid), time.monotonic()
            time.sleep(window)
            spent = cpu_seconds(serving.pid) - before
            figures = {
                "web.ready_ms": 1e3 * statistics.median(ready),
                "web.python_ms": 1e3 * statistics.median(bare),
                "web.idle_percent": 100 * spent / (time.monotonic() - begin),
                "web.memory_mb": pss_bytes(serving.pid) / 1e6,
            }
    return figures


# -- reads ---------------------------------------------------------------------------------------


def _reads(lab: Lab) -> Figures:
    with home(lab.fresh("web-reads"), max_active=1) as client:
        [job] = submit(client, 1, "true")
        with worker(client):
            until_drained(client)
        count = lab.size(5_000)
        client.document(job)
        begin = time.thread_time()
        for _ in range(count):
            json.dumps({"job": client.document(job)})
        document = (time.thread_time() - begin) / count
        with server_of(client) as serving:
            path = f"{API}/jobs/{job}"
            _rate(serving, CONNECTIONS, 0.5, "GET", path)
            before = cpu_seconds(serving.pid)
            found = _rate(serving, CONNECTIONS, _window(lab), "GET", path)
            spent = cpu_seconds(serving.pid) - before
    asked = found["rate"] * _window(lab)
    return {
        "web.reads": found["rate"],
        "web.read_cpu_us": 1e6 * spent / asked,
        "web.document_cpu_us": 1e6 * document,
    }


def _lists(lab: Lab) -> Figures:
    sizes = {"small": 1_000, "large": lab.size(1_000_000)}
    figures: Figures = {}
    for name, size in sizes.items():
        folder = lab.once(f"web.{name}", lambda size=size: _waiting(lab, size))
        client = open_client(folder)
        with server_of(client) as serving:
            path = f"{API}/jobs?limit=50"
            _rate(serving, 1, 0.3, "GET", path)
            figures[f"web.list_{name}_ms"] = (
                1e3 * _rate(serving, 1, _window(lab), "GET", path)["p50"]
            )
        client.close()
    return figures


def _waiting(lab: Lab, count: int) -> Path:
    folder = lab.fresh("web-list")
    client = open_client(folder)
    for _ in range(0, count, 10_000):
        submit(client, min(count, 10_000), "true")
    client.close()
    return folder


def _submits(lab: Lab) -> Figures:
    count = lab.size(5_000)
    with home(lab.fresh("web-submits"), max_active=1) as client:
        client.pause("only submits are measured")
        client.submit(Request(argv=("true",)))
        begin = time.perf_counter()
        for _ in range(count):
            client.submit(Request(argv=("true",)))
        direct = count / (time.perf_counter() - begin)
        with server_of(client) as serving:
            asked = ("POST", f"{API}/jobs", '{"argv": ["true"]}')
            _rate(serving, WRITERS, 0.5, *asked)
            found = _rate(serving, WRITERS, _window(lab), *asked)
    return {"web.submits": found["rate"], "web.submits_direct": direct}


# -- beside the worker -----------------------------------------------------------------------------


def _drains(lab: Lab) -> Figures:
    count = lab.size(2_000)
    return {
        "web.drain_alone": _drain(lab, count, serve=False),
        "web.drain_idle": _drain(lab, count, serve=True),
        "web.drain_read": _drain(lab, count, serve=True, pace=PACE),
    }


def _drain(lab: Lab, count: int, *, serve: bool, pace: float = 0) -> float:
    with home(lab.fresh("web-drain"), max_active=8) as client:
        ids = submit(client, count, "true")
        if not serve:
            rate = _drained(client, count)
        else:
            with server_of(client) as serving, _reading(serving, pace):
                rate = _drained(client, count)
        refuse_failures(client, ids)
    return rate


def _drained(client: Client, count: int) -> float:
    begin = time.perf_counter()
    with worker(client):
        until_drained(client)
        return count / (time.perf_counter() - begin)


@contextmanager
def _reading(serving: Serving, pace: float) -> Iterator[None]:
    """So many reads a second, of a list and as long as it takes."""
    if not pace:
        yield
        return
    command = [sys.executable, str(HERE / "asking.py"), "rate", serving.url, serving.token]
    command += ["4", "600", str(pace), "GET", f"{API}/jobs?limit=50"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


# -- streams ---------------------------------------------------------------------------------------


def _streams(lab: Lab) -> Figures:
    listeners = LISTENERS  # it is what they cost together that is asked
    events = PACE * (3 if lab.quick else 10)
    figures: Figures = {}
    with home(lab.fresh("web-streams"), max_active=1) as client:
        client.pause("only events are measured")
        with server_of(client) as serving:
            tokens = [serving.token] + [
                client.tokens.add(f"ear-{number}", role="read")
                for number in range(listeners // STREAMS_EACH)
            ]
            for name, count in {"one": 1, "many": listeners}.items():
                with _listening(serving.url, tokens[1:], count, f"{API}/events") as heard:
                    before, begin = cpu_seconds(serving.pid), time.monotonic()
                    _submit_paced(client, events)
                    time.sleep(1.0)
                    spent, passed = cpu_seconds(serving.pid) - before, time.monotonic() - begin
                    memory = pss_bytes(serving.pid)
                if heard["least"] < events or heard["lost"]:
                    raise RuntimeError(f"{events} events, but {heard}")
                figures[f"web.stream_{name}_p99_ms"] = 1e3 * heard["p99"]
                figures[f"web.stream_{name}_cores"] = spent / passed
                figures[f"web.stream_{name}_mb"] = memory / 1e6
    return {**figures, **_bare_streams(listeners, 3.0 if lab.quick else 10.0)}


def _unread(lab: Lab) -> Figures:
    """What one who never reads costs: all that it does not take must not be kept."""
    first, more = 2_000, lab.size(60_000)
    with home(lab.fresh("web-unread"), max_active=1) as client:
        client.pause("only events are measured")
        with server_of(client) as serving:
            reader = client.tokens.add("reads", role="read")
            with (
                _never_reading(client, serving),
                _listening(serving.url, [reader], 1, f"{API}/events") as heard,
            ):
                submit(client, first, "true")
                time.sleep(1.0)
                before = pss_bytes(serving.pid)
                for _ in range(0, more, 1_000):
                    submit(client, 1_000, "true")
                    time.sleep(0.2)
                time.sleep(1.0)
                after = pss_bytes(serving.pid)
            if heard["least"] < first + more:
                raise RuntimeError(f"{first + more} events, but {heard}")
    return {"web.unread_mb": (after - before) / 1e6}


@contextmanager
def _never_reading(client: Client, serving: Serving) -> Iterator[None]:
    token = client.tokens.add("never-reads", role="read")
    place = urlsplit(serving.url)
    with socket.socket() as unread:
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        unread.connect((place.hostname, place.port))
        asked = request_of(serving.url, token, "GET", f"{API}/events")
        unread.sendall(asked[:-2] + b"Accept: text/event-stream\r\n\r\n")
        yield


def _bare_streams(listeners: int, seconds: float) -> Figures:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(HERE / "barestream.py"), str(port)])
    try:
        wait_for(lambda: _answers(port), within=20, every=0.05)
        with _listening(f"http://127.0.0.1:{port}", ["none"], listeners, "/"):
            before, begin = cpu_seconds(process.pid), time.monotonic()
            time.sleep(seconds)
            spent, passed = cpu_seconds(process.pid) - before, time.monotonic() - begin
        return {"web.stream_bare_cores": spent / passed}
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextmanager
def _listening(url: str, tokens: list[str], count: int, path: str) -> Iterator[dict[str, Any]]:
    """So many who listen; what they heard is there when the block has ended."""
    command = [sys.executable, str(HERE / "asking.py"), "listen", url, ",".join(tokens)]
    with subprocess.Popen(
        [*command, str(count), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "all hear\n":
            raise RuntimeError("not all listeners heard a greeting")
        heard: dict[str, Any] = {}
        yield heard
        said, _ = process.communicate(timeout=60)
        heard |= json.loads(said.strip().splitlines()[-1])


def _submit_paced(client: Client, count: int) -> None:
    begin = time.monotonic()
    for number in range(count):
        client.submit(Request(argv=("true",)))
        left = begin + (number + 1) / PACE - time.monotonic()
        if left > 0:
            time.sleep(left)
