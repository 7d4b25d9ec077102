"""`make openapi` calls it, too: the table of docs/mcp.md anew, from the table of tools."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.mcp.tool import McpTool
from headway.mcp.tools import TOOLS

PAGE = Path(__file__).with_name("mcp.md")


def table() -> str:
    lines = ["| tool | what it does | takes | hints | at most |", "|---|---|---|---|---|"]
    for tool in TOOLS:
        words = ", ".join(_word(name, tool.shape) for name in tool.shape["properties"])
        cells = (f"`{tool.name}`", tool.about, words or "nothing", _hints(tool), tool.bounds)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _word(name: str, shape: Mapping[str, Any]) -> str:
    return f"**`{name}`**" if name in shape.get("required", ()) else f"`{name}`"


def _hints(tool: McpTool) -> str:
    hints = tool.hints
    words = ["read-only" if hints.reads else "", "destructive" if hints.destructive else ""]
    words.append("open world" if hints.open_world else "closed world")
    if "key" in tool.shape["properties"]:
        words.append("idempotent with `key`")
    return ", ".join(filter(None, words))


def page(before: str) -> str:
    """docs/mcp.md with its table as it is now."""
    marks = r"(<!-- tools: .*? -->\n).*?(<!-- end of tools -->)"
    return re.sub(marks, lambda found: f"{found[1]}{table()}\n{found[2]}", before, flags=re.S)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE.name}: {len(TOOLS)} tools")
