"""How long a job of many processes that ignore TERM takes to end, beyond its grace.

`.venv/bin/python bench/treekill.py [PROCESSES]` runs only this, with a control group and without;
it exits 1 when the goal is missed.
"""

import sys
import tempfile
import time
from pathlib import Path

from headway.client import Client
from headway.jobs.request import Request
from headway.supervise.evidence import Evidence
from homes import open_client, until_up, worker
from measure import wait_for

GOAL = 2.0
GRACE = 1.0
MANY = 2000
FOREST = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
else:
    print("all there", flush=True)
while True:
    signal.pause()
"""


def beyond_the_grace(folder: Path, cgroup: str, processes: int) -> float:
    """Seconds from the cancel to the outcome on disk, less the grace."""
    client = open_client(folder)
    config = Path(client.context.home.config)
    config.write_text(f'{config.read_text()}[processes]\ncgroup = "{cgroup}"\n')
    try:
        with worker(client) as process:
            until_up(client, process)
            return _ended(client, processes) - GRACE
    finally:
        client.close()


def _ended(client: Client, processes: int) -> float:
    argv = (sys.executable, "-c", FOREST, str(processes))
    job = client.submit(Request(argv=argv, grace=int(GRACE * 1e6))).job_id
    log = Path(client.context.home.job(job), "stdout.log")
    wait_for(lambda: log.exists() and log.stat().st_size, within=120.0)
    with client.context.store.read() as tx:
        claim = tx.claims.of_job(job)
    if claim is None:
        raise RuntimeError("the job has ended by itself")
    evidence = Evidence(claim.folder, claim.token)
    begin = time.monotonic()
    client.cancel([job])
    outcome = wait_for(evidence.read_outcome, within=300.0)
    took = time.monotonic() - begin
    if outcome.tree != "gone":
        raise RuntimeError(f"its tree is {outcome.tree}")
    return took


def main() -> int:
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
    worst = 0.0
    for cgroup in ("auto", "off"):
        with tempfile.TemporaryDirectory() as folder:
            took = beyond_the_grace(Path(folder), cgroup, processes)
        print(f"cgroup {cgroup:<5} {processes} processes: {took:.2f} s beyond the grace")
        worst = max(worst, took)
    return 0 if worst <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
