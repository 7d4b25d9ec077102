"""Agents of a workflow run: their prompts, what they leave, and where they are refused."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from fake_agents import install, result
from started import Started

from harness import Bench
from headway.supervise.evidence import Evidence
from headway.workflows.feed import RunFeed
from headway.workflows.mistakes import WorkflowError
from headway.workflows.new_file import starter_text

SAYS = result(
    text="the plan", session_id="s-1", turns=2, usage={"input": 100, "output": 20}, cost_usd=0.5
)
KEEPS = 'printf %s "$PROMPT" > "$HEADWAY_RESULT_FILE.prompt"\n'
LONG = """
params.spec = { type = "text" }
artifacts.plan_text.version = "1"
[nodes.ask]
uses = "cap.env.builtin.prompt.resolve"
args = { prompt_text = "Plan ${{ args.spec }} in ${{ run.id }}", spec = "${{ params.spec }}" }
produces = ["custom:prompt_text:plan"]
on.succeeded = ["plan"]
[nodes.plan]
uses = "cap.agent.invoke"
args = { runner = "fake", model = "m" }
needs = ["custom:prompt_text:plan"]
produces = ["custom:plan_text:plan"]
on.succeeded = ["use"]
[nodes.use]
argv = ["echo", "${{ nodes.plan.outputs.text }}", "${{ nodes.plan.outputs.cost_usd }}"]
needs = ["custom:plan_text:plan"]
"""


def kept_prompt(run: Started, node: str) -> str:
    path = Path(run.bench.home.job(run.job(node))) / "agent.json.prompt"
    return path.read_text()


def data_of(run: Started, artifact: str) -> Any:
    with run.bench.store.read() as tx:
        return tx.graph.markers([f"{artifact} wf-{run.run}"])[-1].data


@pytest.mark.req("V5", "V6", "V7")
def test_an_agent_follows_its_prompt_and_hands_on_its_answer(bench: Bench) -> None:
    install(bench, KEEPS + SAYS)
    run = Started(bench, LONG, spec="a ${{ run.name }} with 'quotes'")
    assert run.ended()["state"] == "succeeded", run.document
    assert kept_prompt(run, "plan") == "Plan a ${{ run.name }} with 'quotes' in wf-1"
    assert run.log("use") == "the plan 0.5\n"
    assert data_of(run, "custom:prompt_text:plan") == {"text": kept_prompt(run, "plan")}
    assert data_of(run, "custom:plan_text:plan") == {"text": "the plan"}
    outputs = data_of(run, "custom:operation_output:plan")["outputs"]
    assert outputs == {
        "text": "the plan",
        "session_id": "s-1",
        "turns": 2,
        "tokens": 120,
        "cost_usd": 0.5,
    }
    document = bench.client.document(run.job("plan"))
    assert document["type"] == "agent"
    assert document["workflow"]["executor_class"] == "agent"
    assert document["workflow"]["executor_operation"] == "agent.invoke"
    assert document["params"]["agent"]["prompt"] == "custom:prompt_text:plan"


def test_what_an_agent_leaves_in_its_file_becomes_outputs(bench: Bench) -> None:
    says = '{"structured": {"verdict": "good", "files": [1, 2], "text": "not mine"}}'
    install(bench, f"printf '%s' '{says}' > \"$HEADWAY_RESULT_FILE\"\n{SAYS}")
    run = Started(
        bench,
        """
        [nodes.judge]
        prompt = "judge it"
        args = { runner = "fake" }
        outputs = ["verdict", "files"]
        [nodes.use]
        argv = ["echo", "${{ nodes.judge.outputs.verdict }}", "${{ nodes.judge.outputs.files }}"]
        after = ["judge"]
        """,
    )
    assert run.ended()["state"] == "succeeded", run.document
    assert run.log("use") == "good [1, 2]\n"
    assert data_of(run, "custom:operation_output:judge")["outputs"]["text"] == "the plan"


@pytest.mark.req("V5")
def test_an_agent_that_fails_says_why_and_what_it_took(bench: Bench) -> None:
    install(bench, result(error="no model", cost_usd=0.25) + "; exit 1")
    run = Started(bench, '[nodes.a]\nprompt = "x"\nargs = { runner = "fake" }\n')
    assert run.ended()["state"] == "failed"
    assert run.node("a")["reason"] == "fake: no model"
    left = data_of(run, "custom:operation_output:a")
    assert left["outputs"]["cost_usd"] == 0.25 and left["outcome"] == "failed"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ('{ runner = "nobody" }', "there is no runner 'nobody'"),
        ('{ runner = "command" }', "runner command runs any program; name one that has its own"),
        ('{ runner = "fake", max_turns = "many" }', 'max_turns is "many"; give a whole number'),
        ('{ runner = "fake", model = "${{ run.state }}" }', "run.state is not known when it is"),
    ],
)
@pytest.mark.req("V5")
def test_an_agent_without_a_runner_is_refused_and_nothing_is_written(
    bench: Bench, args: str, words: str
) -> None:
    install(bench, SAYS)
    with pytest.raises(WorkflowError) as refused:
        Started(bench, f'[nodes.a]\nprompt = "x"\nargs = {args}\n')
    assert words in str(refused.value)
    with bench.store.read() as tx:
        assert tx.jobs.active() == [] and tx.workflows.since(0, 10) == []


# -- prompts -----------------------------------------------------------------------------------


def home_file(bench: Bench, name: str, text: str) -> Path:
    path = Path(bench.home.path).parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def prompt(text: str, more: str = "") -> str:
    return f"""
        params.who = "Ann"
        [nodes.ask]
        uses = "cap.env.builtin.prompt.resolve"
        args = {{ {text} }}
        produces = ["custom:prompt_text:p"]
        {more}
        """


def test_a_prompt_file_is_read_when_the_run_starts(bench: Bench) -> None:  # fault J7
    file = home_file(bench, "prompts/plan.md", "for ${{ params.who }}: ${{ args.x }}\n")
    gate = bench.submit("true", require_approval=True)
    text = prompt('prompt_file = "prompts/plan.md", x = 1')
    run = Started(bench, text, after=(gate,))  # type: ignore[arg-type]
    file.write_text("something else")
    bench.client.jobs.approve(gate)
    assert run.ended()["state"] == "succeeded"
    assert data_of(run, "custom:prompt_text:p") == {"text": "for Ann: 1\n"}
    with bench.store.read() as tx:
        (node,) = tx.workflows.manifest(run.run)["nodes"]
    assert node["args"]["prompt_text"] == "for ${{ params.who }}: ${{ args.x }}\n"


def test_a_prompt_takes_in_files_of_where_it_works(bench: Bench) -> None:
    home_file(bench, "notes.txt", "notes ${{ params.who }}")
    where = Path(bench.home.path).parent
    text = prompt('prompt_text = "<${{ file:notes.txt }}>"', f'cwd = "{where}"')
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded", run.document
    assert data_of(run, "custom:prompt_text:p") == {"text": "<notes ${{ params.who }}>"}


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("x ${{ spec }}", "prompt.resolve unresolved placeholder `${{ spec }}`"),
        ("${{ params.no }}", "prompt.resolve unresolved placeholder `${{ params.no }}`"),
        ("${{ last.no.tail }}", "prompt.resolve unresolved placeholder `${{ last.no.tail }}`"),
        ("${{ file:no.txt }}", "prompt.resolve: no.txt cannot be read: No such file or directory"),
        ("${{ file:large.txt }}", "prompt.resolve: the prompt is larger than 512 KiB"),
        ("${{ file:/etc/hosts }}", "/etc/hosts is outside of the repository"),
        ("  ", "prompt.resolve: the prompt is empty"),
    ],
)
def test_a_prompt_that_cannot_be_resolved_fails(bench: Bench, written: str, words: str) -> None:
    home_file(bench, "p.md", written)
    where = home_file(bench, "large.txt", "x" * ((512 << 10) + 1)).parent
    run = Started(bench, prompt('prompt_file = "p.md"', f'cwd = "{where}"'))
    assert run.ended()["state"] == "failed"
    assert run.node("ask")["reason"] == words


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("gone.md", "the prompt gone.md cannot be read: No such file or directory"),
        ("${{ nodes.ask.outcome }}", "'ask' does not come before it"),
        ("${{ run.id }}.md", "prompt_file: run.id is not known when it is queued"),
        ("out.md", "out.md is outside of the repository"),
        ("large.md", "large.md is larger than 512"),
    ],
)
def test_a_prompt_file_that_cannot_be_read_is_refused(bench: Bench, file: str, words: str) -> None:
    home_file(bench, "large.md", "x" * (513 << 10))
    Path(bench.home.path).parent.joinpath("out.md").symlink_to("/etc/hosts")
    with pytest.raises(WorkflowError) as refused:
        Started(bench, prompt(f'prompt_file = "{file}"'))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("printf 'to do: %s' \\\"$HEADWAY_NODE\\\"", None),
        ("echo half; exit 3", "prompt.resolve failed (exit 3)"),
        ("head -c 600000 /dev/zero | tr '\\\\0' x", "prompt.resolve: the prompt is larger than"),
        (
            "head -c 600000 /dev/zero | tr '\\\\0' x; exec sleep 600",
            "prompt.resolve: the prompt is larger than 512 KiB",
        ),
        ("printf '\\\\377'", "prompt.resolve: what the command prints is not UTF-8"),
    ],
)
def test_what_a_command_prints_is_the_prompt(bench: Bench, line: str, words: str | None) -> None:
    text = f"""
        [nodes.ask]
        uses = "cap.env.shell.prompt.resolve"
        shell = "{line}"
        produces = ["custom:prompt_text:p"]
        """
    run = Started(bench, text)
    run.ended()
    if words is None:
        assert data_of(run, "custom:prompt_text:p") == {"text": "to do: ask"}
    else:
        assert words in run.node("ask")["reason"]


# -- ends that nobody knows --------------------------------------------------------------------


@pytest.mark.parametrize("takes", ["failed", "blocked"])
def test_an_agent_whose_end_nobody_knows_is_not_repeated(bench: Bench, takes: str) -> None:
    install(bench, "exec sleep 600")
    text = f"""
        [nodes.code]
        prompt = "x"
        args = {{ runner = "fake" }}
        retries = 3
        loop = {{ to = "code", on = ["{takes}"], times = 3 }}
        """
    run = Started(bench, text)
    bench.until(lambda: run.node("code")["state"] == "running", "it to run")
    bench.until_begun()
    with bench.store.read() as tx:
        (claim,) = tx.claims.live()
    started = Evidence(claim.folder, claim.token).read_started()
    assert started is not None
    os.kill(started.supervisor_pid, signal.SIGKILL)  # it alone, so that nobody writes an outcome
    ended = run.ended()
    assert ended["state"] == "blocked" and run.outcomes()["code"] == "blocked"
    assert run.node("code")["pass"] == 1 and bench.last(run.job("code")).attempt == 1
    words = "; its loop ends, because nobody knows what the agent did"
    assert run.node("code")["reason"].endswith(words)


LOOP = """
[nodes.code]
prompt = "Do it. What the checks said: ${{ last.ci.tail }}!"
args = { runner = "fake" }
on.succeeded = ["ci"]
[nodes.ci]
uses = "control.gate.cicd"
shell = 'echo x >> "$N"; n=$(wc -l < "$N"); printf "check $n is $%s red }}" "{{"; test "$n" -ge 3'
env = { N = "FOLDER/n" }
loop = { to = "code", on = ["failed"], times = 3 }
on.succeeded = ["done"]
[nodes.done]
uses = "control.terminal"
"""


def test_the_third_prompt_has_what_the_second_check_said(bench: Bench, tmp_path: Path) -> None:
    install(bench, KEEPS + SAYS)
    run = Started(bench, LOOP.replace("FOLDER", str(tmp_path)))
    assert run.ended()["state"] == "succeeded", run.document
    assert run.node("code")["pass"] == 3
    said = kept_prompt(run, "code")
    assert "check 2 is ${{ red }}" in said and "check 1 is" not in said
    news = RunFeed(bench.client.context, run.run, since=0).news()
    assert [each.back_to for each in news if each.back_to] == ["code", "code"], "as the file has it"


def test_a_retry_from_an_agent_makes_its_prompt_anew(bench: Bench, tmp_path: Path) -> None:
    install(bench, KEEPS + SAYS)
    run = Started(bench, LOOP.replace("FOLDER", str(tmp_path)).replace("times = 3", "times = 1"))
    assert run.ended()["state"] == "blocked", run.document
    retried = bench.client.workflows.retry(run.run, from_node="code")
    assert {*retried.nodes} >= {"code.prompt", "code", "ci"}
    assert run.ended()["state"] == "succeeded", run.document
    assert "check 2 is" in kept_prompt(run, "code")


ITEMS = """
params.parts = { type = "list", default = ["a b", "c\\"d"] }
[nodes.review]
prompt = "Review ${{ item }} of ${{ run.id }}."
args = { runner = "fake" }
each = { in = "${{ params.parts }}" }
"""
ITEMS_IN_LONG = """
params.parts = { type = "list", default = ["x", "y"] }
[nodes.ask]
uses = "cap.env.builtin.prompt.resolve"
args = { prompt_text = "Review ${{ item }} as ${{ args.who }}.", who = "${{ item }}'s friend" }
each = { in = "${{ params.parts }}" }
produces = ["custom:prompt_text:p-${{ item }}"]
on.succeeded = ["review"]
[nodes.review]
uses = "cap.agent.invoke"
args = { runner = "fake" }
each = { in = "${{ params.parts }}" }
needs = ["custom:prompt_text:p-${{ item }}"]
"""


@pytest.mark.req("V6", "V7")
def test_an_agent_works_on_each_element_of_a_list(bench: Bench) -> None:
    install(bench, KEEPS + SAYS)
    run = Started(bench, ITEMS)
    assert run.ended()["state"] == "succeeded", run.document
    assert kept_prompt(run, "review[0]") == "Review a b of wf-1."
    assert kept_prompt(run, "review[1]") == 'Review c"d of wf-1.'
    assert run.document["spent"] == {"usd": 1.0, "tokens": 240}, "its fan is no agent"
    bench.client.jobs.repeat(run.job("review[1]"))
    assert run.ended()["state"] == "succeeded" and run.node("review[1]")["pass"] == 2


def test_an_agent_of_each_element_with_its_prompt_written_out(bench: Bench) -> None:
    install(bench, KEEPS + SAYS)
    run = Started(bench, ITEMS_IN_LONG)
    assert run.ended()["state"] == "succeeded", run.document
    assert kept_prompt(run, "review[1]") == "Review y as y's friend."


def test_an_element_that_is_skipped_is_so_with_its_prompt(bench: Bench) -> None:
    install(bench, KEEPS + SAYS)
    run = Started(bench, ITEMS + "when = ['${{ item }} != \"a b\"']\n")
    assert run.ended()["state"] == "succeeded", run.document
    outcomes = run.outcomes()
    assert outcomes["review.prompt[0]"] == outcomes["review[0]"] == "skipped"
    assert outcomes["review.prompt[1]"] == outcomes["review[1]"] == "succeeded"


def without(text: str, *nodes: str) -> str:
    """A workflow without these nodes, which need operations on git, and without what names them."""
    tables = re.split(r"(?m)^(?=\[)", text)
    kept = (each for each in tables if not each.startswith(tuple(f"[nodes.{n}]" for n in nodes)))
    lines = "".join(kept).splitlines()
    named = [f'"{each}"' for each in nodes]
    return "\n".join(line for line in lines if not any(each in line for each in named))


def test_the_starter_lets_an_agent_go_on_until_the_checks_are_green(
    bench: Bench, tmp_path: Path
) -> None:
    install(bench, KEEPS + result(text="done", cost_usd=0.5))
    text = without(starter_text("agent"), "tree", "commit", "tidy").replace('"claude"', '"fake"')
    check = f"echo x >> {tmp_path}/n; n=$(wc -l < {tmp_path}/n); echo check $n; test $n -ge 3"
    text = text.replace('["make", "test"]', json.dumps(["sh", "-c", check]))
    run = Started(bench, text, "fix-login", task="Correct the login.")
    ended = run.ended()
    assert ended["state"] == "succeeded", ended
    assert run.node("code")["pass"] == 3 and run.outcomes()["give_up"] == "skipped"
    said = kept_prompt(run, "code")
    assert "Correct the login." in said and "check 2" in said and "check 1\n" not in said
    assert ended["budget"] == {"usd": 5.0, "tokens": None} and ended["spent"]["usd"] == 1.5
