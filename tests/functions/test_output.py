"""Whose log it is that a function writes to, and for how long."""

import io
import os
from collections.abc import Callable
from pathlib import Path

from shop import Shop

from headway.base.current import become, leave
from headway.core.states import Status
from headway.functions.current import Current
from headway.functions.host.descriptors import NOT_HERE
from headway.functions.host.output import Outputs

MakeShop = Callable[..., Shop]
CAPS = {"head_bytes": 1000, "tail_bytes": 1000}


def test_what_is_printed_after_the_end_changes_no_log(tmp_path: Path) -> None:
    """Of a job that has ended, how much it wrote is known."""
    outputs = Outputs(str(tmp_path), CAPS)
    usual = outputs.stdout._usual = io.StringIO()
    talker, silent = (Current(n, 1, str(n) * 32, lambda lines: None) for n in (1, 2))
    before = become(talker)
    outputs.stdout.write("its own\n")
    assert outputs.close(talker) == {"stdout": {"bytes": 8, "dropped": 0}}
    outputs.stdout.write("late\n")
    leave(before)
    assert outputs.close(silent) is None
    before = become(silent)
    outputs.stdout.write("later\n")
    leave(before)
    assert (tmp_path / "1" / "stdout.log").read_text() == "its own\n"
    assert not (tmp_path / "2").exists()
    assert usual.getvalue() == "late\nlater\n"
    assert not outputs._open, "nothing is left open"


def test_a_log_that_is_closed_meanwhile_takes_nothing(tmp_path: Path) -> None:
    outputs = Outputs(str(tmp_path), CAPS)
    job = Current(1, 1, "1" * 32, lambda lines: None)
    log = outputs.log(job, "stdout")
    assert log is not None and log.write(b"before")
    outputs.close(job)
    assert not log.write(b"after")
    assert (tmp_path / "1" / "stdout.log").read_bytes() == b"before"


TALKS = """
import logging
logger = logging.Logger("shop")
logger.addHandler(logging.StreamHandler())

@app.task
def tell():
    logger.info("set up at import")
    sys.stdout.reconfigure(encoding="utf-8", line_buffering=True)

@app.task
def fork(how):
    print("parent", flush=True)
    if os.fork() == 0:
        print("child", flush=True)
        if how == "exit":
            sys.exit(0)
        if how == "raise":
            raise ValueError("of the child")
        return "child"
    os.wait()
    print("still the parent", flush=True)
    return os.getpid()
"""


def test_a_process_that_a_function_forks_is_no_host(make_shop: MakeShop) -> None:
    """Otherwise it ends the call before the function does, and takes calls from its parent."""
    shop = make_shop(TALKS)
    handles = [shop.fork.submit(how) for how in ("exit", "raise", "return")]
    logged = shop.tell.submit()
    jobs = shop.ended(*handles, logged)
    assert {job.status for job in jobs} == {Status.SUCCEEDED}
    assert {handle.result() for handle in handles} == {shop.host_pid()}
    for handle in handles:
        assert shop.log(handle) == "parent\nchild\nstill the parent\n"
    assert shop.log(logged, "stderr") == "set up at import\n"


BREAKS = """
import resource
@app.task
def break_it():
    note("called")
    if threading.current_thread() is threading.main_thread():
        until("go")
    else:
        until("break")
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 1 << 40))
"""


def test_a_thread_that_cannot_tell_of_its_call_ends_its_host(make_shop: MakeShop) -> None:
    """Otherwise the call runs for ever, for all that anyone knows."""
    shop = make_shop(BREAKS, threads=2, max_active=2)
    handles = [shop.break_it.submit() for _ in range(2)]
    shop.bench.until(lambda: shop.ledger() == ["called", "called"], "both to run")
    shop.touch("break")
    jobs = shop.ended(*handles)
    assert [job.reason for job in jobs] == ["its host died: exit code 1"] * 2
    assert os.listdir(shop.bench.home.hosts), "another has taken its place"


SPAWNS = """
import subprocess

@app.task
def shell(script):
    print("before", flush=True)
    subprocess.run(["sh", "-c", script])
    print("after", flush=True)

@app.task
def spawn(script):
    subprocess.run(["sh", "-c", script])

@app.task
def leave_behind(name):
    late = f"while ! test -e {name}; do sleep 0.01; done; echo late; touch {name}.said"
    subprocess.Popen(["sh", "-c", f"echo mine; touch {name}.up; {late}"])
    until(f"{name}.up")

@app.task
def wait_for(name):
    until(name)

@app.task
def write_raw(text):
    os.write(1, text.encode())

@app.task
def together(script):
    note("up")
    until("go")
    subprocess.run(["sh", "-c", script])
    until("end")

@app.task
def run_in_thread(script):
    note("up")
    until("go")
    job = current()
    thread = threading.Thread(target=lambda: job.run(["sh", "-c", script]))
    thread.start()
    thread.join()
"""


