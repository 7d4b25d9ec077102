"""The fixtures of these tests; what they hand out is in supervised.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from supervised import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["auto", "off"])
def cgroup(request: pytest.FixtureRequest) -> str:
    """With a cgroup where the machine has them, and without."""
    return str(request.param)
