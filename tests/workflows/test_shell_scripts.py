"""Which values of a workflow a shell would run."""

from collections.abc import Sequence

import pytest

from headway.workflows.compiler import check_text, compile_text
from headway.workflows.model import WorkflowFile
from headway.workflows.shell_scripts import run_by_shell

TOP = """
[params]
title = "x"
other = "y"
list = []
[nodes.a]
"""
PART = """
params.word = "x"
[nodes.b]
argv = ["bash", "-euo", "pipefail", "-c", "echo ${{ params.word }}"]
"""


def load(name: str) -> WorkflowFile:
    return WorkflowFile(name, f"{name}.toml", PART)


def found(text: str, names: Sequence[str] = ("title", "list")) -> str | None:
    workflow, problems = check_text(text, name="flow", file="flow.toml", limit=100, load=load)
    problems.raise_if_any()
    return run_by_shell(workflow, names)


@pytest.mark.parametrize(
    ("node", "reference"),
    [
        ("argv = ['sh', '-c', 'echo ${{ params.title }}']", "params.title"),
        ("argv = ['env', 'A=1', '/bin/sh', '-ec', 'ls; ${{ params.title }}']", "params.title"),
        ("uses = 'control.gate.cicd'\nargv = ['sh', '-c', '${{ params.title }}']", "params.title"),
        (
            "uses = 'control.gate.conflict_resolution'\nargs.slug = '${{ params.title }}'\n"
            "argv = ['sh', '-c', '${{ args.slug }}']",
            "args.slug",
        ),
        ("argv = ['sh', '-c', '${{ item }}']\neach = { in = '${{ params.list }}' }", "item"),
    ],
)
def test_what_a_shell_would_run_is_found(node: str, reference: str) -> None:
    why = found(TOP + node)
    assert why is not None
    assert why.startswith(f"node 'a': ${{{{ {reference} }}}} stands in the script of sh -c, which")


@pytest.mark.parametrize(
    "node",
    [
        "argv = ['sh', '-c', 'echo ${{ params.other }}']",
        "argv = ['sh', '-c', 'echo \"$1\"', 'sh', '${{ params.title }}']",
        "argv = ['sh', 'script.sh', '${{ params.title }}']",
        "shell = 'echo \"$T\"'\nenv.T = '${{ params.title }}'",
        "argv = ['echo', '${{ params.title }}']",
    ],
)
def test_what_is_only_text_is_left_alone(node: str) -> None:
    assert found(TOP + node) is None


def test_a_value_reaches_the_scripts_of_what_is_imported() -> None:
    text = TOP + "argv = ['true']\n[imports.part]\nworkflow = 'part'\n"
    assert found(text) is None
    why = found(text + "params.word = '${{ params.title }}'\n")
    assert why is not None and "node 'part.b': ${{ params.part.word }} stands in" in why


def test_a_value_may_be_the_shell_itself() -> None:
    text = TOP + "argv = ['${{ params.other }}', '-c', '${{ params.title }}']\n"
    assert found(text) is None
    made = compile_text(text, {"other": "/bin/sh"}, name="flow", file="flow.toml", limit=100)
    assert run_by_shell(made.workflow, ["title"], made.nodes) is not None
