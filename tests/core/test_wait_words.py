"""Why a job does not start is said with the words of one module."""

import ast
from pathlib import Path

import pytest

import headway

SOURCE = Path(headway.__file__).parent
DECIDE = sorted([*(SOURCE / "core").rglob("*.py"), SOURCE / "worker" / "planner.py"])


def _texts(call: ast.Call) -> list[str]:
    """The details and remedies that are written out where a wait or a block is made."""
    said = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "remedy")]
    return [
        ast.unparse(each)
        for each in said
        if isinstance(each, ast.JoinedStr | ast.Constant)
        and ast.unparse(each) != "f'{answer.trouble}'"
    ]


@pytest.mark.parametrize("path", DECIDE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_gate_says_why_with_the_words_of_waits(path: Path) -> None:
    calls = (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.Call))
    made = [
        each
        for each in calls
        if isinstance(each.func, ast.Name) and each.func.id in ("Wait", "Block")
    ]
    assert [text for call in made for text in _texts(call)] == []
