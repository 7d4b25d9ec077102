"""Decisions over HTTP: who may approve, of what was seen, and only once (fault G4)."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import API, Served, on_both_stores, serving_new_home
from wire import Heard

from headway.web.server import Listen


def asking(served: Served, *argv: str) -> tuple[str, str]:
    """A job that asks for approval, and what is seen of it."""
    job = f"job-{served.submit(*(argv or ('true',)), require_approval=True)}"
    return job, served.ask("GET", f"jobs/{job}").header("etag")


def decide(
    served: Served, job: str, verb: str = "approve", *, seen: str | None, token: str | None = None
) -> Heard:
    given = [] if seen is None else [("If-Match", seen)]
    return served.ask_as(token or served.token("operate"), "POST", f"jobs/{job}/{verb}", {}, given)


def events_of(served: Served, job: str, *kinds: str) -> list[str]:
    return [each.kind for each in served.bench.client.jobs.history(job) if each.kind in kinds]


def test_a_person_approves_what_was_seen(shared: Served) -> None:
    job, seen = asking(shared)
    heard = decide(shared, job, seen=seen)
    assert heard.status == 200 and heard.json["job"]["approval"]["state"] == "approved"
    assert heard.header("etag") != seen
    event = next(each for each in shared.bench.client.jobs.history(job) if each.kind == "approved")
    assert event.actor == shared.ask("GET", "me", role="operate").json["actor"]


def test_without_what_was_seen_nothing_is_approved(shared: Served) -> None:
    job, _ = asking(shared)
    for seen in (None, "*"):
        assert decide(shared, job, seen=seen).status == 428
    assert not events_of(shared, job, "approved")


@on_both_stores
def test_an_edited_command_is_not_approved_by_what_was_seen_before(
    served: Served,
) -> None:  # fault G4
    job, seen = asking(served, "echo", "harmless")
    assert served.ask("PATCH", f"jobs/{job}", {"argv": ["rm", "-r", "x"]}).status == 200
    heard = decide(served, job, seen=seen)
    assert heard.status == 412 and not events_of(served, job, "approved")
    assert decide(served, job, seen=served.ask("GET", f"jobs/{job}").header("etag")).status == 200


@pytest.mark.parametrize("seen", ['"x"', '"0-0"', '""', '"a", "b"', "x"])
def test_what_was_never_there_was_not_seen(shared: Served, seen: str) -> None:
    job, _ = asking(shared)
    assert decide(shared, job, seen=seen).status == 412
    assert decide(shared, job, "reject", seen=seen).status == 412


def test_an_agent_decides_nothing_whatever_its_role(shared: Served) -> None:
    agent = shared.token("operate", agent=True)
    job, seen = asking(shared)
    for verb in ("approve", "reject", "repin"):
        assert decide(shared, job, verb, seen=seen, token=agent).status == 403
    assert not events_of(shared, job, "approved", "rejected")


def at_once(*acts: object) -> list[int]:
    """The codes of requests that are made at the same moment."""
    codes: list[int] = []
    start = threading.Barrier(len(acts))

    def run(act: object) -> None:
        assert callable(act)
        start.wait()
        codes.append(act().status)

    threads = [threading.Thread(target=run, args=(each,)) for each in acts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sorted(codes)


@on_both_stores
def test_of_two_decisions_at_once_one_counts(served: Served) -> None:  # fault G4
    served.token("operate")
    for verb in ("approve", "reject"):
        job, seen = asking(served)
        codes = at_once(
            lambda: decide(served, job, "approve", seen=seen),  # noqa: B023
            lambda: decide(served, job, verb, seen=seen),  # noqa: B023
        )
        assert codes[0] == 200 and codes[1] in (409, 412), codes
        assert len(events_of(served, job, "approved", "rejected")) == 1


def test_a_second_decision_says_who_made_the_first(shared: Served) -> None:
    job, seen = asking(shared)
    decide(shared, job, seen=seen)
    now = shared.ask("GET", f"jobs/{job}").header("etag")
    assert decide(shared, job, seen=now).status == 409
    assert decide(shared, job, "reject", seen=now).status == 409


@on_both_stores
def test_an_approval_against_a_cancel_leaves_one_of_them(served: Served) -> None:  # fault G4
    served.token("operate")
    for _ in range(3):
        job, seen = asking(served)
        codes = at_once(
            lambda: decide(served, job, seen=seen),  # noqa: B023
            lambda: served.post(f"jobs/{job}/cancel", {}, role="operate"),  # noqa: B023
        )
        state = served.get(f"jobs/{job}")["job"]["state"]
        assert state == "cancelled" and 200 in codes, (state, codes)
        assert len(events_of(served, job, "approved")) == codes.count(200) - 1


# -- from inside a job -------------------------------------------------------------------------

ASK = """
import socket, sys
where, host, path, token, seen = sys.argv[1:]
family = socket.AF_UNIX if where.startswith("/") else socket.AF_INET
line = socket.socket(family)
line.connect(where if where.startswith("/") else ("127.0.0.1", int(where)))
who = f"Authorization: Bearer {token}\\r\\n" if token else ""
line.sendall((f"POST {path} HTTP/1.1\\r\\nHost: {host}\\r\\n{who}If-Match: {seen}\\r\\n"
              "Connection: close\\r\\n\\r\\n").encode())
print(line.makefile("rb").readline().decode().split()[1])
"""


@pytest.fixture(params=["tcp", "socket"])
def reached(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    listen = Listen(unix=True) if request.param == "socket" else Listen(port=0)
    with serving_new_home(tmp_path, listen=listen) as served:
        yield served


def arguments(served: Served, job: str, seen: str, *, token: bool) -> list[str]:
    place = served.server.place
    assert place is not None
    where = place.socket or str(place.port)
    host = "127.0.0.1" if place.socket else f"127.0.0.1:{place.port}"
    path = f"{API}/jobs/{job}/approve"
    secret = served.token("operate") if token or not place.socket else ""
    return [sys.executable, "-c", ASK, where, host, path, secret, seen]


def test_a_process_beside_all_jobs_approves(reached: Served) -> None:
    """Else those below would prove nothing."""
    job, seen = asking(reached)
    said = subprocess.run(
        arguments(reached, job, seen, token=False), capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "200"


@pytest.mark.parametrize("token", [True, False])
def test_a_process_inside_a_job_approves_nothing(reached: Served, token: bool) -> None:
    """Also with a person's token, and whatever it did to its environment."""
    job, seen = asking(reached)
    command = ["env", "-i", "setsid", "--wait", *arguments(reached, job, seen, token=token)]
    inside = reached.bench.submit(*command)
    reached.bench.until_ended(inside)
    said = reached.bench.client.jobs.log(inside, "stdout").data.decode().strip()
    assert said == "409" and not events_of(reached, job, "approved")
