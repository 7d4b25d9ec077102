"""What the program has, the documentation names: a new setting, gate or event needs its row."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from headway.base import errors
from headway.core.gates import GATES
from headway.core.model import WaitKind
from headway.core.settle import UNKNOWABLE
from headway.core.states import API_STATUS, Status
from headway.jobs import wait as waiting
from headway.jobs.settings import SETTINGS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "headway"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@cache
def rows(page: str) -> dict[str, list[str]]:
    """The rows of all tables of a page, by each code word in their first two cells."""
    found: dict[str, list[str]] = {}
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for word in re.findall(r"`([^`]+)`", " ".join(cells[:2])):
            found.setdefault(word, cells)
    return found


def shown_default(value: object) -> str:
    if value in ("", ()):
        return "empty"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(texts()[path])))


@cache
def event_kinds() -> set[str]:
    """Literal kinds of `Event(...)`; the others are status values."""
    kinds = {status.value for status in Status}
    for path, text in texts().items():
        if "Event(" not in text:
            continue
        for node in nodes_of(path):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Event"):
                continue
            kind = node.args[0]
            if isinstance(kind, ast.Constant):
                kinds.add(kind.value)
            else:
                by_status = ast.unparse(kind).endswith("status.value")
                assert by_status or path.name == "events.py", f"{path}: {ast.unparse(node)}"
    return kinds


@cache
def wait_kinds() -> set[str]:
    """Every kind that some module of the program gives to a wait or a block."""
    used = set()
    for path, text in texts().items():
        if path.name in ("model.py", "plan.py") or "WaitKind." not in text:
            continue  # the declaration, and the table of how each is shown
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "WaitKind":
                used.add(WaitKind[node.attr].value)
    return used


def exit_codes() -> set[int]:
    codes = {0, 2, 130}  # done, and what click and an interrupt give
    for each in vars(errors).values():
        if isinstance(each, type) and issubclass(each, errors.HeadwayError):
            codes.add(each.exit_code)
    tree = ast.parse(Path(waiting.__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "exit_code_of":
            returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
            codes |= {each.value for each in returned if isinstance(each, ast.Constant)}
    return codes


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_is_documented_with_its_default(key: str) -> None:
    cells = rows("settings.md").get(key)
    assert cells is not None, f"docs/settings.md has no row for {key}"
    assert cells[1].strip("`") == shown_default(SETTINGS[key].default)
    assert cells[2], key


def test_no_setting_is_documented_that_does_not_exist() -> None:
    documented = {word for word in rows("settings.md") if re.fullmatch(r"[a-z]+(\.[a-z_]+)+", word)}
    assert documented == set(SETTINGS)


def test_every_wait_kind_is_documented_with_what_clears_it() -> None:
    for kind in sorted(wait_kinds()):
        cells = rows("concepts.md").get(kind)
        assert cells is not None and len(cells) == 4 and all(cells), kind


def test_every_wait_kind_is_given_by_a_gate() -> None:
    assert {kind.value for kind in WaitKind} == wait_kinds()


def test_the_gates_are_documented_in_their_order() -> None:
    table = (DOCS / "concepts.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| (\d+) \| `(\w+)` \|", table, re.M)
    assert documented == [(str(n), gate.name) for n, gate in enumerate(GATES, 1)]


@pytest.mark.parametrize("status", Status)
def test_every_status_is_documented_with_its_projection(status: Status) -> None:
    cells = rows("concepts.md").get(status.value)
    assert cells is not None, status
    assert f"`{API_STATUS[status]}`" in cells[2], cells


def test_every_event_kind_is_documented() -> None:
    missing = event_kinds() - set(rows("events.md"))
    assert not missing, f"docs/events.md has no row for {sorted(missing)}"


def test_no_event_kind_is_documented_that_nobody_writes() -> None:
    text = (DOCS / "events.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == event_kinds()


@pytest.mark.parametrize("code", sorted(exit_codes()))
def test_every_exit_code_is_documented(code: int) -> None:
    text = (DOCS / "guarantees.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {code} \|", text, re.M), code


@pytest.mark.parametrize("ending", sorted(UNKNOWABLE))
def test_every_verdict_of_recovery_is_documented(ending: str) -> None:
    assert f"`{ending}`" in (DOCS / "guarantees.md").read_text(encoding="utf-8")


def test_every_variable_of_a_job_is_documented() -> None:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    source = "".join(texts().values())
    internal = {"HEADWAY_COMING_FD", "HEADWAY_COMPLETE"}
    for name in sorted(set(re.findall(r"HEADWAY_[A-Z][A-Z_]*[A-Z]", source)) - internal):
        assert name in text, name


def first_cells(page: Path, title: str) -> list[list[str]]:
    """The first cells of the rows of each table that begins with this title."""
    text = page.read_text(encoding="utf-8")
    tables = re.findall(rf"^\| {title} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M)
    return [[row.split("|")[1].strip() for row in rows.splitlines()] for rows in tables]


@pytest.mark.parametrize(("page", "title"), [("cli.md", "option"), ("backup.md", "check")])
def test_nothing_is_documented_twice_in_one_table(page: str, title: str) -> None:
    tables = first_cells(DOCS / page, title)
    assert tables
    for cells in tables:
        assert len(set(cells)) == len(cells), cells


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path = target.partition("#")[0]
        assert not path or (page.parent / path).exists(), f"{page.name}: {target}"


@cache
def anchors(page: Path) -> set[str]:
    """Where a link with `#` can lead: the headings of a page, spelled as GitHub does."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_anchor_of_a_link_is_a_heading(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if anchor and "://" not in target:
            there = page.parent / path if path else page
            assert anchor in anchors(there.resolve()), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_named_in_the_text_exists(page: Path) -> None:
    for path in re.findall(r"`((?:tests|src)/[\w/.]+\.py)`", page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), path


def test_every_page_is_in_the_index() -> None:
    """Of a folder the index has its README, which has the pages of the folder."""
    top = DOCS / "index.md"
    for page in set(DOCS.rglob("*.md")) - {top}:
        of_folder = page.parent != DOCS and page.name != "README.md"
        index = page.with_name("README.md") if of_folder else top
        name = page.relative_to(index.parent)
        assert f"({name})" in index.read_text(encoding="utf-8"), page


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_a_page_begins_with_its_question_and_a_command(page: Path) -> None:
    title, beginning = page.read_text(encoding="utf-8").split("\n\n", 1)
    assert title.startswith("# ")
    assert re.match(r"\*\*[^*]+\?\*\*", beginning), f"{page.name} begins with no question"
    answer = re.split(r"^(?:\||## )", beginning, maxsplit=1, flags=re.M)[0]
    assert re.search(r"(?:`|^)(?:headway|make) |^client = ", answer, re.M), page.name
