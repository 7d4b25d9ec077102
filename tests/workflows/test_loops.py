"""Loops of a workflow run: what goes back, how often, and when what follows is decided."""

from collections.abc import Callable
from pathlib import Path

import pytest
from started import Started

from harness import Bench
from headway.core.states import WAITING, Status
from headway.testing.clock import FakeClock
from headway.workflows.runs import stop_run

RED_RED_GREEN = """
[nodes.code]
shell = 'echo "pass $HEADWAY_PASS after: $TAIL"'
env = {{ TAIL = "${{{{ last.ci.summary }}}}" }}
on.succeeded = ["ci"]
[nodes.ci]
shell = 'test -e {folder}/green || {{ echo x >> {folder}/n; test $(wc -l < {folder}/n) -ge 3; }}'
loop = {{ to = "code", on = ["failed"], times = {times} }}
on.succeeded = ["done"]
on.blocked = ["give_up"]
[nodes.done]
argv = ["true"]
[nodes.give_up]
argv = ["true"]
"""


def test_a_loop_goes_back_until_it_is_green(bench: Bench, tmp_path: Path) -> None:
    run = Started(bench, RED_RED_GREEN.format(folder=tmp_path, times=3))
    ended = run.ended()
    assert ended["state"] == "succeeded"
    assert run.outcomes() == {
        "code": "succeeded",
        "ci": "succeeded",
        "done": "succeeded",
        "give_up": "skipped",
    }
    assert run.node("ci")["pass"] == 3 and run.node("code")["pass"] == 3
    assert run.node("done")["pass"] == 1
    passes = [each["workflow"] for each in bench.client.jobs.chain(run.job("ci"))]
    assert [each["outcome"] for each in passes] == ["failed", "failed", "succeeded"]
    assert [each["pass"] for each in passes] == [1, 2, 3]
    assert run.log("code") == "pass 3 after: exit code 1\n"


def test_a_loop_that_is_used_up_blocks(bench: Bench, tmp_path: Path) -> None:  # fault J1
    run = Started(bench, RED_RED_GREEN.format(folder=tmp_path, times=1))
    ended = run.ended()
    assert ended["state"] == "blocked"
    assert run.outcomes() == {
        "code": "succeeded",
        "ci": "blocked",
        "done": "unreached",
        "give_up": "succeeded",
    }
    assert run.node("ci")["pass"] == 2
    assert run.node("ci")["reason"] == "exit code 1; its loop is used up, 1 of 1"


def test_who_refers_to_a_loop_that_is_used_up_learns_that_it_is_blocked(bench: Bench) -> None:
    text = """
    [nodes.ci]
    argv = ["false"]
    loop = { to = "ci", on = ["failed"], times = 1 }
    on.blocked = ["help"]
    [nodes.help]
    argv = ["echo", "${{ nodes.ci.outcome }}", "${{ last.ci.outcome }}"]
    when = ["${{ nodes.ci.outcome }} == blocked"]
    """
    run = Started(bench, text)
    run.ended()
    assert run.node("help")["outcome"] == "succeeded"
    assert run.log("help") == "blocked blocked\n"


NESTED = """
[nodes.plan]
shell = 'echo plan >> {folder}/log'
[nodes.code]
shell = 'echo code >> {folder}/log'
after = ["plan"]
[nodes.ci]
shell = 'echo ci >> {folder}/log; test $(grep -c ci {folder}/log) -ge 2'
after = ["code"]
loop = {{ to = "code", times = 2 }}
[nodes.review]
shell = 'echo review >> {folder}/log; test $(grep -c review {folder}/log) -ge 2'
after = ["ci"]
loop = {{ to = "plan", times = 2 }}
[nodes.done]
shell = 'echo done >> {folder}/log'
after = ["review"]
"""


def log_of(folder: Path) -> list[str]:
    return (folder / "log").read_text().split()


def test_a_loop_within_a_loop_counts_in_the_whole_run(bench: Bench, tmp_path: Path) -> None:
    run = Started(bench, NESTED.format(folder=tmp_path))
    assert run.ended()["state"] == "succeeded"
    first = ["plan", "code", "ci", "code", "ci", "review"]
    assert log_of(tmp_path) == [*first, "plan", "code", "ci", "review", "done"]
    assert run.node("ci")["pass"] == 3 and run.node("plan")["pass"] == 2
    assert run.node("review")["pass"] == 2 and run.node("done")["pass"] == 1


