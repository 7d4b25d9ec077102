"""What programs do to themselves and to us, through the whole path: each is settled once, truly."""

import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness import Bench, wait_for
from headway.base.errors import InvalidInputError
from headway.core.model import Job
from headway.core.states import TERMINAL, Status
from headway.jobs.request import Request
from headway.jobs.views.why import why
from headway.supervise.logs import read_log


def run_python(bench: Bench, script: str, **options: Any) -> dict[str, Any]:
    job = bench.submit(sys.executable, "-c", script, **options)
    bench.until_ended(job)
    return bench.client.document(job)


def folder(bench: Bench, document: dict[str, Any]) -> Path:
    return Path(document["run"]["stdout_path"]).parent


def whole_log(folder: Path, stream: str = "stdout", chunk: int = 100_000) -> tuple[bytes, int]:
    """What was kept, and how many bytes in between were not."""
    offset, kept, skipped = 0, b"", 0
    while True:
        data, offset, gap = read_log(str(folder), stream, offset, chunk)
        if not data:
            return kept, skipped
        kept, skipped = kept + data, skipped + gap


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("std*.log*"))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


# -- how a program ends ---------------------------------------------------------------------------

SEGFAULT = "import ctypes; ctypes.string_at(0)"
ENDINGS = [
    pytest.param("pass", "succeeded", 0, None, None, id="end"),
    pytest.param("import os; os._exit(3)", "failed", 3, None, "exit code 3", id="_exit"),
    pytest.param("import sys; sys.exit('x')", "failed", 1, None, "exit code 1", id="exit-text"),
    pytest.param("import sys; sys.exit(300)", "failed", 44, None, "exit code 44", id="exit-300"),
    pytest.param(
        "raise RuntimeError('boom')",
        "failed",
        1,
        None,
        "exit code 1",
        id="exception",
        marks=pytest.mark.req("V96"),
    ),
    pytest.param(SEGFAULT, "failed", None, "SIGSEGV", "killed by SIGSEGV", id="segfault"),
    pytest.param(
        "import os; os.abort()", "failed", None, "SIGABRT", "killed by SIGABRT", id="abort"
    ),
    pytest.param(
        "import os; os.kill(os.getpid(), 9)",
        "failed",
        None,
        "SIGKILL",
        "killed by SIGKILL",
        id="kill",
    ),
    pytest.param(
        "import os, signal; signal.signal(15, signal.SIG_DFL); os.kill(os.getpid(), 15)",
        "failed",
        None,
        "SIGTERM",
        "killed by SIGTERM",
        id="term",
    ),
    pytest.param("import sys; sys.exit(139)", "failed", 139, None, "exit code 139", id="exit-139"),
]


@pytest.mark.parametrize(("script", "state", "code", "signal", "reason"), ENDINGS)
def test_every_ending_is_settled_once_with_the_truth(  # fault B13, B14
    bench: Bench, script: str, state: str, code: int | None, signal: str | None, reason: str | None
) -> None:
    document = run_python(bench, script)
    run = document["run"]
    assert (document["state"], run["exit_code"], run["signal"]) == (state, code, signal)
    assert document["reason"] == reason and run["error"] == reason
    job = int(document["id"].removeprefix("job-"))
    for _ in range(3):
        bench.step()
    assert bench.kinds(job) == ["submitted", "running", state]
    assert bench.client.document(job) == document
    assert len(bench.client.listing(everything=True)) == 1


def test_what_a_dying_program_said_is_kept(bench: Bench) -> None:  # fault B14
    document = run_python(bench, "import sys; print('last', flush=True); sys.exit('x')")
    assert folder(bench, document).joinpath("stdout.log").read_text() == "last\n"
    assert folder(bench, document).joinpath("stderr.log").read_text() == "x\n"
    document = run_python(bench, "raise RuntimeError('boom')")
    assert "RuntimeError: boom" in folder(bench, document).joinpath("stderr.log").read_text()


