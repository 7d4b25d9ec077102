"""Work items become jobs: what is taken, what is refused, what is never done twice."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.base.errors import (
    ConflictError,
    HeadwayError,
    InvalidInputError,
    NotFoundError,
    SourceError,
)
from headway.base.units import show_instant
from headway.core import settle
from headway.core.model import WaitKind
from headway.core.states import Status
from headway.core.targets import Target
from headway.jobs.context import Context
from headway.jobs.settings import Config
from headway.jobs.templates import add_template
from headway.jobs.views.documents import sling_document
from headway.store import open_store
from headway.testing.clock import FakeClock
from headway.workitems.sling import Wish, sling
from headway.workitems.status import clear, scheduled
from headway.workitems.targets import add_target, remove_target
from slung import Project, fingerprints, issue


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(max_active=10)


@pytest.fixture
def project(bench: Bench) -> Project:
    return Project(
        bench,
        issue("gt-1"),
        issue("gt-2", ("gt-1", "blocks")),
        issue("gt-busy", status="in_progress"),
        issue("gt-done", status="closed"),
        issue("hq-1"),
        issue("gt-epic", issue_type="epic"),
        issue("gt-e1", ("gt-epic", "parent-child")),
        issue("gt-e2", ("gt-epic", "parent-child"), status="closed"),
        issue("gt-e3", ("gt-epic", "parent-child"), status="in_progress"),
        issue("hq-e4", ("gt-epic", "parent-child")),
        issue("gt-sub", ("gt-epic", "parent-child"), issue_type="epic"),
        issue("gt-s1", ("gt-sub", "parent-child")),
        issue("hq-c", ("gt-1", "tracks"), ("hq-1", "tracks"), issue_type="convoy"),
        issue("gt-odd", status="odd"),
    )


def jobs(bench: Bench) -> list[dict[str, Any]]:
    return bench.client.listing(everything=True)


# -- what is taken ------------------------------------------------------------------------------


@pytest.mark.req("G2", "G10")
def test_an_item_becomes_a_job_with_its_record(project: Project, bench: Bench) -> None:
    project.target(
        "gas", "echo", "{subject}", "-{title}-", "{target}", "{args}", "{branch}", prefix="gt-"
    )
    slung = project.sling(
        "gt-1",
        "gas",
        args="be quick; $(x)",
        variables={"branch": "b", "agent": "codex"},
        priority=4,
    )
    job_id = project.job_of(slung)
    job = bench.job(job_id)
    assert job.params["argv"] == ["echo", "gt-1", "-Do gt-1-", "gas", "be quick; $(x)", "b"]
    assert (job.name, job.subject, job.target, job.priority) == ("gt-1: Do gt-1", "gt-1", "gas", 4)
    record = bench.client.document(job_id)["sling"]
    assert record["enqueued_at"] == bench.client.document(job_id)["created_at"]
    expected = {
        "version": 1,
        "item": "gt-1",
        "target": "gas",
        "recipe": "command",
        "args": "be quick; $(x)",
        "vars": {"branch": "b", "agent": "codex"},
        "group": "group-1",
        "agent": "codex",
        "merge": None,
        "dispatch_failures": 0,
        "last_failure": None,
        "source": "beads",
    }
    assert {name: record[name] for name in expected} == expected
    assert {"base_branch", "no_merge", "account", "raw", "owned", "mode"} <= set(record)
    assert bench.kinds(job_id)[:2] == ["submitted", "slung"]
    bench.until_ended(job_id)
    assert bench.status(job_id) is Status.SUCCEEDED
    assert "running" in bench.kinds(job_id)


@pytest.mark.req("G11")
def test_the_record_keeps_all_that_it_was_slung_with(project: Project, bench: Bench) -> None:
    given = {
        "merge": "mr",
        "base_branch": "dev",
        "no_merge": "true",
        "account": "work",
        "agent": "codex",
        "raw": "true",
        "owned": "true",
        "mode": "ralph",
    }
    project.target("gas", "echo", "{args}", prefix="gt-")
    job_id = project.job_of(project.sling("gt-1", args="be quick", variables=given))

    def record() -> dict[str, Any]:
        """As another process sees it."""
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        with closing(open_store(url, bench.clock, create=False)) as store, store.read() as tx:
            kept = sling_document(tx.jobs.by_id([job_id])[job_id])
        assert kept is not None
        return kept

    before = record()
    wanted = {
        "version": 1,
        "item": "gt-1",
        "target": "gas",
        "recipe": "command",
        "args": "be quick",
        "vars": given,
        "enqueued_at": show_instant(bench.job(job_id).created_at),
        "group": f"group-{bench.job(job_id).group_id}",
        "dispatch_failures": 0,
        "last_failure": None,
    }
    assert {name: before[name] for name in wanted} == wanted
    assert {name: str(before[name]).lower() for name in given} == given
    bench.until_ended(job_id)
    assert record() == before


def test_words_that_ask_for_nothing_are_left_out(project: Project, bench: Bench) -> None:
    project.target("gas", "echo", "{args}", "x{args}", prefix="gt-")
    assert bench.job(project.job_of(project.sling("gt-1"))).params["argv"] == ["echo", "x"]


@pytest.mark.req("G2", "G14")
@pytest.mark.parametrize(
    ("words", "subjects", "targets"),
    [
        (["gt-1"], ["gt-1"], ["gas"]),
        (["gt-1", "any"], ["gt-1"], ["any"]),
        (["gt-1", "gt-2"], ["gt-1", "gt-2"], ["gas", "gas"]),
        (["gt-1", "gt-2", "gas"], ["gt-1", "gt-2"], ["gas", "gas"]),
        (["gt-1", "hq-1", "any"], ["gt-1", "hq-1"], ["any", "any"]),
        (["gt-1", "gt-1"], ["gt-1"], ["gas"]),
        (["gt-epic"], ["gt-e1", "gt-s1"], ["gas", "gas"]),
        (["hq-c"], ["gt-1"], ["gas"]),
        (["hq-c", "any"], ["gt-1", "hq-1"], ["any", "any"]),
        (["gt-epic", "hq-c", "any"], ["gt-e1", "hq-e4", "gt-s1", "gt-1", "hq-1"], ["any"] * 5),
    ],
)
def test_the_words_and_the_kinds_decide_what_is_meant(
    project: Project, words: list[str], subjects: list[str], targets: list[str]
) -> None:
    project.target("any", "true")
    slung = project.sling(*words)
    assert [each.subject for each in slung.scheduled] == subjects
    assert [each.target for each in slung.scheduled] == targets


@pytest.mark.req("G23")
def test_of_a_tree_only_open_items_are_taken_and_the_rest_is_named(project: Project) -> None:
    slung = project.sling("gt-epic")
    assert slung.closed == 1
    reasons = {each.subject: each.reason for each in slung.skipped}
    assert set(reasons) == {"gt-e3", "hq-e4"}
    assert "in progress" in reasons["gt-e3"] and "no target has a prefix" in reasons["hq-e4"]
    forced = project.sling("gt-epic", force=True)
    assert [each.subject for each in forced.scheduled] == ["gt-e3"]
    assert [each.subject for each in forced.already] == ["gt-e1", "gt-s1"]


@pytest.mark.req("G14")
def test_on_runs_a_template_instead_of_the_recipe(project: Project, bench: Bench) -> None:
    argv = ["echo", "{subject}", "{mood}", "{args}"]
    params = {"subject": None, "mood": "calm", "args": "none"}
    add_template(bench.client.context, "greet", argv=argv, params=params, resources=["voice"])
    project.target("gas", "false", prefix="gt-", resources=("gpu",), cwd="/")
    plain = bench.job(project.job_of(project.sling("gt-1", on="greet")))
    assert plain.params["argv"] == ["echo", "gt-1", "calm", "none"]
    assert (plain.params["cwd"], plain.resources) == ("/", ("voice", "gpu"))
    assert (plain.subject, plain.target, plain.template_id) == ("gt-1", "gas", "greet")
    assert plain.retry.max_attempts == 3, "as templates have it"
    assert bench.client.document(plain.id)["sling"]["recipe"] == "template greet"
    given = project.sling("gt-2", on="greet", variables={"mood": "wild"}, args="now")
    assert bench.job(project.job_of(given)).params["argv"] == ["echo", "gt-2", "wild", "now"]
    with pytest.raises(NotFoundError, match="there is no template 'none'"):
        project.sling("gt-e1", on="none")


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.req("G15", "G16", "G18")
@pytest.mark.parametrize(
    ("words", "wish", "error", "text"),
    [
        (["gt-9"], {}, NotFoundError, "there is no subject gt-9"),
        (["gt-1", "gt-9", "gas"], {}, NotFoundError, "there is no subject gt-9"),
        (["gt-1", "nowhere"], {}, NotFoundError, "neither a target nor a subject"),
        (["hq-1"], {}, NotFoundError, "no target has a prefix of hq-1"),
        (["hq-1", "gas"], {}, ConflictError, "does not belong to target gas"),
        (["gt-busy"], {}, ConflictError, "in progress already"),
        (["gt-done"], {}, ConflictError, "gt-done is closed"),
        (["gt-done"], {"force": True}, ConflictError, "gt-done is closed"),
        (["gt-odd"], {"force": True}, InvalidInputError, "status 'odd' is not understood"),
        (["--rm"], {}, NotFoundError, "is not a subject"),
        (["gt-1"], {"variables": {"x": "1"}}, InvalidInputError, "no recipe has {x}"),
        (["gt-1"], {"args": "x"}, InvalidInputError, "no recipe has {args}"),
        (["gt-1"], {"priority": 10**9}, InvalidInputError, "priority"),
    ],
)
def test_what_cannot_be_slung_is_refused_whole(
    project: Project,
    bench: Bench,
    words: list[str],
    wish: dict[str, Any],
    error: type[HeadwayError],
    text: str,
) -> None:
    with pytest.raises(error) as refusal:
        project.sling(*words, **wish)
    assert text in str(refusal.value)
    assert jobs(bench) == []


@pytest.mark.req("G11")
def test_all_wrong_values_of_the_record_are_told_at_once(project: Project, bench: Bench) -> None:
    wrong = {"merge": "squash", "no_merge": "maybe", "owned": "1", "raw": "", "x": "y"}
    with pytest.raises(InvalidInputError) as refusal:
        project.sling("gt-1", variables=wrong, args="z")
    assert str(refusal.value).split("; ") == [
        "--var merge: 'squash' is not one of direct, mr, local",
        "--var no_merge: 'maybe' is not true or false",
        "--var owned: '1' is not true or false",
        "--var raw: '' is not true or false",
        "--var x: no recipe has {x} for it",
        "--args: no recipe has {args} for it",
    ]
    assert jobs(bench) == []


@pytest.mark.req("G11")
@pytest.mark.parametrize("merge", ["direct", "mr", "local"])
def test_the_record_keeps_how_to_merge(project: Project, bench: Bench, merge: str) -> None:
    given = {"merge": merge, "no_merge": "True", "owned": "false"}
    job_id = project.job_of(project.sling("gt-1", variables=given))
    record = bench.client.document(job_id)["sling"]
    assert (record["merge"], record["no_merge"], record["owned"]) == (merge, True, False)
    assert (record["raw"], record["vars"]) == (None, given)


@pytest.mark.req("G16", "G18")
def test_force_lifts_a_mismatch_and_work_in_progress(project: Project) -> None:
    slung = project.sling("hq-1", "gt-busy", "gas", force=True)
    assert [each.subject for each in slung.scheduled] == ["hq-1", "gt-busy"]


@pytest.mark.req("G19")
def test_the_recipe_is_checked_when_it_is_slung(project: Project, bench: Bench) -> None:
    """# a target that can never run is not found out by waiting"""
    folder = bench.folder / "there"
    folder.mkdir()
    project.target("gas", "true", cwd=str(folder), prefix="gt-")
    folder.rmdir()
    with pytest.raises(InvalidInputError, match="there is no directory"):
        project.sling("gt-1")
    project.target("gas", "{subject}-tool", prefix="gt-")
    with pytest.raises(InvalidInputError, match="program 'gt-1-tool' was not found"):
        project.sling("gt-1")
    project.target("gas", "echo", "{branch}", prefix="gt-")
    with pytest.raises(InvalidInputError, match="give --var branch=VALUE"):
        project.sling("gt-1")
    assert jobs(bench) == []


