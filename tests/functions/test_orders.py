"""What a host is told: whole or in pieces, while it is idle and while all its threads are busy."""

import json
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import wait_for
from headway.functions.current import current
from headway.functions.host.journal import NAME, Journal, parse
from headway.functions.host.orders import Orders, read_order
from headway.functions.host.process import HostProcess

A, B, C, D = (letter * 32 for letter in "abcd")


def order(token: str, task: str = "work", **arguments: Any) -> bytes:
    params = json.dumps({"task": task, "args": arguments}, ensure_ascii=False)
    return f"r {token} 7 2 {params}\n".encode()


SENT = b"".join(
    (
        order(A, word="é\u2028 \\n"),
        b'{"cancel": "' + D.encode() + b'"}\n',
        order(B),
        b'{"leave": true}\n',
        order(C, word="x" * 50),
    )
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 60, len(SENT) - 1, len(SENT)])
def test_what_comes_in_pieces_is_put_together(size: int) -> None:
    orders, obeyed = Orders(), list[tuple[dict[str, Any], int]]()
    for start in range(0, len(SENT), size):
        orders.receive(
            SENT[start : start + size],
            lambda message: obeyed.append((message, len(orders.waiting))),
        )
    assert [read_order(each) for each in orders.waiting] == [
        (A, 7, 2, {"task": "work", "args": {"word": "é\u2028 \\n"}}),
        (B, 7, 2, {"task": "work", "args": {}}),
        (C, 7, 2, {"task": "work", "args": {"word": "x" * 50}}),
    ]
    assert obeyed == [({"cancel": D}, 1), ({"leave": True}, 2)], "each after what came before it"


def test_only_what_was_ordered_before_is_given_back() -> None:
    orders, given_back = Orders(), list[str]()
    sent = order(A) + order(B) + b'{"give_back": true}\n' + order(C)
    orders.receive(sent, lambda _: given_back.extend(orders.take_all()))
    assert given_back == [A, B]
    assert [read_order(each)[0] for each in orders.waiting] == [C]


@pytest.mark.parametrize("sent", [b"{\n", b"what\n", b"\xff\n", b"[]\n"])
def test_what_makes_no_sense_is_refused(sent: bytes) -> None:
    with pytest.raises(ValueError):
        Orders().receive(sent, lambda message: None)


