"""A worker that is stopped while functions run says so, and leaves them to their hosts."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Site, wait_for
from headway.core.states import Status
from headway.jobs.request import Request
from headway.jobs.specification import function_spec
from headway.jobs.submit import submit_calls

TASKS = """
import os, time
import headway

app = headway.App()

@app.task
def hold() -> None:
    while not os.path.exists("go"):
        time.sleep(0.01)
"""


def test_a_worker_that_leaves_names_the_functions_that_run(tmp_path: Path) -> None:
    config = "[worker]\nautostart = false\ngrace = '100ms'\n[app]\nmodules = ['held']\n"
    site = Site(tmp_path, config=config)
    (tmp_path / "held.py").write_text(TASKS)
    spec = function_spec(Request(name="hold"), "held.hold", {})
    try:
        runs, waits = (each.job_id for each in submit_calls(site.client.context, [spec] * 2))
        worker = site.worker()
        journals = Path(site.home.hosts)
        wait_for(lambda: any(b"\ns " in each.read_bytes() for each in journals.glob("*/journal")))
        worker.send_signal(signal.SIGTERM)
        said = worker.communicate(timeout=20)[1]
        assert f"stopping: waiting for job-{runs}; a second signal leaves at once" in said
        assert f"left job-{runs} running; the next worker takes them up again" in said
        (tmp_path / "go").touch()
        later = site.worker()
        wait_for(lambda: site.status(waits) is Status.SUCCEEDED)
        assert site.status(runs) is Status.SUCCEEDED
        later.terminate()
        assert "left" not in later.communicate(timeout=20)[1]
    finally:
        site.close()


@pytest.mark.parametrize("said", [None, b'{"leave": true}\n'])
def test_a_host_that_is_still_importing_leaves_with_its_worker(
    tmp_path: Path, said: bytes | None
) -> None:
    """Otherwise one whose import hangs is left behind by every worker."""
    (tmp_path / "hangs.py").write_text(
        "import time\nopen('importing', 'w').close()\ntime.sleep(600)\n"
    )
    settings = {
        "modules": ["hangs"],
        "path": [str(tmp_path)],
        "threads": 1,
        "jobs": str(tmp_path),
        "logs": {"head_bytes": 1000, "tail_bytes": 1000},
    }
    (tmp_path / "host.json").write_text(json.dumps(settings))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen(1)
        argv = [sys.executable, "-m", "headway.functions.host.process", str(tmp_path)]
        host = subprocess.Popen(argv, cwd=tmp_path)
        try:
            connection, _ = listener.accept()
            wait_for((tmp_path / "importing").exists)
            if said is not None:
                connection.sendall(said)
            else:
                connection.close()
            assert host.wait(20) == 0
            connection.close()
        finally:
            host.kill()
            host.wait()
