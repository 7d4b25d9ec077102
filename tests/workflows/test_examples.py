"""The three examples of files, from their first node to their last, with small programs."""

import os
from pathlib import Path

import pytest
from fake_agents import install, result
from scratch import IDENTITY, Scratch
from started import Started

from both_stores import on_a_file
from harness import Bench

pytestmark = on_a_file
EXAMPLES = Path(__file__).parent / "examples"
# It plans; it writes what is wrong until it is told what the checks said; and it merges.
AGENT = f"""\
case "$PROMPT" in
Plan*) {result(text="# The plan", cost_usd=0.5)} ;;
*conflict*) echo both > feature; {result(text="resolved", cost_usd=0.5)} ;;
*"ci saw bad"*) echo good > feature; {result(text="mended", cost_usd=0.5)} ;;
*) echo bad > feature; {result(text="written", cost_usd=0.5)} ;;
esac
"""


@pytest.fixture
def scratch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    monkeypatch.chdir(bench.folder)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    path = f"{bench.folder}/bin{os.pathsep}{os.environ['PATH']}"
    bench.client.context.environ = {**bench.client.context.environ, "PATH": path}
    return Scratch(bench.folder)


def program(scratch: Scratch, name: str, script: str) -> None:
    scratch.write(name, f"#!/bin/sh\n{script}\n").chmod(0o755)


@pytest.mark.req("V21", "V22", "V24", "V26")
def test_a_change_is_planned_approved_built_and_merged(bench: Bench, scratch: Scratch) -> None:
    """Red, then green; a person who agrees; and a conflict that the agent resolves in the worktree
    of the run, after which the checks run once more."""
    install(bench, AGENT, name="claude")
    scratch.write(".headway/prompts/plan.md", "Plan ${{ args.spec }}")
    scratch.write(".headway/prompts/code.md", "Build it. ${{ last.ci.tail }}")
    program(scratch, "ci.sh", 'read n < feature; echo "ci saw $n"; test "$n" != bad')
    program(scratch, "bin/notify", "true")
    scratch.git("add", "ci.sh")
    scratch.commit("checks")
    text = (EXAMPLES / "change.toml").read_text()
    run = Started(bench, text, "login", spec="$(false) 'quoted'")
    bench.until(lambda: run.node("agree")["state"] == "waiting_on_approval", "the question")
    scratch.write("feature", "ours\n")
    scratch.git("add", "feature")
    scratch.commit("ours")
    bench.client.jobs.approve(run.job("agree"))
    ended = run.ended()
    assert ended["state"] == "succeeded", ended
    passes = {each["id"]: each["pass"] for each in ended["nodes"] if each["pass"] > 1}
    assert passes == {
        **dict.fromkeys(("code.prompt", "code", "commit", "merge", "resolve"), 2),
        "ci": 3,
    }
    assert run.outcomes()["give_up"] == run.outcomes()["resolve"] == "skipped"
    assert (scratch.path / "feature").read_text() == "both\n"
    message = scratch.message("main")
    assert "# The plan" in message and "$(false) 'quoted'" in message
    assert ended["spent"]["usd"] == 2.0
    assert not os.path.exists(scratch.path / ".headway" / "worktrees" / run.node("tree")["job"])


def test_a_release_is_built_tested_and_published(bench: Bench, scratch: Scratch) -> None:
    scratch.write(
        "Makefile",
        ".PHONY: dist\ndist:\n\techo sha256=1f >> $$HEADWAY_OUTPUTS\nupload:\n\t@echo $(VERSION) $$SHA256\n",
    )
    program(scratch, "list-shards", """echo 'shards:=["a", "b"]' >> $HEADWAY_OUTPUTS""")
    program(scratch, "slow-test", 'test -n "$1"')
    program(scratch, "bin/ruff", "exit 1")
    for name in ("tox", "notify"):
        program(scratch, f"bin/{name}", "true")
    scratch.write("dist/app.tar", "")
    text = (EXAMPLES / "release.toml").read_text()
    run = Started(bench, text, "1.2.3", publish="true")
    bench.until(lambda: run.node("publish")["state"] == "waiting_on_approval", "the question")
    assert run.outcomes()["lint"] == "failed", "which is tolerated"
    bench.client.jobs.approve(run.job("publish"))
    assert run.ended()["state"] == "succeeded", run.document
    assert run.log("publish").splitlines()[-1] == "1.2.3 1f"
    assert run.outcomes()["slow[1]"] == "succeeded" and run.outcomes()["alarm"] == "skipped"


@pytest.mark.parametrize("full", ["true", "false"])
def test_a_night_is_reported(bench: Bench, scratch: Scratch, full: str) -> None:
    program(scratch, "disk-report", f"echo full:={full} >> $HEADWAY_OUTPUTS")
    program(scratch, "bin/mail-report", 'echo "$@"')
    program(scratch, "bin/headway", 'echo "$@"')
    text = (EXAMPLES / "nightly.toml").read_text().replace("/var/cache/builds", "bin")
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded", run.document
    assert run.outcomes()["prune"] == ("succeeded" if full == "true" else "skipped")
    assert run.outcomes()["backup"] == "succeeded"
    assert run.log("report") == f"wf-{run.run} succeeded\n"