class Played:
    """A host in this process, with this test in the place of its worker."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        self.folder = folder
        self.gates: dict[str, threading.Event] = {}
        self.began: list[str] = []
        self.known: set[tuple[str, str]] = set()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(folder / "socket"))
            listener.listen(1)
            logs = {"head_bytes": 1000, "tail_bytes": 1000}
            settings = {"threads": threads, "jobs": str(folder / "jobs"), "logs": logs}
            self.host = HostProcess(str(folder), settings)
            self.worker, _ = listener.accept()
        self.worker.settimeout(30)
        self.host._functions = {
            "work": self.work,
            "nap": self.nap,
            "hold": self.hold,
            "spin": self.spin,
        }
        self.threads = [threading.Thread(target=self.host._work) for _ in range(threads)]
        self._stands_by = threading.Thread(target=self.host._stand_by)

    def start(self, *, standing_by: bool = True) -> None:
        if standing_by:
            self.threads.append(self._stands_by)
        for thread in self.threads:
            thread.start()

    def work(self, word: str = "") -> None:
        self.began.append(current().token)

    def nap(self) -> None:
        self.work()
        self.gate("never").wait(0.003)

    def hold(self) -> None:
        self.began.append(current().token)
        assert self.gate(current().token).wait(30)

    def spin(self) -> None:
        self.began.append(current().token)
        while not current().cancelled():
            sum(range(1000))
        raise RuntimeError("stopped")

    def gate(self, token: str) -> threading.Event:
        return self.gates.setdefault(token, threading.Event())

    def send(self, *messages: bytes | dict[str, Any]) -> None:
        lines = (
            each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n"
            for each in messages
        )
        self.worker.sendall(b"".join(lines))

    def journal(self) -> list[tuple[str, str]]:
        return [(kind, token) for kind, token, _ in parse((self.folder / NAME).read_bytes())]

    def until_hinted(self, *entries: tuple[str, str]) -> None:
        """Read the journal only after a hint, as a worker does."""
        while not set(entries) <= self.known:
            assert self.worker.recv(1 << 16).strip(b"\n") == b"", "nothing but hints"
            self.known = set(self.journal())

    def until_begun(self, *tokens: str) -> None:
        wait_for(lambda: set(tokens) <= set(self.began), what="the calls")

    def hint_only_if_needed(self) -> None:
        """Not because it is some time since the last one."""
        self.host._hinted_at = time.monotonic_ns() + 3600 * 10**9

    def close(self) -> None:
        self.worker.close()
        for token in self.began:
            self.gate(token).set()
        for thread in self.threads:
            if thread.ident is not None:
                thread.join(30)
                assert not thread.is_alive()
        self.host._worker.close()
        self.host._journal.close()


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[..., Played]]:
    played: list[Played] = []

    def make(*, threads: int = 1, standing_by: bool = True) -> Played:
        here = Played(tmp_path, threads=threads)
        played.append(here)
        here.start(standing_by=standing_by)
        return here

    yield make
    for each in played:
        each.close()


Play = Callable[..., Played]


def test_several_orders_in_one_message_and_one_in_several(play: Play) -> None:
    here = play()
    here.send(order(A) + order(B) + order(C)[:40])
    here.until_hinted(("e", A), ("e", B))
    here.send(order(C)[40:50])
    here.send(order(C)[50:])
    here.until_hinted(("e", C))
    assert here.began == [A, B, C]


def test_two_threads_share_what_one_of_them_heard(play: Play) -> None:
    here = play(threads=2)
    here.send(order(A, "hold") + order(B, "hold") + order(C))
    here.until_begun(A, B)
    assert here.began.count(C) == 0
    here.gate(B).set()
    here.until_hinted(("e", B), ("e", C))
    here.send(order(D))
    here.until_hinted(("e", D))
    assert ("e", A) not in here.journal()


def test_a_function_that_computes_is_cancelled(play: Play) -> None:
    here = play()
    here.send(order(A, "spin"))
    here.until_begun(A)
    here.send({"cancel": A})
    here.until_hinted(("e", A))
    assert '"cancelled"' in (here.folder / NAME).read_text()


def test_all_is_heard_while_all_threads_are_busy(play: Play) -> None:
    here = play()
    here.send(order(A, "hold"))
    here.until_begun(A)
    here.send(order(C))
    here.send({"give_back": True})
    here.until_hinted(("v", C))
    here.send(order(D))
    here.gate(A).set()
    here.until_hinted(("e", A), ("e", D))
    assert here.began == [A, D]


def test_a_busy_host_hears_at_once_also_what_comes_behind_much_else(play: Play) -> None:
    here = play()
    here.send(order(A, "hold"))
    here.until_begun(A)
    here.send(*(order(B, word="x" * 100_000) for _ in range(5)), {"give_back": True})
    here.until_hinted(("v", B))


def test_a_host_hears_in_the_middle_of_many_short_calls(play: Play) -> None:
    here = play()
    tokens = [f"{number:032x}" for number in range(5_000)]
    here.send(*(order(token, "nap") for token in tokens))
    here.until_begun(tokens[0])
    here.send({"leave": True})
    here.threads[0].join(30)
    assert not here.threads[0].is_alive()
    assert tokens[-1] not in here.began


def test_a_call_that_was_cancelled_before_its_turn_is_never_made(play: Play) -> None:
    here = play()
    here.send(order(A, "hold"))
    here.until_begun(A)
    here.send(order(B), order(C), {"cancel": B})
    here.until_hinted(("v", B))
    here.gate(A).set()
    here.until_hinted(("e", A), ("e", C))
    assert here.began == [A, C]
    assert ("s", B) not in here.journal()


def test_who_is_told_to_leave_in_the_middle_finishes_what_runs_and_still_listens(
    play: Play,
) -> None:
    here = play(threads=2)
    here.send(order(A, "hold") + order(B, "spin") + order(C))
    here.until_begun(A, B)
    here.send({"leave": True}, order(D))
    wait_for(lambda: here.host._leaving, what="the host to know")
    here.gate(A).set()
    here.until_hinted(("e", A))
    here.send({"cancel": B})
    here.until_hinted(("e", B))
    for thread in here.threads[:2]:
        thread.join(30)
        assert not thread.is_alive()
    assert sorted(here.began) == [A, B]
    assert not {C, D} & {token for _, token in here.journal()}


def test_all_threads_leave_when_one_of_them_was_told(play: Play) -> None:
    here = play(threads=3, standing_by=False)
    here.send({"leave": True})
    for thread in here.threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("idle", [True, False])
def test_a_host_whose_worker_is_gone_begins_nothing_more(play: Play, idle: bool) -> None:
    here = play(threads=3)
    if not idle:
        here.send(*(order(token, "hold") for token in (A, B, C)), order(D))
        here.until_begun(A, B, C)
    here.worker.close()
    wait_for(lambda: here.host._leaving, what="the host to know")
    for token in here.began:
        here.gate(token).set()
    for thread in here.threads:
        thread.join(30)
        assert not thread.is_alive()
    assert D not in here.began


def test_a_host_that_does_not_understand_its_worker_leaves(play: Play) -> None:
    here = play()
    here.send({"dance": True})
    here.threads[0].join(30)
    assert not here.threads[0].is_alive()


def test_what_was_taken_back_by_another_before_its_start_is_never_called(play: Play) -> None:
    here = play()
    here.send(order(A, "hold") + order(B) + order(C))
    here.until_begun(A)
    assert Journal(os.path.join(here.folder, NAME)).void([A, B]) == {B}
    here.gate(A).set()
    here.until_hinted(("e", A), ("e", C))
    assert here.began == [A, C]
    assert here.journal().index(("v", B)) < here.journal().index(("s", B))


def test_the_end_before_one_that_was_taken_back_is_hinted_at(play: Play) -> None:
    here = play(standing_by=False)
    here.hint_only_if_needed()
    here.host._looks = True
    here.send(order(A, "hold") + order(B) + order(C))
    here.until_begun(A)
    here.host._hint_at = -1
    Journal(os.path.join(here.folder, NAME)).void([B, C])
    here.gate(A).set()
    here.until_hinted(("e", A))
    assert here.began == [A]


@pytest.mark.parametrize("standing_by", [True, False])
def test_an_end_is_hinted_at_while_the_next_call_takes_its_time(
    play: Play, standing_by: bool
) -> None:
    """Also if nobody looks now and then: that is so when nothing has begun for a while."""
    here = play(standing_by=standing_by)
    here.hint_only_if_needed()
    here.send(order(A) + order(B, "hold") + order(C) + order(D))
    here.until_hinted(("e", A))
    here.until_begun(A, B)
    assert here.began == [A, B]


@pytest.mark.parametrize("threads", [1, 3])
def test_however_orders_come_each_is_carried_out_once(play: Play, threads: int) -> None:
    lots = random.Random(threads)
    here = play(threads=threads)
    tokens = [f"{number:032x}" for number in range(600)]
    sent = b"".join(map(order, tokens))
    while sent:
        size = lots.choice((1, 30, 76, 77, 500, 5000))
        here.send(sent[:size])
        sent = sent[size:]
        if lots.random() < 0.1:  # let them come to rest
            whole = len(tokens) - sent.count(b"\n")
            here.until_hinted(*(("e", token) for token in tokens[:whole]))
    here.until_hinted(*(("e", token) for token in tokens))
    assert sorted(here.began) == tokens
