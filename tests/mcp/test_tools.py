"""What each tool does, what it says of itself, and what it refuses."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from toolbox import FREE, Agent

from harness import Bench
from headway.client import Client
from headway.core.model import JobId
from headway.core.states import Status
from headway.jobs.graph_file import FORMS
from headway.mcp.tool import SubmitRule, Submits
from headway.mcp.tools import ENTRY, TOOLS, tools_for
from mcp import MCPError

both_stores = pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)

LOOK = ("status", "list_jobs", "show_job", "why", "tail_log", "list_approvals", "list_schedules")
SUBMIT = ("submit_job", "submit_template")


def number(job: str) -> JobId:
    return int(job.removeprefix("job-"))


# -- the table ---------------------------------------------------------------------------------


def test_these_are_the_tools() -> None:
    names = [each.name for each in TOOLS]
    assert names == [*LOOK, "wait_for_job", *SUBMIT, "cancel_job", "retry_job"]


def test_without_submits_there_are_no_tools_for_it() -> None:
    offered = tools_for(SubmitRule(Submits.OFF))
    assert list(offered) == [*LOOK, "wait_for_job", "cancel_job", "retry_job"]
    assert list(tools_for(SubmitRule())) == [each.name for each in TOOLS]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_is_told_the_hints_of_each(make_agent: Callable[..., Agent], mode: str) -> None:
    tools = make_agent(mode=mode).tools()
    hints = {name: each.annotations for name, each in tools.items()}
    said = {
        name: (each.read_only_hint, each.destructive_hint, each.open_world_hint)
        for name, each in hints.items()
        if each is not None
    }
    assert said == {
        **dict.fromkeys((*LOOK, "wait_for_job"), (True, None, False)),
        **dict.fromkeys(SUBMIT, (False, None, True)),
        "cancel_job": (False, True, False),
        "retry_job": (False, False, True),
    }


def objects(schema: Mapping[str, Any], place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if schema.get("type") == "object":
        yield place, schema
    for name, each in schema.get("properties", {}).items():
        yield from objects(each, f"{place}/{name}")


def test_what_a_tool_takes_is_named_and_bounded(agent: Agent) -> None:
    for name, tool in agent.tools().items():
        for place, each in objects(tool.input_schema, name):
            assert each["additionalProperties"] is not True, place
        assert tool.input_schema["additionalProperties"] is False, name
        for word, each in tool.input_schema["properties"].items():
            bounds = {"maxLength", "maximum", "maxItems", "enum", "additionalProperties"}
            free = word == "budget_usd" or each["type"] == "boolean"
            assert free or bounds & each.keys(), f"{name}/{word}"


def test_a_submit_has_words_of_a_graph_file_and_none_that_an_approval_does_not_show() -> None:
    assert set(ENTRY) <= set(FORMS)
    hidden = {"env", "stdin", "prompt_file", "on_finish", "webhooks", "allowed_tools", "no_check"}
    assert not hidden & set(ENTRY)
    assert "require_approval" not in ENTRY


def test_the_verbs_of_a_tool_are_there(agent: Agent) -> None:
    client = Client(agent.bench.client.context)
    for tool in TOOLS:
        for verb in tool.verbs:
            noun, _, method = verb.partition(".")
            assert callable(getattr(getattr(client, noun), method)), verb


# -- looking -----------------------------------------------------------------------------------


def test_status_says_how_things_stand_and_who_one_is(agent: Agent) -> None:
    agent.bench.client.pause("lunch")
    said = agent.ask("status")
    assert (said["paused"], said["you_are"], said["submit"]) == (True, "mcp", "approval")
    assert said["data"]["paused_reason"] == "lunch" and said["max_active"] == 4


def test_lists_are_newest_first_and_go_on(agent: Agent) -> None:
    for name in ("a", "b", "c"):
        agent.bench.submit("true", name=name, labels={"of": name})
    first = agent.ask("list_jobs", limit=2)
    assert [each["id"] for each in first["jobs"]] == ["job-3", "job-2"]
    rest = agent.ask("list_jobs", limit=2, before=first["next"])
    assert [each["id"] for each in rest["jobs"]] == ["job-1"] and rest["next"] is None
    assert [each["id"] for each in agent.ask("list_jobs", name="b*")["jobs"]] == ["job-2"]
    assert [each["id"] for each in agent.ask("list_jobs", labels={"of": "c"})["jobs"]] == ["job-3"]
    assert agent.ask("list_jobs", state="running")["jobs"] == []


def test_a_job_that_failed_shows_what_and_why(agent: Agent) -> None:
    job = agent.bench.submit("sh", "-c", "echo one; echo two >&2; exit 3", name="build")
    agent.bench.until_ended(job)
    shown = agent.ask("show_job", job="1")["job"]
    assert (shown["id"], shown["state"], shown["exit_code"]) == ("job-1", "failed", 3)
    assert shown["data"]["runs"] == "sh -c 'echo one; echo two >&2; exit 3'"
    assert shown["chain"] == [{"id": "job-1", "state": "failed", "attempt": 1, "exit_code": 3}]
    said = agent.ask("why", job="job-1")["why"]
    assert said["data"]["reason"] == "exit code 3" and "retry job-1" in said["data"]["remedy"]
    assert agent.ask("tail_log", job="job-1")["data"]["lines"] == ["one"]
    assert agent.ask("tail_log", job="job-1", stream="stderr")["data"]["lines"] == ["two"]


def test_why_names_what_is_in_the_way(agent: Agent) -> None:
    first = agent.bench.submit("sleep", "60")
    agent.bench.submit("true", after=(first,))
    agent.bench.step()
    said = agent.ask("why", job="job-2")["why"]
    [objection] = said["objections"]
    assert (objection["kind"], objection["jobs"]) == ("dependencies", ["job-1"])
    agent.bench.client.cancel([first])


def test_schedules_and_approvals_are_listed(agent: Agent) -> None:
    agent.bench.client.schedules.add(name="nightly", cron="0 3 * * *", argv=["true"])
    agent.bench.submit("make", "deploy", require_approval=True, check=False)
    [schedule] = agent.ask("list_schedules")["schedules"]
    assert schedule["id"] == "schedule-1" and schedule["enabled"] is True
    assert schedule["data"]["name"] == "nightly" and "03:00" in schedule["data"]["rule"]
    [asked] = agent.ask("list_approvals")["approvals"]
    assert (asked["id"], asked["data"]["runs"]) == ("job-1", "make deploy")


# -- waiting -----------------------------------------------------------------------------------


def test_a_wait_ends_with_its_job(agent: Agent) -> None:
    job = agent.bench.submit("true")
    waiting = agent.portal.start_task_soon(agent.client.call_tool, "wait_for_job", {"job": "1"})
    agent.bench.until_ended(job)
    result = waiting.result()
    assert result.structured_content["ended"] is True
    assert result.structured_content["job"]["state"] == "succeeded"
    assert "why" not in result.structured_content


def test_a_wait_that_is_over_says_why_the_job_waits(agent: Agent) -> None:
    agent.bench.submit("true", require_approval=True)
    agent.bench.step()
    said = agent.ask("wait_for_job", job="job-1", seconds=0)
    assert (said["ended"], said["job"]["state"]) == (False, "waiting_on_approval")
    assert said["why"]["objections"][0]["kind"] == "approval"


def test_a_wait_answers_for_the_retry_of_its_job(agent: Agent) -> None:
    job = agent.bench.submit("false", retries=1, retry_base=0)
    agent.bench.until_ended(job)
    said = agent.ask("wait_for_job", job="job-1")
    assert (said["ended"], said["job"]["id"], said["job"]["attempt"]) == (True, "job-2", 2)


def test_an_agent_in_a_job_lends_its_slot_to_what_it_waits_for(
    make_bench: Callable[..., Bench],
    make_agent: Callable[..., Agent],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = make_bench(max_active=1)
    around = bench.submit("sleep", "60")
    bench.until(lambda: bench.status(around) is Status.RUNNING)
    with bench.store.read() as tx:
        claim = tx.claims.of_job(around)
    assert claim is not None
    for name, value in (("HOME", bench.home.path), ("JOB_ID", "job-1"), ("CLAIM", claim.token)):
        monkeypatch.setenv(f"HEADWAY_{name}", value)
    agent = make_agent(FREE, bench=bench)
    job = agent.submit("true")
    given = {"job": job}
    waiting = agent.portal.start_task_soon(agent.client.call_tool, "wait_for_job", given)
    bench.until_ended(number(job))
    assert waiting.result().structured_content["job"]["state"] == "succeeded"
    assert bench.status(around) is Status.RUNNING


# -- submitting, cancelling, retrying ----------------------------------------------------------


@both_stores
def test_a_job_is_submitted_approved_waited_for_and_read(agent: Agent) -> None:
    made = agent.ask("submit_job", argv=["echo", "hello"], name="greet", labels={"by": "agent"})
    assert (made["created"], made["needs_approval"]) == (True, True)
    assert "headway jobs approve job-1" in made["next_step"]
    assert agent.bench.job(1).submitted_by == "mcp"
    agent.bench.client.jobs.approve("job-1")
    agent.bench.until_ended(1)
    assert agent.ask("wait_for_job", job="job-1")["job"]["exit_code"] == 0
    assert agent.ask("tail_log", job="job-1")["data"]["lines"] == ["hello"]


@both_stores
def test_a_key_makes_one_job(agent: Agent) -> None:
    first = agent.ask("submit_job", argv=["true"], key="once")
    again = agent.ask("submit_job", argv=["true"], key="once")
    assert (first["created"], again["created"]) == (True, False)
    assert first["job"]["id"] == again["job"]["id"]
    other = agent.call("submit_job", argv=["false"], key="once")
    assert other.answer["error"] == "key-reused" and "once" in other.detail


def test_the_key_of_a_job_that_has_ended_asks_for_nobody(agent: Agent) -> None:
    job = agent.submit("true", key="once")
    agent.ask("cancel_job", job=job)
    again = agent.ask("submit_job", argv=["true"], key="once")
    assert (again["created"], again["needs_approval"]) == (False, False)
    assert again["next_step"] == "show_job with job-1"


def test_it_runs_where_the_server_is_and_with_its_environment(
    make_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_AGENT", "seen")
    agent = make_agent(FREE)
    monkeypatch.chdir(agent.bench.folder)
    job = agent.submit("sh", "-c", "echo $OF_THE_AGENT; pwd")
    agent.bench.until_ended(number(job))
    lines = agent.ask("tail_log", job=job)["data"]["lines"]
    assert lines == ["seen", str(agent.bench.folder)]


def test_all_words_of_a_submit_are_read(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent(FREE)
    (agent.bench.folder / "there").touch()
    agent.bench.submit("true")
    job = agent.submit(
        "true",
        name="all",
        labels={"a": "b"},
        cwd=str(agent.bench.folder),
        after=["job-1"],
        needs=[f"file:{agent.bench.folder}/there"],
        produces=["custom:x:y"],
        locks=["db:shared"],
        resources=["big"],
        priority=3,
        delay="1s",
        timeout="1m",
        retries=2,
    )
    document = agent.bench.client.document(job)
    assert document["priority"] == 3 and document["after"] == ["job-1"]
    assert document["locks"] == [{"key": "db", "mode": "shared"}]
    assert document["max_attempts"] == 2 and document["resources"] == ["big"]
    assert document["params"]["timeout_seconds"] == 60 and document["not_before"]


def test_an_own_job_is_cancelled(agent: Agent) -> None:
    job = agent.submit()
    assert agent.ask("cancel_job", job=job)["cancelled"] == [{"id": job, "was_running": False}]
    again = agent.call("cancel_job", job=job)
    assert (again.answer["error"], again.detail) == (
        "conflict",
        "job-1 has already ended (cancelled)",
    )


def test_what_failed_is_retried_with_all_that_follows(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent(FREE)
    first = agent.submit("false")
    agent.submit("true", after=[first])
    agent.bench.until_ended(1, 2)
    said = agent.ask("retry_job", job=first)
    assert said["again"] == ["job-3", "job-4"] and said["job"]["id"] == "job-3"
    assert said["needs_approval"] is False


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("status", {"x": 1}, "unknown key 'x'"),
        ("list_jobs", {"limit": "5"}, "/limit: '5' is not a whole number"),
        ("list_jobs", {"limit": True}, "/limit: True is not a whole number"),
        ("list_jobs", {"state": "done"}, "is not one of"),
        ("list_jobs", {"labels": {"a": 1}}, "/labels/a: 1 is not a text"),
        ("show_job", {}, "/job: job is missing"),
        ("show_job", {"job": ""}, "/job: it is empty"),
        ("show_job", {"job": "j" * 201}, "/job: it is longer than 200 characters"),
        ("show_job", {"job": "a\0b"}, "a text has a NUL"),
        ("tail_log", {"job": "1", "stream": "../x"}, "is not one of stdout, stderr"),
        ("submit_job", {"argv": ["true"], "priorty": 1}, "did you mean 'priority'?"),
        ("submit_job", {"argv": ["true"], "shell": "true"}, "give argv, or shell, and not both"),
        ("submit_job", {}, "give argv, or shell, and not both"),
        ("submit_job", {"argv": []}, "give argv, or shell, and not both"),
        ("submit_job", {"argv": ["no-such-program-here"]}, "no-such-program-here"),
        ("submit_job", {"argv": ["true"], "timeout": "soon"}, "soon"),
        ("submit_job", {"argv": ["true"], "after": ["job-999"]}, "job-999"),
        ("submit_job", {"argv": ["a"] * 1001}, "it has more than 1000 entries"),
        ("submit_template", {"template": "none"}, "there is no template 'none'"),
        ("show_job", {"job": "job-7"}, "there is no job-7"),
        ("show_job", {"job": "../../etc/passwd"}, "passwd"),
        ("show_job", {"job": "job-" + "9" * 30}, "is not a job"),
        ("wait_for_job", {"job": "job-7"}, "there is no job-7"),
    ],
)
def test_what_is_wrong_is_named(agent: Agent, name: str, given: dict[str, Any], says: str) -> None:
    got = agent.call_with(name, given)
    assert got.refused and says in got.detail, got.answer
    assert agent.bench.client.listing(everything=True) == []


def test_a_tool_that_is_not_there_is_named_with_those_that_are(agent: Agent) -> None:
    with pytest.raises(MCPError, match=r"there is no tool 'approve\\x1b'; there are status, list"):
        agent.call("approve\x1b")


def test_a_mistake_of_the_program_is_told_to_nobody_but_the_log(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("secret of the program")

    monkeypatch.setattr("headway.jobs.views.status.scheduler_status", fail)
    got = agent.call("status")
    assert got.answer["error"] == "unexpected" and "secret" not in got.text
    assert "secret of the program" in caplog.text


# -- side by side ------------------------------------------------------------------------------


def test_calls_go_on_while_others_wait(agent: Agent) -> None:
    agent.bench.submit("true", require_approval=True)
    waits = [
        agent.portal.start_task_soon(agent.client.call_tool, "wait_for_job", {"job": "job-1"})
        for _ in range(8)
    ]
    for _ in range(8):
        assert agent.ask("show_job", job="job-1")["job"]["state"]
    assert not any(each.done() for each in waits)
    agent.bench.client.cancel([1])
    assert all(each.result().structured_content["ended"] for each in waits)


def test_a_wait_that_is_given_up_leaves_its_thread(agent: Agent) -> None:
    agent.bench.submit("true", require_approval=True)
    before = agent.ask("status")
    waiting = agent.portal.start_task_soon(agent.client.call_tool, "wait_for_job", {"job": "job-1"})
    agent.ask("status")
    waiting.cancel()
    ended = threading.Thread(target=agent.caller.close)
    ended.start()  # which waits for all threads
    ended.join(20)
    assert not ended.is_alive() and before["you_are"] == "mcp"
