"""What the command line shows of Python functions: task, arguments, progress, result, the wait."""

import json
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, wait_for
from screen import Opener

from headway.base.home import Home
from headway.base.worker_lock import COMING, WorkerLock
from headway.cli.jobs.show import _event_row
from headway.store.new_jobs import Event

SHOP = """
import os, time, headway
app = headway.App()

@app.task
def add(a: int, b: int) -> int:
    print("adding")
    return a + b

@app.task
def paint(rooms: list) -> dict:
    for number, room in enumerate(rooms):
        headway.current().progress(number / len(rooms), f"painting {room}")
    while not os.path.exists("dry"):
        time.sleep(0.01)
    return {"painted": rooms}

@app.task
def fall():
    raise ValueError("no floor")
"""


@pytest.fixture
def shop(bare: CommandLine) -> CommandLine:
    """A home and a module with tasks, which no setting names yet."""
    bare.configure()
    (bare.folder / "shop.py").write_text(SHOP)
    return bare


def python(line: CommandLine, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import headway, shop\n{code}"],
        cwd=line.folder,
        env=line.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def submit(line: CommandLine, call: str) -> str:
    return python(line, f"print(shop.{call}.id)")


def run_of(line: CommandLine, job: str) -> dict[str, Any]:
    run: dict[str, Any] = line.json("jobs", "show", job)["job"]["run"]
    return run


def test_show_has_task_arguments_and_result(shop: CommandLine) -> None:
    shop("config", "set", "app.modules", "shop")
    job = submit(shop, "add.submit(20, 22)")
    shop("jobs", "wait", job)
    told = shop.out("jobs", "show", job)
    for words in ("task       shop.add", "arguments  a=20, b=22", "result     42"):
        assert words in told
    document = shop.json("jobs", "show", job)["job"]
    assert document["params"] == {"task": "shop.add", "args": {"a": 20, "b": 22}}
    assert document["run"]["result"] == 42
    assert shop.out("jobs", "list", "--fields", "returned").split() == ["Returned", "42"]
    assert document["run"]["progress"] is None
    assert shop.out("jobs", "tail", job) == "adding"


def test_progress_is_shown_while_it_runs(shop: CommandLine) -> None:
    shop("config", "set", "app.modules", "shop")
    job = submit(shop, "paint.submit(['hall', 'attic'])")
    wait_for(lambda: "50% painting attic" in shop.out("jobs", "list"))
    assert "progress  50% painting attic" in shop.out("jobs", "show", job)
    assert run_of(shop, job)["progress"] == {"fraction": 0.5, "text": "painting attic"}
    Path(shop.folder, "dry").touch()
    shop("jobs", "wait", job)
    assert "50%" not in shop.out("jobs", "show", job)
    assert run_of(shop, job)["result"] == {"painted": ["hall", "attic"]}


def test_wait_on_a_terminal_shows_progress_and_wipes_it(
    shop: CommandLine, terminal: Opener
) -> None:
    shop("config", "set", "app.modules", "shop")
    job = submit(shop, "paint.submit(['hall', 'attic'])")
    waits = terminal("jobs", "wait", job, columns=60)
    screen = waits.shows(f"{job}  paint  running", "50% painting attic")
    (shop.folder / "dry").touch()
    assert waits.ended() == 0
    assert not screen.text.strip() and not screen.overflowed


def test_tail_on_a_terminal_shows_progress_and_wipes_it(shop: CommandLine) -> None:
    shop("config", "set", "app.modules", "shop")
    job = submit(shop, "paint.submit(['hall', 'attic'])")
    ours, theirs = pty.openpty()
    follower = subprocess.Popen(
        shop.argv("jobs", "tail", "-f", job),
        cwd=shop.folder,
        env={**shop.env, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while b"50% painting attic" not in seen:
        seen += os.read(ours, 4096)
    Path(shop.folder, "dry").touch()
    try:
        while data := os.read(ours, 4096):
            seen += data
    except OSError:
        pass  # the other side has gone
    os.close(ours)
    assert follower.wait(60) == 0
    assert seen.endswith(b"\r\x1b[K")


def test_a_module_that_nobody_named_is_the_wait(shop: CommandLine) -> None:
    job = submit(shop, "add.submit(1, 2)")
    objection = shop.json("why", job)["objections"][0]
    assert objection["kind"] == "task"
    assert objection["detail"] == "no worker runs shop.add"
    remedy = "headway config set app.modules shop, or headway work --app shop"
    assert objection["remedy"] == remedy
    document = shop.json("jobs", "show", job)["job"]
    assert document["wait"] == {"kind": "task", "detail": "no worker runs shop.add"}
    shop("config", "set", "app.modules", "shop")  # the background worker makes way for another
    shop("jobs", "wait", job, "--timeout", "30s")
    assert run_of(shop, job)["result"] == 3


def test_a_worker_that_is_just_coming_up_makes_way_for_one_that_knows_the_module(
    shop: CommandLine,
) -> None:
    shop("init")
    home = Home(str(shop.home))
    coming = WorkerLock(home.worker_lock)
    assert coming.take(COMING), "it has not told the store yet that it is there"
    setting = shop.start("config", "set", "app.modules", "shop")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listens:
        listens.bind(home.worker_socket)
        listens.settimeout(60)
        assert listens.recv(100) == b"handover"
    os.unlink(home.worker_socket)
    coming.close()
    _, told = setting.communicate(timeout=60)
    assert (setting.returncode, told) == (0, b"headway: app.modules = shop\n")


def test_a_broken_module_is_the_wait_until_it_is_mended(shop: CommandLine) -> None:
    shop("config", "set", "app.modules", "shop")
    job = submit(shop, "add.submit(1, 2)")
    shop("jobs", "wait", job)
    Path(shop.folder, "shop.py").write_text("import nothing_such")
    shop("config", "set", "app.modules", "shop")
    code = "app = headway.App()\nprint(app.task(task_name='shop.add')(lambda: 3).submit().id)"
    told = subprocess.run(
        [sys.executable, "-c", f"import headway\n{code}"],
        cwd=shop.folder,
        env=shop.env,
        capture_output=True,
        text=True,
        check=True,
    )
    job = told.stdout.strip()
    wait_for(lambda: "nothing_such" in json.dumps(shop.json("why", job)["objections"]))
    assert shop.json("why", job)["objections"][0]["kind"] == "task"
    assert "nothing_such" in shop.out("scheduler", "status")
    assert "nothing_such" in shop.out("doctor")
    (shop.folder / "shop.py").write_text(
        "import headway\napp = headway.App()\n@app.task\ndef add(): return 3\n"
    )
    shop("jobs", "wait", job, "--timeout", "50s")
    assert run_of(shop, job)["result"] == 3
    assert shop.json("scheduler", "status")["functions"][0]["tasks"] == ["shop.add"]
    assert "shop.add" in shop.out("doctor")


def test_a_result_that_does_not_come_says_why(shop: CommandLine) -> None:
    told = python(
        shop,
        "try: shop.add.submit(1, 2).result(timeout=0)\n"
        "except headway.TimedOutError as error: print(error)",
    )
    assert told.startswith("job-1 is still queued: no worker runs shop.add (headway config")


def test_an_exception_is_the_reason_and_its_traceback_the_output(shop: CommandLine) -> None:
    shop("config", "set", "app.modules", "shop")
    job = submit(shop, "fall.submit()")
    assert "failed: ValueError: no floor" in shop("jobs", "wait", job, code=1).stderr
    assert 'raise ValueError("no floor")' in shop("jobs", "tail", job).stderr


def test_a_worker_of_commands_leaves_functions_alone(shop: CommandLine) -> None:
    """What an earlier worker could call is not promised for this one."""
    shop("config", "set", "app.modules", "shop")
    shop("jobs", "wait", submit(shop, "add.submit(1, 2)"))
    shop("config", "set", "app.modules", "")
    job = submit(shop, "add.submit(1, 2)")
    wait_for(lambda: shop.json("why", job)["objections"])
    assert shop.json("why", job)["objections"][0]["detail"] == "no worker runs shop.add"
    assert shop.json("scheduler", "status")["functions"] == []


def test_the_time_of_a_retry_is_shown_as_a_time() -> None:
    now = 1_767_225_600_000_000  # 2026-01-01T00:00Z
    near, far = now + 90_000_000, now + 86_400_000_000
    for not_before, time in ((near, "00:01:30Z"), (far, "2026-01-02 00:00:00Z")):
        event = Event("retried", 1, {"by": "job-2", "not_before": not_before}, "w", now)
        assert _event_row(event, now) == [
            *("  00:00:00Z", "w", "retried"),
            f"by job-2, not_before {time}",
        ]


def test_the_doctor_names_a_module_that_changed_after_its_import(shop: CommandLine) -> None:
    def stale() -> list[str]:
        found = shop.json("doctor", code=None)["findings"]
        return [each["detail"] for each in found if "changed since" in each["detail"]]

    shop("config", "set", "app.modules", "shop")
    assert stale() == []
    worker = shop.start("work")
    shop("jobs", "wait", submit(shop, "add.submit(20, 22)"))
    assert stale() == []
    later = (shop.folder / "shop.py").stat().st_mtime + 3600
    os.utime(shop.folder / "shop.py", (later, later))
    assert stale() == ["shop has changed since the import"]
    worker.terminate()
    worker.communicate(timeout=60)
    assert stale() == [], "the next worker imports it anew"
