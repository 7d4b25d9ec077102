"""A bench with a module of tasks: what is submitted here is called in a real host process."""

import os
import types
from pathlib import Path
from typing import Any

from harness import Bench
from headway.core.model import Job
from headway.functions.app import Handle
from headway.functions.tasks import Task
from headway.supervise.evidence import Evidence

PRELUDE = """
import os, sys, threading, time
import headway
from headway import Retry, Skip, current

app = headway.App()

def note(text):
    with open("ledger", "a") as file:
        file.write(text + "\\n")

def until(name):
    while not os.path.exists(name):
        time.sleep(0.005)

"""

SLOW = ("asyncio", "ctypes")  # to import them takes as long as all else that a host does


def whole(source: str) -> str:
    """The text of a module with these tasks."""
    imported = [f"import {name}\n" for name in SLOW if f"{name}." in source]
    return "".join(imported) + PRELUDE + source


class Shop:
    def __init__(self, bench: Bench, source: str) -> None:
        self.bench = bench
        self.write(source)
        Path(bench.home.config).write_text("[worker]\nautostart = false\n")
        self.module = types.ModuleType("shop_tasks")
        exec(compile(whole(source), "shop_tasks.py", "exec"), vars(self.module))
        self.module.app._context = bench.client.context
        self.module.app._pid = os.getpid()

    def write(self, source: str, *, raw: bool = False) -> None:
        path = self.bench.folder / "shop_tasks.py"
        path.write_text(source if raw else whole(source))

    def __getattr__(self, name: str) -> Task[..., Any]:
        task: Task[..., Any] = getattr(self.module, name)
        return task

    def touch(self, name: str) -> None:
        (self.bench.folder / name).touch()

    def ledger(self) -> list[str]:
        path = self.bench.folder / "ledger"
        return path.read_text().split() if path.exists() else []

    def until_noted(self, *lines: str) -> None:
        self.bench.until(lambda: set(lines) <= set(self.ledger()), f"{lines} in the ledger")

    def ended(self, *handles: Handle[Any]) -> list[Job]:
        return self.bench.until_ended(*(each.job_id for each in handles))

    def log(self, handle: Handle[Any], stream: str = "stdout") -> str:
        path = Path(self.bench.home.job(handle.job_id), f"{stream}.log")
        return path.read_text() if path.exists() else ""

    def let_wait(self) -> None:
        """From now on calls may wait inside the host that is up."""
        self.bench.until(lambda: self.bench.engine.pool.places(), "a host to be ready")
        for host in self.bench.engine.pool.processes.hosts.values():
            host.window = 50

    def host(self) -> Evidence:
        """The one host that is up."""
        hosts = [each for each in self.bench.engine.pool.processes.hosts.values() if each.ready]
        assert len(hosts) == 1
        return Evidence(hosts[0].folder, hosts[0].token)

    def host_pid(self) -> int:
        started = self.host().read_started()
        assert started is not None
        return started.child_pid

    def supervisor_pid(self) -> int:
        started = self.host().read_started()
        assert started is not None
        return started.supervisor_pid
