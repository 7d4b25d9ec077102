"""`control.gate.approval`: how many persons, which, what they are asked, and for how long."""

from collections.abc import Callable
from copy import copy

import pytest
from started import Started

from harness import Bench
from headway.base.errors import ConflictError
from headway.core.states import Status
from headway.jobs.approvals import approve, approve_all, inbox, reject
from headway.testing.clock import FakeClock
from headway.workflows.mistakes import WorkflowError

GATE = """
[nodes.plan]
argv = ["true"]
on.succeeded = ["agree"]
[nodes.agree]
uses = "control.gate.approval"
args = {{ {args} }}
on.succeeded = ["build"]
on.blocked = ["give_up"]
[nodes.build]
argv = ["true"]
[nodes.give_up]
argv = ["true"]
"""


def asked(bench: Bench, args: str) -> Started:
    run = Started(bench, GATE.format(args=args))
    bench.until(lambda: run.node("agree")["state"] == "waiting_on_approval", "to be asked")
    return run


def agree(bench: Bench, run: Started, actor: str) -> None:
    context = copy(bench.client.context)
    context.actor = actor
    approve(context, run.job("agree"))


def test_a_question_may_name_its_run(bench: Bench) -> None:
    question = "params.x = '${{ run.state }}'\n" + GATE.format(
        args='question = "Build ${{ params.x }} of ${{ run.id }}, ${{ run.name }}?"'
    )
    run = Started(bench, question)
    bench.until(lambda: run.node("agree")["state"] == "waiting_on_approval", "to be asked")
    assert [each["question"] for each in inbox(bench.client.context)] == [
        "Build ${{ run.state }} of wf-1, flow?"
    ]
    agree(bench, run, "ann")
    run.ended()


def test_so_many_persons_must_agree(bench: Bench) -> None:
    run = asked(bench, 'required = 2, question = "Build it?"')
    (entry,) = inbox(bench.client.context)
    assert (entry["question"], entry["needed"], entry["approved_by"]) == ("Build it?", 2, [])
    assert entry["workflow_run"] == "wf-1"
    agree(bench, run, "ann")
    with pytest.raises(ConflictError, match="ann has agreed to job-2 already; 1 more must"):
        agree(bench, run, "ann")
    bench.step()
    assert run.node("agree")["state"] == "waiting_on_approval"
    remedy = bench.client.jobs.why(run.job("agree"))["objections"][0]["remedy"]
    assert remedy.startswith("Build it? headway jobs approve job-2")
    assert "1 of 2 must still agree" in remedy
    agree(bench, run, "bob")
    assert run.ended()["state"] == "succeeded"
    approval = bench.client.job(run.job("agree")).approval
    assert approval is not None and approval.approved_by == ("ann", "bob")


def test_only_some_may_decide(bench: Bench) -> None:
    run = asked(bench, 'approvers = ["ann", "bob"]')
    with pytest.raises(
        ConflictError,
        match=r"^job-2 is decided by ann or bob, and you are tester \(--as NAME, before the command\)$",
    ):
        approve(bench.client.context, run.job("agree"))
    with pytest.raises(ConflictError, match="job-2 is decided by ann or bob"):
        reject(bench.client.context, run.job("agree"), None)
    agree(bench, run, "bob")
    assert run.ended()["state"] == "succeeded"


