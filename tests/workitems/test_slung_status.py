"""Slung work as it stands: the list, clearing it, and the helpers of targets."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench, wait_for
from headway.core.states import Status
from headway.core.targets import Target
from headway.testing.clock import FakeClock
from headway.workitems import helpers
from headway.workitems import status as scheduling
from headway.workitems.sling import Wish, sling
from headway.workitems.status import Cleared, clear, scheduled
from slung import Project, fingerprints, issue


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(max_active=1)


@pytest.fixture
def project(bench: Bench) -> Project:
    project = Project(
        bench,
        issue("gt-1"),
        issue("gt-2", ("gt-1", "blocks")),
        issue("gt-3"),
        issue("hq-1"),
    )
    project.target("gas", "sleep", "60", prefix="gt-")
    project.target("hall", "true", prefix="hq-")
    return project


@pytest.mark.req("G41")
def test_the_list_is_by_target_and_marks_what_is_blocked(project: Project, bench: Bench) -> None:
    """Also before anybody has looked at the jobs."""
    bench.submit("true", subject="a reference", priority=1)
    for name in ("gt-1", "gt-2", "hq-1"):
        project.sling(name)
    found = {each["target"]: each["jobs"] for each in scheduled(bench.client.context)}
    assert list(found) == ["gas", "hall"]
    first, second = found["gas"]
    assert (first["subject"], first["blocked"], first["place"]) == ("gt-1", False, 2)
    assert (second["subject"], second["blocked"]) == ("gt-2", True)
    assert (second["reason"], second["place"]) == ("blocked by gt-1", None)
    assert found["hall"][0]["place"] == 4
    bench.until(lambda: bench.status(2) is Status.RUNNING)
    first = scheduled(bench.client.context)[0]["jobs"][0]
    assert (first["state"], first["blocked"], first["reason"]) == ("running", False, None)


@pytest.mark.req("G39", "G9")
def test_clear_takes_back_what_waits_and_leaves_what_runs(project: Project, bench: Bench) -> None:
    before = fingerprints(project.export.parent)
    running, blocked, last = (project.job_of(project.sling(f"gt-{n}")) for n in (1, 2, 3))
    reference = bench.submit("true", subject="gt-9", delay=10**12)
    bench.until(lambda: bench.status(running) is Status.RUNNING)
    done = clear(bench.client.context, "gt-3")
    assert (done.cleared, done.running) == ((last,), ())
    job = bench.job(last)
    assert (job.status, job.reason) == (Status.CANCELLED, "cleared")
    assert clear(bench.client.context, "gt-3") == Cleared()
    done = clear(bench.client.context)
    assert (done.cleared, done.running) == ((blocked,), (running,))
    assert bench.status(running) is Status.RUNNING
    assert bench.status(reference) is Status.QUEUED, "it was not slung"
    assert project.sling("gt-3").scheduled, "what was cleared can be slung again"
    assert fingerprints(project.export.parent) == before


@pytest.mark.req("G39")
def test_clear_goes_on_until_nothing_waits(
    project: Project, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much there is, and though what is not slung comes first."""
    monkeypatch.setattr(scheduling, "MOST_CLEARED", 1)
    reference = bench.submit("true", subject="gt-9", delay=10**12)
    slung = [project.job_of(project.sling(name)) for name in ("gt-1", "gt-2", "gt-3", "hq-1")]
    assert clear(bench.client.context) == Cleared(tuple(slung))
    assert {bench.status(each) for each in slung} == {Status.CANCELLED}
    assert bench.status(reference) is Status.QUEUED


# -- helpers ------------------------------------------------------------------------------------


def script(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.req("G43")
def test_a_pass_wakes_the_helper_of_each_target_once(project: Project, bench: Bench) -> None:
    noted = bench.folder / "noted"
    note = script(bench.folder, "note", f'echo "$HEADWAY_TARGET $1" >> {noted}')
    project.target("gas", "true", prefix="gt-", helper=(note, "a b"))
    project.target("hall", "true", prefix="hq-", helper=(note, "c"))
    bench.client.set_setting("scheduler.max_active", -1)
    sling(bench.client.context, Wish(("gt-1", "gt-3", "hq-1")))
    bench.until(lambda: noted.exists() and len(noted.read_text().splitlines()) >= 2)
    bench.until(lambda: not bench.engine.helpers.busy)
    assert sorted(noted.read_text().splitlines()) == ["gas a b", "hall c"]
    bench.until_ended(1, 2, 3)
    assert len(noted.read_text().splitlines()) == 2


@pytest.mark.req("G43", "G31")
@pytest.mark.parametrize(
    ("body", "error"),
    [("exit 3", "exit code 3"), ("kill -9 $$", "signal 9"), (None, "exit code 1")],
)
def test_a_helper_that_fails_is_an_event_and_no_more(
    project: Project, bench: Bench, body: str | None, error: str
) -> None:
    helper = script(bench.folder, "helper", body or "")
    project.target("gas", "true", prefix="gt-", helper=(helper,))
    job_id = project.job_of(project.sling("gt-1"))
    if body is None:
        os.unlink(helper)
    bench.until_ended(job_id)
    assert bench.status(job_id) is Status.SUCCEEDED
    assert bench.until(lambda: _failures(bench)) == [{"target": "gas", "error": error}]


def test_a_helper_that_cannot_be_started_stops_no_other(bench: Bench) -> None:
    mark = bench.folder / "mark"
    good = Target("good", ("true",), helper=(script(bench.folder, "good", f"> {mark}"),))
    woken = bench.engine.helpers
    woken.want([Target("bad", ("true",), helper=("/bin/true",), cwd="/no/such"), good])
    woken.finish()
    assert mark.exists()
    assert [(each.target, "cannot be started" in each.error) for each in woken.failures] == [
        ("bad", True)
    ]


def _failures(bench: Bench) -> list[dict[str, str]]:
    with bench.store.read() as tx:
        return [dict(e.data) for e in tx.events.since(0, 1000) if e.kind == "helper_failed"]


@pytest.mark.req("G42", "G43")
def test_a_helper_that_hangs_holds_nobody_up_and_is_ended(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(clock=FakeClock(), max_active=2)
    project = Project(bench, issue("gt-1"), issue("gt-3"))
    mark = bench.folder / "pid"
    hang = script(bench.folder, "hang", f"echo $$ > {mark}; exec sleep 600")
    project.target("gas", "true", prefix="gt-", helper=(hang,))
    bench.until_ended(project.job_of(project.sling("gt-1")))
    bench.until(lambda: mark.exists() and mark.read_text())
    assert bench.engine.helpers.busy
    bench.clock.advance(helpers.SECONDS + 1)  # type: ignore[attr-defined]
    assert "took longer than 10 s" in bench.until(lambda: _failures(bench))[0]["error"]
    pid = int(mark.read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), what="the helper to be gone")


def test_the_kernel_ends_a_helper_whose_worker_is_gone(
    project: Project, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "SECONDS", 0.5)  # the alarm comes a second later
    mark = bench.folder / "pid"
    hang = script(bench.folder, "hang", f"echo $$ > {mark}; exec sleep 600")
    project.target("gas", "true", prefix="gt-", helper=(hang,))
    project.sling("gt-1")
    bench.until(lambda: mark.exists() and mark.read_text())
    pid = int(mark.read_text())
    [running] = bench.engine.helpers._running
    bench.engine.helpers._running.clear()  # nobody looks after it any more
    assert running.process.wait() == -14
    assert not Path(f"/proc/{pid}").exists()