def test_a_source_that_cannot_be_read_is_named(project: Project, bench: Bench) -> None:
    project.export.unlink()
    with pytest.raises(NotFoundError, match="there is no source of subjects"):
        project.sling("gt-1")
    project.export.mkdir()
    with pytest.raises(SourceError, match="no plain file"):
        project.sling("gt-1")


def test_items_of_two_sources_are_found(project: Project, bench: Bench) -> None:
    tasks = Path(bench.home.path) / "tasks"
    tasks.mkdir()
    (tasks / "gt-file.md").write_text("---\ndepends_on: [gt-other]\n---\n# A file\n")
    (tasks / "gt-other.md").write_text("# Another\n")
    slung = project.sling("gt-file", "gt-1", "gas")
    first, second = (bench.client.document(each.job_id) for each in slung.scheduled if each.job_id)
    assert (first["sling"]["source"], second["sling"]["source"]) == ("tasks", "beads")
    bench.until(lambda: bench.status(slung.scheduled[1].job_id or 0) is Status.SUCCEEDED)
    held = bench.job(slung.scheduled[0].job_id or 0)
    assert held.wait is not None and held.wait.detail == "blocked by gt-other"


# -- never twice --------------------------------------------------------------------------------


@pytest.mark.req("G17")
def test_an_open_job_is_kept_whatever_the_target_and_the_force(
    project: Project, bench: Bench
) -> None:
    project.target("any", "true")
    job_id = project.job_of(project.sling("gt-1"))
    project.change("gt-1", status="in_progress")
    for words, force in ((["gt-1"], False), (["gt-1", "any"], True), (["gt-1", "gt-1"], True)):
        again = project.sling(*words, force=force)
        assert again.scheduled == ()
        assert [(each.subject, each.job_id) for each in again.already] == [("gt-1", job_id)]
    assert len(jobs(bench)) == 1