def test_a_signal_death_leaves_no_core(  # fault B13
    make_bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off for the job even where the submitter's limit allows them."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        bench = make_bench()
        said = bench.submit("sh", "-c", "ulimit -c")
        document = run_python(bench, SEGFAULT)
        bench.until_ended(said)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert Path(bench.home.job(said), "stdout.log").read_text() == "0\n"
    assert document["run"]["signal"] == "SIGSEGV"
    assert os.listdir(work) == []
    with bench.store.read() as tx:
        job = int(document["id"].removeprefix("job-"))
        outcome = tx.jobs.evidence([job])[job]["outcome"]
    assert outcome["core_dumped"] is False
    assert os.WTERMSIG(outcome["wait_status"]) == 11


@pytest.mark.parametrize("options", [{"argv": ("true", "\ud800")}, {"env": {"A": "\ud800"}}])
def test_a_command_that_no_process_can_be_given_harms_no_other(
    bench: Bench, options: dict[str, Any]
) -> None:
    """Half a character, as JSON may have it: refused, or failed alone."""
    with suppress(InvalidInputError):
        bench.client.submit(Request(**{"argv": ("true",), **options}))
    healthy = bench.submit("true")

    def decided() -> bool:
        wait = bench.client.document(healthy)["wait"] or {"kind": None}
        return bench.status(healthy) in TERMINAL or wait["kind"] == "pressure"

    bench.until(decided)
    assert bench.status(healthy) is Status.SUCCEEDED


# -- what it reads --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('read x; echo "$? [$x]"', "1 []\n"),
        ("cat; echo done", "done\n"),
        ("test -t 0 || echo no tty", "no tty\n"),
        ("(: < /dev/tty) 2> /dev/null || echo no terminal", "no terminal\n"),
        ("readlink /proc/self/fd/0", "/dev/null\n"),
    ],
)
def test_who_asks_on_stdin_gets_an_end_of_file(  # fault B15
    bench: Bench, script: str, said: str
) -> None:
    job = bench.submit("sh", "-c", script)
    bench.until_ended(job)
    assert Path(bench.home.job(job), "stdout.log").read_text() == said


def test_a_file_given_as_stdin_arrives(bench: Bench) -> None:  # fault B15
    content = os.urandom(200_000)
    (bench.folder / "input").write_bytes(content)
    job = bench.submit("cat", stdin=str(bench.folder / "input"))
    bench.until_ended(job)
    assert whole_log(Path(bench.home.job(job))) == (content, 0)


# -- what it writes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"no newline",
        b"\0\0a\0\n\0",
        b"\xff\xfe\xc3\x28\x80\xed\xa0\x80\n",
        bytes(range(256)) * 16,
        b"\r\n\r\r\n\x1b[2J\x07",
        b"x" * 1_000_000,
        b"x" * 1_000_000 + b"\n",
        b"\n" * 100_000,
    ],
    ids=[
        "nothing",
        "nul",
        "no-newline",
        "nuls",
        "no-utf-8",
        "all",
        "control",
        "long",
        "line",
        "lf",
    ],
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_is_kept_byte_for_byte(  # fault B5
    bench: Bench, content: bytes, stream: str
) -> None:
    (bench.folder / "content").write_bytes(content)
    redirect = "cat content" if stream == "stdout" else "cat content >&2"
    job = bench.submit("sh", "-c", redirect, cwd=str(bench.folder))
    bench.until_ended(job)
    run = bench.client.document(job)["run"]
    assert (run["exit_code"], run["dropped_bytes"]) == (0, 0)
    for chunk in (7919, 65536, 10_000_000):
        assert whole_log(Path(bench.home.job(job)), stream, chunk) == (content, 0)


SMALL = {"logs.head": "10KiB", "logs.tail": "40KiB"}


