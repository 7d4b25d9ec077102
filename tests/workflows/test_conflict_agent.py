"""The agent that resolves a conflict for a gate, in the process of its node."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_agents import install

import headway
from harness import Bench
from headway.core.agents import calls_agent
from headway.core.model import Job
from headway.core.settle import Ending, Outcome, settle
from headway.core.states import Status

SOURCES = str(Path(headway.__file__).parent.parent)
SCRIPT = """
import json, os, sys
from headway.workflows.operations.model import NodeTask
from headway.workflows.operations.conflict_agent import resolve_by_agent

given = json.loads(sys.argv[1])
task = NodeTask(**{**dict.fromkeys(NodeTask._fields), **given})
code = resolve_by_agent(task, sys.argv[2], ["a.txt", "b c.txt"])
print(json.dumps([code, os.getcwd(), os.environ.get("SECRET")]))
"""


def resolved(bench: Bench, checkout: Path, **args: Any) -> subprocess.CompletedProcess[str]:
    file = Path(bench.home.path, "runners", "fake.toml")
    task = {"args": {"runner_file": str(file), **args}, "folder": str(checkout)}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(task), str(checkout)],
        env={**os.environ, "PYTHONPATH": SOURCES, "SECRET": "s", "HOME": "/"},
        capture_output=True,
        text=True,
        cwd="/",
        timeout=60,
    )


def test_an_agent_resolves_in_the_checkout_with_its_own_variables(
    bench: Bench, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    install(bench, 'printf %s "$PROMPT" > prompt; echo "$SECRET" > secret')
    done = resolved(bench, checkout)
    assert json.loads(done.stdout.splitlines()[-1]) == [0, "/", "s"], done.stderr
    assert (checkout / "secret").read_text() == "\n"
    said = (checkout / "prompt").read_text()
    assert said.startswith("A merge of git has met conflicts")
    assert said.endswith("The files:\n- a.txt\n- b c.txt")
    resolved(bench, checkout, prompt=["Resolve ", "it."])
    assert (checkout / "prompt").read_text().startswith("Resolve it.\n")


@pytest.mark.parametrize(
    ("script", "more", "words"),
    [
        ("exit 3", "", "fake ended with exit code 3"),
        ("true", "wrong = 1\n", "gate.conflict_resolution: "),
    ],
)
def test_an_agent_that_fails_leaves_the_conflict(
    bench: Bench, tmp_path: Path, script: str, more: str, words: str
) -> None:
    install(bench, script, more=more)
    assert words in resolved(bench, tmp_path).stderr


def test_a_gate_with_an_agent_is_not_repeated_after_an_end_that_nobody_knows() -> None:
    from headway.core.model import RetryPolicy

    node = {"args": {"auto_resolve": True}}
    job = Job(1, "n", "gate", Status.RUNNING, 0, 1, {"workflow": node}, 1, 1)
    job = job._replace(retry=RetryPolicy(3))
    assert calls_agent(job)
    for ending, again in ((Ending.OUTCOME_UNKNOWN, False), (Ending.EXITED, True)):
        ended = settle(job, Outcome(ending, 2, exit_code=1))
        assert (getattr(ended, "retry", None) is not None) is again
