"""Budgets of agents: of a node, of a run, and what is refused because nobody could keep to it."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from fake_agents import install, result
from started import Started

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError
from headway.cli.run_view import next_step
from headway.core.states import Status
from headway.supervise.evidence import Evidence
from headway.workflows.mistakes import WorkflowError

COSTS = result(text="done", usage={"input": 900, "output": 100}, cost_usd=2.5)
HANGS = 'printf \'{"type": "usage", "input": 5, "output": 5, "cost_usd": 2.07}\\n\'; exec sleep 600'


def node(name: str, args: str = "", more: str = "") -> str:
    runner = '{ runner = "fake"' + (f", {args} }}" if args else " }")
    return f'[nodes.{name}]\nprompt = "x"\nargs = {runner}\nlocks = []\n{more}\n'


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("budget_usd = 2.0", "fake: it used up its budget: $2.07 of $2.00"),
        ("max_tokens = 9", "fake: it used up its budget: 10 of 9 tokens"),
    ],
)
def test_an_agent_that_uses_up_its_budget_is_ended(bench: Bench, args: str, words: str) -> None:
    install(bench, HANGS)
    run = Started(bench, node("a", args))
    assert run.ended()["state"] == "failed"
    assert run.node("a")["reason"] == words
    folder = Path(bench.home.job(run.job("a")))
    kept = json.loads((folder / "result.json").read_text())
    assert (kept["error_class"], kept["cost_usd"], kept["tokens"]) == ("limit", 2.07, 10)
    assert run.document["spent"] == {"usd": 2.07, "tokens": 10}


def test_prices_make_a_cost_of_tokens(bench: Bench) -> None:
    says = result(text="done", model="m-large", usage={"input": 900, "cached": 400, "output": 100})
    prices = '[prices]\n"m-*" = { input = 1000, cached = 100, output = 10000 }\n'
    install(bench, says, more=prices)
    run = Started(bench, "budget.usd = 5\n" + node("a"))
    assert run.ended()["state"] == "succeeded"
    assert run.document["spent"] == {"usd": 1.54, "tokens": 1000}
    kept = json.loads((Path(bench.home.job(run.job("a"))) / "result.json").read_text())
    assert kept["cost_source"] == "estimated"


def test_a_run_whose_budget_is_used_up_starts_no_more_agents(bench: Bench) -> None:  # fault J1
    install(bench, COSTS)
    text = "budget.usd = 4\n" + node("a") + node("b", more='after = ["a"]')
    text += '[nodes.person]\nargv = ["true"]\n'
    run = Started(bench, text + node("c", more='after = ["b"]\non.blocked = ["person"]'))
    ended = run.ended()
    assert ended["budget"] == {"usd": 4.0, "tokens": None}
    assert ended["spent"] == {"usd": 5.0, "tokens": 2000}
    words = f"the budget of wf-{run.run} is used up: $5.00 of $4.00"
    assert run.node("c")["reason"] == words and run.outcomes()["c"] == "blocked"
    assert run.outcomes()["person"] == "succeeded" and ended["state"] == "blocked"


def test_more_budget_lets_a_blocked_agent_go_on(bench: Bench) -> None:
    install(bench, COSTS)
    run = Started(bench, "budget.tokens = 1000\nbudget.usd = 2\n" + node("a", more=""))
    run.ended()
    again = Started(bench, "budget.usd = 2\n" + node("a") + node("b", more='after = ["a"]'))
    again.ended()
    assert again.outcomes() == {
        "a.prompt": "succeeded",
        "a": "succeeded",
        "b.prompt": "succeeded",
        "b": "blocked",
    }
    with pytest.raises(InvalidInputError, match="--budget-usd is -1; give an amount above 0"):
        bench.client.workflows.retry(again.run, budget_usd=-1)
    bench.client.workflows.retry(again.run, budget_usd=5)
    assert again.ended()["state"] == "succeeded"
    assert again.document["spent"]["usd"] == 5.0 and again.document["budget"]["usd"] == 5.0


@pytest.mark.parametrize(
    ("budget", "used", "option", "more", "less", "still"),
    [
        (
            *("usd = 2", "$2.50 of $2.00", "--budget-usd N", {"budget_usd": 5}),
            *({"budget_usd": 2.5}, "$2.50 of $2.50"),
        ),
        (
            *("tokens = 900", "1,000 of 900 tokens", "--budget-tokens N", {"budget_tokens": 2000}),
            *({"budget_tokens": 999}, "1,000 of 999 tokens"),
        ),
    ],
)
def test_the_next_step_of_a_run_without_budget_names_the_option_that_helps(
    bench: Bench,
    budget: str,
    used: str,
    option: str,
    more: dict[str, Any],
    less: dict[str, Any],
    still: str,
) -> None:
    install(bench, COSTS)
    run = Started(bench, f"budget.{budget}\n" + node("a") + node("b", more='after = ["a"]'))
    ended, command = run.ended(), f"headway workflows retry wf-{run.run} {option}"
    assert ended["reason"].endswith(f"the budget of wf-{run.run} is used up: {used}")
    assert next_step(bench.client, ended) == command
    assert bench.client.workflows.why(run.run)["remedy"].startswith(f"{command} runs it again")
    assert bench.client.jobs.why(run.job("b"))["remedy"] == command
    with pytest.raises(InvalidInputError, match="--budget-tokens is 0; give a number above 0"):
        bench.client.workflows.retry(run.run, budget_tokens=0)
    for dry_run in (True, False):
        with pytest.raises(ConflictError) as refused:
            bench.client.workflows.retry(run.run, **less, dry_run=dry_run)
        assert str(refused.value) == f"the budget of wf-{run.run} is used up: {still}; give more"
    assert run.document["budget"] == ended["budget"]
    bench.client.workflows.retry(run.run, **more)
    assert run.ended()["state"] == "succeeded"


def test_what_an_agent_may_spend_is_reserved_for_it(bench: Bench) -> None:
    bench.client.set_setting("scheduler.max_active", 4)
    install(bench, "touch $HEADWAY_RESULT_FILE.up; exec sleep 600")
    agreed = "approval = true"
    first = node("a", "budget_usd = 2") + node("b", "budget_usd = 1.5")
    then = node("c", "budget_usd = 1", agreed) + node("d", more=agreed)
    run = Started(bench, "budget.usd = 4\n" + first + then)

    def runs(*names: str) -> bool:
        return all(run.node(each)["state"] == "running" for each in names)

    def up(*names: str) -> bool:
        folders = [Path(bench.home.job(run.job(each))) for each in names]
        return all((each / "agent.json.up").exists() for each in folders)

    bench.until(lambda: runs("a", "b"), "two to run")
    bench.until(lambda: run.node("c")["state"] == "waiting_on_approval", "c to be asked for")
    bench.client.jobs.approve(run.job("c"))
    bench.step()
    wait = run.node("c")["wait"]
    words = [f"the budget of wf-1 is reserved by job-{run.job(each)}" for each in ("a", "b")]
    assert wait["kind"] == "capacity" and wait["detail"] in words
    # Half a dollar is left for one that has no limit of its own.
    bench.until(lambda: run.node("d")["state"] == "waiting_on_approval", "d to be asked for")
    bench.client.jobs.approve(run.job("d"))
    bench.until(lambda: runs("d"), "what is left to be used")
    last = run.job("d")
    with bench.store.read() as tx:
        (claim,) = (each for each in tx.claims.live() if each.job_id == last)
    assert Evidence(claim.folder, claim.token).read_spec()["agent"]["allowed_usd"] == 0.5
    bench.until(lambda: up("a", "b", "d"), "all of them to be at work")
    bench.client.jobs.cancel([run.job(each) for each in ("a", "b", "d")])
    bench.until(lambda: runs("c"), "it to start")
    bench.client.jobs.cancel([run.job("c")])
    run.ended()


def test_an_agent_whose_cost_nobody_knows_counts_with_all_that_it_might_use(bench: Bench) -> None:
    install(bench, "exec sleep 600")
    run = Started(bench, "budget.usd = 4\n" + node("a", "budget_usd = 1.5"))
    bench.until(lambda: run.node("a")["state"] == "running", "it to run")
    bench.until_begun()
    with bench.store.read() as tx:
        (claim,) = tx.claims.live()
    started = Evidence(claim.folder, claim.token).read_started()
    assert started is not None
    os.kill(started.supervisor_pid, signal.SIGKILL)
    run.ended()
    assert bench.status(run.job("a")) is Status.FAILED
    assert run.document["spent"]["usd"] == 1.5


# What these programs print shows what they used only at their end.
CODEX = """
echo '{"type": "thread.started", "thread_id": "t"}'
echo '{"type": "turn.started"}'
echo '{"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "done"}}'
%s
echo '{"type": "turn.completed", "usage": {"input_tokens": 900, "output_tokens": 100}}'
"""
GEMINI = """
echo '{"type": "init", "session_id": "s", "model": "m"}'
echo '{"type": "message", "role": "assistant", "content": "done"}'
%s
echo '{"type": "result", "status": "success", "stats": {"input_tokens": 900, "output_tokens": 100}}'
"""
AT_THE_END = pytest.mark.parametrize(
    ("parser", "stream"), [("codex-jsonl", CODEX), ("gemini-stream-json", GEMINI)]
)


def installed(bench: Bench, parser: str, script: str) -> None:
    """A runner that prints one of these streams, with a price for its tokens."""
    install(bench, script, more='[prices]\n"*" = { input = 1000, output = 1000 }\n')
    file = Path(bench.home.path) / "runners" / "fake.toml"
    file.write_text(file.read_text().replace('"jsonl"', f'"{parser}"'))


@AT_THE_END
@pytest.mark.parametrize("budget", ["budget.usd = 0.9\n", "budget.tokens = 900\n"])
def test_what_an_agent_shows_at_its_end_counts_for_the_run(
    bench: Bench, parser: str, stream: str, budget: str
) -> None:
    installed(bench, parser, stream % "")
    run = Started(bench, budget + node("a") + node("b", more='after = ["a"]'))
    ended = run.ended()
    assert ended["spent"] == {"usd": 1.0, "tokens": 1000}
    assert (run.outcomes()["a"], run.outcomes()["b"]) == ("succeeded", "blocked")
    assert run.node("b")["reason"].startswith(f"the budget of wf-{run.run} is used up: ")


@AT_THE_END
@pytest.mark.parametrize(("begins", "spent"), [(True, 5000), (False, 0)])
def test_an_agent_that_is_ended_before_it_shows_what_it_used_counts_with_all_that_it_might(
    bench: Bench, parser: str, stream: str, begins: bool, spent: int
) -> None:
    """Unless its model has never answered."""
    said = stream if begins else "%s"
    installed(bench, parser, said % "touch $HEADWAY_RESULT_FILE.up; exec sleep 600")
    run = Started(bench, "budget.tokens = 5000\n" + node("a"))
    up = Path(bench.home.job(run.job("a"))) / "agent.json.up"
    bench.until(up.exists, "it to be at work")
    bench.client.jobs.cancel([run.job("a")])
    assert run.ended()["spent"]["tokens"] == spent


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budget.usd = 1\n", "runner fake does not show what it costs; give its file [prices]"),
        ("budget.tokens = 1\n", "runner fake does not show the tokens it uses"),
    ],
)
def test_a_budget_that_nobody_could_count_is_refused(bench: Bench, text: str, words: str) -> None:
    install(bench, "true")
    file = Path(bench.home.path) / "runners" / "fake.toml"
    file.write_text(file.read_text().replace('"jsonl"', '"text"').replace('"--turns', '"--n'))
    with pytest.raises(WorkflowError, match=words.replace("[", r"\[")):
        Started(bench, text + node("a"))


@pytest.mark.parametrize("limit", ["budget_usd = 1", "max_tokens = 5"])
def test_a_limit_that_a_runner_cannot_keep_to_is_refused(bench: Bench, limit: str) -> None:
    install(bench, "true")
    file = Path(bench.home.path) / "runners" / "fake.toml"
    file.write_text(file.read_text().replace('"jsonl"', '"gemini-stream-json"'))
    with pytest.raises(WorkflowError, match="runner fake cannot keep to"):
        Started(bench, node("a", limit))
