"""A worker that is stopped while functions run says so, and leaves them to their hosts."""

import signal
from pathlib import Path

from harness import Site, wait_for
from headway.core.states import Status
from headway.submission import Request, function_spec

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
        runs, waits = (each.job_id for each in site.client.submit_specs([spec] * 2))
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
