"""The example of a change by an agent runs, from a specification to a merged branch."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import Bench
from headway.base.trust import record
from headway.workflows.files import read_file
from headway.workflows.runs import show_run
from headway.workflows.start import RunRequest, compile_run, start

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent-change"
# Stands for the agent's program: forgets the point at first, and mends it when the checks say so.
AGENT = """#!/bin/sh
PROMPT=$(cat)
case "$PROMPT" in
  *"Write a plan"*) TEXT="write login.txt" ;;
  *"does not say how"*) echo "to log in, use your key" > login.txt; TEXT=mended ;;
  *) echo "use your key" > login.txt; TEXT=done ;;
esac
printf '{"type": "result", "text": "%s", "cost_usd": 0.5}\\n' "$TEXT"
"""
RUNNER = 'argv = ["{program}", "--tools={{allowed_tools}}"]\nprompt = "stdin"\nparser = "jsonl"\n'
WHO = {
    f"GIT_{who}_{what}": "ann@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=folder, env=os.environ | WHO, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.req("V5", "V24")
def test_a_specification_becomes_a_merged_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "change"
    shutil.copytree(EXAMPLE, folder)
    for name, value in WHO.items():
        monkeypatch.setenv(name, value)
    program = tmp_path / "agent"
    program.write_text(AGENT)
    program.chmod(0o755)
    workflow = folder / ".headway" / "workflows" / "change.toml"
    workflow.write_text(workflow.read_text().replace('"claude"', '"small"'))
    (folder / ".headway" / "runners").mkdir()
    (folder / ".headway" / "runners" / "small.toml").write_text(RUNNER.format(program=program))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "begin")
    record(str(folder / ".headway"))  # as `headway trust` of the README does
    monkeypatch.chdir(folder)
    bench = Bench(folder)
    context = bench.client.context
    request = RunRequest(words=("fix-login",), params={"spec": "login.txt says how to log in"})
    file = read_file(context.home, "change", context.folder)
    run = start(context, compile_run(context, file, request), request).run

    def node(name: str) -> dict[str, object]:
        return next(each for each in show_run(context, run)["nodes"] if each["id"] == name)

    bench.until(lambda: node("agree")["state"] == "waiting_on_approval", "the question")
    assert "write login.txt" in git(folder, "show", "draft/fix-login:.headway/plans/fix-login.md")
    assert f"headway approve {node('agree')['job']} " in (EXAMPLE / "README.md").read_text()
    bench.client.jobs.approve(str(node("agree")["job"]))
    bench.until(lambda: show_run(context, run)["ended_at"], "the run to end")
    ended = show_run(context, run)
    assert ended["state"] == "succeeded", ended["reason"]
    assert node("ci")["pass"] == 2 and ended["spent"]["usd"] == 1.5
    assert (folder / "login.txt").read_text() == "to log in, use your key\n"
    assert "write login.txt" in git(folder, "log", "-1", "--format=%B", "main")
    assert len(git(folder, "log", "--format=%h", "main").split()) == 2
    bench.close()
