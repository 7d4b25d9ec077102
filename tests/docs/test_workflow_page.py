"""Every workflow on the pages is right: it can be checked, with nothing wrong in it."""

import re
from pathlib import Path

import pytest

from headway.workflows.compiler import check_text

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```toml[^\n]*\n(.*?)^```", re.M | re.S)
# Of a part of a file: what it names stands in another part.
ELSEWHERE = re.compile("names no node|does not come before it|there is no parameter")
WORKFLOWS = [
    (page.name, block)
    for page in (DOCS / "workflows.md", DOCS / "operations.md", DOCS / "agents.md")
    for block in BLOCK.findall(page.read_text())
    if "[nodes." in block
]


@pytest.mark.parametrize(("page", "text"), WORKFLOWS, ids=lambda value: str(value)[:40])
def test_a_workflow_on_a_page_is_right(page: str, text: str) -> None:
    _, problems = check_text(text, name="w", file=page, limit=1000)
    assert [each.words for each in problems.mistakes if not ELSEWHERE.search(each.words)] == []


def test_there_are_some() -> None:
    assert len(WORKFLOWS) >= 5
