"""What `import headway` gives, and what it costs."""

import subprocess
import sys
from pathlib import Path

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