def test_output_of_a_subprocess_is_in_the_functions_log_in_its_order(make_shop: MakeShop) -> None:
    shop = make_shop(SPAWNS)
    handles = [shop.shell.submit(f"echo {word}; echo {word}! >&2") for word in ("one", "two")]
    handles.append(shop.shell.submit("echo three > /dev/stdout"))
    shop.ended(*handles)
    found = [(shop.log(each), shop.log(each, "stderr")) for each in handles]
    assert found == [
        ("before\none\nafter\n", "one!\n"),
        ("before\ntwo\nafter\n", "two!\n"),
        ("before\nthree\nafter\n", ""),
    ]


def test_each_of_many_calls_has_its_own_output(make_shop: MakeShop) -> None:
    """Also of calls that are over within microseconds, and of C code, which writes so, too."""
    shop = make_shop(SPAWNS)
    shop.let_wait()
    raw = [shop.write_raw.submit(f"{number}\n") for number in range(30)]
    spawned = [shop.spawn.submit(f"echo {number}") for number in range(10)]
    shop.ended(*raw, *spawned)
    assert [shop.log(each) for each in raw] == [f"{number}\n" for number in range(30)]
    assert [shop.log(each) for each in spawned] == [f"{number}\n" for number in range(10)]


def test_more_than_a_pipe_holds_goes_through(make_shop: MakeShop) -> None:
    shop = make_shop(SPAWNS)
    handle = shop.spawn.submit("head -c 300000 /dev/zero | tr '\\0' x; echo; echo end")
    shop.ended(handle)
    assert shop.log(handle) == "x" * 300_000 + "\nend\n"


def test_what_outlives_its_call_writes_into_no_other_log(make_shop: MakeShop) -> None:
    shop = make_shop(SPAWNS)
    left = shop.leave_behind.submit("now")
    shop.ended(left)
    other = shop.wait_for.submit("now.said")
    shop.touch("now")
    shop.ended(other)
    assert (shop.log(left), shop.log(other)) == ("mine\n", "")


def test_threads_are_told_once_that_it_is_elsewhere(make_shop: MakeShop) -> None:
    shop = make_shop(SPAWNS, threads=2, max_active=2)
    handles = [shop.together.submit(f"echo {word}") for word in ("one", "two")]
    shop.bench.until(lambda: shop.ledger() == ["up", "up"], "both to run")
    shop.touch("go")
    host = shop.host()
    own = Path(host.folder, "stdout.log")
    shop.bench.until(lambda: sorted(own.read_text().split()) == ["one", "two"], "the host's log")
    shop.touch("end")
    shop.ended(*handles)
    for handle in handles:
        assert shop.log(handle) == ""
        assert shop.log(handle, "stderr") == NOT_HERE


def test_a_command_of_a_job_writes_into_its_log_among_threads(make_shop: MakeShop) -> None:
    shop = make_shop(SPAWNS, threads=2, max_active=2)
    handles = [shop.run_in_thread.submit(f"echo {word}; echo {word} >&2") for word in "ab"]
    shop.bench.until(lambda: shop.ledger() == ["up", "up"], "both to run")
    shop.touch("go")
    shop.ended(*handles)
    assert [shop.log(each) for each in handles] == ["a\n", "b\n"]
    assert [shop.log(each, "stderr") for each in handles] == ["a\n", "b\n"]


RUNS = """
import subprocess

@app.task
def run(script):
    print("before")
    current().run(["sh", "-c", script])
    print("after")
"""


def test_a_command_of_a_job_that_fails_raises(make_shop: MakeShop) -> None:
    shop = make_shop(RUNS)
    good, bad = shop.run.submit("echo in between"), shop.run.submit("echo out; exit 3")
    _, failed = shop.ended(good, bad)
    assert shop.log(good) == "before\nin between\nafter\n"
    assert (failed.status, shop.log(bad)) == (Status.FAILED, "before\nout\n")
    assert "CalledProcessError" in (failed.reason or "")
    assert "exit status 3" in (failed.reason or "")


def test_a_cancel_ends_the_command_of_a_job(make_shop: MakeShop) -> None:
    shop = make_shop(RUNS)
    handle = shop.run.submit("trap 'echo bye; exit 1' TERM; echo up; sleep 600 & wait")
    shop.bench.until(lambda: "up" in shop.log(handle), "the command to be up")
    pid = shop.host_pid()
    shop.bench.client.cancel([handle.job_id])
    (job,) = shop.ended(handle)
    assert (job.status, shop.log(handle)) == (Status.CANCELLED, "before\nup\nbye\n")
    assert shop.host_pid() == pid, "the host lives on"
