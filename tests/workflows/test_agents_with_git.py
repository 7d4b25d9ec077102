"""Agents that work in worktrees: whole starters, with a small program as the agent."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_agents import install, result
from scratch import IDENTITY, Scratch
from started import Started

from both_stores import on_a_file
from harness import Bench
from headway.supervise.evidence import Evidence
from headway.workflows.mistakes import WorkflowError
from headway.workflows.new_file import starter_text

KEEPS = 'printf %s "$PROMPT" > "$HEADWAY_RESULT_FILE.prompt"\n'


@pytest.fixture
def scratch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    monkeypatch.chdir(bench.folder)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    yield Scratch(bench.folder)


def test_the_agent_starter_goes_on_until_the_checks_are_green(
    bench: Bench, scratch: Scratch
) -> None:
    scratch.write("Makefile", "test:\n\twc -l < work\n\ttest $$(wc -l < work) -ge 3\n")
    scratch.commit("checks")
    says = f"{KEEPS}echo line >> work\n{result(text='done', cost_usd=0.5)}"
    install(bench, says, name="claude")
    run = Started(bench, starter_text("agent"), "fix-login", task="Correct the login.")
    ended = run.ended()
    assert ended["state"] == "succeeded", ended["nodes"]
    assert run.node("code")["pass"] == 3 and ended["spent"]["usd"] == 1.5
    said = (Path(bench.home.job(run.job("code"))) / "agent.json.prompt").read_text()
    assert "Correct the login." in said and "\n2\n" in said
    assert scratch.git("show", "draft/fix-login:work") == "line\nline\nline"
    kept = json.loads((Path(bench.home.job(run.job("code"))) / "result.json").read_text())
    assert (kept["git"]["branch"], kept["git"]["files"]) == ("draft/fix-login", ["work"])


@pytest.fixture
def conflict(scratch: Scratch) -> Scratch:
    """The branch of a plan and its target have changed the same line."""
    scratch.write("Makefile", "test:\n\ttrue\n")
    scratch.commit("checks")
    scratch.on_branch("draft/login", **{"readme.txt": "theirs\n"})
    scratch.write("readme.txt", "ours\n")
    scratch.commit("ours")
    return scratch


def merging(args: str = "", top: str = "") -> str:
    """The starter, with more arguments of its gate, and lines at its top."""
    text = starter_text("merge").replace('runner = "claude"', f'runner = "fake"{args}')
    return f"{top}\n{text}"


RESOLVES = f"echo both > readme.txt; {result(text='resolved', usage={'input': 90, 'output': 10}, cost_usd=0.75)}"


def test_an_agent_resolves_a_conflict_and_it_is_merged(bench: Bench, conflict: Scratch) -> None:
    install(bench, RESOLVES)
    run = Started(bench, merging(top="budget.usd = 2"), "login")
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert (conflict.path / "readme.txt").read_text() == "both\n"
    assert run.document["spent"] == {"usd": 0.75, "tokens": 100}, "as any other agent's"
    resolved, _ = bench.client.jobs.chain(run.job("resolve"))
    shown = bench.client.document(int(resolved["id"].removeprefix("job-")))
    assert shown["run"]["result"]["cost_usd"] == 0.75 and shown["type"] == "gate"
    assert shown["run"]["result"]["git"]["branch"] == "draft/login"


def test_a_gate_that_finds_no_conflict_spends_nothing(bench: Bench, scratch: Scratch) -> None:
    install(bench, "exit 1")
    text = """
        budget.usd = 2
        [nodes.resolve]
        uses = "control.gate.conflict_resolution"
        args = { slug = "login", auto_resolve = true, runner = "fake", budget_usd = 1 }
        """
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert run.document["spent"] == {"usd": 0, "tokens": 0}


def test_a_gate_keeps_its_agent_to_its_budget(bench: Bench, conflict: Scratch) -> None:
    uses = '{"type": "usage", "input": 5, "output": 5, "cost_usd": 2.07}'
    install(bench, f"printf '%s\\n' '{uses}'; exec sleep 600")
    run = Started(bench, merging(", budget_usd = 2.0"), "login")
    assert run.ended()["state"] == "blocked"
    assert run.outcomes()["resolve"] == "blocked" and run.outcomes()["ask"] == "succeeded"
    with open(f"{bench.home.job(run.job('resolve'))}/stderr.log") as file:
        assert "fake: it used up its budget: $2.07 of $2.00 (limit)" in file.read()
    assert run.document["spent"] == {"usd": 2.07, "tokens": 10}


def test_a_gate_calls_no_agent_when_the_budget_of_the_run_is_used_up(
    bench: Bench, conflict: Scratch
) -> None:
    install(bench, RESOLVES)
    first = """