def test_an_approval_expires_from_when_its_turn_came(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    text = GATE.format(args='expires = "3d"').replace(
        'argv = ["true"]\non.succeeded = ["agree"]',  # its end has the time of this clock
        'argv = ["true"]\nwhen = ["1 == 2"]\non.skipped = ["agree"]',
    )
    run = Started(bench, text)
    clock.advance(2 * 86_400)  # nothing was planned yet, and nobody is asked
    bench.until(lambda: run.node("agree")["state"] == "waiting_on_approval", "to be asked")
    clock.advance(2 * 86_400)
    bench.step()
    assert run.node("agree")["state"] == "waiting_on_approval"
    clock.advance(86_400 + 60)
    assert run.ended()["state"] == "blocked"
    assert run.node("agree")["reason"] == "approval expired after 3d"
    assert bench.status(run.job("agree")) is Status.BLOCKED_BY_APPROVAL
    assert run.outcomes() == {
        "plan": "skipped",
        "agree": "blocked",
        "build": "unreached",
        "give_up": "succeeded",
    }
    bench.client.workflows.retry(run.run)
    bench.until(lambda: run.node("agree")["state"] == "waiting_on_approval", "to be asked again")
    approve(bench.client.context, run.job("agree"))
    assert run.ended()["state"] == "succeeded"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("required = 0", "required is 0; give a whole number from 1 to 100"),
        ('required = "two"', 'required is "two"; give a whole number from 1 to 100'),
        ('expires = "soon"', 'expires is "soon"; give a duration like "5m"'),
        ("approvers = [1]", "give a list of names"),
        ('expires = "3 days"', 'expires is "3 days"; give a duration like "5m"'),
        ('question = "${{ nodes.plan.outcome }}?"', "args: nodes.plan.outcome is not known when"),
        ('required = 2, approvers = ["ann"]', "required is 2, and there are 1 approvers"),
    ],
)
def test_what_a_gate_cannot_ask_is_refused(bench: Bench, args: str, words: str) -> None:
    with pytest.raises(WorkflowError) as refused:
        Started(bench, GATE.format(args=args))
    assert words in str(refused.value) and "node 'agree'" in str(refused.value)
    with bench.store.read() as tx:
        assert tx.workflows.since(0, 10) == []


# -- of a whole run ----------------------------------------------------------------------------

ROOTS = """
finally = ["last"]
[nodes.first]
argv = ["true"]
matrix = { n = [1, 2] }
[nodes.check]
shell = 'test "$HEADWAY_PASS" != 1'
after = ["first"]
loop = { to = "first", times = 1 }
[nodes.agree]
uses = "control.gate.approval"
args = { required = 2 }
[nodes.beside]
argv = ["true"]
[nodes.last]
argv = ["true"]
"""


def held(bench: Bench) -> Started:
    run = Started(bench, ROOTS, require_approval=True)  # type: ignore[arg-type]
    bench.until(lambda: run.node("beside")["state"] == "waiting_on_approval", "to be asked")
    return run


def test_a_run_is_agreed_to_once(bench: Bench) -> None:
    run = held(bench)
    asking = inbox(bench.client.context)
    assert [(each["name"], each["question"]) for each in asking] == [
        ("first[n=1]", "Start wf-1 of flow?"),
        ("agree", None),
    ]
    approve(bench.client.context, run.job("beside"))
    for name in ("first[n=1]", "first[n=2]"):
        approval = bench.job(run.job(name)).approval
        assert approval is not None and approval.decided_by == "tester"
    agree(bench, run, "ann")
    agree(bench, run, "bob")
    assert run.ended()["state"] == "succeeded"
    assert run.node("first[n=1]")["pass"] == 2, "the loop has asked nobody"
    assert bench.kinds(run.job("first[n=2]")).count("waiting_on_approval") == 0


def test_several_of_a_run_may_be_agreed_to_together(bench: Bench) -> None:
    run = held(bench)
    jobs = [run.job(name) for name in ("first[n=1]", "beside", "agree")]
    assert [job.id for job in approve_all(bench.client.context, jobs)] == jobs
    assert bench.kinds(jobs[1]).count("approved") == 1
    agree(bench, run, "bob")
    assert run.ended()["state"] == "succeeded"


def test_a_run_is_rejected_as_a_whole_and_asked_about_anew(bench: Bench) -> None:
    run = held(bench)
    reject(bench.client.context, run.job("first[n=2]"), "not today")
    outcomes = run.outcomes()
    roots = ("first[n=1]", "first[n=2]", "beside")
    assert [outcomes[name] for name in roots] == ["blocked"] * 3 and outcomes["agree"] is None
    assert run.node("beside")["reason"] == "rejected by tester: not today"
    agree(bench, run, "ann")
    agree(bench, run, "bob")
    assert run.ended()["state"] == "blocked"
    bench.client.workflows.retry(run.run)
    bench.until(lambda: run.node("beside")["state"] == "waiting_on_approval", "to be asked again")
    (asked_now,) = inbox(bench.client.context)
    approve(bench.client.context, int(asked_now["id"].removeprefix("job-")))
    assert run.ended()["state"] == "succeeded"