def test_a_cancel_by_a_person_ends_the_loop(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = make_bench(max_active=2)
    text = f"""
    [nodes.code]
    argv = ["true"]
    [nodes.lint]
    shell = 'exec sleep 60'
    after = ["code"]
    loop = {{ to = "code" , times = 1}}
    [nodes.ci]
    shell = 'echo ci >> {tmp_path}/log; exit 1'
    after = ["code"]
    loop = {{ to = "code", times = 5 }}
    """
    run = Started(bench, text)
    bench.until(lambda: run.node("ci")["outcome"] and run.node("lint")["state"] == "running")
    bench.client.jobs.cancel(run.job("lint"))
    assert run.ended()["state"] == "blocked"
    said = f"exit code 1; its loop ends, because lint (job-{run.job('lint')}) was cancelled"
    assert run.node("ci")["reason"] == said and log_of(tmp_path) == ["ci"]


def test_a_stopped_run_takes_no_loop(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    bench = make_bench(max_active=2)
    text = f"""
    finally = ["last"]
    [nodes.code]
    argv = ["true"]
    [nodes.slow]
    shell = 'exec sleep 60'
    after = ["code"]
    loop = {{ to = "code", times = 1 }}
    [nodes.ci]
    shell = 'exit 1'
    after = ["code"]
    loop = {{ to = "code", times = 5 }}
    [nodes.last]
    shell = 'echo last >> {tmp_path}/log'
    """
    run = Started(bench, text)
    bench.until(lambda: run.node("ci")["outcome"] and run.node("slow")["state"] == "running")
    stop_run(bench.client.context, run.run)
    assert run.ended()["state"] == "cancelled"
    assert run.outcomes()["ci"] == "failed", "it keeps its outcome"
    assert run.node("ci")["pass"] == 1 and log_of(tmp_path) == ["last"]


def test_a_delay_holds_the_next_pass_back(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    text = RED_RED_GREEN.format(folder=tmp_path, times=3)
    run = Started(bench, text.replace("times = 3", 'times = 3, delay = "10m"'))
    bench.until(lambda: run.node("code")["pass"] == 2, "the second pass")
    held = bench.job(run.job("code"))
    assert held.not_before is not None and held.not_before > clock.now()
    bench.step()
    assert run.node("code")["state"] == "queued"
    (tmp_path / "green").touch()
    clock.advance(601)
    assert run.ended()["state"] == "succeeded"


def test_a_job_outside_waits_until_the_loop_is_over(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = make_bench(max_active=3)
    run = Started(bench, RED_RED_GREEN.format(folder=tmp_path, times=3))
    outside = [bench.submit("true", after=(run.job(each),)) for each in ("code", "ci")]
    bench.until(lambda: run.node("ci")["pass"] == 3, "the third pass")
    for each in outside:
        assert bench.job(each).status in WAITING
    assert run.ended()["state"] == "succeeded"
    for job in bench.until_ended(*outside):
        assert job.status is Status.SUCCEEDED
        assert (job.started_at or 0) > (bench.job(run.job("ci")).finished_at or 0)


OVERLAPPING = """
[nodes.code]
argv = ["true"]
[nodes.ci]
shell = 'test "$HEADWAY_PASS" != 2'
after = ["code"]
loop = { to = "code", times = 1 }
[nodes.merge]
shell = 'test "$HEADWAY_PASS" != 1'
after = ["ci"]
loop = { to = "ci", times = 1 }
[nodes.report]
argv = ["true"]
after = ["code"]
"""


def test_a_run_that_its_last_node_repeats_has_one_end(bench: Bench) -> None:
    text = """
    [nodes.only]
    shell = 'test "$HEADWAY_PASS" = 3'
    loop = { to = "only", times = 3 }
    """
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded" and run.node("only")["pass"] == 3
    with bench.store.read() as tx:
        kinds = [each.kind for each in tx.events.since(0, 1000)]
    assert kinds.count("workflow_ended") == 1 and kinds.count("looped") == 2


def test_what_follows_waits_for_a_loop_that_may_call_the_one_it_left(
    make_bench: Callable[..., Bench],
) -> None:
    """The merge sends ci back, which sends code back: until then a report on code is too early."""
    bench = make_bench(max_active=3)
    run = Started(bench, OVERLAPPING)
    outside = bench.submit("true", after=(run.job("code"),))
    assert run.ended()["state"] == "succeeded"
    assert [run.node(each)["pass"] for each in ("code", "ci", "merge", "report")] == [2, 3, 2, 1]
    bench.until_ended(outside)
    for each in (outside, run.job("report")):
        assert (bench.job(each).started_at or 0) > (bench.job(run.job("merge")).finished_at or 0)


def test_a_job_outside_is_blocked_when_the_loop_is_used_up(bench: Bench, tmp_path: Path) -> None:
    run = Started(bench, RED_RED_GREEN.format(folder=tmp_path, times=1))
    outside = bench.submit("true", after=(run.job("ci"),))
    assert run.ended()["state"] == "blocked"
    bench.until_ended(outside)
    assert bench.status(outside) is Status.BLOCKED_BY_DEPENDENCY


def test_why_names_the_run_that_may_repeat_what_has_ended(bench: Bench, tmp_path: Path) -> None:
    text = f"""
    [nodes.code]
    argv = ["true"]
    [nodes.ci]
    shell = 'while ! test -e {tmp_path}/go; do sleep 0.05; done'
    after = ["code"]
    loop = {{ to = "code", times = 1 }}
    [nodes.report]
    argv = ["true"]
    after = ["code"]
    """
    run = Started(bench, text)
    outside = bench.submit("true", after=(run.job("code"),))
    bench.until(lambda: run.node("ci")["state"] == "running", "the checks")
    bench.step()
    first = bench.client.jobs.why(outside)["objections"][0]
    assert first["detail"] == f"waiting on job job-{run.job('code')}"
    assert first["remedy"] == "wf-1 may repeat it"
    first = bench.client.jobs.why(run.job("report"))["objections"][0]
    assert first["detail"] == f"waiting on job job-{run.job('ci')}", "what the loop waits for"
    assert first["remedy"] == "wf-1 may repeat it"
    (tmp_path / "go").touch()
    assert run.ended()["state"] == "succeeded"
    bench.until_ended(outside)


def test_a_retry_by_hand_lets_a_used_up_loop_go_back_again(bench: Bench, tmp_path: Path) -> None:
    run = Started(bench, RED_RED_GREEN.format(folder=tmp_path, times=1))
    assert run.ended()["state"] == "blocked"
    (tmp_path / "n").unlink()
    bench.client.jobs.retry(run.job("ci"))
    bench.until(lambda: run.node("ci")["pass"] == 4, "another pass by the loop")
    assert run.ended()["state"] == "blocked"
    assert run.node("ci")["reason"].endswith("its loop is used up, 1 of 1")


BEHIND_A_LOOP = {
    "a node before the loop fails": """
        [nodes.a]
        argv = ["false"]
        [nodes.m]
        argv = ["true"]
        after = ["a"]
        [nodes.r]
        argv = ["true"]
        after = ["m"]
        loop = { to = "m", on = ["failed"], times = 2 }
        """,
    "the loop is skipped": """
        [nodes.a]
        argv = ["true"]
        [nodes.m]
        argv = ["true"]
        after = [{ node = "a", on = ["failed"] }]
        loop = { to = "m", on = ["failed"], times = 2 }
        """,
    "a fan is not reached": """
        params.items = ["a"]
        [nodes.a]
        argv = ["false"]
        [nodes.m]
        argv = ["true"]
        after = ["a"]
        each = { in = "${{ params.items }}" }
        """,
    "a node of the loop cannot be started": """
        [nodes.a]
        argv = ["false"]
        outputs = ["x"]
        [nodes.m]
        argv = ["echo", "${{ nodes.a.outputs.x }}"]
        after = [{ node = "a", on = ["ended"] }]
        loop = { to = "m", on = ["blocked"], times = 2 }
        """,
    "its time is over": """
        timeout = "1s"
        [nodes.m]
        argv = ["sleep", "60"]
        [nodes.r]
        argv = ["true"]
        after = ["m"]
        loop = { to = "m", on = ["failed"], times = 2 }
        """,
}


@pytest.mark.parametrize("text", BEHIND_A_LOOP.values(), ids=BEHIND_A_LOOP)
def test_a_run_ends_with_its_last_node(bench: Bench, text: str) -> None:
    run = Started(bench, text)
    delay = 0.0
    while delay == 0.0 or None in run.outcomes().values():
        if delay:
            for key, _ in bench.engine.launches.watchlist.select(min(delay, 0.05)):
                key.data()
        delay = bench.step()
    assert run.document["ended_at"], f"nobody would look for {delay} s"


def test_a_step_waits_for_the_rest_of_a_called_body(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=2)
    text = """
    [nodes.code]
    argv = ["true"]
    [nodes.lint]
    shell = 'exec sleep 60'
    after = ["code"]
    loop = { to = "code", times = 1 }
    [nodes.ci]
    argv = ["false"]
    after = ["code"]
    loop = { to = "code", times = 1 }
    """
    run = Started(bench, text)
    bench.until(lambda: run.node("ci")["outcome"] and run.node("lint")["state"] == "running")
    assert bench.step() > 0, "the end of lint brings the next step"