[nodes.first]
prompt = "x"
args = { runner = "fake" }
on.succeeded = ["tree"]
"""
    run = Started(bench, merging(top="budget.usd = 0.5") + first, "login")
    run.ended()
    words = f"the budget of wf-{run.run} is used up: $0.75 of $0.50"
    assert run.node("resolve")["reason"] == words and run.outcomes()["ask"] == "succeeded"


LIMITED = """
if [ -e $HEADWAY_HOME/over ]; then echo resolved > readme.txt
else touch $HEADWAY_HOME/over; {}; exit 1
fi
"""


@pytest.mark.parametrize(
    ("error", "more", "words"),
    [
        ("usage limit; resets in 600", "", "fake is parked until "),
        ("401 invalid api key", 'auth = "park"\n', "fake is parked: "),
    ],
)
def test_a_gate_whose_agent_meets_a_limit_parks_the_runner_and_goes_on(
    bench: Bench, conflict: Scratch, error: str, more: str, words: str
) -> None:
    limits = "limits = [{ match = 'resets in (?P<seconds>[0-9]+)' }]\n"
    said = result(error=error, session_id="s-1", **({"class": "auth"} if more else {}))
    install(bench, LIMITED.format(said), more=limits + more)
    run = Started(bench, merging(), "login")
    first = run.job("resolve")
    bench.until(lambda: run.job("resolve") != first, "the chain to go on")
    with bench.store.read() as tx:
        (parked,) = tx.runners.parked().values()
    assert (parked.runner, parked.job_id) == ("fake", first)
    bench.step()
    again = bench.client.job(run.job("resolve"))
    assert (again.retries_used, again.attempt, again.chain) == (0, 2, first)
    wait = bench.client.document(again.id)["wait"]
    assert wait["kind"] == "rate" and wait["detail"].startswith(words)
    assert run.outcomes()["resolve"] is None, "the node has not failed"
    bench.client.runners.resume("fake")
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert (conflict.path / "readme.txt").read_text() == "resolved\n"


def test_a_gate_whose_end_nobody_knows_counts_with_all_that_it_might_use(
    bench: Bench, conflict: Scratch
) -> None:
    install(bench, "touch $HEADWAY_HOME/up; exec sleep 600")
    run = Started(bench, merging(top="budget.usd = 4"), "login")
    bench.until((Path(bench.home.path) / "up").exists, "the agent to be at work")
    with bench.store.read() as tx:
        (claim,) = tx.claims.live()
    started = Evidence(claim.folder, claim.token).read_started()
    assert started is not None
    os.kill(started.supervisor_pid, signal.SIGKILL)
    run.ended()
    assert run.outcomes()["resolve"] == "blocked" and run.document["spent"]["usd"] == 4.0


@pytest.mark.parametrize(
    ("args", "top", "words"),
    [
        (", max_tokens = 5", "", "runner fake cannot keep to max_tokens"),
        (", budget_usd = 1", "", "runner fake cannot keep to budget_usd"),
        (', budget_usd = "much"', "", 'budget_usd is "much"; give'),
        ("", "budget.usd = 1", "runner fake does not show what it costs"),
        (', budget_usd = "${{ nodes.tree.outputs.path }}"', "", "is not known when it is queued"),
    ],
)
def test_a_budget_of_a_gate_that_nobody_could_keep_is_refused(
    bench: Bench, scratch: Scratch, args: str, top: str, words: str
) -> None:
    install(bench, "true")
    file = Path(bench.home.path) / "runners" / "fake.toml"
    file.write_text(file.read_text().replace('"jsonl"', '"codex-jsonl"'))
    scratch.on_branch("draft/login")
    with pytest.raises(WorkflowError, match=f"node 'resolve': .*{words}"):
        Started(bench, merging(args, top), "login")


@on_a_file
@pytest.mark.parametrize("killed_at", ["conflict.merging", "conflict.agent_ended"])
def test_a_gate_that_dies_calls_its_agent_once(
    bench: Bench, conflict: Scratch, tmp_path: Path, killed_at: str
) -> None:
    # fault J2
    install(bench, f"echo called >> {tmp_path}/called; {RESOLVES}")
    env = f'HEADWAY_POINTS = "{killed_at}=kill", HEADWAY_TEST_MARK = "{tmp_path}/mark"'
    text = merging().replace(
        'runner = "fake" }', f'runner = "fake" }}\nretry_base = "1ms"\nenv = {{ {env} }}'
    )
    run = Started(bench, text, "login")
    assert run.ended()["state"] == "succeeded", run.document["nodes"]
    assert (conflict.path / "readme.txt").read_text() == "both\n"
    assert (tmp_path / "called").read_text() == "called\n"
    assert (tmp_path / "mark").exists()
