"""`headway stop`: the background worker ends, jobs go on, and others are left alone."""

import json
import os
import signal
from pathlib import Path

from commandline import CommandLine, wait_for

from harness import Site
from headway.base.worker_lock import worker_is_there


def test_the_worker_ends_and_its_jobs_go_on(headway: CommandLine) -> None:
    headway.configure('[worker]\ngrace = "10ms"\n')
    headway.submit("--grace", "0s", "--", "sleep", "60")
    headway.until_running("1")
    headway.submit("--", "true")
    done = headway("stop")
    assert "has ended; job-1 goes on; 1 job waits; the next submit" in done.stderr
    assert not worker_is_there(str(headway.home / "run" / "worker.lock"))
    assert headway.state("1") == "running"
    assert headway("stop").stderr == "headway: no worker is there\n"
    headway("jobs", "cancel", "1")
    headway("wait", "2")
    assert headway.state("2") == "succeeded"


def test_without_a_worker_it_says_so(bare: CommandLine) -> None:
    assert bare("stop").stderr == "headway: no worker is there\n"
    assert bare.json("stop") == {"version": 1, "stopped": False, "pid": None}
    assert not bare.home.exists()


def test_the_document_names_the_process(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    headway.configure('[worker]\nidle = "60s"\n')
    headway.submit("--", "true")
    told = json.loads(headway("stop", "--json").stdout)
    assert told["stopped"] and told["pid"] > 1
    wait_for(lambda: told["pid"] not in headway.processes())


def test_a_worker_that_is_just_coming_up_is_awaited(headway: CommandLine, tmp_path: Path) -> None:
    """It has its place, and is not recorded yet: nobody knows what sort it is."""
    mark = tmp_path / "mark"
    points = {"HEADWAY_POINTS": "worker.placed=stop", "HEADWAY_TEST_MARK": str(mark)}
    headway("submit", "--", "true", env=points)
    wait_for(lambda: mark.exists() and mark.read_text().split()[1:])
    (pid,) = (int(each) for each in mark.read_text().split()[1:])
    with headway.start("stop") as stop:
        waits = Path(f"/proc/{stop.pid}/wchan")
        wait_for(lambda: stop.poll() is not None or "nanosleep" in waits.read_text())
        os.kill(pid, signal.SIGCONT)
        _, said = stop.communicate(timeout=60)
    assert stop.returncode == 0 and f"the worker (pid {pid}) has ended".encode() in said


def test_a_worker_in_the_foreground_is_left_alone(file_site: Site) -> None:
    worker = file_site.worker()
    done = file_site.run("stop", check=False)
    assert done.returncode == 4
    assert f"the worker (pid {worker.pid}) is not one in the background" in done.stderr
    assert worker.poll() is None
