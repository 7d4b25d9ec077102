"""The head and the tail of a job's output, and what is said about the rest."""

import os
import resource
import time
from pathlib import Path

import pytest
from supervised import Home, wait_for

from headway.supervise.logs import CappedLog, read_log

SMALL = {"head_bytes": 1000, "tail_bytes": 4000, "full": "drop"}


def read_all(folder: Path, stream: str = "stdout") -> tuple[bytes, int]:
    """The kept bytes and the number of those skipped."""
    offset, kept, skipped = 0, b"", 0
    while True:
        data, offset, gap = read_log(str(folder), stream, offset, 700)
        if not data:
            return kept, skipped
        kept, skipped = kept + data, skipped + gap


def test_streams_are_kept_apart_and_a_silent_one_is_empty(home: Home) -> None:
    claim = home.run_shell("echo out")
    outcome = claim.outcome()
    assert claim.log("stdout") == b"out\n"
    assert (claim.folder / "stderr.log").read_bytes() == b""
    assert outcome.logs == {
        "stdout": {"bytes": 4, "dropped": 0},
        "stderr": {"bytes": 0, "dropped": 0},
    }


def test_any_bytes_are_kept_as_they_are(home: Home) -> None:  # fault B5
    blob = bytes(range(256)) * 2000 + b"\xff\xfe\x00no newline"
    (home.path / "blob").write_bytes(blob)
    claim = home.claim("cat", stdin=str(home.path / "blob")).launch()
    assert claim.outcome().logs["stdout"] == {"bytes": len(blob), "dropped": 0}
    assert claim.log() == blob


def test_endless_output_keeps_head_and_tail(home: Home) -> None:  # fault B4
    caps = {"head_bytes": 100_000, "tail_bytes": 400_000, "full": "drop"}
    claim = home.run_shell("yes 0123456 | head -c 200000000; echo end", logs=caps)
    outcome = claim.outcome()
    assert outcome.logs["stdout"]["bytes"] == 200_000_004
    kept, skipped = read_all(claim.folder)
    assert kept[:100_000] == b"0123456\n" * 12500
    assert kept.endswith(b"0123456\nend\n")
    assert skipped == outcome.logs["stdout"]["dropped"]
    assert 500_000 <= len(kept) <= 600_000
    assert len(kept) + skipped == 200_000_004


def test_supervisor_stays_small_under_output(home: Home) -> None:  # fault B4
    claim = home.run_shell("yes | head -c 10000000; echo up >&2; sleep 1000", logs=SMALL)
    wait_for(lambda: claim.log("stderr"))
    rss = Path(f"/proc/{claim.pid}/statm").read_text().split()[1]
    assert int(rss) * resource.getpagesize() < 16 << 20


def test_full_log_blocks_the_command_and_drops_nothing(home: Home) -> None:
    logs = {**SMALL, "full": "block"}
    script = "yes | head -c 1000000 & sleep 0.3; echo end >&2; wait"
    claim = home.run_shell(script, logs=logs, timeout_seconds=1.5)
    outcome = claim.outcome()
    assert outcome.reason == "timed_out"
    assert outcome.logs["stdout"]["dropped"] == 0
    kept, skipped = read_all(claim.folder)
    assert (len(kept), skipped) == (outcome.logs["stdout"]["bytes"], 0)
    assert 5000 <= len(kept) <= 5000 + 65536
    assert claim.log("stderr") == b"end\n"


def test_full_log_kills_the_command(home: Home) -> None:
    claim = home.run_shell("yes", logs={**SMALL, "full": "kill"})
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code, outcome.signal) == ("log_full", None, "SIGKILL")
    assert outcome.tree == "gone"


def test_output_of_exactly_the_caps_is_not_full(home: Home) -> None:
    claim = home.run_shell("head -c 5000 /dev/zero", logs={**SMALL, "full": "kill"})
    outcome = claim.outcome()
    assert (outcome.reason, outcome.logs["stdout"]["dropped"]) == ("exited", 0)


