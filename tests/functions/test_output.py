"""Whose log it is that a function writes to, and for how long."""

import io
import os
from collections.abc import Callable
from pathlib import Path

from shop import Shop

from headway.core.states import Status
from headway.functions.current import Current, become, leave
from headway.functions.output import Outputs

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
        assert shop.log(handle) == "parent\nstill the parent\n"
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
