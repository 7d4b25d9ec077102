"""Runs of workflows: how long a large one takes to be compiled and started, and what its nodes cost
beside the same jobs submitted as a graph."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from apps import stores
from headway.client import Client
from headway.workflows.model import WorkflowFile
from headway.workflows.start import RunRequest, compile_run, start
from homes import HEADWAY, environment, open_client, until_drained, worker
from measure import Figures, Lab
from server import database

LAYER = 50  # nodes side by side; each waits for two of the layer before


def flows(lab: Lab) -> Figures:
    """Compiled and started: a file of 10,000 commands, in layers of 50, each after two of the layer
    before; both steps, as `headway run` does them. Run: 1,000 such commands, `true`, eight at a
    time, as a run of a workflow and as a graph."""
    figures: Figures = {}
    for store in stores(lab):
        figures |= _started(lab, store)
        figures |= _run(lab, store)
    return figures


def _layers(count: int) -> Iterator[tuple[str, list[str]]]:
    for number in range(count):
        layer, place = divmod(number, LAYER)
        before = (layer - 1) * LAYER
        near = {before + place, before + (place + 1) % LAYER} if layer else set()
        yield f"n{number}", [f"n{each}" for each in sorted(near)]


def _as_workflow(count: int) -> WorkflowFile:
    tables = (
        f'[nodes.{name}]\nargv = ["true"]\nafter = {after}\n'.replace("'", '"')
        for name, after in _layers(count)
    )
    return WorkflowFile("flow", "flow.toml", "".join(tables))


def _begin(client: Client, count: int) -> tuple[float, float]:
    file, request = _as_workflow(count), RunRequest()
    begin = time.perf_counter()
    manifest = compile_run(client.context, file, request)
    compiled = time.perf_counter()
    start(client.context, manifest, request)
    return compiled - begin, time.perf_counter() - compiled


def _started(lab: Lab, store: str) -> Figures:
    with _client(lab, store, "started") as client:
        compiled, started = _begin(client, lab.size(10_000))
    return {f"flows.compile.{store}": compiled, f"flows.start.{store}": started}


def _run(lab: Lab, store: str) -> Figures:
    count = lab.size(1_000)
    with _client(lab, store, "run") as client:
        _begin(client, count)
        as_run = _drained(client)
    with _client(lab, store, "graph") as client:
        path = Path(client.context.home.path).parent / "graph.jsonl"
        lines = (
            f'{{"id": "{name}", "argv": ["true"], "after": {after}}}\n'.replace("'", '"')
            for name, after in _layers(count)
        )
        path.write_text("".join(lines))
        store_url = client.context.home.store_url
        subprocess.run(
            [*HEADWAY, *(("--store", store_url) if store_url else ()), "submit", "--graph", path],
            cwd=path.parent,
            env=environment(path.parent),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        as_graph = _drained(client)
    return {f"flows.run.{store}": as_run, f"flows.graph.{store}": as_graph}


def _drained(client: Client) -> float:
    begin = time.perf_counter()
    with worker(client):
        until_drained(client)
    return time.perf_counter() - begin


@contextmanager
def _client(lab: Lab, store: str, name: str) -> Iterator[Client]:
    """A home of its own with eight slots."""
    folder = lab.fresh(f"flows-{name}-{store}")
    with database(lab.postgres or "") if store == "postgres" else nullcontext(None) as url:
        client = open_client(folder, url)
        client.set_setting("scheduler.max_active", 8)
        try:
            yield client
        finally:
            client.close()
