"""A peer runs functions: `consumption.py drain|latency|consume PEER FOLDER COUNT [URL]`.

`drain` and `latency` submit, in a process of their own, and start `consume` in another. A consumer
says when it is ready, and waits for a line before it takes its first job: its start-up is in no
figure.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import quantile, wait_for
from peers import PEERS, Peer


def drain(peer: Peer, count: int, consumer: list[str]) -> dict[str, float]:
    """Jobs a second, from the word to begin until its own store shows none that is unfinished."""
    peer.fill(count)
    with consumers(consumer, peer.processes) as go:
        begin = time.perf_counter()
        go()
        wait_for(lambda: not peer.left(), every=0.02)
        return {"rate": count / (time.perf_counter() - begin)}


def latency(peer: Peer, count: int, consumer: list[str]) -> dict[str, float]:
    """Milliseconds from before the call that submits until the function has begun."""
    peer.fill(1)
    with consumers(consumer, peer.processes) as go:
        go()
        wait_for(lambda: not peer.left())
        delays = [_delay(peer, f"start-{number}") for number in range(count)]
    return {"p50": quantile(delays, 0.5), "p99": quantile(delays, 0.99)}


def _delay(peer: Peer, name: str) -> float:
    path = Path.cwd() / name
    time.sleep(random.uniform(0.1, 0.3))  # idle again, in step with nothing
    begin = time.time()
    peer.record(str(path))
    wait_for(path.exists, within=60)
    return 1e3 * (int(path.read_text()) / 1e9 - begin)


@contextmanager
def consumers(command: list[str], count: int) -> Iterator[Callable[[], None]]:
    """So many consumers, all ready; what it gives tells them to begin."""
    with open("consumer.log", "wb") as log:
        processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
            for _ in range(count)
        ]

    def go() -> None:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()

    try:
        for process in processes:
            _until_ready(process)
        yield go
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _until_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line == b"ready\n":
            return
    reason = Path("consumer.log").read_text().strip().splitlines() or ["no reason given"]
    raise SystemExit(f"its consumer ended: {reason[-1]}")


def await_word() -> None:
    """Tell that this consumer is ready, and go on when told to."""
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    mode, name, folder, count, *url = sys.argv[1:]
    os.chdir(folder)
    peer = PEERS[name](Path(folder), *(url or [""]))
    if mode == "consume":
        peer.consume(await_word)
    else:
        consumer = [sys.executable, __file__, "consume", *sys.argv[2:]]
        print(json.dumps({"drain": drain, "latency": latency}[mode](peer, int(count), consumer)))
        sys.stdout.flush()
        os._exit(0)  # what a peer's own threads still do is of no interest
