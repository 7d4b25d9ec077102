"""What `import headway` gives, and what it costs."""

import subprocess
import sys
from pathlib import Path

import pytest

import headway
import headway.testing
from headway.taskoptions import OPTIONS

SOURCES = Path(__file__).parents[1] / "src"
HEAVY = (
    "apsw",
    "click",
    "rich",
    "tomlkit",
    "headway.engine",
    "headway.cli",
    "headway.store.sqlite",
)


def test_importing_headway_loads_nothing_heavy() -> None:
    script = "import sys, headway; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "headway" in loaded
    assert [name for name in loaded if name.startswith(HEAVY)] == []


def test_the_public_names_are_these() -> None:
    """One that is added or removed is a decision, and a line in the changelog."""
    assert headway.__all__ == [
        *("App", "Client", "HeadwayError", "InvalidInputError", "JobContext", "Retry", "Skip"),
        *("TaskFailedError", "TimedOutError", "condition", "connect", "current", "job", "poll"),
    ]
    assert all(getattr(headway, name) is not None for name in headway.__all__)
    assert sorted(public(headway.testing)) == ["FakeClock", "drain", "make_test_home", "using"]


def public(module: object) -> list[str]:
    """What the module itself defines for others."""
    own = {
        n: v for n, v in vars(module).items() if getattr(v, "__module__", "") == "headway.testing"
    }
    return [name for name in own if not name.startswith("_")]


@pytest.mark.parametrize("word", sorted(OPTIONS))
def test_every_option_of_a_task_is_documented(word: str) -> None:
    page = (SOURCES.parent / "docs" / "functions.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert any(f"`{word}`" in row.split("|")[1] for row in rows), word


def test_every_public_name_is_documented() -> None:
    pages = ("functions.md", "jobs-file-python.md")
    docs = SOURCES.parent / "docs"
    page = "".join((docs / each).read_text(encoding="utf-8") for each in pages)
    for name in {*headway.__all__, "drain", "using", "FakeClock"} - {"Client", "connect"}:
        assert name in page, name
