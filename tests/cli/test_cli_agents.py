"""Agent jobs and runners on the command line."""

import json
import sys
from pathlib import Path

import pytest
from commandline import CommandLine

SPEAKER = Path(__file__).parents[1] / "integrations" / "agents" / "speaker.py"


def install(headway: CommandLine, name: str) -> None:
    folder = headway.folder / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {SPEAKER} {name} "$@"\n')
    script.chmod(0o755)
    headway.env["PATH"] = f"{folder}:{headway.env['PATH']}"


def test_an_agent_is_run_and_shown(headway: CommandLine) -> None:
    install(headway, "claude")
    (headway.folder / "task.md").write_text("do it\n")
    done = headway("exec", "--prompt-file", "task.md", "--model", "opus")
    assert done.stdout == "all is well\n"
    assert done.stderr.startswith("headway: claude done; 2 turns, 1200 tokens in, 7 out, $0.0125")
    shown = headway.out("jobs", "show", "1")
    for words in ("runner     claude", "prompt     do it", "cost       $0.0125", "all is well"):
        assert words in shown, words
    job = headway.json("jobs", "show", "1")["job"]
    assert job["type"] == "agent" and job["params"]["agent"]["model"] == "opus"
    assert job["run"]["result"]["ok"] is True
    done = headway("exec", "--runner", "claude", "--prompt", "denied", code=1)
    assert "headway: job-2 failed: claude was denied Bash" in done.stderr
    assert "denied      Bash" in headway.out("jobs", "show", "2")


def test_the_stream_of_an_agent_is_told_in_lines_or_raw(headway: CommandLine) -> None:
    install(headway, "claude")
    raw = headway("exec", "--raw", "--prompt", "do it")
    documents = [json.loads(line) for line in raw.stdout.splitlines()]
    assert [each["type"] for each in documents] == ["system", "result"]
    assert headway.out("jobs", "tail", "1") == "all is well"
    assert headway.out("jobs", "tail", "--raw", "1") == raw.stdout.strip()
    assert headway("jobs", "tail", "-f", "1").stdout == "all is well\n"
    denied = headway("submit", "--follow", "--prompt", "denied", code=1)
    assert denied.stdout.splitlines()[-2:] == ["! denied Bash", "all is well"]
    followed = headway("submit", "--follow", "--raw", "--prompt", "do it").stdout.splitlines()
    assert [json.loads(line)["type"] for line in followed[1:]] == ["system", "result"]
    refused = headway("submit", "--raw", "--prompt", "do it", code=2)
    assert "give --follow, too" in refused.stderr
    install(headway, "gemini")
    text = headway("exec", "--runner", "command", "--prompt", "x", "--", "echo", '{"a": 1}')
    assert text.stdout == '{"a": 1}\n'


def test_the_stream_of_a_runner_that_is_gone_is_shown_as_it_is(headway: CommandLine) -> None:
    own = headway.home / "runners"
    own.mkdir()
    script = """printf '{"type": "result", "text": "done"}\\n'"""
    (own / "mine.toml").write_text(
        f'argv = ["sh", "-c", {json.dumps(script)}]\nprompt = "stdin"\nparser = "jsonl"\n'
    )
    assert headway("exec", "--runner", "mine", "--prompt", "x").stdout == "done\n"
    (own / "mine.toml").unlink()
    assert headway.out("jobs", "tail", "1") == '{"type": "result", "text": "done"}'


