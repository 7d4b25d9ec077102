"""A shell never runs what a reference stands for."""

import pytest

from headway.workflows.compiler import check_text, compile_text
from headway.workflows.mistakes import WorkflowError
from headway.workflows.model import WorkflowFile

WORDS = "shell takes no ${{ }}, because the shell would run the value; put it into env"
TOP = """
[params]
title = "x"
program = "echo"
list = { type = "list", default = [] }
[nodes.a]
"""
PART = """
params.word = "x"
[nodes.b]
argv = ["bash", "-euo", "pipefail", "-c", "echo ${{ params.word }}"]
"""


def load(name: str) -> WorkflowFile:
    return WorkflowFile(name, f"{name}.toml", PART)


def found(text: str) -> list[str]:
    _, problems = check_text(text, name="flow", file="flow.toml", limit=100, load=load)
    try:
        problems.raise_if_any()
    except WorkflowError as error:
        return [each.words for each in error.mistakes]
    return []


@pytest.mark.parametrize(
    "node",
    [
        "argv = ['sh', '-c', 'echo ${{ params.title }}']",
        "argv = ['env', 'A=1', '/bin/sh', '-ec', 'ls; ${{ params.title }}']",
        "argv = ['sh', '-c', 'echo ${{ run.id }}']",
        "argv = ['sh', '-c', 'echo ${{ matrix.x }}']\nmatrix.x = [1, 2]",
        "uses = 'control.gate.cicd'\nargv = ['sh', '-c', '${{ params.title }}']",
        "uses = 'control.gate.conflict_resolution'\nargs.slug = '${{ params.title }}'\n"
        "argv = ['sh', '-c', '${{ args.slug }}']",
        "argv = ['sh', '-c', '${{ item }}']\neach = { in = '${{ params.list }}' }",
    ],
)
def test_a_reference_in_the_script_of_a_shell_is_refused(node: str) -> None:
    """# faults H5, J5"""
    assert found(TOP + node) == [f"node 'a': {WORDS}"]


@pytest.mark.parametrize(
    "node",
    [
        "argv = ['sh', '-c', 'echo \"$1\"', 'sh', '${{ params.title }}']",
        "argv = ['sh', 'script.sh', '${{ params.title }}']",
        "shell = 'echo \"$T\"'\nenv.T = '${{ params.title }}'",
        "argv = ['echo', '${{ params.title }}']",
        "argv = ['git', '-c', '${{ params.title }}', 'status']",
    ],
)
def test_what_is_only_text_is_left_alone(node: str) -> None:
    assert found(TOP + node) == []


def test_a_script_of_what_is_imported_is_refused_by_its_name() -> None:
    text = TOP + "argv = ['true']\n[imports.part]\nworkflow = 'part'\n"
    assert found(text) == [f"node 'part.b': {WORDS}"]


@pytest.mark.parametrize("title", ["x", "${{ run.id }}"])
def test_a_value_may_be_the_shell_itself(title: str) -> None:
    text = TOP + "argv = ['${{ params.program }}', '-c', '${{ params.title }}']\n"
    assert found(text) == []
    at = {"name": "flow", "file": "flow.toml", "limit": 100}
    compile_text(text, {"title": title}, **at)  # type: ignore[arg-type]
    with pytest.raises(WorkflowError, match="shell takes no"):
        compile_text(text, {"title": title, "program": "/bin/sh"}, **at)  # type: ignore[arg-type]
