"""The journal of a host: the first entry for a token wins, whatever is torn or full."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import wait_for
from headway.functions.host import journal as journals
from headway.functions.host.journal import Journal, Reader, line, parse
from headway.supervise.overseer import Overseer

A, B, C = (letter * 32 for letter in "abc")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal")


def entries(path: str) -> list[tuple[str, str]]:
    return [(kind, token) for kind, token, _ in parse(Path(path).read_bytes())]


def test_what_was_started_cannot_be_taken_back(path: str) -> None:
    host, recovery = Journal(path), Journal(path)
    assert host.start(A, None)
    assert recovery.void([A, B]) == {B}
    assert not host.start(B, None)
    assert host.start(C, 1.5)
    assert recovery.void([C]) == set()
    assert Journal(path).start("d" * 32, None)


def test_what_was_taken_back_is_known_to_who_comes_later(path: str) -> None:
    Journal(path).void([A])
    late = Journal(path)
    assert not late.start(A, None)
    assert Journal(path).void([A]) == {A}, "taking back twice changes nothing"


def test_of_many_races_each_has_one_winner(path: str) -> None:
    tokens = [os.urandom(16).hex() for _ in range(500)]
    host, recovery = Journal(path), Journal(path)
    started: set[str] = set()
    taken: set[str] = set()
    ready = threading.Barrier(2)

    def start() -> None:
        ready.wait()
        started.update(token for token in tokens if host.start(token, None))

    def take_back() -> None:
        ready.wait()
        for first in range(0, 500, 10):
            taken.update(recovery.void(reversed(tokens[first : first + 10])))

    threads = [threading.Thread(target=each) for each in (start, take_back)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not started & taken
    assert started | taken == set(tokens)


@pytest.mark.parametrize(
    "torn", [b"s", b"e " + A.encode() + b' [0,"x', b"\xff\xfe", b"v " + B[:9].encode()]
)
def test_a_torn_line_hides_no_other(path: str, torn: bytes) -> None:
    Path(path).write_bytes(torn)
    recovery, host = Journal(path), Journal(path)
    assert recovery.void([C]) == {C}
    assert not host.start(C, None)
    assert host.start(B, 7.25)
    assert [entry for entry in entries(path) if entry[1] in (B, C)] == [
        ("v", C),
        ("s", C),
        ("t", B),
    ]


def test_a_reader_takes_whole_lines_only(path: str) -> None:
    journal, reader = Journal(path), Reader(path)
    journal.add(f"s {A}\ne {A}")
    assert [kind for kind, _, _ in parse(reader.read())] == ["s"]
    assert reader.read() == b""
    journal.add(line("p", A, [0.5, "half"]))
    assert [(kind, content) for kind, _, content in parse(reader.read())] == [
        ("e", ""),
        ("p", '[0.5,"half"]'),
    ]
    reader.rewind()
    assert len(list(parse(reader.read()))) == 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.root
def test_a_host_waits_for_room_and_loses_no_end(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "RETRY_SECONDS", 0.02)
    ballast = small_disk / "ballast"
    path = str(small_disk / "journal")
    patient, hasty = Journal(path, patient=True), Journal(path)
    assert patient.start(A, None)
    with pytest.raises(OSError, match=r"[Nn]o space"), open(ballast, "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    end = line("e", A, [0, "x" * 8000])
    writer = threading.Thread(target=patient.add, args=(end,))
    writer.start()
    wait_for(lambda: os.path.getsize(path) > 2000, what="the torn line")
    with pytest.raises(OSError, match=r"[Nn]o space"):
        while True:
            hasty.void([B])
    assert writer.is_alive()
    ballast.unlink()
    writer.join(10)
    whole = [each for each in Path(path).read_bytes().split(b"\n") if each == end.strip().encode()]
    assert len(whole) == 1
    assert hasty.void([C]) == {C} and not patient.start(C, None)


def test_who_watches_the_deadlines_knows_which_count(path: str) -> None:
    journal, now = Journal(path), time.monotonic()
    overseer = Overseer(path, now)
    journal.start(A, now - 1)
    journal.add(line("e", A, [0]))
    assert not overseer.look(now), "it has ended"
    Journal(path).void([B])
    assert not journal.start(B, now - 1)
    assert not overseer.look(now), "it was never called"
    journal.add(f"t {C} 1.2")
    assert not overseer.look(now), "a torn line"
    journal.start(C, now + 0.5)
    assert Journal(path).void([C]) == set()
    assert not overseer.look(now) and overseer.look_at == pytest.approx(now + 0.5)
    assert overseer.look(now + 0.6) and overseer.culprit == C


def test_without_a_journal_there_are_no_deadlines(tmp_path: Path) -> None:
    overseer = Overseer(str(tmp_path / "none"), 0.0)
    assert not overseer.look(10.0) and overseer.look_at == 11.0


@pytest.mark.parametrize(
    "content",
    [
        "1700 12 .",
        '1700 12 [1,null,"it broke",null,null]',
        '1700 12 [0,null,null,null,null,["/srv/plan.md"]]',
    ],
)
def test_an_end_that_is_torn_anywhere_is_no_end(content: str) -> None:
    from headway.core.model import Claim
    from headway.functions.pool.host import ClaimedCall, how_it_ended

    claim = Claim(1, A, 1, "worker", "host", "/home", "boot", "/home/run", 0)
    call = ClaimedCall(claim, None, {})
    assert how_it_ended(call, content).took == 12
    for length in range(len(content)):
        with pytest.raises(ValueError):
            how_it_ended(call, content[:length])


@pytest.mark.parametrize(("size", "window"), [(100, 16), (1 << 20, 4), (1 << 23, 1)])
def test_fewer_calls_wait_in_a_host_if_they_are_large(path: str, size: int, window: int) -> None:
    from headway.core.plaincalls import PlainCall
    from headway.functions.host.journal import Reader
    from headway.functions.pool.host import FunctionHost
    from headway.store.records import Claimant, TakenCall
    from headway.worker.fastlane.claims import LaneCall

    Journal(path).add("".join(f"e {token} 1700 12 .\n" for token in (A, B, C)))
    host = FunctionHost(os.path.dirname(path), "h" * 32, 0.0)
    host.window, host.reader = 8, Reader(path)
    call = PlainCall(1, 1, 1, "f", "x" * size)
    claimant = Claimant("worker", "host", "home", "boot", "folder", "h" * 32)
    host.calls = {token: LaneCall(TakenCall(call, token, 1, 0), claimant) for token in (A, B, C)}
    news, _ = host.read(1.0)
    host.close()
    assert len(news.returned) == 3 and host.window == window


def test_what_a_host_does_not_take_at_once_is_sent_later_and_whole(tmp_path: Path) -> None:
    import socket

    from headway.functions.pool.host import FunctionHost

    host = FunctionHost(str(tmp_path), "h" * 32, 0.0)
    host.connection, other = socket.socketpair()
    lines = [f"r {number:0900000}\n" for number in range(3)]
    for each in lines:
        host.send_lines(each)
    got = bytearray()
    while host.flush() or len(got) < len("".join(lines)):
        got += other.recv(1 << 16)
    assert got.decode() == "".join(lines)
    host.connection.close()
    host.send_lines("r for nobody\n")
    host.connection = None
    assert not host.flush()
    other.close()
