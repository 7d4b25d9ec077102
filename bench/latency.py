"""How soon a command starts: after a submit on an idle system, and after the job it waits for.

Each job is `date +%s%N`, so its output says when it was really running: the time to load `date` is
part of every figure. The run rows are a second witness, which begins with the claim.
"""

import itertools
import random
import subprocess
import time

from commands import submit_chain
from headway.jobs.request import Request
from homes import home, printed_instant, refuse_failures, runs, until_drained, until_up, worker
from measure import Figures, Lab, quantile, seconds

RECORD_START = ("date", "+%s%N")


def submit_to_start(lab: Lab) -> Figures:
    """50 submits from another process to an idle worker: from before the call to the output."""
    samples = max(10, lab.size(50))
    delays = []
    with home(lab.fresh("latency"), max_active=8) as client, worker(client) as process:
        until_up(client, process)
        client.submit(Request(argv=RECORD_START))  # the first keeps the environment
        until_drained(client)
        for _ in range(samples):
            time.sleep(random.uniform(0.1, 0.3))  # idle again, in step with nothing
            begin = time.time()
            job_id = client.submit(Request(argv=RECORD_START)).job_id
            until_drained(client)
            delays.append(1e3 * (printed_instant(client, job_id) - begin))
    return {
        "latency.submit.p50": quantile(delays, 0.5),
        "latency.submit.p99": quantile(delays, 0.99),
    }


def end_to_dependent(lab: Lab) -> Figures:
    """A chain of 100: from the end of a job, as its supervisor saw it, to the next one's output."""
    count = max(30, lab.size(100))
    with home(lab.fresh("dependent"), max_active=1) as client:
        ids = submit_chain(client, count, *RECORD_START)
        with worker(client) as process:
            until_up(client, process)
            until_drained(client)
        refuse_failures(client, ids)
        rows = runs(client, ids)
        pairs = list(itertools.pairwise(ids))
        ended = {job_id: (rows[job_id].finished_at or 0) / 1e6 for job_id in ids}
        seen = [1e3 * (printed_instant(client, after) - ended[before]) for before, after in pairs]
        told = [1e3 * (rows[after].started_at / 1e6 - ended[before]) for before, after in pairs]
    return {
        "latency.dependent.p50": quantile(seen, 0.5),
        "latency.dependent.p99": quantile(seen, 0.99),
        "latency.dependent.rows.p50": quantile(told, 0.5),
        "latency.dependent.rows.p99": quantile(told, 0.99),
    }


def bare_command(lab: Lab) -> Figures:
    """What the machine itself takes for `date`: the floor under both figures above."""
    command = list(RECORD_START)
    taken = [
        seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))
        for _ in range(max(20, lab.size(100)))
    ]
    return {"latency.bare.p50": 1e3 * quantile(taken, 0.5)}
