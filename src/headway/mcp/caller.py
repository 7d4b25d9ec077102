"""One call of a tool: its arguments are checked, its handler runs in a thread in the name of the
agent, and its answer is bounded. Nothing here knows the protocol.
"""

import asyncio
import logging
import os
import threading
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from headway.base.environment import present_umask
from headway.base.errors import ConflictError, HeadwayError
from headway.base.shapes import ShapeMistake, WrongRequestError, check_texts, mistakes
from headway.base.verb_threads import VerbThreads
from headway.client import Client
from headway.core.principals import AGENT, Principal, Role
from headway.mcp.answers import bounded, data
from headway.mcp.tool import Answer, McpTool, SubmitRule, ToolCall

MOST_WAITS = 16
log = logging.getLogger(__name__)


def agent(name: str | None) -> Principal:
    """Who calls the tools: never a person, and of jobs it changes its own."""
    actor = "mcp" if name is None else f"mcp:{name}"
    return Principal(actor, actor, AGENT, Role.SUBMIT)


class Opened(NamedTuple):
    """A client, and whether it has a store; an empty home may get one at any time."""

    client: Client
    has_store: bool


Connect = Callable[[bool], Opened]  # with True it makes a home where none is


class HomeClient:
    """The client of one thread. While there is no store, each call looks for one again."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._opened: Opened | None = None

    def use(self, *, makes_home: bool) -> Client:
        if self._opened is None or not self._opened.has_store:
            self.close()
            self._opened = self._connect(makes_home)
        return self._opened.client

    def close(self) -> None:
        if self._opened is not None:
            self._opened.client.close()
        self._opened = None


class CallOutcome(NamedTuple):
    """What a client is sent; of a refusal it has the kind and what was said."""

    answer: Answer
    refused: bool = False


class ToolCaller:
    """Calls tools side by side: what waits has threads for itself, so nothing else waits for it."""

    def __init__(self, connect: Connect, principal: Principal, rule: SubmitRule) -> None:
        self._principal = principal
        self._rule = rule
        self._umask = present_umask()
        self._waits = 0
        self._verbs = VerbThreads(partial(HomeClient, connect))
        self._waiters = VerbThreads(partial(HomeClient, connect), MOST_WAITS)

    async def call(self, tool: McpTool, given: Mapping[str, Any]) -> CallOutcome:
        gone = threading.Event()
        try:
            _refuse_wrong(tool, given)
            return CallOutcome(bounded(await self._run(tool, given, gone)))
        except HeadwayError as error:
            return CallOutcome(bounded(refusal(error)), refused=True)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.error("%s failed:\n%s", tool.name, traceback.format_exc())
            said = "something unexpected went wrong; the server's stderr has more"
            return CallOutcome({"error": "unexpected", "data": {"detail": said}}, refused=True)
        finally:
            gone.set()

    async def _run(self, tool: McpTool, given: Mapping[str, Any], gone: threading.Event) -> Answer:
        def act(own: HomeClient) -> Answer:
            client = self._acting(own.use(makes_home=tool.makes_home))
            return tool.handler(ToolCall(client, self._principal, self._rule, given, gone))

        if not tool.waits:
            return await self._verbs.run(act)
        if self._waits >= MOST_WAITS:
            raise ConflictError(
                f"{self._waits} calls of {tool.name} are under way, which is the most; "
                "ask again when one of them has its answer"
            )
        self._waits += 1
        try:
            return await self._waiters.run(act)
        finally:
            self._waits -= 1

    def _acting(self, client: Client) -> Client:
        """In the name of the agent, where this process is and with its environment, as commands."""
        return client.acting(
            self._principal.actor,
            self._principal.kind,
            umask=self._umask,
            folder=os.getcwd(),
            environ=os.environ,
        )

    def close(self) -> None:
        self._verbs.close()
        self._waiters.close()


def _refuse_wrong(tool: McpTool, given: Mapping[str, Any]) -> None:
    found = list(mistakes(given, tool.shape))
    try:
        check_texts(given)
    except ValueError as error:
        found.append(ShapeMistake("", str(error)))
    if found:
        raise WrongRequestError(found)


def refusal(error: HeadwayError) -> Answer:
    """The kind of an error by the name of its class, and what it says, which may quote others."""
    words = type(error).__name__.removesuffix("Error")
    kind = "".join(f"-{each.lower()}" if each.isupper() else each for each in words)
    return {"error": kind.lstrip("-"), "data": data(detail=str(error))}