def test_output_beyond_the_limit_is_dropped_and_counted_and_the_job_succeeds(  # fault B4
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(settings=SMALL)
    job = bench.submit("sh", "-c", "echo begin; yes | head -c 20000000; echo end; echo said >&2")
    bench.until_ended(job)
    document = bench.client.document(job)
    assert document["state"] == "succeeded"
    logs = Path(bench.home.job(job))
    kept, skipped = whole_log(logs)
    assert kept.startswith(b"begin\ny\n") and kept.endswith(b"y\nend\n")
    assert len(kept) + skipped == 20_000_010
    assert document["run"]["dropped_bytes"] == skipped > 19_000_000
    assert 50 << 10 <= on_disk(logs) <= 65 << 10
    assert whole_log(logs, "stderr") == (b"said\n", 0)


def test_with_kill_a_full_log_fails_the_job_and_says_why(  # fault B4
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(settings={**SMALL, "logs.full": "kill"})
    job = bench.submit("sh", "-c", "echo begin; yes")
    quiet = bench.submit("sh", "-c", "yes | head -c 40000")
    bench.until_ended(job, quiet)
    document = bench.client.document(job)
    assert (document["state"], document["reason"]) == ("failed", "killed: its log is full")
    assert (document["run"]["exit_code"], document["run"]["signal"]) == (None, "SIGKILL")
    assert whole_log(Path(bench.home.job(job)))[0].startswith(b"begin\ny\n")
    assert on_disk(Path(bench.home.job(job))) <= 65 << 10
    assert bench.status(quiet) is Status.SUCCEEDED


def test_with_block_a_full_log_holds_the_job_and_loses_nothing(  # fault B4
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(settings={**SMALL, "logs.full": "block"})
    job = bench.submit("sh", "-c", "yes | head -c 2000000")
    logs = Path(bench.home.job(job))
    bench.until(lambda: on_disk(logs) >= 50 << 10, "the log to fill up")
    for _ in range(5):
        bench.turn()
    assert bench.status(job) is Status.RUNNING
    assert on_disk(logs) == 50 << 10
    bench.client.cancel([job])
    bench.until_ended(job)
    document = bench.client.document(job)
    assert (document["state"], document["run"]["dropped_bytes"]) == ("cancelled", 0)


# -- what it leaves behind ------------------------------------------------------------------------

LEAVER = (
    "(trap '' HUP; while ! test -e stop; do sleep 0.02; done; echo later) & echo $! > pid; exit 0"
)


@pytest.fixture
def leaving(make_bench: Callable[..., Bench]) -> Callable[[str], tuple[Bench, int]]:
    """A job that has started a process of its own and exited, under that policy."""

    def start(policy: str) -> tuple[Bench, int]:
        bench = make_bench(settings={"processes.leftovers": policy})
        return bench, bench.submit("sh", "-c", LEAVER, cwd=str(bench.folder))

    return start


def pid_of(bench: Bench) -> int:
    path = bench.folder / "pid"
    return int(bench.until(lambda: path.exists() and path.read_text().strip()))


def test_leftovers_are_killed(leaving: Callable[[str], tuple[Bench, int]]) -> None:
    bench, job = leaving("kill")
    pid = pid_of(bench)
    bench.until_ended(job)
    assert bench.client.document(job)["state"] == "succeeded", "its own end is what counts"
    assert not is_alive(pid)
    assert whole_log(Path(bench.home.job(job))) == (b"", 0)


def test_leftovers_are_waited_for(leaving: Callable[[str], tuple[Bench, int]]) -> None:
    bench, job = leaving("wait")
    pid = pid_of(bench)
    for _ in range(5):
        bench.turn()
    assert is_alive(pid) and bench.status(job) is Status.RUNNING
    (bench.folder / "stop").touch()
    bench.until_ended(job)
    assert bench.client.document(job)["state"] == "succeeded"
    assert not is_alive(pid)
    assert whole_log(Path(bench.home.job(job))) == (b"later\n", 0)


def test_leftovers_are_left_alone(leaving: Callable[[str], tuple[Bench, int]]) -> None:
    bench, job = leaving("leave")
    pid = pid_of(bench)
    try:
        bench.until_ended(job)
        assert bench.client.document(job)["state"] == "succeeded"
        assert is_alive(pid)
        bench.until_ended(bench.submit("true"))
    finally:
        (bench.folder / "stop").touch()
        wait_for(lambda: not is_alive(pid), what="the leftover to go")


def test_a_cancel_ends_leftovers_that_are_waited_for(
    leaving: Callable[[str], tuple[Bench, int]],
) -> None:
    bench, job = leaving("wait")
    pid = pid_of(bench)
    bench.client.cancel([job])
    bench.until_ended(job)
    assert not is_alive(pid)


def test_a_type_that_is_unknown_here_waits_and_stops_nobody(bench: Bench) -> None:  # fault D11
    with bench.store.write() as tx:  # as a newer program would
        job_id = tx.jobs.take_ids(1)
        job = Job(job_id, "x", "dream", Status.QUEUED, 9, 100, {}, tx.now(), job_id)
        tx.jobs.add([job])
    other = bench.submit("true")
    bench.until_ended(other)
    assert bench.status(other) is Status.SUCCEEDED
    waiting = bench.job(job_id)
    assert waiting.status is Status.QUEUED and waiting.wait is not None
    assert waiting.wait.detail == "jobs of type dream are unknown here"
    assert why(bench.client.context, job_id)["objections"][0]["kind"] == "task"
    bench.client.cancel([job_id])
