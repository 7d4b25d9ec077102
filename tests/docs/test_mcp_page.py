"""docs/mcp.md has every tool and option of `headway mcp`."""

import importlib.util
import re
from pathlib import Path

import pytest

from headway.mcp.tool import Submits
from headway.mcp.tools import TOOLS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")

_found = importlib.util.spec_from_file_location("mcp_tools", ROOT / "docs" / "mcp_tools.py")
assert _found is not None and _found.loader is not None
script = importlib.util.module_from_spec(_found)
_found.loader.exec_module(script)


def test_the_table_is_what_the_tools_say() -> None:
    assert script.page(PAGE) == PAGE, "`make openapi` writes it anew"


@pytest.mark.parametrize("tool", [each.name for each in TOOLS])
def test_every_tool_is_there(tool: str) -> None:
    assert f"\n| `{tool}` |" in PAGE


@pytest.mark.parametrize("word", list(Submits))
def test_every_rule_about_submits_is_there(word: Submits) -> None:
    assert re.search(rf"^\| `{word}`", PAGE, re.M)
