"""A point acts at the visit that was asked for, in one process, and otherwise not at all."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PASSES = "from headway.base.crashpoints import reach\nfor name in 'abbab': reach(name); print(name)"


def passing(**environ: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-u", "-c", PASSES], env=environ, capture_output=True, text=True
    )
    return done.returncode, "".join(done.stdout.split())


@pytest.mark.parametrize(
    ("points", "passed"),
    [
        ("a=kill", ""),
        ("b=kill@2", "ab"),
        ("b=kill@9,a=kill@2", "abb"),
        ("*=kill@5", "abba"),
    ],
)
def test_a_process_dies_at_the_visit_that_was_asked_for(
    points: str, passed: str, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    result = passing(HEADWAY_POINTS=points, HEADWAY_TEST_MARK=str(mark))
    assert result == (-signal.SIGKILL, passed)
    name, pid = mark.read_text().split()
    assert name == "abbab"[len(passed)] and pid.isdigit()
    assert passing(HEADWAY_POINTS=points, HEADWAY_TEST_MARK=str(mark)) == (0, "abbab")


@pytest.mark.parametrize("points", ["", "c=kill", "a=kill@3", "*=kill@6"])
def test_a_process_that_visits_nothing_armed_goes_on(points: str) -> None:
    assert passing(HEADWAY_POINTS=points) == (0, "abbab")
