"""The scene of the visiting test in which a worker dies over an entry of the jobs file."""

import json
from pathlib import Path

from stage import Stage, work

from headway.core.states import Status


def worker_dies_making(stage: Stage, point: str) -> None:
    """The job of an entry is made; the next worker runs it, and makes no other."""
    script = f"{stage.entry('start', 'tidy')}; {stage.entry('end', 'tidy')}"
    entry = {"type": "command", "run": ["/bin/sh", "-c", script], "interval": "1h"}
    Path(stage.home.path, "jobs.yaml").write_text(json.dumps({"jobs": {"tidy": entry}}))
    stage.dies_at(point, work)
    (row,) = stage.rows("select id from jobs")
    job = stage.called("tidy", row[0])
    stage.finish()
    stage.check_settled()
    assert stage.status(job) is Status.SUCCEEDED
    assert stage.rows("select id from jobs") == [(job,)]
    with stage.client.context.store.read() as tx:
        record = tx.jobsfile.entries(stage.client.context.host.id)["tidy"]
    assert (record.last_job, record.last_status) == (job, "succeeded")
    assert record.last_end_at == stage.client.job(job).finished_at
