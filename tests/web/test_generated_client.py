"""A client that openapi-python-client makes of docs/openapi.json works against a real server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Site

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"

# What somebody would write with it.
PROGRAM = """\
import sys
from made import AuthenticatedClient
from made.api.events import get_events
from made.api.jobs import get_jobs, get_jobs_job, get_jobs_job_logs_stream, post_jobs
from made.models import GetJobsJobLogsStreamStream, GetJobsStateItem, NewJob, Problem

url, token = sys.argv[1:]
with AuthenticatedClient(url, token) as client:
    job = NewJob(argv=["echo", "hello"], name="greet")
    done = post_jobs.sync(client=client, body=job, prefer="wait=30", idempotency_key="monday")
    print(done.job.id, done.job.state, done.job.run.exit_code)
    stream = GetJobsJobLogsStreamStream("stdout")
    print(get_jobs_job_logs_stream.sync(done.job.id, stream, client=client), end="")
    again = post_jobs.sync(client=client, body=job, idempotency_key="monday")
    print(again.created, again.job.id)
    states = [GetJobsStateItem("succeeded"), GetJobsStateItem("failed")]
    print([each.name for each in get_jobs.sync(client=client, state=states).jobs])
    missing = get_jobs_job.sync("job-99", client=client)
    print(isinstance(missing, Problem), missing.status, missing.title)
    print([each.kind for each in get_events.sync(client=client, job="job-1").events][-1])
"""
SAID = """\
job-1 succeeded 0
hello
False job-1
['greet']
True 404 not-found
succeeded
"""


@pytest.mark.long
def test_a_generated_client_submits_waits_and_reads_the_log(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("post_hooks: []\npackage_name_override: made\n")
    options = {
        "--path": DOCUMENT,
        "--output-path": tmp_path / "made",
        "--config": tmp_path / "settings.yaml",
        "--meta": "none",
    }
    words = [str(word) for pair in options.items() for word in pair]
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", *words],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert not re.search("warning|skipping", made.stdout, re.I), made.stdout
    folder = tmp_path / "site"
    folder.mkdir()
    site = Site(folder)
    try:
        place = site.serve()
        token = site.client.tokens.add("made", role="submit")
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, f"http://127.0.0.1:{place.port}", token],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=90,
        )
        assert (done.stdout, done.returncode) == (SAID, 0), done.stderr
    finally:
        site.close()
