"""`make demo` tells the truth about five jobs and leaves nothing behind."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Bench, wait_for
from headway.admin import demo
from headway.admin.demo import PLAN, differences
from headway.core.states import Status


def run_demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "HEADWAY_HOME"}
    environ["TMPDIR"] = str(folder)
    environ["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)
    return subprocess.run(
        [sys.executable, "-m", "headway.admin.demo", *arguments],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def processes_in(folder: Path) -> dict[int, str]:
    """Living processes that name the folder, run in it, or hold a file of it open."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            places = [os.readlink(f"/proc/{pid}/cwd")]
            places += [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        if any(str(folder) in each for each in (command, *places)):
            found[int(pid)] = command
    return found


def test_the_demo_succeeds_and_leaves_nothing(tmp_path: Path) -> None:
    done = run_demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "Every job ended as expected" in done.stdout
    assert list(tmp_path.iterdir()) == []
    # A supervisor that has told its outcome may need an instant to exit.
    wait_for(lambda: not processes_in(tmp_path), what="an end of all processes", deadline=5)


def test_one_more_job_comes_over_http(tmp_path: Path) -> None:
    lines = run_demo(tmp_path).stdout.splitlines()
    if shutil.which("curl") is None:
        assert "Over HTTP: left out, because curl is not here." in lines
        return
    [at] = [number for number, line in enumerate(lines) if line.startswith("curl ")]
    assert "/api/v1/jobs " in lines[at] and "hw_" not in lines[at]
    assert re.fullmatch(r"job-\d+ succeeded", lines[at + 1])


@pytest.mark.parametrize("missing", ["curl", "uvicorn"])
def test_without_curl_or_the_extra_it_goes_on(
    missing: str,
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(demo.shutil, "which", lambda name: None if name == missing else "/bin/it")
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == missing else object())
    assert demo.over_http(bench.client) == []
    assert "Over HTTP: left out, because " in capsys.readouterr().out
    assert bench.client.listing(everything=True) == []


def test_without_a_terminal_each_change_is_a_line(tmp_path: Path) -> None:
    lines = run_demo(tmp_path).stdout.splitlines()
    change = re.compile(r" *[\d.]+ s  job-\d+ +(\w+) +(\w+)")
    seen = [found.groups() for found in map(change.match, lines) if found]
    for expected in (
        ("lint", "running"),
        ("package", "waiting_on_deps"),
        ("preview", "queued"),
        ("upload", "failed"),
        ("upload", "succeeded"),
        ("preview", "cancelled"),
    ):
        assert expected in seen, "\n".join(lines)
    assert not any("\x1b" in line for line in lines)


def test_keep_says_where_the_folder_is(tmp_path: Path) -> None:
    done = run_demo(tmp_path, "--keep")
    (folder,) = tmp_path.iterdir()
    assert f"Kept: {folder}" in done.stdout
    assert (folder / "package.txt").read_text() == "clean\npassed\n"
    assert (folder / ".headway" / "headway.db").exists()
    wait_for(lambda: not processes_in(tmp_path), what="an end of all processes", deadline=5)


def as_planned() -> dict[str, dict[str, object]]:
    times = {"package": ("3", "4")}
    return {
        step.name: {
            "state": (Status.CANCELLED if step.cancelled else Status.SUCCEEDED).value,
            "attempt": step.attempts,
            "run": {"exit_code": 143 if step.cancelled else 0},
            "started_at": times.get(step.name, ("1", "2"))[0],
            "finished_at": times.get(step.name, ("1", "2"))[1],
        }
        for step in PLAN
    }


@pytest.mark.parametrize(
    ("name", "field", "value", "says"),
    [
        ("lint", "state", "failed", "lint: state is failed, not succeeded"),
        ("upload", "attempt", 1, "upload: attempts is 1, not 2"),
        ("preview", "run", {"exit_code": 0}, "preview: exit is 0, not 143"),
        ("lint", "run", None, "lint: exit is None, not 0"),
        ("lint", "started_at", "2", "lint: did not run beside test"),
        ("package", "started_at", "1", "package: started before lint had ended"),
        ("test", "started_at", None, "test: did not run beside lint"),
    ],
)
def test_the_verdict_names_what_differs(name: str, field: str, value: object, says: str) -> None:
    ended = as_planned()
    assert [found for step in PLAN for found in differences(step, ended)] == []
    ended[name][field] = value
    assert says in [found for step in PLAN for found in differences(step, ended)]
