"""A home with the tools as an agent has them: the official client, in the test's own process."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from anyio.from_thread import BlockingPortal, start_blocking_portal

from harness import Bench
from headway.client import Client
from headway.jobs.context import Context
from headway.mcp.caller import Opened, ToolCaller, agent
from headway.mcp.server import make_server
from headway.mcp.tool import SubmitRule, Submits
from mcp import Client as McpClient
from mcp import types
from ready import open_ready

FREE = SubmitRule(Submits.FREE)


class Told(NamedTuple):
    """What came back of a call."""

    answer: dict[str, Any]
    text: str
    refused: bool

    @property
    def detail(self) -> str:
        """Of a refusal: what was said."""
        assert self.refused, self.answer
        return str(self.answer["data"]["detail"])


class Agent:
    """An agent with the tools of a home. `bench` is the person's side of it."""

    def __init__(
        self, bench: Bench, portal: BlockingPortal, client: McpClient, caller: ToolCaller
    ) -> None:
        self.bench = bench
        self.portal = portal
        self.client = client
        self.caller = caller

    def tools(self) -> dict[str, types.Tool]:
        return {each.name: each for each in self.portal.call(self.client.list_tools).tools}

    def call(self, name: str, /, **given: Any) -> Told:
        return self.call_with(name, given)

    def call_with(self, name: str, given: Mapping[str, Any]) -> Told:
        return told(self.portal.call(self.client.call_tool, name, dict(given)))

    def ask(self, name: str, /, **given: Any) -> dict[str, Any]:
        """The answer of a call that is not refused."""
        got = self.call(name, **given)
        assert not got.refused, got.answer
        return got.answer

    def submit(self, *argv: str, **entry: Any) -> str:
        """The id of a new job."""
        return str(self.ask("submit_job", argv=list(argv or ("true",)), **entry)["job"]["id"])


def told(result: types.CallToolResult) -> Told:
    """The text and the structure of an answer are the same."""
    [content] = result.content
    assert isinstance(content, types.TextContent)
    answer = json.loads(content.text)
    assert answer == result.structured_content
    return Told(answer, content.text, result.is_error)


@contextmanager
def agent_of(
    bench: Bench,
    rule: SubmitRule = SubmitRule(),  # noqa: B008
    *,
    name: str | None = None,
    mode: str = "auto",
) -> Iterator[Agent]:
    def connect(makes_home: bool) -> Opened:
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        context = Context(
            *(bench.home, bench.config, open_ready(url, bench.clock), bench.clock),
            environ=bench.client.context.environ,
            actor="owner",
        )
        return Opened(Client(context), has_store=True)

    caller = ToolCaller(connect, agent(name), rule)
    try:
        with start_blocking_portal() as portal:
            made = McpClient(make_server(caller, rule), mode=mode)
            with portal.wrap_async_context_manager(made) as client:
                yield Agent(bench, portal, client, caller)
    finally:
        caller.close()
