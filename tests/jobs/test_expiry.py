"""Direct calls that nobody renews: who may look after them, when, and what goes first."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from harness import Bench
from headway.core.reservations import Reservation
from headway.jobs.expiry import end_overdue, remove_expired
from headway.supervise.direct import VARIABLE

NOW = 1_700_000_000_000_000
STANDS = 20_000_000


def call(number: int = 1, expires_at: int = NOW, host: str = "here") -> Reservation:
    return Reservation(
        id=number,
        token=f"{number:032}",
        holder="ann",
        note="a look",
        host_id=host,
        pid=77,
        requested_at=NOW - STANDS,
        expires_at=expires_at,
    )


@pytest.mark.parametrize(
    ("host", "expires_at", "goes"),
    [
        ("here", NOW + 1, False),
        ("here", NOW, True),
        ("here", NOW - 1, True),
        # Of another host nobody can tell from here what is left: it stands a while longer.
        ("there", NOW, False),
        ("there", NOW - STANDS + 1, False),
        ("there", NOW - STANDS, True),
    ],
)
def test_an_overdue_call_goes_when_this_host_may_say_so(
    host: str, expires_at: int, goes: bool
) -> None:
    overdue = call(expires_at=expires_at, host=host)
    assert end_overdue([overdue], "here", NOW) == ([overdue] if goes else [])


@pytest.fixture
def left_behind() -> Iterator[subprocess.Popen[bytes]]:
    environ = {"PATH": os.environ["PATH"], VARIABLE: call().token}
    with subprocess.Popen(["sleep", "600"], env=environ) as process:
        yield process
        process.kill()


def test_what_it_left_is_ended_before_it_goes(left_behind: subprocess.Popen[bytes]) -> None:
    assert end_overdue([call(expires_at=NOW + 1)], "here", NOW) == []
    assert end_overdue([call(host="there")], "here", NOW) == []
    assert left_behind.poll() is None, "it is not overdue yet, or not ours"
    end_overdue([call()], "here", NOW)
    assert left_behind.wait(timeout=30) == -9
    assert end_overdue([call()], "here", NOW) == [call()]


def test_who_was_renewed_meanwhile_stays_and_the_others_are_told_of(bench: Bench) -> None:
    now = bench.clock.now()
    late, renewed = call(1, now - 1), call(2, now + STANDS)
    with bench.store.write() as tx:
        for each in (late, renewed):
            tx.reservations.add(each)
        removed = remove_expired(tx, [late, renewed], actor="worker")
    assert [each.name for each in removed] == ["direct-1"]
    with bench.store.read() as tx:
        assert [each.name for each in tx.reservations.all()] == ["direct-2"]
        events = [each for each in tx.events.since(0, 100) if each.kind == "expired"]
    assert [(dict(each.data), each.actor) for each in events] == [({"id": "direct-1"}, "worker")]
