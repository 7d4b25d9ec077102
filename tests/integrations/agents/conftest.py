"""The fixture of these tests; what it hands out is in agents.py."""

from collections.abc import Callable

import pytest
from agents import Agents

from harness import Bench


@pytest.fixture
def agents(make_bench: Callable[..., Bench]) -> Agents:
    return Agents(make_bench(max_active=4))