def test_a_first_submit_without_its_program_leaves_nothing_behind(bare: CommandLine) -> None:
    bare.env["PATH"] = str(bare.folder)
    done = bare("submit", "--runner", "codex", "--prompt", "x", code=5)
    assert "codex is not installed: no program 'codex' on PATH" in done.stderr
    assert "--no-check skips this" in done.stderr
    assert not bare.home.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--runner", "claude"], "an agent needs a prompt"),
        (["--max-turns", "3", "--", "true"], "an agent needs a prompt"),
        (["--prompt", "x", "--prompt-file", "y"], "not both"),
        (["--prompt-file", "y"], "the prompt y cannot be read: No such file"),
        (["--prompt", "x", "--budget", "much"], "'much' is not a sum in dollars"),
        (["--prompt", "x", "--retry-on", "Error"], "transient, auth, limit"),
        (["--prompt", "x", "--runner", "../x"], "there is no runner '../x'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    bare: CommandLine, options: list[str], words: str
) -> None:
    done = bare("submit", "--no-check", *options, code=5)
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_agents_in_templates_and_graphs(still: CommandLine) -> None:
    install(still, "claude")
    asked = ["--runner", "claude", "--prompt", "{what}?", "--retry-on", "transient"]
    still("templates", "add", "ask", "--param", "what", *asked)
    assert still.json("templates", "show", "ask")["template"]["job"]["retries"] == 0
    still("submit", "--template", "ask", "--param", "what=$(touch x) {what}")
    agent = still.json("jobs", "show", "1")["job"]["params"]["agent"]
    assert agent["prompt"] == "$(touch x) {what}?"
    (still.folder / "p.md").write_text("from a file")
    still("submit", "--template", "ask", "--prompt-file", "p.md")
    assert still.json("jobs", "show", "2")["job"]["params"]["agent"]["prompt"] == "from a file"
    graph = still.folder / "g.json"
    graph.write_text(
        json.dumps(
            [
                {"id": "a", "prompt_file": "p.md", "max_turns": 3, "allowed_tools": ["Edit"]},
                {"id": "b", "argv": ["true"], "after": ["a"]},
            ]
        )
    )
    still("submit", "--graph", "g.json")
    agent = still.json("jobs", "show", "3")["job"]["params"]["agent"]
    assert agent == {
        "runner": "claude",
        "prompt": "from a file",
        "max_turns": 3,
        "allowed_tools": ["Edit"],
    }
    graph.write_text(json.dumps([{"id": "a", "runner": "claude"}, {"id": "b", "prompt": 3}]))
    told = still("submit", "--graph", "g.json", code=5).stderr
    assert "job 'a': an agent needs a prompt" in told and "job 'b': prompt is 3" in told


def test_the_runners_are_listed_and_shown(still: CommandLine) -> None:
    install(still, "gemini")
    own = still.home / "runners"
    own.mkdir()
    (own / "mine.toml").write_text('argv = ["nobody"]\nprompt = "stdin"\nparser = "text"\n')
    found = {each["name"]: each for each in still.json("runners", "list")["runners"]}
    assert set(found) == {"claude", "codex", "gemini", "command", "mine"}
    assert found["gemini"]["found"] == str(still.folder / "bin" / "gemini")
    assert found["gemini"]["found_without_submitter"] is None
    assert not found["mine"]["built_in"] and found["mine"]["found"] is None
    assert "no program 'nobody' on PATH" in still.out("runners", "show", "mine")
    still("runners", "show", "nobody", code=3)
    doctor = still("doctor", code=None).stdout
    assert "mine is not installed" in " ".join(doctor.split())
    (own / "mine.toml").write_text('argv = []\nprompt = "stdin"\nparser = "text"\n')
    assert "mine.toml: argv is no list of words" in still("runners", "show", "mine", code=5).stderr
    assert "broken: headway runners show mine" in still.out("runners", "list")


def test_a_waiting_agent_can_be_edited_but_for_its_prompt(still: CommandLine) -> None:
    still("submit", "--no-check", "--prompt", "x", "--delay", "1h")
    still("jobs", "edit", "1", "--name", "other", "--timeout", "5m")
    job = still.json("jobs", "show", "1")["job"]
    assert job["name"] == "other" and job["params"]["timeout_seconds"] == 300
    assert job["params"]["agent"]["prompt"] == "x" and "argv" not in job["params"]
    done = still("jobs", "edit", "1", "--", "true", code=5)
    assert "job-1 has a prompt and no command to change" in done.stderr


def test_a_parked_runner_is_shown_and_resumed(headway: CommandLine) -> None:
    install(headway, "claude")
    assert "claude was not parked" in headway("runners", "resume", "claude").stderr
    headway("submit", "--prompt", "refused")
    done = headway("wait", "1", "--timeout", "5s", code=124)
    assert "claude is parked: claude: bad key" in headway.out("why", "2"), done
    assert "parked until resumed: claude: bad key" in headway.out("runners", "list")
    assert headway.json("runners", "show", "claude")["runner"]["parked"]["job"] == "job-1"
    assert "claude may go on" in headway("runners", "resume", "claude").stderr
    headway("runners", "resume", "nobody", code=3)