@pytest.mark.req("G17")
def test_many_who_sling_at_once_make_one_job(project: Project, bench: Bench) -> None:
    found: list[Any] = []
    ready = threading.Barrier(4)

    def race() -> None:
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        store = open_store(url, bench.clock)
        context = Context(
            bench.home,
            Config({"worker.autostart": False}),
            store,
            bench.clock,
            environ=bench.client.context.environ,
            actor="racer",
        )
        ready.wait()
        found.append(sling(context, Wish(("gt-1", "gt-2", "gas"))))
        store.close()

    racers = [threading.Thread(target=race) for _ in range(4)]
    for each in racers:
        each.start()
    for each in racers:
        each.join()
    assert len(jobs(bench)) == 2 and len(found) == 4
    assert sum(len(each.scheduled) for each in found) == 2
    assert all(len(each.scheduled) + len(each.already) == 2 for each in found)


@pytest.mark.req("G17")
def test_a_plain_submit_and_a_retry_respect_the_open_job(project: Project, bench: Bench) -> None:
    project.target("gas", "false", prefix="gt-")
    first = project.job_of(project.sling("gt-1"))
    with pytest.raises(ConflictError, match=f"job-{first} is about gt-1"):
        bench.submit("true", subject="gt-1")
    bench.until_ended(first)
    second = project.job_of(project.sling("gt-1"))
    with pytest.raises(ConflictError, match=f"job-{second} is about gt-1"):
        bench.client.retry(first)
    bench.until_ended(second)
    assert bench.client.retry(first).subject == "gt-1"


