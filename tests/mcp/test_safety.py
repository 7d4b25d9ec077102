"""No tool decides for a person or changes what is of others, whatever it is given."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from toolbox import FREE, Agent, told

import headway.mcp
from harness import Bench
from headway.base.errors import ConflictError
from headway.base.trust import record
from headway.core.model import ApprovalState
from headway.core.states import Status
from headway.mcp.caller import agent as agent_named
from headway.mcp.server import make_server
from headway.mcp.tool import SubmitRule, Submits
from headway.mcp.tools import TOOLS
from mcp import Client as McpClient
from mcp import MCPError, types

ROOM = Path(headway.mcp.__file__).parent
APPROVAL = SubmitRule()
OFF = SubmitRule(Submits.OFF)
# All that the tools do to jobs; whatever else a client can is for people.
CHANGES = {"jobs.submit_entry", "templates.submit", "jobs.cancel", "jobs.retry"}
LOOKS = {
    *("scheduler.status", "schedules.list", "templates.show", "jobs.list", "jobs.show"),
    *("jobs.tries", "jobs.why", "jobs.log", "jobs.log_tail", "jobs.approvals", "jobs.wait"),
}
FOR_PEOPLE = {
    *("approve", "approve_all", "reject", "repin", "edit", "move", "reorder", "pause", "resume"),
    *("set", "unset", "set_setting", "reset", "clear", "tokens", "login_code", "revoke", "add"),
    *("remove", "archive", "clean", "gc", "trigger", "enable", "disable", "repeat", "admin"),
    *("webhooks", "config", "targets", "items", "reservations", "cancel_downstream", "close"),
}


def test_the_tools_have_these_verbs_and_no_others() -> None:
    assert {verb for tool in TOOLS for verb in tool.verbs} == CHANGES | LOOKS


def attributes() -> Iterator[tuple[str, str]]:
    for file in sorted(ROOM.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                yield file.name, node.attr


def test_no_code_of_the_tools_names_what_is_for_people() -> None:
    allowed = {("caller.py", "set"), ("caller.py", "close"), ("server.py", "close")}
    allowed |= {("answers.py", "items"), ("handlers.py", "reset")}  # of objects that are shown
    assert {each for each in attributes() if each[1] in FOR_PEOPLE} <= allowed


def test_the_client_of_an_agent_may_not_decide(make_bench: Any, make_agent: Any) -> None:
    agent = make_agent(bench=make_bench(settings={"approval.from_jobs": True}))
    agent.bench.submit("true", require_approval=True)
    acting = agent.caller._acting(agent.bench.client)
    for decide in (acting.jobs.approve, acting.jobs.reject, acting.jobs.repin):
        with pytest.raises(ConflictError, match=r"mcp may not .*: a person decides"):
            decide(1)


@pytest.mark.parametrize("name", [None, "ada"])
def test_who_calls_is_an_agent_under_its_own_name(name: str | None) -> None:
    principal = agent_named(name)
    assert principal.actor == ("mcp" if name is None else "mcp:ada")
    assert not principal.is_person and principal.may_change(principal.actor)
    assert not principal.may_change("ada") and not principal.may_change(None)


# -- approvals ---------------------------------------------------------------------------------

WORDS: tuple[dict[str, Any], ...] = (
    {"approve": True},
    {"approved": True, "job": "job-1"},
    {"require_approval": False},
    {"token": "hw_x", "job": "job-1"},
    {"actor": "ada"},
    {"kind": "person"},
    {"approval": {"state": "approved"}},
    {"on_finish": "true"},
    {"env": {"A": "b"}},
)
NOT_THERE = (
    "approve_job",
    "approve",
    "reject_job",
    "edit_job",
    "pause",
    "set_setting",
    "add_token",
)


def still_waits(agent: Agent) -> None:
    agent.bench.step()
    job = agent.bench.job(1)
    assert job.approval is not None and job.approval.state is ApprovalState.PENDING
    assert job.status is Status.WAITING_ON_APPROVAL
    assert agent.bench.client.scheduler.status()["paused"] is False
    assert agent.bench.client.tokens.list() == []


@pytest.mark.parametrize("rule", [APPROVAL, FREE, OFF], ids=["approval", "free", "off"])
def test_no_tool_approves_with_any_word(
    make_bench: Callable[..., Bench],
    make_agent: Callable[..., Agent],
    monkeypatch: pytest.MonkeyPatch,
    rule: SubmitRule,
) -> None:
    monkeypatch.setenv("HEADWAY_ACTOR", "ada")
    monkeypatch.setenv("HEADWAY_TOKEN", "hw_x")
    agent = make_agent(rule, bench=make_bench(settings={"approval.from_jobs": True}), name="ada")
    agent.bench.submit("true", require_approval=True)
    for name, tool in agent.tools().items():
        needed = dict.fromkeys(tool.input_schema.get("required", ()), "job-1")
        for words in WORDS:
            got = agent.call_with(name, {**needed, **words})
            assert got.answer["error"] == "wrong-request", (name, words)
    for name in NOT_THERE:
        with pytest.raises(MCPError, match="there is no tool"):
            agent.call(name, job="job-1")
    still_waits(agent)


def test_an_elicitation_counts_for_nothing(agent: Agent) -> None:
    """A client that says yes to everything is not asked, and what it says by itself is nothing."""
    asked: list[object] = []

    async def accept(*given: object) -> types.ElicitResult:
        asked.append(given)
        return types.ElicitResult(action="accept", content={"approve": True})

    made = McpClient(make_server(agent.caller, APPROVAL), elicitation_callback=accept)
    with agent.portal.wrap_async_context_manager(made) as client:

        def call(name: str, given: dict[str, Any]) -> dict[str, Any]:
            return told(agent.portal.call(client.call_tool, name, given)).answer

        assert call("submit_job", {"argv": ["true"]})["needs_approval"] is True
        call("list_approvals", {})
        call("wait_for_job", {"job": "job-1", "seconds": 0})
        params = types.CallToolRequestParams(
            name="show_job",
            arguments={"job": "job-1"},
            input_responses={
                "approve": types.ElicitResult(action="accept", content={"approve": True})
            },
            request_state="approved",
        )
        request = types.CallToolRequest(params=params)
        agent.portal.call(client.session.send_request, request, types.CallToolResult)
    assert asked == []
    still_waits(agent)


# -- submitting --------------------------------------------------------------------------------


def add_templates(agent: Agent) -> None:
    templates = agent.bench.client.templates
    templates.add("greet", argv=["echo", "{who}"], params={"who": "you"})
    templates.add("told", argv=["true"], on_finish="echo over")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("submit_job", {"argv": ["true"]}),
        ("submit_job", {"shell": "true"}),
        ("submit_job", {"runner": "small", "prompt": "do it"}),
        ("submit_template", {"template": "greet"}),
    ],
)
def test_what_it_submits_needs_a_person(agent: Agent, name: str, given: dict[str, Any]) -> None:
    add_templates(agent)
    runners = Path(agent.bench.home.path, "runners")
    runners.mkdir()
    (runners / "small.toml").write_text('argv = ["true"]\nprompt = "stdin"\nparser = "jsonl"\n')
    record(agent.bench.home.path)
    got = agent.call_with(name, given)
    assert got.answer["needs_approval"] is True
    agent.bench.step()
    assert agent.bench.status(1) is Status.WAITING_ON_APPROVAL


def test_a_free_template_needs_none_and_nothing_else_is_free(
    make_agent: Callable[..., Agent],
) -> None:
    agent = make_agent(SubmitRule(free_templates=("greet", "told")))
    add_templates(agent)
    made = agent.ask("submit_template", template="greet", params={"who": "me"}, key="k")
    assert made["needs_approval"] is False
    assert agent.ask("submit_template", template="told")["needs_approval"] is False
    agent.bench.until_ended(1)
    assert agent.ask("tail_log", job="job-1")["data"]["lines"] == ["me"]
    assert agent.ask("submit_job", argv=["echo", "me"])["needs_approval"] is True
    for word in ("argv", "shell", "cwd", "name", "on_finish", "labels"):
        got = agent.call("submit_template", template="greet", **{word: "x"})
        assert got.answer["error"] == "wrong-request"


def test_what_follows_a_cancel_is_approved_as_well(agent: Agent) -> None:
    """The end of a job that nobody approved must not run anything."""
    add_templates(agent)
    got = agent.call("submit_template", template="told")
    assert got.answer["error"] == "conflict" and "--free-template told" in got.detail
    assert agent.bench.client.listing(everything=True) == []


def test_free_asks_nobody(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent(FREE)
    add_templates(agent)
    assert agent.ask("submit_job", argv=["true"])["needs_approval"] is False
    assert agent.ask("submit_template", template="told")["needs_approval"] is False


def test_off_submits_nothing(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent(OFF)
    for name in ("submit_job", "submit_template"):
        assert name not in agent.tools()
        with pytest.raises(MCPError, match="there is no tool"):
            agent.call(name, argv=["true"])
    assert agent.bench.client.listing(everything=True) == []


# -- retrying ----------------------------------------------------------------------------------


def test_a_retry_of_what_was_approved_asks_again(agent: Agent) -> None:
    job = agent.submit("false")
    agent.bench.client.jobs.approve(job)
    agent.bench.until_ended(1)
    assert agent.ask("retry_job", job=job)["needs_approval"] is True
    agent.bench.step()
    assert agent.bench.status(2) is Status.WAITING_ON_APPROVAL


def test_a_retry_of_what_was_rejected_asks_again(agent: Agent) -> None:
    job = agent.submit("false")
    agent.bench.client.jobs.reject(job)
    assert agent.ask("retry_job", job=job)["needs_approval"] is True
    agent.bench.step()
    assert agent.bench.status(2) is Status.WAITING_ON_APPROVAL


@pytest.mark.parametrize("rule", [APPROVAL, OFF], ids=["approval", "off"])
def test_a_retry_does_not_get_round_the_approval(
    make_agent: Callable[..., Agent], rule: SubmitRule
) -> None:
    """What ran freely under another rule does not run again without a person."""
    free = make_agent(FREE)
    job = free.submit("false")
    free.bench.until_ended(1)
    bound = make_agent(rule, bench=free.bench)
    got = bound.call("retry_job", job=job)
    assert got.answer["error"] == "conflict" and "headway jobs retry job-1" in got.detail
    assert len(bound.bench.client.listing(everything=True)) == 1
    assert free.ask("retry_job", job=job)["again"] == ["job-2"]


def test_a_retry_of_a_free_template_is_free(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent(SubmitRule(free_templates=("fail",)))
    agent.bench.client.templates.add("fail", argv=["false"], retries=0)
    job = agent.ask("submit_template", template="fail")["job"]["id"]
    agent.bench.until_ended(1)
    assert agent.ask("retry_job", job=job)["needs_approval"] is False


def test_a_follow_up_is_not_retried_without_a_person(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent(SubmitRule(free_templates=("told",)))
    agent.bench.client.templates.add("told", argv=["true"], on_finish="false", retries=0)
    agent.ask("submit_template", template="told")
    agent.bench.until_ended(1)
    agent.bench.until_ended(2)
    assert agent.bench.job(2).submitted_by == "mcp"
    assert "asks for no approval" in agent.call("retry_job", job="job-2").detail


# -- jobs of others ----------------------------------------------------------------------------


def test_jobs_of_others_are_left_alone(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent(FREE, name="ada")
    other = make_agent(FREE, bench=agent.bench, name="bob")
    person = f"job-{agent.bench.submit('false')}"
    bobs = other.submit("false")
    for job in (person, bobs):
        got = agent.call("cancel_job", job=job)
        assert got.answer["error"] == "conflict"
        assert (
            f"may cancel only jobs that it submitted; a person can: headway jobs cancel {job}"
            in (got.detail)
        )
    agent.bench.until_ended(1, 2)
    for job in (person, bobs):
        assert "may retry only jobs that it submitted" in agent.call("retry_job", job=job).detail
    assert len(agent.bench.client.listing(everything=True)) == 2


def test_a_retry_reaches_no_job_of_others(make_agent: Callable[..., Agent]) -> None:
    """What comes after its own job would run again, too."""
    agent = make_agent(FREE)
    job = agent.submit("false")
    agent.bench.submit("true", after=(1,))
    agent.bench.until_ended(1, 2)
    got = agent.call("retry_job", job=job)
    assert "job-2 is of tester" in got.detail
    assert len(agent.bench.client.listing(everything=True)) == 2


def test_the_retry_of_a_person_stays_with_its_submitter(make_agent: Callable[..., Agent]) -> None:
    """A chain is of one submitter, whoever retried it, so its last job is the agent's to cancel."""
    agent = make_agent(FREE)
    job = agent.submit("false")
    agent.bench.until_ended(1)
    agent.bench.client.jobs.retry(1)
    assert agent.ask("cancel_job", job=job)["cancelled"][0]["id"] == "job-2"
