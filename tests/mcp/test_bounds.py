"""No answer is larger, and no call takes longer, than the table says."""

from collections.abc import Callable
from typing import Any

import pytest
from toolbox import FREE, Agent

from harness import wait_for
from headway.jobs.request import Request
from headway.mcp.answers import LARGEST, LOG_BYTES, bounded, last_lines
from headway.mcp.caller import MOST_WAITS
from headway.mcp.handlers import MOST_ROWS
from headway.mcp.tools import LONGEST_WAIT, MOST_LINES
from headway.testing import FakeClock


def test_these_are_the_bounds() -> None:
    assert (MOST_ROWS, MOST_LINES, LOG_BYTES, LONGEST_WAIT) == (50, 200, 16 * 1024, 50)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("list_jobs", {"limit": 51}),
        ("list_jobs", {"limit": 0}),
        ("tail_log", {"job": "1", "lines": 201}),
        ("wait_for_job", {"job": "1", "seconds": 51}),
        ("wait_for_job", {"job": "1", "seconds": -1}),
    ],
)
def test_more_is_refused(agent: Agent, name: str, given: dict[str, Any]) -> None:
    got = agent.call_with(name, given)
    assert got.answer["error"] == "wrong-request"
    assert "the most is" in got.detail or "the least is" in got.detail


def test_a_list_has_50_rows(agent: Agent) -> None:
    bench = agent.bench
    asking = [Request(argv=("true",), require_approval=True) for _ in range(53)]
    bench.client.submit_many(asking)
    for number in range(52):
        bench.client.schedules.add(name=f"s-{number}", cron="0 3 * * *", argv=["true"])
    jobs = agent.ask("list_jobs")
    assert len(jobs["jobs"]) == 50 and jobs["next"] == "job-4"
    approvals = agent.ask("list_approvals")
    assert (len(approvals["approvals"]), approvals["more"]) == (50, 3)
    schedules = agent.ask("list_schedules")
    assert (len(schedules["schedules"]), schedules["more"]) == (50, 2)


def test_a_tail_has_so_many_lines(agent: Agent) -> None:
    job = agent.bench.submit("seq", "1", "500")
    agent.bench.until_ended(job)
    said = agent.ask("tail_log", job="1", lines=200)
    assert said["data"]["lines"] == [str(each) for each in range(301, 501)]
    assert (said["earlier"], said["job_ended"]) == (True, True)
    assert len(agent.ask("tail_log", job="1")["data"]["lines"]) == 50
    assert agent.ask("tail_log", job="1", stream="stderr")["earlier"] is False


@pytest.mark.parametrize(
    "script",
    [
        "yes $(printf %01000d 7) | head -n 300",
        "head -c 1000000 /dev/zero | tr '\\0' x; echo END",
        "head -c 60000 /dev/zero; echo END",  # each of them is shown as four characters
        "yes '\u20ac\u20ac\u20ac' | head -n 5000",
        "yes $(printf '\\001ab%.0s' $(seq 30)) | head -n 400",
    ],
)
def test_a_tail_has_16_kib(agent: Agent, script: str) -> None:
    job = agent.bench.submit(shell=script)
    agent.bench.until_ended(job)
    said = agent.ask("tail_log", job="1", lines=200)
    lines = said["data"]["lines"]
    assert 0 < sum(len(each.encode()) + 1 for each in lines) <= LOG_BYTES
    assert said["earlier"] is True and len(lines) <= 200
    if "END" in script:
        assert lines[-1].endswith("END")


def test_lines_are_counted_as_they_are_shown() -> None:
    assert last_lines(b"", 5) == ([], False)
    assert last_lines(b"a\nb\r\n", 5) == (["a", "b"], False)
    assert last_lines(b"a\nb\nc", 2) == (["b", "c"], True)
    lines, left_out = last_lines(b"x" * 20_000, 5)
    assert left_out and lines[0].startswith("...") and len(lines[0]) < LOG_BYTES


def test_a_wait_takes_50_seconds(make_bench: Callable[..., Any], make_agent: Any) -> None:
    clock = FakeClock()
    agent = make_agent(bench=make_bench(clock=clock))
    agent.bench.submit("true", require_approval=True)
    begin = clock.monotonic()
    assert agent.ask("wait_for_job", job="job-1")["ended"] is False
    assert LONGEST_WAIT <= clock.monotonic() - begin < LONGEST_WAIT + 1


def test_so_many_wait_at_once(agent: Agent) -> None:
    agent.bench.submit("true", require_approval=True)
    given = {"job": "job-1"}
    waits = [
        agent.portal.start_task_soon(agent.client.call_tool, "wait_for_job", given)
        for _ in range(MOST_WAITS)
    ]
    wait_for(lambda: agent.caller._waits == MOST_WAITS, what="all of them to wait")
    got = agent.call("wait_for_job", job="job-1")
    assert got.answer["error"] == "conflict" and "ask again" in got.detail
    agent.bench.client.cancel([1])
    assert all(each.result().structured_content["ended"] for each in waits)
    assert agent.ask("wait_for_job", job="job-1")["ended"] is True


def test_an_answer_is_no_larger_than_64_kib(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent(FREE)
    job = agent.submit("true", labels={f"label-{each}": "v" * 200 for each in range(100)})
    got = agent.call("show_job", job=job)
    assert not got.refused and len(got.text.encode()) <= LARGEST
    script = "#" + "x" * 60_000
    job = str(agent.ask("submit_job", shell=script)["job"]["id"])
    got = agent.call("show_job", job=job)
    assert len(got.text.encode()) <= LARGEST
    assert "... (40001 more)" in got.answer["job"]["data"]["runs"]


def test_whatever_an_answer_has_it_is_bounded() -> None:
    deep: Any = "x"
    for _ in range(1000):
        deep = [deep]
    wide = {str(number): "y" * 5000 for number in range(1000)}
    made = bounded({"id": "job-1", "data": {"deep": deep, "wide": wide, "many": ["z"] * 1000}})
    assert made["id"] == "job-1" and len(str(made)) <= LARGEST
    assert made["data"]["many"][-1] == "... 800 more"
    huge = {f"{number:0200}": "y" * 300 for number in range(200)}
    assert len(str(bounded({"id": "job-1", "data": [huge] * 200}))) <= LARGEST