@pytest.mark.req("G12")
def test_a_sling_is_one_transaction(project: Project, bench: Bench) -> None:
    """What fails at its very end leaves nothing: no job, no group, no event."""
    before = len(jobs(bench))
    seen = _last_event(bench)
    real = bench.store.transact

    def broken(tell: Callable[[Any], Any]) -> Any:
        def tell_and_fail(tx: Any) -> Any:
            tell(tx)
            raise RuntimeError("the power is gone")

        return real(tell_and_fail)

    bench.store.transact = broken  # type: ignore[method-assign]
    try:
        with pytest.raises(RuntimeError):
            project.sling("gt-epic")
    finally:
        bench.store.transact = real  # type: ignore[method-assign]
    assert len(jobs(bench)) == before and _last_event(bench) == seen
    with bench.store.read() as tx:
        assert tx.groups.since(0, 10) == []


def _last_event(bench: Bench) -> int:
    with bench.store.read() as tx:
        return tx.events.last()


# -- groups -------------------------------------------------------------------------------------


@pytest.mark.req("G20")
def test_what_is_slung_together_is_tracked_together(project: Project, bench: Bench) -> None:
    slung = project.sling("gt-epic")
    ids = [each.job_id or 0 for each in slung.scheduled]
    assert {bench.job(each).group_id for each in ids} == set(slung.groups)
    assert [bench.job(each).sequence_number for each in ids] == [1, 2]
    with bench.store.read() as tx:
        [group] = tx.groups.since(0, 10)
    assert (group.subject, group.mode, group.on_failure) == ("gt-epic", "parallel", "continue")
    project.change("gt-e3", status="open")
    more = project.sling("gt-epic")
    assert [each.subject for each in more.scheduled] == ["gt-e3"]
    assert more.groups == slung.groups, "the tree is tracked already"
    assert bench.job(more.scheduled[0].job_id or 0).sequence_number == 3
    bench.until_ended(*ids, more.scheduled[0].job_id or 0)
    project.change("gt-e3", status="open")
    assert project.sling("gt-epic").groups != slung.groups, "that group has ended"


