"""Homes with agents."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from toolbox import Agent, agent_of

from harness import Bench
from headway.mcp.tool import SubmitRule


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str | None:
    """The home's own; tests that prove both stores ask for the other one as well."""
    if getattr(request, "param", None) != "postgres":
        return None
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def make_agent(make_bench: Callable[..., Bench]) -> Iterator[Callable[..., Agent]]:
    """An agent by a rule about what it submits, in a home of the test's own or a given one."""
    with ExitStack() as stack:

        def make(
            rule: SubmitRule = SubmitRule(),  # noqa: B008
            *,
            bench: Bench | None = None,
            **options: Any,
        ) -> Agent:
            bench = bench or make_bench(max_active=4)
            return stack.enter_context(agent_of(bench, rule, **options))

        yield make


@pytest.fixture
def agent(make_agent: Callable[..., Agent]) -> Agent:
    return make_agent()
