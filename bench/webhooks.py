"""Webhooks: how fast deliveries go out, and what that costs a drain that goes on meanwhile."""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps import fill, held, site, working
from headway.base.trust import record
from headway.client import Client
from homes import home, submit, until_drained, worker
from measure import HERE, Figures, Lab, cpu_seconds, wait_for

DELIVERIES = 10_000
COMMANDS = 500
CALLS = 10_000


def webhooks(lab: Lab) -> Figures:
    """10,000 deliveries that wait, until a receiver on this machine has them all, with a courier of
    its own and nothing else; and its CPU time for each. Then drains of commands and of function
    calls, in turns without an endpoint and with one that gets the end of each job: the rate of the
    drain alone, while deliveries are made and sent beside it."""
    figures = _deliveries(lab, lab.size(DELIVERIES))
    for kind, drain, count in (
        ("commands", _drain_commands, lab.size(COMMANDS)),
        ("calls", _drain_calls, lab.size(CALLS)),
    ):
        for told in (False, True):
            figures[f"webhooks.{kind}.{'with' if told else 'alone'}"] = drain(lab, count, told)
    return figures


@contextmanager
def receiver() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(HERE / "hook_receiver.py")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/"
    finally:
        process.kill()
        process.communicate()


def received(url: str) -> int:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return int(answer.read())


def allow(client: Client) -> None:
    """This machine; the courier reads it from the file, this process has it already."""
    record(client.context.home.path, client.context.environ)
    config = Path(client.context.home.config)
    config.write_text('webhooks.allow = ["127.0.0.1"]\n' + config.read_text())
    client.context.config = client.context.config.changed({"webhooks.allow": ("127.0.0.1",)})


def _deliveries(lab: Lab, count: int) -> Figures:
    with receiver() as url, home(lab.fresh("webhooks"), max_active=8) as client:
        allow(client)
        client.pause("only deliveries are measured")
        client.webhooks.add("bench", url, types=["job.submitted"])
        submit(client, count, "true")
        begin = time.perf_counter()
        argv = [sys.executable, "-m", "headway.webhooks.courier", client.context.home.path]
        courier = subprocess.Popen(argv, stdin=subprocess.PIPE, env={**client.context.environ})
        try:
            wait_for(lambda: received(url) >= count, every=0.1, within=600.0)
            taken, used = time.perf_counter() - begin, cpu_seconds(courier.pid)
        finally:
            courier.kill()
            courier.communicate()
    return {
        "webhooks.per_second": count / taken,
        "webhooks.cpu_ms": 1e3 * used / count,
    }


def _drain_commands(lab: Lab, count: int, told: bool) -> float:
    with receiver() as url, home(lab.fresh("drain"), max_active=8) as client:
        if told:
            allow(client)
            client.webhooks.add("bench", url)
        client.pause("until all are there")
        submit(client, count, "true")
        with worker(client):
            wait_for(client.context.worker_is_there)
            time.sleep(2.0)
            begin = time.perf_counter()
            client.resume()
            until_drained(client)
            taken = time.perf_counter() - begin
            if told:
                wait_for(lambda: received(url) == count, every=0.2, within=600.0)
    return count / taken


def _drain_calls(lab: Lab, count: int, told: bool) -> float:
    with receiver() as url, site(lab, "sqlite", max_active=100) as made:
        if told:
            allow(made.client)
            made.client.webhooks.add("bench", url)
        with working(made) as process:
            with held(made, process):
                fill(made, count)
                begin = time.perf_counter()
            until_drained(made.client)
            taken = time.perf_counter() - begin
            if told:
                wait_for(lambda: received(url) > 100, every=0.2, within=600.0)
    return count / taken