# -- the gate -----------------------------------------------------------------------------------


@pytest.mark.req("G27")
def test_a_blocked_item_waits_until_its_blocker_is_closed(project: Project, bench: Bench) -> None:
    job_id = project.job_of(project.sling("gt-2"))
    bench.until(lambda: (bench.job(job_id).wait or (0,))[0] is WaitKind.SUBJECT)
    bench.until(lambda: bench.job(job_id).wait.detail == "blocked by gt-1")  # type: ignore[union-attr]
    assert bench.status(job_id) is Status.WAITING_ON_DEPS
    project.change("gt-1", status="closed")
    bench.until_ended(job_id)
    assert bench.status(job_id) is Status.SUCCEEDED


def test_an_item_that_is_closed_meanwhile_ends_its_job(project: Project, bench: Bench) -> None:
    job_id = project.job_of(project.sling("gt-2"))
    bench.until(lambda: bench.status(job_id) is Status.WAITING_ON_DEPS)
    project.change("gt-2", status="closed")
    bench.until_ended(job_id)
    job = bench.job(job_id)
    assert (job.status, job.reason) == (Status.CANCELLED, "subject gt-2 is closed")


def test_trouble_with_a_source_concerns_its_own_jobs_only(project: Project, bench: Bench) -> None:
    blocked = project.job_of(project.sling("gt-2"))
    project.export.unlink()
    other = bench.submit("true")
    bench.until_ended(other)
    bench.until(lambda: "cannot be looked at" in (bench.job(blocked).wait or ("", ""))[1])
    project.write(issue("gt-1", status="closed"))
    bench.until(lambda: "any more" in (bench.job(blocked).wait or ("", ""))[1])
    project.write(issue("gt-2", ("gt-1", "blocks")), issue("gt-1", status="closed"))
    bench.until_ended(blocked)
    assert bench.status(blocked) is Status.SUCCEEDED


# -- what goes wrong at the start ---------------------------------------------------------------


