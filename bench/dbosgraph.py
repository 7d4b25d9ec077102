"""DBOS's chain and fan: `dbosgraph.py FOLDER CHAIN FAN [URL]`; prints ms per node.

A chain is one workflow of so many steps, a fan one workflow that enqueues so many and waits for all
of them: what its users write for the same.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from dbos import DBOS

from peers import dbos_config, dbos_url


@DBOS.step()
def step(number: int) -> None:
    pass


@DBOS.workflow()
def leaf(number: int) -> None:
    pass


@DBOS.workflow()
def chain(count: int) -> None:
    for number in range(count):
        step(number)


@DBOS.workflow()
def fan(count: int) -> None:
    handles = [DBOS.enqueue_workflow("bench", leaf, number) for number in range(count)]
    for handle in handles:
        handle.get_result()


def milliseconds_per_node(workflow: Any, count: int, nodes: int) -> float:
    begin = time.perf_counter()
    DBOS.start_workflow(workflow, count).get_result()
    return 1e3 * (time.perf_counter() - begin) / nodes


if __name__ == "__main__":
    folder, length, width, *url = sys.argv[1:]
    DBOS(config=dbos_config(dbos_url(Path(folder) / "dbos.sqlite", *(url or [""]))))
    DBOS.launch()
    DBOS.register_queue("bench")
    milliseconds_per_node(fan, 1, 1)
    figures = {
        "chain": milliseconds_per_node(chain, int(length), int(length)),
        "fan": milliseconds_per_node(fan, int(width), int(width) + 2),
    }
    print(json.dumps(figures), flush=True)
    os._exit(0)
