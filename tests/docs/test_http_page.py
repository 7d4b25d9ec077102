"""docs/http.md has every route, error and metric of the server."""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from harness import Bench
from headway.web import routes
from headway.web.metrics import Metrics, gauges
from headway.web.problems import MEANINGS, UNEXPECTED

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "http.md"
SOURCE = ROOT / "src" / "headway"
OF_HTTP = {"HttpProblem": 1, "problem": 1}  # what makes a refusal, and which argument has its title

_found = importlib.util.spec_from_file_location("openapi_tables", ROOT / "docs" / "openapi.py")
assert _found is not None and _found.loader is not None
script = importlib.util.module_from_spec(_found)
_found.loader.exec_module(script)


@cache
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def section(title: str) -> str:
    return text().split(f"\n## {title}\n")[1].partition("\n## ")[0]


def words(title: str) -> set[str]:
    """The words of code in the first cells of a section's tables."""
    cells = [line.split("|")[1] for line in section(title).splitlines() if line.startswith("|")]
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def test_the_tables_are_what_the_route_table_says() -> None:
    assert script.page(text()) == text(), "`make openapi` writes them anew"


def test_every_route_is_there() -> None:
    rows = section("Routes").splitlines()
    for route in routes.API_ROUTES:
        begin = f"| {route.method} `{route.path}` | {route.right.role.word}"
        public = f"| {route.method} `{route.path}` | none"
        assert any(row.startswith(public if route.right.public else begin) for row in rows), route


def refusals() -> set[str]:
    """The titles of refusals that the server makes itself."""
    found = {each.title for each in MEANINGS.values()} | {UNEXPECTED.title, "forbidden"}
    for path in [*(SOURCE / "web").rglob("*.py"), *(SOURCE / "admin").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in OF_HTTP:
                title = node.args[OF_HTTP[ast.unparse(node.func)]]
                if isinstance(title, ast.Constant):
                    found.add(title.value)
    return found


def test_every_error_is_there_and_no_other() -> None:
    assert words("Errors") == refusals()


def test_every_metric_is_there_and_no_other(bench: Bench) -> None:
    bench.client.schedules.add(name="nightly", cron="0 3 * * *", argv=["true"])
    said = gauges(bench.client) + Metrics().text()
    named = set(re.findall(r"^# TYPE headway_(\w+) ", said, re.M))
    assert {word.partition("{")[0] for word in words("Metrics")} == named
    kinds = dict(re.findall(r"^# TYPE headway_(\w+) (\w+)", said, re.M))
    for row in section("Metrics").splitlines():
        for word in re.findall(r"`(\w+)", row.split("|")[1]) if row.startswith("| `") else ():
            assert row.split("|")[2].strip() == kinds[word], word


@pytest.mark.parametrize("role", ["read", "submit", "operate", "admin"])
def test_every_role_is_there(role: str) -> None:
    assert role in words("Roles")


def test_every_event_of_a_stream_is_there() -> None:
    """Of those that are no kinds of the store's events."""
    source = (SOURCE / "web" / "streams.py").read_text(encoding="utf-8")
    assert set(re.findall(r'frame\(\s*"(\w+)"', source)) == words("Streams")