def test_grandchild_that_holds_the_pipe_is_not_waited_for(home: Home) -> None:  # fault B3
    begin = time.monotonic()
    claim = home.run_shell("sleep 1000 & echo done", leftovers="leave")
    outcome = claim.outcome(seconds=6)
    assert (outcome.exit_code, outcome.tree) == (0, "left")
    assert claim.log() == b"done\n"
    assert time.monotonic() - begin < 5


def test_file_size_limit_counts_as_dropped(home: Home) -> None:  # fault A11
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    launcher = home.launcher()
    # The limit is inherited by supervisors; 64 KiB leaves room for the evidence.
    resource.prlimit(_parent_pid(launcher.pidfd), resource.RLIMIT_FSIZE, (65536, hard))
    big = {"head_bytes": 1 << 20, "tail_bytes": 0, "full": "drop"}
    claim = home.run_shell("yes | head -c 200000; exit 5", launcher=launcher, logs=big)
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code) == ("exited", 5)
    assert outcome.logs["stdout"] == {"bytes": 200_000, "dropped": 200_000 - 65536}
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == (soft, hard)


def test_writing_after_a_failure_keeps_offsets_true(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    log = CappedLog(str(tmp_path), "stdout", head_bytes=100, tail_bytes=100)
    log.append(b"a" * 50, 0.0)
    os.close(log._fd)
    log._fd = os.open("/dev/full", os.O_WRONLY)
    log.append(b"b" * 10, 1.0)
    log.append(b"c" * 10, 1.5)  # too soon to try again
    log.append(b"d" * 10, 2.5)
    log.close()
    assert (log.offset, log.dropped) == (80, 20)
    assert read_log(str(tmp_path), "stdout", 0, 999) == (b"a" * 50, 50, 0)
    assert read_log(str(tmp_path), "stdout", 50, 999) == (b"d" * 10, 80, 20)
    assert read_log(str(tmp_path), "stdout", 80, 999) == (b"", 80, 0)


@pytest.mark.parametrize("chunk", [1, 7, 250, 999, 5000])
def test_tail_holds_at_least_its_size_for_any_writes(tmp_path: Path, chunk: int) -> None:
    tmp_path.chmod(0o700)
    log = CappedLog(str(tmp_path), "stdout", head_bytes=300, tail_bytes=1000)
    stream = b"".join(b"%09d\n" % n for n in range(500))
    for at in range(0, len(stream), chunk):
        log.append(stream[at : at + chunk], 0.0)
    log.close()
    kept, skipped = read_all(tmp_path)
    assert kept[:300] == stream[:300]
    assert len(kept) >= 1300
    assert kept[300:] == stream[-(len(kept) - 300) :]
    assert skipped == log.dropped == len(stream) - len(kept)


def test_reading_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_log(str(tmp_path / "none"), "stdout", 0, 10) == (b"", 0, 0)


def _parent_pid(pidfd: int) -> int:
    lines = Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))


@pytest.mark.parametrize("made", [(0, 3, 5), (5, 3, 0), (3, 0, 5)])
def test_the_first_bytes_are_read_first_in_whatever_order_the_files_are_listed(
    tmp_path: Path, made: tuple[int, ...]
) -> None:
    parts = {0: b"abc", 3: b"de", 5: b"f"}
    for start in made:
        name = "stdout.log" if start == 0 else f"stdout.log.{start:020d}"
        (tmp_path / name).write_bytes(parts[start])
    tmp_path.chmod(0o700)
    assert read_log(str(tmp_path), "stdout", 0, 100) == (b"abc", 3, 0)
    assert read_log(str(tmp_path), "stdout", 4, 100) == (b"e", 5, 0)


def test_each_byte_takes_of_the_room_of_a_log(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    log = CappedLog(str(tmp_path), "stdout", head_bytes=4, tail_bytes=8, forgets=False)
    left = [log.room()]
    for _ in range(6):
        log.append(b"xy", 0.0)
        left.append(log.room())
    log.close()
    assert left == [12, 10, 8, 6, 4, 2, 0]