@pytest.mark.req("G31", "G33", "G34", "G35", "G9")
def test_three_launch_failures_break_the_circuit_and_leave_the_item(
    project: Project, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "LAUNCH_DELAYS", (100_000, 100_000))
    tool = bench.folder / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    project.target("gas", str(tool), prefix="gt-")
    before = fingerprints(project.export.parent)
    job_id = project.job_of(project.sling("gt-1"))
    other = project.job_of(project.sling("gt-busy", force=True))
    tool.unlink()
    bench.until(lambda: bench.job(job_id).launch_failures == 1)
    record = bench.client.document(job_id)["sling"]
    assert record["dispatch_failures"] == 1 and "tool" in record["last_failure"]
    assert bench.job(job_id).wait.kind is WaitKind.LAUNCH  # type: ignore[union-attr]
    bench.until_ended(job_id, other)
    job = bench.job(job_id)
    assert job.status is Status.FAILED and str(job.reason).startswith("circuit-broken: ")
    assert bench.kinds(job_id).count("unclaimed") == 2
    assert fingerprints(project.export.parent) == before
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    again = project.job_of(project.sling("gt-1"))
    bench.until_ended(again)
    assert bench.status(again) is Status.SUCCEEDED


@pytest.mark.req("G28", "G35")
def test_what_is_circuit_broken_is_dispatched_no_more_and_holds_up_nobody(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    project = Project(bench, issue("gt-1"), issue("gt-2"))
    tool = bench.folder / "tool"
    tool.write_text("#!/bin/sh\nsleep 60\n")
    tool.chmod(0o755)
    project.target("gas", str(tool), prefix="gt-")
    broken = project.job_of(project.sling("gt-1", priority=9))
    tool.rename(bench.folder / "away")
    for strikes in (1, 2, 3):
        bench.until(lambda strikes=strikes: bench.job(broken).launch_failures == strikes)
        clock.advance(60)
    assert str(bench.job(broken).reason).startswith("circuit-broken: ")
    record = bench.client.document(broken)["sling"]
    assert record["dispatch_failures"] == 3 and "tool" in record["last_failure"]
    (bench.folder / "away").rename(tool)
    healthy = project.job_of(project.sling("gt-2"))
    clock.advance(24 * 3600)

    assert [job.id for job in bench.client.scheduler.dry_run(10).to_dispatch] == [healthy]
    status = bench.client.scheduler.status()
    assert (status["queued_total"], status["queued_ready"], status["active"]) == (1, 1, 0)
    [target] = scheduled(bench.client.context)
    assert [each["subject"] for each in target["jobs"]] == ["gt-2"]
    bench.until(lambda: bench.status(healthy) is Status.RUNNING, "it, though the other was first")
    for _ in range(3):
        clock.advance(3600)
        bench.step()
    job = bench.job(broken)
    assert (job.status, job.launch_failures) == (Status.FAILED, 3)
    assert bench.kinds(broken).count("running") == 3 and bench.last(broken).id == broken


@pytest.mark.req("G13", "G21")
def test_each_way_out_of_the_queue_has_its_reason_and_its_events(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=10)
    project = Project(bench, issue("gt-1"), issue("gt-2"), issue("gt-3", ("gt-1", "blocks")))
    tool = bench.folder / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    project.target("broken", str(tool))
    good = project.job_of(project.sling("gt-1"))
    bad = project.job_of(project.sling("gt-2", "broken"))
    blocked = project.job_of(project.sling("gt-3"))
    tool.unlink()
    for strikes in (1, 2, 3):
        bench.until(lambda strikes=strikes: bench.job(bad).launch_failures == strikes)
        clock.advance(60)
    bench.until_ended(good)
    assert clear(bench.client.context).cleared == (blocked,)

    def told(job: int) -> list[str]:
        """What of its history is about the queue."""
        names = ("submitted", "slung", "running", "unclaimed", "failed", "cancelled", "succeeded")
        return [kind for kind in bench.kinds(job) if kind in names]

    assert told(good) == ["submitted", "slung", "running", "succeeded"], "dispatched"
    strike = ["running", "unclaimed"]
    assert told(bad) == ["submitted", "slung", *strike, *strike, "running", "failed"]
    assert told(blocked) == ["submitted", "slung", "cancelled"]
    causes = [each.data["cause"] for each in bench.events(bad) if each.kind == "unclaimed"]
    assert len(causes) == 2 and all("tool" in each for each in causes)
    reasons = [bench.job(each).reason for each in (good, bad, blocked)]
    assert reasons[0] is None and reasons[2] == "cleared"
    assert str(reasons[1]).startswith("circuit-broken: ") and "tool" in str(reasons[1])
    [failed] = [each for each in bench.events(bad) if each.kind == "failed"]
    assert failed.data["reason"] == reasons[1]
    assert scheduled(bench.client.context) == [], "all of them are closed"


# -- modes --------------------------------------------------------------------------------------


@pytest.mark.req("G1", "G22")
def test_in_direct_mode_a_group_starts_at_once_else_bit_by_bit(
    project: Project, bench: Bench
) -> None:
    project.target("gas", "sleep", "60", prefix="gt-")
    for name in ("gt-e2", "gt-e3"):
        project.change(name, status="open")
    bench.client.set_setting("scheduler.max_active", 2)
    slung = project.sling("gt-epic")
    ids = [each.job_id or 0 for each in slung.scheduled]
    assert not slung.direct and len(ids) == 4
    bench.until(lambda: [bench.status(each) for each in ids].count(Status.RUNNING) == 2)
    bench.turn()
    assert [bench.status(each) for each in ids].count(Status.RUNNING) == 2
    bench.client.set_setting("scheduler.max_active", -1)
    bench.until(lambda: all(bench.status(each) is Status.RUNNING for each in ids))
    assert project.sling("gt-1").direct


def test_a_rehearsal_writes_nothing(project: Project, bench: Bench) -> None:
    seen = _last_event(bench)
    slung = project.sling("gt-epic", rehearse=True)
    assert [(each.subject, each.job_id) for each in slung.scheduled] == [
        ("gt-e1", None),
        ("gt-s1", None),
    ]
    assert _last_event(bench) == seen and jobs(bench) == []


# -- targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        (Target("a b", ("true",)), InvalidInputError, "target 'a b'"),
        (Target("a", ()), InvalidInputError, "what is to run"),
        (Target("a", ("true",), prefix="-x"), InvalidInputError, "prefix '-x'"),
        (Target("a", ("true",), prefix=""), InvalidInputError, "prefix ''"),
        (Target("a", ("no-such-program",)), InvalidInputError, "was not found"),
        (Target("a", ("true",), cwd="/no/such"), InvalidInputError, "no directory"),
        (Target("a", ("true",), helper=("no-such-helper",)), InvalidInputError, "was not found"),
        (Target("a", ("true",), retries=-1), InvalidInputError, "retries"),
        (Target("a", ("true",), env={"a b": "1"}), InvalidInputError, "environment variable"),
        (Target("a", ("true",), prefix="gt-"), ConflictError, "belongs to target gas"),
        (Target("gas", ("true",)), ConflictError, "--replace"),
    ],
)
def test_a_target_that_cannot_be_is_refused(
    project: Project, bench: Bench, target: Target, error: type[HeadwayError], text: str
) -> None:
    with pytest.raises(error) as refusal:
        add_target(bench.client.context, target)
    assert text in str(refusal.value)
    with bench.store.read() as tx:
        assert list(tx.workitems.targets()) == ["gas"]


def test_what_was_slung_keeps_its_recipe(project: Project, bench: Bench) -> None:
    job_id = project.job_of(project.sling("gt-1"))
    remove_target(bench.client.context, "gas")
    with pytest.raises(NotFoundError):
        project.sling("gt-2")
    with pytest.raises(NotFoundError, match="there is no target 'gas'"):
        remove_target(bench.client.context, "gas")
    bench.until_ended(job_id)
    assert bench.status(job_id) is Status.SUCCEEDED
